"""Rows in blocks read as rows in memory: the same numbers, and the same answers of searches in hindsight."""

import pickle

import numpy as np
import pytest

from conftest import many
from hindsight import cluster
from hindsight.certificates.best import best_fixed, comparator
from hindsight.certificates.best.constant import best_constant
from hindsight.cluster.blocks import View
from hindsight.cluster.rows import RunTable
from hindsight.kernels.entropic import Balanced
from hindsight.kernels.euclidean import Euclidean
from hindsight.kernels.losses import Absolute, Hinge, Logistic, Square
from hindsight.online.margins import each_loss, each_slope
from hindsight.rows.data import Data
from in_process import InProcess

CLOSE = {"rtol": 1e-12, "atol": 1e-12}


def both(rng, m=60, n=3, kind="real", bias=1.0):
    """The same rows in memory and in five blocks, one of which has no weight."""
    X, c = rng.normal(size=(m, n)) * 10.0 ** rng.uniform(-2, 2, n), rng.integers(0, 3, m).astype(float)
    c[:12], c[-1] = 0.0, 1.0
    y = X @ rng.normal(size=n) + rng.normal(size=m)
    y = {"real": y, "unit": (y > 0.0).astype(float), "sign": np.where(y > 0.0, 1.0, -1.0)}[kind]
    parts = [(X[k : k + m // 5], y[k : k + m // 5], c[k : k + m // 5]) for k in range(0, m, m // 5)]
    rows = cluster.read(parts, "y", weight="c", client=InProcess())
    return Data(X, y, c, bias), RunTable(rows, View("real", bias=bias))


def test_vectors_of_a_table_have_the_numbers_of_all_rows():
    rng = np.random.default_rng(0)
    for _ in range(many(5, 50)):
        whole, table = both(rng)
        u, loss = rng.normal(size=whole.width), Square(2.0)

        def numbers(rows, u=u, loss=loss):
            z, on = rows.margins(u), rows.c > 0.0
            slope = each_slope(loss, z, rows.y)
            near = np.where((z < rows.y) & on, np.clip(z, -1.0, 1.0), 2.0)
            yield from (rows.c @ each_loss(loss, z, rows.y), (rows.c * slope).sum(), (2.0 - z)[on].min())
            yield from (np.abs(z).max(), np.max(-z), near.sum(), float(on.any()), float((z < 1e9)[on].all()))
            yield from (np.full_like(z, 0.5) @ rows.c, rows.combine(rows.c * slope), rows.column_squares(rows.c))
            yield from rows.moments(rows.c, rows.c * rows.y)
            z, half = rows.residual_gradient(u, rows.c)
            yield from (half, rows.c @ z)

        for here, there in zip(numbers(table), numbers(whole), strict=True):
            np.testing.assert_allclose(here, there, **CLOSE)


def test_a_vector_of_a_table_is_neither_copied_nor_taken_for_a_truth_value():
    _, table = both(np.random.default_rng(1))
    for misuse in (np.array, bool, np.array_equal):
        with pytest.raises(TypeError):
            bool(misuse(table.y, table.c) if misuse is np.array_equal else misuse(table.y))
    found = pickle.loads(
        pickle.dumps((table.c * each_loss(Square(2.0), table.margins(np.zeros(4)), table.y)).expression)
    )
    assert len(pickle.dumps(found)) < 2000  # what is sent for a sum: no rows


SEARCHES = [
    (Square(2.0), "real", None),
    (Logistic(1.0), "unit", None),
    (Absolute(1.0), "real", None),
    (Hinge(1.0), "sign", None),
    (Square(2.0), "real", Balanced(2.0)),
]


@pytest.mark.parametrize(("loss", "kind", "geometry"), SEARCHES, ids=lambda value: type(value).__name__)
def test_what_is_best_in_hindsight_is_found_in_blocks_as_in_memory(loss, kind, geometry):
    rng = np.random.default_rng(2)
    for _ in range(many(3, 30)):
        whole, table = both(rng, kind=kind, bias=0.0 if geometry else 1.0)
        here, there = (best_fixed(rows, loss, rows.c, geometry) for rows in (table, whole))
        own = float(whole.c @ each_loss(loss, whole.margins(here.u), whole.y))
        assert own == pytest.approx(here.loss, rel=1e-11) and here.gap >= 0.0
        if here.reach >= there.reach:
            assert here.loss - here.gap <= there.loss + 1e-9 * abs(there.loss)
        assert there.loss - there.gap <= here.loss + 1e-9 * abs(here.loss)
        if hasattr(loss, "curvature") or loss.quadratic:  # in memory a kinked loss of few rows is a linear program
            assert here.loss == pytest.approx(there.loss, rel=1e-9, abs=1e-9)
        constant = best_constant(loss, table.y, table.c)
        assert constant == pytest.approx(best_constant(loss, whole.y, whole.c), rel=1e-12)


@pytest.mark.parametrize(("loss", "kind"), [search[:2] for search in SEARCHES[:4]])
def test_a_comparator_in_blocks_is_no_farther_from_the_best_than_it_says(loss, kind):
    rng = np.random.default_rng(3)
    for _ in range(many(3, 30)):
        whole, table = both(rng, kind=kind)
        start, kappa = rng.normal(size=whole.width), 10.0 ** rng.uniform(-1, 2)
        here, there = (comparator.best(rows, loss, Euclidean(1.0), kappa, rows.c, start) for rows in (table, whole))
        assert here.objective - here.gap <= there.objective * (1.0 + 1e-9)
        assert there.objective - there.gap <= here.objective * (1.0 + 1e-9)
        value = float(whole.c @ each_loss(loss, whole.margins(here.u), whole.y))
        assert here.objective == pytest.approx(value + kappa * 0.5 * float(((here.u - start) ** 2).sum()), rel=1e-11)


def test_with_many_coordinates_the_gap_is_that_of_gradients():
    rng = np.random.default_rng(4)
    whole, table = both(rng, m=40, n=601, kind="unit")
    for geometry in (None, Balanced(2.0)):
        here = best_fixed(table, Logistic(1.0), table.c, geometry)
        zero = float(whole.c @ each_loss(Logistic(1.0), np.zeros(40), whole.y))
        assert here.loss <= zero * (1.0 + 1e-12) and here.gap > 0.0
        assert here.found == "none was sought: too many coordinates" if geometry else "steps of L-BFGS" in here.found
