"""Many rows are searched in pieces: the same numbers as from vectors of all rows, on any number of processors."""

from copy import copy

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from hindsight.certificates.best import best_fixed, comparator
from hindsight.certificates.best.constant import best_constant
from hindsight.kernels import Hinge, Logistic, Poisson, Square, side_by_side
from hindsight.online.margins import each_loss
from hindsight.rows import pieces
from hindsight.rows.data import Data
from hindsight.rows.pieces import RowPieces, in_pieces

ROWS, COLUMNS = 700, 4


def drawn(seed=0, sparse=False, parts=False, weighted=True, unit=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(ROWS, COLUMNS)) * (rng.random((ROWS, COLUMNS)) < 0.7)
    z = X @ rng.normal(size=COLUMNS)
    y = (rng.random(ROWS) < 1.0 / (1.0 + np.exp(-z))) * 1.0 if unit else z + rng.normal(size=ROWS)
    weight = rng.integers(0, 3, ROWS) * 0.5 if weighted else None
    if parts:
        cut = [(a, min(a + 230, ROWS)) for a in range(0, ROWS, 230)]
        kept = [(X[a:b], y[a:b], None if weight is None else weight[a:b]) for a, b in cut]
        return Data.of_parts(kept, 1.0)
    return Data(csr_matrix(X) if sparse else X, y, weight, 1.0)


@pytest.fixture
def cut(monkeypatch):
    """Cut any rows, into pieces of 32 rows."""
    monkeypatch.setattr(pieces, "FEW", 0)
    monkeypatch.setattr(pieces, "BLOCK", 32 * (COLUMNS + 1))


@pytest.mark.parametrize("kind", [{}, {"sparse": True}, {"parts": True}, {"weighted": False}])
def test_sums_are_those_of_all_rows(cut, kind):
    data = drawn(**kind)
    rows, a = in_pieces(data, data.c + 0.5)
    assert isinstance(rows, RowPieces)
    assert len(rows.pieces) >= ROWS // 32
    u, r = np.arange(1.0, COLUMNS + 2.0), rows.y - rows.margins(np.ones(COLUMNS + 1))
    plain = data.y - data.margins(np.ones(COLUMNS + 1))
    np.testing.assert_allclose(rows.combine(r), data.combine(plain), rtol=1e-12)
    np.testing.assert_allclose(rows.column_squares(a), data.column_squares(data.c + 0.5), rtol=1e-12)
    for found, known in zip(rows.moments(a, r), data.moments(data.c + 0.5, plain), strict=True):
        np.testing.assert_allclose(found, known, rtol=1e-11, atol=1e-11)
    z, half = rows.residual_gradient(u, a)
    np.testing.assert_allclose(half, data.residual_gradient(u, data.c + 0.5)[1], rtol=1e-12)
    assert float(a @ z) == pytest.approx(float((data.c + 0.5) @ data.margins(u)), rel=1e-12)
    assert (float(rows.c.sum()), float(rows.y.max())) == pytest.approx((data.c.sum(), data.y.max()), rel=1e-12)


def test_moments_are_kept_for_the_same_vectors_alone(cut, monkeypatch):
    data = drawn()
    rows, a = in_pieces(data, data.c)
    made = []
    monkeypatch.setattr(pieces.Piece, "moments", lambda piece, *each: made.append(0) or piece._sum_moments(*each))
    first = rows.moments(a, a * rows.y)
    again = rows.moments(a, a * rows.y)
    assert len(made) == len(rows.pieces)
    np.testing.assert_array_equal(first[0], again[0])
    again[0][:] = 0.0  # the caller's own
    other = rows.moments(a, 2.0 * (a * rows.y))
    assert len(made) == 2 * len(rows.pieces)
    np.testing.assert_allclose(other[1], 2.0 * first[1], rtol=1e-12)
    last, twice = len(made), rows.vector(2.0 * data.c)
    for factor, weights in ((1.0, rows.c), (2.0, twice), (1.0, a)):
        for found, known in zip(rows.moments(weights, weights * rows.y), first, strict=True):
            np.testing.assert_allclose(found, factor * known, rtol=1e-12)
    assert len(made) == last + len(rows.pieces)
    u = np.ones(COLUMNS + 1)
    one, two = (rows.moments(a, rows.margins(v))[1] for v in (u, 2.0 * u))
    np.testing.assert_allclose(two, 2.0 * one, rtol=1e-12)


def both(monkeypatch, search, **kind):
    """What a search finds with vectors of all rows, and in pieces."""
    whole = search(drawn(**kind))
    monkeypatch.setattr(pieces, "FEW", 0)
    monkeypatch.setattr(pieces, "BLOCK", 32 * (COLUMNS + 1))
    return whole, search(drawn(**kind))


@pytest.mark.parametrize("kind", [{}, {"sparse": True}, {"parts": True}])
@pytest.mark.parametrize("loss", [Square(2.0), Logistic(1.0)])
def test_best_fixed_predictor_is_the_same(monkeypatch, loss, kind):
    kind = kind | {"unit": loss.targets == "unit"}
    whole, cut = both(monkeypatch, lambda data: best_fixed(data, loss, 2.0 * data.c), **kind)
    assert cut.loss == pytest.approx(whole.loss, rel=1e-12)
    assert cut.gap == pytest.approx(whole.gap, rel=1e-3, abs=1e-9 * whole.loss)
    np.testing.assert_allclose(cut.u, whole.u, rtol=1e-7)
    assert (cut.found, cut.reach) == (whole.found, whole.reach)


@pytest.mark.parametrize("loss", [Square(2.0), Logistic(1.0)])
def test_comparator_is_the_same(monkeypatch, loss):
    metric, start = np.linspace(0.5, 3.0, COLUMNS + 1), np.linspace(-1.0, 1.0, COLUMNS + 1)

    def search(data):
        return comparator.best_in_metric(data, loss, metric, data.c, start, 1e-9)

    whole, cut = both(monkeypatch, search, unit=loss.targets == "unit")
    assert (cut.objective, cut.divergence) == pytest.approx((whole.objective, whole.divergence), rel=1e-9)
    np.testing.assert_allclose(cut.u, whole.u, rtol=1e-7)
    assert cut.gap <= 1e-9 * cut.objective


@pytest.mark.parametrize("processors", [1, 4])
def test_bits_do_not_depend_on_processors(cut, monkeypatch, processors):
    monkeypatch.setattr(side_by_side, "PROCESSORS", processors)
    data = drawn(unit=True)
    found = best_fixed(data, Logistic(1.0), data.c)
    monkeypatch.setattr(side_by_side, "PROCESSORS", 2)
    np.testing.assert_array_equal(found.u, best_fixed(drawn(unit=True), Logistic(1.0), data.c).u)


def test_rows_with_other_targets_are_cut_anew(cut):
    data = drawn()
    found = best_fixed(data, Square(2.0), data.c)
    other = copy(data)
    other.y = -data.y
    np.testing.assert_allclose(best_fixed(other, Square(2.0), data.c).u, -found.u, rtol=1e-9)


def test_rows_that_are_read_again_are_not_cut(cut):
    data = drawn()
    X = data.matrix()[:, :COLUMNS]
    for apart in (Data.from_chunks(lambda: [(X, data.y, None)], 1.0), Data(np.asfortranarray(X), data.y)):
        assert in_pieces(apart, apart.c) == (apart, apart.c)
    assert in_pieces(data.leading(2), data.c)[0] is data.leading(2)


@pytest.mark.parametrize("loss", [Square(2.0), Logistic(1.0), Hinge(1.0), Poisson(1.0)])
@pytest.mark.parametrize("labels", [1, 2, 5])
def test_constant_by_parts(monkeypatch, loss, labels):
    rng = np.random.default_rng(labels)
    y = rng.integers(0, labels, 100) / max(1, labels - 1)
    y, c = (2.0 * y - 1.0 if loss.targets == "sign" else y), rng.integers(0, 3, 100) * 0.5
    y[c == 0.0] = 1e200  # counts for nothing
    whole = best_constant(loss, y, c)
    monkeypatch.setattr("hindsight.certificates.best.constant.PART", 7)
    assert best_constant(loss, y, c) == pytest.approx(whole, rel=1e-12)
    on = c > 0.0
    grid = np.linspace(-30.0, 30.0, 60_001)
    least = min(float(c[on] @ each_loss(loss, np.full(on.sum(), z), y[on])) for z in grid[::20])
    assert whole <= least * (1.0 + 1e-12) + 1e-9
