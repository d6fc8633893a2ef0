"""The batch perceptron and its pocket against a plain loop; separability, fewest mistakes and the hard family."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_iris

import hindsight as h
from conftest import many, nightly
from hindsight.batch import perceptron as module
from hindsight.batch.perceptron import BatchPerceptron, hard_halfspace
from hindsight.batch.separability import fewest_mistakes, null_vector, separate
from hindsight.errors import MismatchError
from hindsight.estimators.perceptron import BatchPerceptronClassifier
from hindsight.rows.data import Data

# --- the loop of N2, read aloud ---------------------------------------------------------------------------------------


def full(X, intercept):
    return np.hstack((X, np.ones((len(X), 1)))) if intercept else np.asarray(X, float)


def errors(X, y, w):
    return int((y * (X @ w) <= 0).sum())


def naive(X, y, passes, start=None):
    """Every hypothesis of `passes` cyclic scans, rows scanned, and whether it stopped by itself."""
    w, right, visits = np.zeros(X.shape[1]) if start is None else np.asarray(start, float), 0, 0
    hypotheses = [w]
    while right < len(y) and visits < passes * len(y):
        i = visits % len(y)
        visits += 1
        if y[i] * float(X[i] @ w) <= 0:
            w, right = w + y[i] * X[i], 0
            hypotheses.append(w)
        else:
            right += 1
    return hypotheses, visits, right == len(y)


def streams(count, seed=0):
    """Small rows of whole numbers, so that margins are exact: many ties, repeated, contradictory and zero rows."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        m, n = int(rng.integers(2, 25)), int(rng.integers(1, 5))
        X = rng.integers(-3, 4, size=(m, n)).astype(float)
        if rng.random() < 0.5:
            y = np.where(X @ rng.integers(-3, 4, n) + rng.integers(-2, 3) > 0, 1.0, -1.0)
        else:
            y = rng.choice([-1.0, 1.0], m)
        y[:2] = 1.0, -1.0
        yield X, y, int(rng.integers(1, 12)), bool(rng.random() < 0.5)


@nightly(only=["dense32"])
@pytest.mark.parametrize("kind", ["dense64", "dense32", "fortran", "csr"])
def test_the_pocket_is_the_best_of_all_hypotheses(kind):
    store = {
        "dense64": np.ascontiguousarray,
        "dense32": lambda X: X.astype(np.float32),
        "fortran": np.asfortranarray,
        "csr": sp.csr_matrix,
    }[kind]
    for X, y, passes, intercept in streams(many(40, 150), seed=len(kind)):
        model = BatchPerceptronClassifier(passes, effort=math.inf, fit_intercept=intercept).fit(store(X), y)
        rows = full(X, intercept)
        hypotheses, visits, stopped = naive(rows, y, passes)
        counts = [errors(rows, y, w) for w in hypotheses]
        assert (model.n_updates_, model.n_visits_, model.converged_) == (len(hypotheses) - 1, visits, stopped)
        assert model.pocket_exact_
        assert model.training_errors_ == min(counts)
        kept = np.append(model.coef_[0], model.intercept_) if intercept else model.coef_[0]
        np.testing.assert_array_equal(kept, hypotheses[counts.index(min(counts))])
        np.testing.assert_array_equal(model.halfspaces_[0].weights, hypotheses[-1])


@pytest.mark.parametrize("effort", [0.0, 0.5, 2.0])
def test_with_little_effort_errors_are_still_counted_and_exact_is_said_only_where_true(effort, monkeypatch):
    monkeypatch.setattr(module, "FREE_READS", 4 * 800.0)  # 800 rows
    rng = np.random.default_rng(1)
    said = set()
    for k in range(60):
        m = 40 + 5 * k
        X = rng.normal(size=(m, 3))
        y = np.where(X @ [1.0, 2.0, -1.0] + 0.1 * (k % 8) * rng.normal(size=m) > 0, 1.0, -1.0)
        model = BatchPerceptronClassifier(6, effort=effort).fit(X, y)
        rows = full(X, True)
        counts = [errors(rows, y, w) for w in naive(rows, y, 6)[0]]
        own = errors(rows, y, np.append(model.coef_[0], model.intercept_))
        assert model.training_errors_ == own
        assert min(counts) <= own <= counts[-1]
        assert own == min(counts) or not model.pocket_exact_
        read = int(model.halfspaces_[0].progress[0].reads)
        assert read <= effort * model.n_visits_ + 800
        said.add(bool(model.pocket_exact_))
    assert said == {True, False}


def test_scans_take_the_online_perceptrons_steps_and_give_its_facts():
    X, y = load_breast_cancer(return_X_y=True)
    X = X / X.max(axis=0)
    for passes in (1, 7):
        batch = BatchPerceptronClassifier(passes).fit(X, y)
        online = h.PerceptronClassifier(passes=passes).fit(X, y)
        np.testing.assert_array_equal(batch.halfspaces_[0].weights[:-1], online.coef_[0])
        assert batch.facts_ == online.facts_
        assert batch.training_errors_ <= errors(
            full(X, True), np.where(y == 1, 1, -1), np.append(online.coef_[0], online.intercept_)
        )


def test_resumed_is_uninterrupted():
    for X, y, passes, intercept in streams(many(20, 60), seed=7):
        options = {"effort": math.inf, "fit_intercept": intercept}
        whole = BatchPerceptronClassifier(passes + 2, **options).fit(X, y)
        parts = BatchPerceptronClassifier(2, warm_start=True, **options).fit(X, y)
        first = parts.n_updates_
        parts.set_params(max_passes=passes).fit(X, y)
        assert first <= parts.n_updates_ == whole.n_updates_
        np.testing.assert_array_equal(parts.coef_, whole.coef_)
        np.testing.assert_array_equal(parts.halfspaces_[0].weights, whole.halfspaces_[0].weights)
        assert parts.training_errors_ == whole.training_errors_
        assert parts.converged_ == whole.converged_
        parts.certify(X, y)  # the counters are those of one run over these rows


def test_updates_are_capped_for_each_call_and_counted_over_all():
    X, y = hard_halfspace(6)
    model = BatchPerceptronClassifier(None, max_updates=1000, warm_start=True, fit_intercept=False).fit(X, y)
    assert (model.n_updates_, model.converged_) == (1000, False)
    model.fit(X, y)
    assert model.n_updates_ == 1365 and model.converged_
    assert BatchPerceptronClassifier(None, max_updates=10).fit(X, y).n_updates_ == 10


def test_the_pocket_is_recounted_where_a_warm_start_brings_other_rows():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(2, 60, 2))
    y, z = np.where(X[:, 0] > 0, 1, -1), np.where(Z[:, 0] < 0, 1, -1)
    model = BatchPerceptronClassifier(warm_start=True).fit(X, y)
    assert model.converged_
    model.set_params(max_passes=1, max_updates=1).fit(Z, z)
    assert model.training_errors_ == errors(full(Z, True), z, np.append(model.coef_[0], model.intercept_)) > 0
    with pytest.raises(MismatchError):
        model.certify(Z, z)


def test_one_vs_rest_is_one_halfspace_a_class():
    X, y = load_iris(return_X_y=True)
    names = np.array(["a", "b", "c"])[y]
    model = BatchPerceptronClassifier(50).fit(X, names)
    assert model.coef_.shape == (3, 4) and model.n_updates_.shape == (3,) and len(model.facts_) == 3
    assert model.converged_.tolist() == [True, False, False]
    for k in range(3):
        one = BatchPerceptronClassifier(50).fit(X, y == k)
        np.testing.assert_array_equal(model.coef_[k], one.coef_[0])
        assert model.training_errors_[k] == one.training_errors_
    found = model.certify(X, names)
    assert [c.label for c in found.each] == ["a", "b", "c"]
    assert [c.verdict.value for c in found.each][:2] == ["HOLDS", "VOID"]


# --- certificate 8 ----------------------------------------------------------------------------------------------------


def test_updates_never_exceed_the_bound_on_separable_rows():
    rng = np.random.default_rng(3)
    for k in range(40):
        n = int(rng.integers(1, 6))
        X = rng.normal(size=(int(rng.integers(3, 80)), n)) * 10.0 ** rng.integers(-3, 4)
        z = X @ rng.normal(size=n)
        y = np.where(z > 0, 1, -1)
        y[0] = -y[1] if len(set(y)) == 1 else y[0]
        cap = None if k % 2 else 3
        model = BatchPerceptronClassifier(
            cap, max_updates=10**6, fit_intercept=bool(k % 3)
        ).fit(X, y)  # fmt: skip
        found = model.certify(X, y)
        if not separate(X, y, fit_intercept=bool(k % 3)).separable:
            assert not model.converged_ and found.verdict.value in ("VOID", "UNCHECKABLE")
            continue
        assert found.verdict.value == "HOLDS"
        assert found.measured == model.n_updates_
        assert found.measured <= found.bound
        rows = full(X, bool(k % 3))
        assert found.bound == pytest.approx(
            (rows**2).sum(axis=1).max() * float(found.comparator.u @ found.comparator.u), rel=1e-12
        )
        assert (y * (rows @ found.comparator.u)).min() >= 1 - 1e-12


def naive_bound(R, u, start):
    """The largest M with u.w_s + M <= |u| sqrt(|w_s|^2 + M R^2), by bisection; it holds for no larger M."""

    def can_be(M):
        return u @ start + M <= np.linalg.norm(u) * math.sqrt(start @ start + M * R * R)

    low, high = 0.0, 1.0
    while can_be(high):
        low, high = high, 2.0 * high
    for _ in range(200):
        low, high = (0.5 * (low + high), high) if can_be(0.5 * (low + high)) else (low, 0.5 * (low + high))
    return high


def test_from_a_start_it_takes_the_same_steps_and_its_bound_is_never_exceeded():
    rng = np.random.default_rng(8)
    closest = 0.0
    for k, (X, y, passes, intercept) in enumerate(streams(many(60, 150), seed=9)):
        rows = full(X, intercept)
        start = 2.0 ** rng.integers(-3, 7) * rng.integers(-5, 6, rows.shape[1]).astype(float)
        if k % 3 == 0:
            start = rows.T @ y  # towards the classes
        model = BatchPerceptronClassifier(passes, effort=math.inf, fit_intercept=intercept, start=start).fit(X, y)
        hypotheses, visits, stopped = naive(rows, y, passes, start)
        counts = [errors(rows, y, w) for w in hypotheses]
        assert (model.n_updates_, model.n_visits_, model.converged_) == (len(hypotheses) - 1, visits, stopped)
        assert model.training_errors_ == min(counts)
        np.testing.assert_allclose(model.halfspaces_[0].weights, hypotheses[-1], rtol=1e-12)
        online = h.PerceptronClassifier(passes=passes, fit_intercept=intercept, start=start).fit(X, y)
        if not stopped:
            np.testing.assert_array_equal(model.halfspaces_[0].weights[: X.shape[1]], online.coef_[0])
        found = model.certify(X, y)
        if found.verdict.value in ("VOID", "UNCHECKABLE"):
            assert not stopped
            continue
        u = found.comparator.u
        R = math.sqrt((rows**2).sum(axis=1).max())
        assert found.verdict.value == "HOLDS" and found.measured == model.n_updates_ <= found.bound + 1e-9
        assert found.bound == pytest.approx(naive_bound(R, u, start), rel=1e-6, abs=1e-6)
        assert (y * (rows @ u)).min() >= 1 - 1e-12 and ("wₛ at first" in str(found)) == start.any()
        closest = max(closest, found.measured / max(found.bound, 1e-9))
    assert closest > 0.3


def test_a_start_is_kept_and_continued(tmp_path):
    X, y = load_iris(return_X_y=True)
    starts = np.random.default_rng(0).normal(size=(3, 5))
    model = BatchPerceptronClassifier(3, start=starts, warm_start=True).fit(X, y).fit(X, y)
    model.save(tmp_path / "model")
    found, whole = h.load(tmp_path / "model"), BatchPerceptronClassifier(6, start=starts).fit(X, y)
    assert str(found.certify(X, y)) == str(whole.certify(X, y))
    np.testing.assert_array_equal(found.coef_, whole.coef_)
    one = BatchPerceptronClassifier(6, start=starts[1]).fit(X, y == 1)
    np.testing.assert_array_equal(one.halfspaces_[0].weights, whole.halfspaces_[1].weights)


def test_dataframes_keep_their_names_and_are_certified():
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = BatchPerceptronClassifier().fit(X, y == 0, certify=True)
    assert model.feature_names_in_.tolist() == list(X.columns)
    assert model.certificate_.verdict.value == "HOLDS" and model.converged_
    np.testing.assert_array_equal(model.predict(X), y == 0)
    np.testing.assert_array_equal(model.coef_, BatchPerceptronClassifier().fit(X.to_numpy(), y == 0).coef_)


def test_the_bound_is_attained():
    found = BatchPerceptronClassifier(fit_intercept=False).fit([[2.0], [-2.0]], [1, 0], certify=True).certificate_
    assert found.verdict.value == "HOLDS" and found.equality
    assert found.measured == 1 == pytest.approx(found.bound)


def test_a_certificate_says_that_rows_are_not_separable_and_why():
    X = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    model = BatchPerceptronClassifier(20).fit(X, [0, 0, 1, 1])
    found = model.certify(X, [0, 0, 1, 1])
    assert found.verdict.value == "VOID" and math.isnan(found.bound)
    assert "not separable: Σ α y x = 0 over 4 rows" in str(found)
    assert not model.converged_ and model.training_errors_ >= 1


def test_a_certificate_of_other_rows_is_refused():
    X, y = load_breast_cancer(return_X_y=True)
    X = X / X.max(axis=0)
    model = BatchPerceptronClassifier(5).fit(X, y)
    for A, b in ((X[::-1], y[::-1]), (X[1:], y[1:]), (X, 1 - y), (2 * X, y)):
        with pytest.raises(MismatchError):
            model.certify(A, b)
    with pytest.raises(ValueError, match="features"):
        model.certify(X[:, 1:], y)
    with pytest.raises(ValueError, match="sample_weight"):
        h.certify(model, X, y, np.ones(len(y)))
    assert h.certify(model, X, y).measured == model.n_updates_


# --- separability -----------------------------------------------------------------------------------------------------


def thresholds(x, y):
    """Fewest errors of sign(a x + b), exactly: all cuts between sorted values, either way round."""
    values = sorted(set(x))
    best = len(x)
    for cut in range(len(values) + 1):
        above = np.isin(x, values[cut:])
        wrong = int((above != (y > 0)).sum())
        best = min(best, wrong, len(x) - wrong)
    return best


def angles(X, y):
    """Fewest errors of sign(w.x) in the plane, exactly: one w in each open cell between the rows' normals."""
    X = [[Fraction(v) for v in x] for x in X.tolist()]
    normals = sorted({(-b, a) for a, b in X if (a, b) != (0, 0)} | {(b, -a) for a, b in X if (a, b) != (0, 0)},
                     key=lambda p: math.atan2(p[1], p[0]))  # fmt: skip
    normals = normals or [(Fraction(1), Fraction(0))]
    best = len(y)
    for k, (a, b) in enumerate(normals):
        c, d = normals[(k + 1) % len(normals)]
        size = abs(a) + abs(b), abs(c) + abs(d)
        w = a / size[0] + c / size[1], b / size[0] + d / size[1]
        if w == (0, 0):  # opposite neighbours: turn by a quarter
            w = -b, a
        best = min(best, sum(int(t * (w[0] * p + w[1] * q) <= 0) for (p, q), t in zip(X, y, strict=True)))
    return best


def planes(seed, count):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        m = int(rng.integers(3, 16))
        X = rng.integers(-3, 4, size=(m, 2)).astype(float)
        y = np.where(X @ [1.0, 2.0] + rng.normal(size=m) > 0, 1, -1)
        y[:2] = 1, -1
        yield X, y


def proven(found, X, y, intercept):
    """The proof holds: alpha > 0 of sum 1 balances the rows, to rounding of alpha alone."""
    rows = full(X, intercept)[found.rows] * np.asarray(y, float)[found.rows][:, None]
    assert found.alpha.min() > 0 and found.alpha.sum() == pytest.approx(1.0)
    scale = (np.abs(rows) * found.alpha[:, None]).sum()
    assert np.abs(found.alpha @ rows).max() <= 1e-13 * max(scale, 1e-300)


def test_separate_agrees_with_brute_force():
    seen = set()
    for X, y in planes(0, 60):
        found = separate(X, y, fit_intercept=False)
        assert found.separable is (angles(X, y) == 0)
        if found.separable:
            assert errors(X, y, found.w) == 0
        else:
            proven(found, X, y, False)
        x = X[:, :1]
        line = separate(x, y)
        assert line.separable is (thresholds(x[:, 0], y) == 0)
        if not line.separable:
            proven(line, x, y, True)
        seen.add(found.separable)
    assert seen == {True, False}


def test_what_rounding_hides_is_never_called_not_separable():
    """Neighbouring floating-point numbers of opposite labels are separable, if only just; equal ones are not."""
    rng = np.random.default_rng(4)
    for _ in range(40):
        a = float(rng.normal()) * 10.0 ** int(rng.integers(-8, 9))
        b = np.nextafter(a, np.inf)
        assert separate([[a], [b]], [0, 1]).separable is not False
        assert separate([[a], [a]], [0, 1]).separable is False
    tiny = np.array([[1.0, 1e-13], [1.0, -1e-13], [-1.0, 0.0]])
    assert separate(tiny, [1, 1, 0], fit_intercept=False).separable is True
    tight = np.array([[1.0, 1e-13], [-1.0, 1e-13], [0.0, 1.0], [0.5, -1e-15]])
    assert separate(tight, [1, 1, 1, 0], fit_intercept=False).separable is not False


def test_separate_on_many_rows_works_on_few():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(20_000, 10))
    y = X @ rng.normal(size=10) + 0.5 > 0
    found = separate(X, y)
    assert found.separable and errors(full(X, True), np.where(y, 1, -1), found.w) == 0
    y[rng.integers(0, 20_000, 5)] ^= True
    for rows in (X, sp.csr_matrix(X), X.astype(np.float32)):
        found = separate(rows, y)
        assert found.separable is False and found.rows.size <= 12
        proven(found, np.asarray(rows.todense()) if sp.issparse(rows) else rows, np.where(y, 1, -1), True)


def test_null_vectors_are_exact():
    rng = np.random.default_rng(6)
    for _ in range(100):
        n = int(rng.integers(1, 8))
        A = rng.normal(size=(n, n)) * 10.0 ** rng.integers(-5, 6, size=(n, 1))
        alpha = rng.integers(1, 9, n).astype(float)
        whole = rng.integers(-9, 10, size=(n, n))
        last = -(alpha[:, None] * whole).sum(axis=0)
        if np.linalg.matrix_rank(whole) == n:
            found = null_vector(np.vstack((whole, last)).astype(float))
            want = np.append(alpha, 1.0)
            np.testing.assert_allclose(found, want / want.sum(), rtol=1e-14)
        assert null_vector(A) is None  # n rows in general position: none
        assert null_vector(np.abs(np.vstack((A, A[:1])))) is None  # no alpha > 0, the rows being all positive


# --- fewest mistakes --------------------------------------------------------------------------------------------------


def test_fewest_mistakes_agree_with_brute_force():
    for X, y in planes(1, 12):
        found = fewest_mistakes(X, y, fit_intercept=False)
        assert found.errors == found.lower == angles(X, y)
        assert errors(X, y, found.w) == found.errors
        line = fewest_mistakes(X[:, :1], y)
        assert line.errors == line.lower == thresholds(X[:, 0], y)


def test_fewest_mistakes_then_pocket_then_perceptron():
    rng = np.random.default_rng(2)
    gaps = []
    for _ in range(8):
        m, n = int(rng.integers(15, 36)), int(rng.integers(2, 5))
        X = rng.normal(size=(m, n))
        y = np.where(X[:, 0] + 0.5 * rng.normal(size=m) > 0, 1, -1)
        found = fewest_mistakes(X, y)
        pocket = BatchPerceptronClassifier(30, effort=math.inf).fit(X, y)
        online = h.PerceptronClassifier(passes=30).fit(X, y)
        last = errors(full(X, True), y, np.append(online.coef_[0], online.intercept_))
        assert found.gap == 0
        assert errors(full(X, True), y, found.w) == found.errors <= pocket.training_errors_ <= last
        assert (found.errors == 0) == bool(separate(X, y).separable)
        gaps.append((pocket.training_errors_ - found.errors, last - pocket.training_errors_))
    assert max(g[0] for g in gaps) > 0 and max(g[1] for g in gaps) > 0


def test_zero_margins_count_and_a_stopped_search_tells_its_gap():
    found = fewest_mistakes([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0]], [1, 1, 0], fit_intercept=False)
    assert (found.errors, found.lower) == (1, 1)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 6)), rng.integers(0, 2, 90)
    stopped = fewest_mistakes(X, y, time_limit=0.3)
    assert stopped.gap > 0 and "stopped after 0.3 s" in stopped.notes
    assert 0 < stopped.lower < stopped.errors == errors(full(X, True), np.where(y, 1, -1), stopped.w)


# --- the hard family --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", range(1, 8))
def test_the_hard_family_needs_exponentially_many_updates_in_any_order(d):
    X, y = hard_halfspace(d)
    least = (4**d - 1) // 3
    rng = np.random.default_rng(d)
    for order, intercept in product((np.arange(2 * d), *(rng.permutation(2 * d) for _ in range(4))), (False, True)):
        model = BatchPerceptronClassifier(None, max_updates=10**7, fit_intercept=intercept).fit(X[order], y[order])
        assert model.converged_
        assert model.n_updates_ >= least
        found = model.certify(X[order], y[order])
        assert found.verdict.value == "HOLDS"
    assert BatchPerceptronClassifier(None, max_updates=10**7, fit_intercept=False).fit(X, y).n_updates_ == least


@pytest.mark.parametrize("d", [20, 40])
def test_the_linear_program_solves_the_hard_family(d):
    X, y = hard_halfspace(d)
    found = separate(X, y, fit_intercept=False)
    assert found.separable and errors(X, y, found.w) == 0
    assert found.w[-1] / found.w[0] >= 2.0 ** (d - 2)
    assert np.abs(X).max() == 1.0


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_passes": 0}, "max_passes must be None or a whole number, at least 1; got 0"),
        ({"max_passes": 1.5}, "max_passes must be"),
        ({"max_passes": True}, "max_passes must be"),
        ({"max_updates": 0}, "max_updates must be None or a whole number, at least 1; got 0"),
        ({"max_updates": -3}, "max_updates must be"),
        ({"max_passes": None}, "give max_passes or max_updates"),
        ({"effort": -1.0}, "effort must be a number, at least 0; got -1.0"),
        ({"effort": math.nan}, "effort must be"),
        ({"effort": "all"}, "effort must be"),
        ({"start": [1.0]}, r"start must have 2 numbers \(the intercept's last\), got shape \(1,\)"),
        ({"start": [1.0, math.nan]}, r"start\[1\] = nan is not finite"),
        ({"start": [[1.0, 2.0], [1.0, 2.0]]}, "start must have one row for each of the 1 halfspaces, got 2"),
    ],
)
def test_bad_options(options, words):
    with pytest.raises(ValueError, match=words):
        BatchPerceptronClassifier(**options).fit([[0.0], [1.0]], [0, 1])


def test_a_failed_fit_names_row_and_column_and_changes_nothing():
    X, y = hard_halfspace(4)
    model = BatchPerceptronClassifier(warm_start=True).fit(X, y)
    before, state = model.coef_.copy(), model.halfspaces_[0].progress.copy()
    bad = X.copy()
    bad[5, 2] = np.nan
    with pytest.raises(ValueError, match="row 5, column 2: value NaN is not finite"):
        model.fit(bad, y)
    frame = pd.DataFrame(bad, columns=list("abcd"))
    with pytest.raises(ValueError, match=r"row 5, column 2 \('c'\): value NaN is not finite"):
        BatchPerceptronClassifier().fit(frame, y)
    with pytest.raises(ValueError, match=r"row 0: class 7\.0 was not declared"):
        model.fit(X, np.where(y > 0, 7.0, -1.0))
    with pytest.raises(ValueError, match=r"row 3, column 0: \|x\|\^2 overflows"):
        model.fit(np.where(np.arange(8)[:, None] == 3, 1e200, X), y)
    with pytest.raises(ValueError, match="features"):
        model.fit(X[:, :2], y)
    with pytest.raises(ValueError, match="fit_intercept must stay"):
        model.set_params(fit_intercept=False).fit(X, y)
    model.set_params(fit_intercept=True)
    np.testing.assert_array_equal(model.coef_, before)
    np.testing.assert_array_equal(model.halfspaces_[0].progress, state)


def test_margins_that_overflow_are_an_error_not_a_separation():
    a = 1.3e154  # |x|^2 is finite, |w| |x| is not
    X = np.array([[a, 0.0], [0.0, a], [-a / 1.5, -a / 1.5], [-a, 0.0]])
    with pytest.raises(ValueError, match=r"row 2: the margin w\.x overflows"):
        BatchPerceptronClassifier(5, fit_intercept=False).fit(X, [1, 1, 1, 0])


@pytest.mark.parametrize("function", [separate, fewest_mistakes])
@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        ([[0.0], [1.0]], [1, 1], r"y must have two classes, got 1: \[1\]"),
        ([[0.0], [1.0], [2.0]], [1, 2, 3], "two classes, got 3"),
        ([[0.0], [np.inf]], [0, 1], "row 1, column 0: value inf is not finite"),
        ([[0.0], [1.0]], [0, 1, 1], "one label per row"),
        ([0.0, 1.0], [0, 1], "rows and columns"),
        (np.zeros((0, 2)), [], "rows and columns"),
    ],
)
def test_bad_rows(function, X, y, words):
    with pytest.raises(ValueError, match=words):
        function(X, y)


def test_labels_of_one_class_and_other_bad_arguments():
    with pytest.raises(ValueError, match="at least two classes, got one class: 1"):
        BatchPerceptronClassifier().fit([[0.0], [1.0]], [1, 1])
    for d in (0, 41, 2.5, True):
        with pytest.raises(ValueError, match="d must be an integer between 1 and 40"):
            hard_halfspace(d)
    for limit in (0.0, -1.0, math.nan, True):
        with pytest.raises(ValueError, match="time_limit must be above 0"):
            fewest_mistakes([[0.0], [1.0]], [0, 1], time_limit=limit)
    chunks = Data.from_chunks(lambda: iter([(np.eye(2), [1.0, -1.0], None)] * 2))
    with pytest.raises(ValueError, match="one contiguous piece"):
        BatchPerceptron.begun(2).train(chunks)


def test_the_progress_bar_is_on_stderr_and_only_when_asked(capsys):
    X, y = hard_halfspace(4)
    BatchPerceptronClassifier().fit(X, y)
    assert capsys.readouterr() == ("", "")
    BatchPerceptronClassifier(1000, verbose=True, fit_intercept=False).fit(X, y)
    out, err = capsys.readouterr()
    assert out == ""
    assert "85 updates, 0 of 8 wrong: separated" in err
