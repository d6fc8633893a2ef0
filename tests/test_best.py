"""What people ask of a certificate first: how good, against the true best and a constant, and the promise's worth."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

import hindsight
from hindsight.batch.separability import fewest_mistakes
from hindsight.certificates import outcome as other_side
from hindsight.certificates.best import best_fixed, clock
from hindsight.certificates.best import fewest as fewest_search
from hindsight.certificates.best.constant import best_constant
from hindsight.certificates.best.fewest import FOUND, PROVED, SEPARATES, fewest
from hindsight.certificates.best.least_squares import least_squares
from hindsight.certificates.best.newton import minimiser
from hindsight.certificates.best.spaces import space
from hindsight.certificates.certificate import Best, worth_of
from hindsight.certificates.certify import certify_run
from hindsight.certificates.outcome import cure
from hindsight.certificates.theorems import Verdict
from hindsight.certificates.wording import figure_of, worth_in_words
from hindsight.kernels.entropic import Simplex
from hindsight.kernels.euclidean import Euclidean
from hindsight.kernels.losses import Absolute, Hinge, Logistic, Square
from hindsight.online import learners as L
from hindsight.online.margins import each_loss
from hindsight.online.panel import Panel
from hindsight.online.run import Run, play
from hindsight.rows.data import Data

rng = np.random.default_rng(5)
X = rng.normal(size=(120, 3))
Y = X @ np.array([1.0, -2.0, 0.5]) + 0.5 * rng.normal(size=120) + 0.3
SIGN = np.where(Y > 0.0, 1.0, -1.0)


def certificate(learner, X=X, y=Y, c=None, intercept=True, **options):
    run = Run(learner, X.shape[1], intercept=intercept)
    data = Data(X, y, c, 1.0 if intercept else 0.0)
    play([run], X, [y], c)
    return certify_run(run, data, **options)


# --- the best fixed predictor is literally that -----------------------------------------------------------------------


def test_regret_is_against_least_squares():
    c = certificate(L.widrow_hoff(0.01, "explicit"))
    u, least, *_ = np.linalg.lstsq(np.c_[X, np.ones(120)], Y, rcond=None)
    np.testing.assert_allclose(c.best.u, u, rtol=1e-9)
    assert c.best.loss == pytest.approx(float(least[0])) and c.best.gap <= 1e-9 * c.best.loss
    assert c.regret == pytest.approx(c.measured - float(least[0]))
    assert c.constant == pytest.approx(float(((Y - Y.mean()) ** 2).sum()))
    assert c.comparator.loss > c.best.loss  # the promise is smallest elsewhere


@pytest.mark.parametrize(
    "learners",
    [
        [L.widrow_hoff(0.01), L.widrow_hoff(1e-4, "explicit"), L.descent("square", eta=0.02, power=0.5)],
        [L.descent("absolute", eta=0.1), L.descent("absolute", eta=0.001, update="explicit")],
        [L.eg(0.01, 2.0), L.eg(0.3, 2.0)],
    ],
)
def test_it_is_the_same_for_every_rate_and_learner_of_a_loss(learners):
    first, *others = [certificate(learner) for learner in learners]
    for other in others:
        np.testing.assert_allclose(other.best.u, first.best.u, rtol=1e-12)
        assert other.best.loss == pytest.approx(first.best.loss, rel=1e-13)
        assert (other.best.found, other.constant) == (first.best.found, first.constant)


@pytest.mark.parametrize("learner", [L.perceptron(), L.winnow(0.1)])
def test_separable_rows_have_a_best_of_0_mistakes(learner):
    y = np.where(X @ [1.0, -2.0, 0.5] > 0.0, 1.0, -1.0)
    c = certificate(learner, y=y, intercept=False)
    assert (c.best.loss, c.best.gap, c.best.found) == (0.0, 0.0, SEPARATES)
    assert (y * (X @ c.best.u) > 0.0).all()
    assert c.regret == c.measured > 0.0


def test_mistakes_that_are_not_proved_fewest_are_called_found():
    flipped = SIGN.copy()
    flipped[::7] *= -1.0
    c = certificate(L.perceptron(), y=flipped)
    assert c.best.found == FOUND and c.best.gap == c.best.loss - 1.0  # one at least: no separator
    assert "best fixed predictor" not in str(c) and "the best found: " in str(c)
    assert c.best.loss <= c.comparator.loss
    few = certificate(L.perceptron(), X[:12], np.r_[flipped[:11], -flipped[11]])
    assert few.best.found in (PROVED, SEPARATES) and few.best.gap == 0.0


@pytest.mark.parametrize("apart", [0.0, 1e-8, 1e-12])
def test_a_predictor_that_longer_ones_may_beat_is_called_found(apart):
    """What lies apart in two columns predicts the label, by weights of 1/apart: a search up to 1e6 cannot see them."""
    far = rng.normal(size=120)
    y = (far + 0.5 * rng.normal(size=120) > 0.0).astype(float)
    c = certificate(L.descent("logistic"), np.c_[X[:, 0], X[:, 0] + apart * far], y)
    assert c.best.reach < math.inf and c.best.gap <= 0.011 * c.best.loss
    assert ("the best fixed weights found, known only now, " in c.headline()[0]) == (apart > 0.0)
    assert ("the best found: " in str(c)) == (apart > 0.0)


@pytest.mark.parametrize("learner", [L.descent("absolute", eta=0.1), L.descent("logistic"), Panel((L.running(),))])
def test_nothing_at_hand_is_better_than_the_best_found(monkeypatch, learner):
    """A search that ends early may be behind a constant, the comparator, or the weights of the run itself."""
    monkeypatch.setattr(
        other_side, "best_fixed", lambda data, *_: Best(np.full(data.width, 9.0), 1e9, math.inf, "the first")
    )
    y = (Y > 0.0).astype(float) if learner.loss.targets == "unit" else Y
    run, data = learner.begin(3, True), Data(X, y, None, 1.0)
    play([run], X, [y])
    c = certify_run(run, data)
    on = np.ones(120) if isinstance(learner, L.Learner) else np.r_[0.0, np.ones(119)]
    tried = [np.zeros(4), run.weights, c.comparator.u]
    each = [float(on @ each_loss(learner.loss, data.margins(u), y)) for u in tried]
    assert c.best.loss <= min(*each, c.constant) and c.best.gap == math.inf
    assert c.best.loss == pytest.approx(float(on @ each_loss(learner.loss, data.margins(c.best.u), y)))
    assert c.best.found in ("found: the weights of the run", "found: the comparator")
    flat = certificate(L.descent("absolute", eta=1e-9), y=Y + 50.0)
    assert flat.best.found == "found: the best constant" and flat.best.loss == pytest.approx(flat.constant)


@pytest.mark.parametrize("size", [1.0, 1e15, 9.1e15, 1e17, 1e300])
def test_the_best_constant_of_the_absolute_loss_is_a_median_of_targets_of_any_size(size):
    y = size * np.array([-3.0, 1.0, 2.0, 5.0, 8.0, 9.0, 11.0])
    assert best_constant(Absolute(1.0), y, np.ones(7)) == np.abs(y - 5.0 * size).sum()


def test_learners_on_a_ball_are_measured_against_the_ball():
    c = certificate(L.eg(0.01, 1.5))
    assert np.abs(c.best.u).sum() <= 1.5 * (1.0 + 1e-9)
    assert c.best.loss > certificate(L.widrow_hoff(0.01)).best.loss
    assert "|u|₁ ≤ 1.5" in c.best.found


def test_falling_rates_have_a_promise_of_the_plain_loss():
    c = certificate(L.descent("absolute", eta=0.1, update="explicit", power=0.5))
    assert c.verdict is Verdict.HOLDS and c.lost == c.measured <= c.guaranteed * c.weight
    assert c.regret == c.lost - c.best.loss


def test_a_panel_has_it_over_the_rounds_in_play():
    model = hindsight.AutoRegressor().fit(X, Y)
    c = model.certify(X, Y)
    _, least, *_ = np.linalg.lstsq(np.c_[X, np.ones(120)][1:], Y[1:], rcond=None)  # row 0 gave the start
    assert c.best.loss == pytest.approx(float(least[0])) and c.weight == 119.0
    assert c.regret == pytest.approx(c.measured - float(least[0]))


@pytest.mark.parametrize("loss", [Square(2.0), Logistic(1.0), Hinge(1.0)])
def test_many_sparse_columns_to_a_hundredth(loss):
    wide = sp.random(3000, 2500, density=0.004, format="csr", random_state=1)
    z = wide @ rng.normal(size=2500) + 0.3 * rng.normal(size=3000)
    y = z if loss.quadratic else np.where(z > 0.0, 1.0, 0.0 if loss.targets == "unit" else -1.0)
    found = best_fixed(Data(wide, y), loss, np.ones(3000), None, 0.01)
    start = best_fixed(Data(wide[:, :1] * 0.0, y), loss, np.ones(3000)).loss
    assert found.loss < 0.5 * start
    assert found.gap <= 0.0101 * found.loss or found.loss <= 1e-3 * start


# --- the first line, and what a promise is worth ----------------------------------------------------------------------


def test_the_first_line_is_for_people():
    c = certificate(L.widrow_hoff(0.01, "explicit"))
    first, second, third, *_ = str(c).splitlines()
    means = c.means
    assert means["loss"] == c.measured / 120.0 and means["guaranteed"] == c.bound / 120.0
    own, constant, best, most = (figure_of(c.unit, means[k]) for k in ("loss", "constant", "best", "guaranteed"))
    assert float(own) == pytest.approx(math.sqrt(means["loss"]), rel=5e-3)
    assert first == (
        f"off by {own} on average (root mean square); always predicting the mean would be off by {constant}; "
        f"the best fixed weights, known only now, would be off by {best}; the theorem guarantees at most {most}"
    )
    assert second.startswith(f"HOLDS, {c.worth}: Widrow-Hoff, as met (")
    assert third == f"  {worth_in_words(c.worth, 'squared error')}" and c.brief()[:3] == [first, second, third]


def test_what_is_vacuous_says_nothing():
    assert worth_in_words("vacuous", "mistakes").endswith("always predicting one label loses less than it allows")
    assert worth_in_words("loose", "log loss").endswith("still less than the best constant would lose")


def test_means_are_per_unit_of_weight():
    weights = rng.choice([0.5, 2.0], 120)
    c = certificate(L.widrow_hoff(0.01, "explicit"), c=weights)
    assert c.weight == weights.sum() and c.means["loss"] == c.measured / weights.sum()


@pytest.mark.parametrize(
    ("measured", "bound", "constant", "worth"),
    [
        (3.0, 6.0, 10.0, "tight"),
        (3.0, 6.1, 10.0, "loose"),
        (3.0, 6.0, 5.9, "vacuous"),
        (3.0, 6.0, math.nan, "tight"),
        (0.0, 0.0, 0.0, "tight"),
    ],
)
def test_the_worth_of_a_promise(measured, bound, constant, worth):
    assert worth_of(Verdict.HOLDS, measured, bound, constant) == worth
    assert worth_of(Verdict.VOID, measured, bound, constant) is None


def test_a_run_that_lost_to_the_best_constant_says_so_first_with_a_cure():
    scaled = X * [1e4, 1.0, 1.0]
    c = certificate(L.descent("absolute", eta=0.5, update="explicit"), scaled)
    assert c.lost > c.constant and c.worth == "vacuous" and c.verdict is Verdict.HOLDS
    first = str(c).splitlines()[0]
    assert first.startswith("this run lost more than the best constant would have: scale the features")
    assert "smaller rate (--eta " in first
    assert certificate(L.widrow_hoff(0.01, "explicit")).advice == ""


def test_rows_sorted_by_label_are_to_be_shuffled():
    order = np.argsort(SIGN, kind="stable")
    run, data = Run(L.perceptron(), 3, intercept=True), Data(X[order], SIGN[order], None, 1.0)
    play([run], X[order], [SIGN[order]])

    assert "shuffle the rows" in cure(run, data, math.nan)


def test_json_has_it_all():
    c = certificate(L.widrow_hoff(0.01, "explicit"))
    found = json.loads(json.dumps(c.to_dict()))
    assert found["best"]["u"] == c.best.u.tolist() and found["best"]["reach"] is None
    assert (found["constant"], found["worth"], found["regret"]) == (c.constant, c.worth, c.regret)
    assert found["comparator"]["u"] == c.comparator.u.tolist() and "rival" not in found
    assert found["means"] == c.means


# --- time, and tables -------------------------------------------------------------------------------------------------


def test_a_search_ends_in_time_with_the_best_so_far_and_its_gap():
    told = []
    with clock.timed(0.0, lambda what, gap: told.append((what, gap))):
        c = certificate(L.eg(0.01, 1.5))
    assert c.verdict is Verdict.HOLDS
    exact = certificate(L.eg(0.01, 1.5))
    assert exact.best.loss >= c.best.loss - c.best.gap and c.bound >= exact.bound - exact.comparator.gap
    assert {what for what, _ in told} == {"the comparator of the promise", "the best fixed predictor"}


def test_within_must_be_a_time():
    model = hindsight.WidrowHoffRegressor(0.01).fit(X, Y)
    assert model.certify(X, Y, within=1.0).verdict is Verdict.HOLDS
    with pytest.raises(ValueError, match="within must be at least 0 seconds, got -1"):
        model.certify(X, Y, within=-1)


def test_one_vs_rest_is_one_table():
    labels = np.digitize(Y, [-1.0, 1.0])
    model = hindsight.PerceptronClassifier().fit(X, labels)
    lines = str(model.certify(X, labels)).splitlines()
    assert lines[0].split() == ["verdict", "right", "best", "constant", "best", "fixed", "guaranteed"]
    assert [line.split()[0] for line in lines[1:4]] == ["0", "1", "2"]
    assert lines[-1].startswith("all classes: HOLDS")


def exact_least_squares(X, y):
    """The least squared error in exact arithmetic, and a u that has it."""
    X, y, n = [[Fraction(v) for v in row] for row in X.tolist()], [Fraction(v) for v in y.tolist()], X.shape[1]
    right = [sum(r[i] * t for r, t in zip(X, y, strict=True)) for i in range(n)]
    A = [[*(sum(r[i] * r[j] for r in X) for j in range(n)), right[i]] for i in range(n)]
    row, pivots = 0, []
    for c in range(n):
        found = next((r for r in range(row, n) if A[r][c] != 0), None)
        if found is None:
            continue
        A[row], A[found] = A[found], A[row]
        A[row] = [v / A[row][c] for v in A[row]]
        for r in range(n):
            if r != row:
                A[r] = [v - A[r][c] * w for v, w in zip(A[r], A[row], strict=True)]
        pivots.append(c)
        row += 1
    u = [Fraction(0)] * n
    for r, c in enumerate(pivots):
        u[c] = A[r][n]
    return sum((sum(a * b for a, b in zip(r, u, strict=True)) - t) ** 2 for r, t in zip(X, y, strict=True)), u


def test_nearly_collinear_columns_never_make_the_gap_too_small():
    """Against exact arithmetic: columns that are alike to 1e-4 .. 1e-14, targets that are their difference."""
    rng, wide = np.random.default_rng(0), 0
    for _ in range(300):
        m, n = int(rng.integers(3, 12)), int(rng.integers(2, 4))
        X = rng.normal(size=(m, n)) * 10.0 ** rng.integers(-3, 4, size=n)
        X[:, 1] = X[:, 0] + 10.0 ** -rng.integers(4, 15) * rng.normal(size=m) * np.abs(X[:, 0]).max()
        y = rng.normal(size=m) * 10.0 ** rng.integers(-2, 3) if rng.random() < 0.7 else X[:, 0] - X[:, 1]
        found = least_squares(Data(X, y, None, 0.0), Square(2.0), np.ones(m))
        least, u = exact_least_squares(X, y)
        size = np.linalg.norm(np.sqrt((X**2).mean(axis=0)) * np.array([float(v) for v in u]))
        assert found.loss - found.gap <= float(least) * (1.0 + 1e-9) or size > found.reach
        wide += found.gap > 0.05 * found.loss
    assert wide < 270  # it is not always given up


def test_a_page_of_the_service_shows_the_best_fixed_predictor():
    from hindsight.serve.certificate import briefly

    c = certificate(L.widrow_hoff(0.01, "explicit"))
    told = briefly({"sequence": 120, "verdict": "HOLDS", "claims": [], "certificate": c.to_dict()})
    assert told["best"] == c.best.loss
    assert told["path"][-1][1:] == pytest.approx([c.measured, c.comparator.loss, c.bound])


def drawn_labels(seed):
    draw = np.random.default_rng(seed)
    rows = draw.normal(size=(30, 3))
    return rows, np.where(rows @ [1.0, -1.0, 0.5] + 1.5 * draw.normal(size=30) > 0.0, 1.0, -1.0)


def test_a_pocket_search_finds_fewer_mistakes_than_the_fits_at_hand(monkeypatch):
    monkeypatch.setattr(fewest_search, "EXACT", 0)
    geometry, ones = Euclidean(1.0), np.ones(30)
    fits, found, least = [], [], []
    for seed in range(12):
        rows, y = drawn_labels(seed)
        data = Data(rows, y, None, 1.0)
        with monkeypatch.context() as without:
            without.setattr(fewest_search, "EPOCHS", 0)
            fits.append(fewest(data, ones, geometry, ()).loss)
        best = fewest(data, ones, geometry, ())
        again = fewest(data, ones, geometry, ())
        np.testing.assert_array_equal(again.u, best.u)  # the same in every call
        assert best.found == FOUND and float((y * data.margins(best.u) <= 0.0).sum()) == best.loss
        with clock.timed(0.0):  # no time, no search
            assert fewest(data, ones, geometry, ()).loss >= best.loss
        found.append(best.loss)
        least.append(fewest_mistakes(np.c_[rows, ones], y, fit_intercept=False).lower)
    assert (np.array(found) <= fits).all() and (np.array(found) >= least).all()
    assert sum(found) - sum(least) <= 0.5 * (sum(fits) - sum(least))


@pytest.mark.parametrize("curvature", [0.0, 1e-300])
def test_a_curvature_next_to_nothing_leaves_the_slope_to_decide(curvature):
    simplex = space(Simplex(1.0), 2)
    found = minimiser(simplex, curvature * np.eye(2), np.array([1e10, -1e10]), simplex.start)
    np.testing.assert_array_equal(found, [0.0, 1.0])
