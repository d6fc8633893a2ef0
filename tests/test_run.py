"""Runs: all or nothing, starts, mirrors, room for more features."""

import copy

import numpy as np
import pytest
import scipy.sparse as sp

from conftest import (
    BY_NAME,
    CASES,
    PLAYED,
    TIGHT,
    close,
    feed,
    played,
    run_of,
    same,
    same_state,
    start_of,
    store,
    stream,
)
from hindsight import kernels
from hindsight.errors import RowError
from hindsight.kernels.rows import CSR, Dense, Spaced, strided
from hindsight.online import learners
from hindsight.online import run as running
from hindsight.online.run import Run, check_start, play
from hindsight.rows.matrices import rows_of
from hindsight.validation import check_targets

# --- rows -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_rows_are_not_copied(kind):
    X = np.ones((4, 3), kind)
    assert rows_of(X, 1.0).values is X
    assert isinstance(rows_of(X, 1.0), Dense)
    view = X[::2]
    assert isinstance(rows_of(view, 1.0), Spaced)
    assert np.shares_memory(rows_of(view, 1.0).memory, view)
    sparse = sp.csr_matrix(X)
    rows = rows_of(sparse, 1.0)
    assert isinstance(rows, CSR)
    assert rows.data is sparse.data
    assert np.shares_memory(rows.indices, sparse.indices)
    assert rows.data.dtype == kind


@pytest.mark.parametrize("features", [4, 6, 9])
def test_rows_in_reverse_order_are_read_alike_in_any_layout(features):
    """The first columns of rows, which may have more of them or fewer than there are features."""
    rng = np.random.default_rng(features)
    X, y = rng.standard_normal((30, 6)), rng.standard_normal(30)
    turned = np.zeros((30, features))
    turned[:, max(0, features - 6) :] = X[:, :features][:, ::-1]

    def weights(rows, backwards=True):
        run = Run(learners.ridge(), features, backwards=backwards)
        assert run.play_block(rows, 0, 30, y, np.ones(30), np.empty((3, 30))) == 30
        return run.weights

    expected = weights(strided(rows_of(turned, 1.0)), backwards=False)
    expected[:features] = expected[features - 1 :: -1]
    layouts = X, np.asfortranarray(X), X[::-1].copy()[::-1], np.hstack((X, X))[:, :6], sp.csr_matrix(X)
    for given in layouts:
        np.testing.assert_array_equal(weights(rows_of(given, 1.0)), expected)


def test_learning_leaves_the_rows_alone():
    for name in ("perceptron", "eg-balanced-implicit"):
        case = BY_NAME[name]
        X, y, weight = stream(case)
        kept = X.copy(), y.copy(), weight.copy()
        played(case, X, y, weight)
        sparse = sp.csr_matrix(X)
        played(case, sparse, y, weight)
        same(X, kept[0])
        same(y, kept[1])
        same(weight, kept[2])
        same(sparse.toarray(), X)


def test_rows_that_may_not_be_written():
    case = BY_NAME["widrow-hoff-explicit"]
    X, y, weight = stream(case)
    want = played(case, X, y, weight)[0]
    for array in (X, y, weight):
        array.flags.writeable = False
    same_state(played(case, X, y, weight)[0], want)


# --- starts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_run_starts_where_it_was_told(case):
    start = start_of(case, 8)
    run = run_of(case, 7, start=start)
    close(run.weights, start)
    assert run.rounds == 0
    table = run_of(case, 7).weights
    close(table, np.full(8, case.radius / 8) if case.geometry == "simplex" else np.zeros(8), scale=1.0)


@pytest.mark.parametrize("near", [1e-3, 1e-9, 1e-12])
def test_a_balanced_start_near_the_edge(near):
    geometry = kernels.Balanced(2.0)
    start = np.array([1.0, -1.0, 0.0]) * (1.0 - near)
    run = Run(learners.eg(0.1, 2.0), 3, intercept=False, start=start)
    close(run.weights, start)
    same(check_start(geometry, start, 3), start)


@pytest.mark.parametrize(
    ("geometry", "start", "message"),
    [
        ("euclidean", [1.0, 2.0], "start must have 3 numbers"),
        ("euclidean", [1.0, np.nan, 0.0], r"start\[1\] = nan is not finite"),
        ("simplex", [0.5, 0.2, 0.2], "start must lie on the simplex"),
        ("simplex", [1.2, -0.2, 0.0], "start must lie on the simplex: least weight -0.2"),
        ("balanced", [0.5, -0.5, 0.0], "below the radius 1, got 1"),
    ],
)
def test_a_start_outside_the_set_is_refused(geometry, start, message):
    with pytest.raises(ValueError, match=message):
        Run(learners.descent("square", geometry), 3, intercept=False, start=start)


# --- all or nothing -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("case", "storage"), PLAYED, ids=str)
def test_a_bad_row_changes_nothing(case, storage, monkeypatch):
    monkeypatch.setattr(running, "BLOCK", 16)  # so that whole blocks were learnt before the bad row is met
    X, y, weight = stream(case, seed=50)
    run, _ = played(case, store(X, storage), y, weight)
    before = copy.deepcopy(run)
    bad = X.copy()
    bad[40, 3] = np.nan
    with pytest.raises(RowError, match="row 40, column 3: value NaN is not finite") as caught:
        feed(run, store(bad, storage), y, weight)
    assert caught.value.row == 40
    same_state(run, before)
    feed(run, store(X, storage), y, weight)
    feed(before, store(X, storage), y, weight)
    same_state(run, before)


def test_a_bad_row_changes_none_of_several_runs():
    case = BY_NAME["perceptron"]
    X, y, weight = stream(case)
    runs = [run_of(case, 7) for _ in range(3)]
    play(runs, X, [y, -y, y], weight)
    before = copy.deepcopy(runs)
    X[50, 0] = np.inf
    with pytest.raises(RowError, match="row 50, column 0: value inf is not finite"):
        play(runs, X, [y, -y, y], weight)
    for a, b in zip(runs, before, strict=True):
        same_state(a, b)


def test_columns_are_called_by_their_names():
    X = np.array([[1.0, np.nan]])
    with pytest.raises(RowError, match=r"row 0, column 1 \('weight'\): value NaN is not finite"):
        play([Run(learners.perceptron(), 2)], X, [np.ones(1)], names=["height", "weight"])


def test_a_row_of_weight_zero_must_be_sound_too():
    run = Run(learners.perceptron(), 2)
    X = np.array([[1.0, 1.0], [np.nan, 1.0]])
    with pytest.raises(RowError, match="row 1, column 0"):
        play([run], X, [np.ones(2)], np.array([1.0, 0.0]))


# --- the opposite labels, and more features -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["perceptron", "winnow-balanced", "descent-hinge-balanced-explicit"])
def test_mirrored_is_the_run_of_the_opposite_labels(name):
    case = BY_NAME[name]
    X, y, weight = stream(case, seed=51)
    run, z = played(case, X, y, weight)
    other, opposite = played(case, X, -y, weight)
    mirrored = run.mirrored()
    same(z, -opposite)
    same_state(mirrored, other)
    same(mirrored.mean("before"), other.mean("before"))
    feed(mirrored, X, y)
    feed(other, X, y)
    same_state(mirrored, other)


def test_the_simplex_has_no_mirror():
    with pytest.raises(ValueError, match="no sign"):
        Run(learners.winnow(balanced=False), 3).mirrored()


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("storage", ["dense64", "csr64"])
def test_widened_is_as_wide_from_the_start(intercept, storage):
    """New features have weight 0 and were 0 in every row so far."""
    case = BY_NAME["widrow-hoff-implicit"]
    X, y, weight = stream(case, seed=52)
    narrow = X.copy()
    narrow[:30, 4:] = 0.0
    run = run_of(case, 4, intercept=intercept)
    feed(run, store(narrow[:30, :4], storage), y[:30], weight[:30])
    run.resize(7)
    feed(run, store(narrow[30:], storage), y[30:], weight[30:])
    wide, _ = played(case, store(narrow, storage), y, weight, intercept=intercept)
    close(run.weights, wide.weights, TIGHT)
    close(run.mean("before"), wide.mean("before"))
    assert run.rounds == wide.rounds
    close(run.first, wide.first, scale=1.0)


def test_targets_whose_sum_overflows_are_finite_all_the_same():
    check_targets("real", np.array([1e308, 1e308, 1e308]))
    for bad in (np.inf, -np.inf, np.nan):
        with pytest.raises(RowError, match="row 2: target"):
            check_targets("real", np.array([1e308, 1e308, bad, -np.inf]))
