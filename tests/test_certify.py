"""The certificate: verdicts with their numbers, refusals, passes, weights, sources, best rates, written forms."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import naive
from conftest import nightly
from hindsight.certificates import theorems
from hindsight.certificates.audit import play_again, replay
from hindsight.certificates.best.mistakes import winnow
from hindsight.certificates.certificate import Certificates
from hindsight.certificates.certify import certify_run
from hindsight.certificates.judge import applied_theorem
from hindsight.certificates.outcome import in_hindsight
from hindsight.certificates.theorems import Verdict
from hindsight.errors import MismatchError, RowError
from hindsight.online import learners as L
from hindsight.online.run import Run, play
from hindsight.rows.data import Data

RNG = np.random.default_rng(5)
X = RNG.normal(size=(24, 3))
Y = X @ [0.5, -1.0, 0.25] + 0.3 * RNG.normal(size=24)
SIGN = np.where(Y > 0.0, 1.0, -1.0)
WEIGHT = RNG.choice([0.0, 0.5, 1.0, 2.0], 24)
ONE = np.ones((1, 1))


def trained(learner, X=X, y=Y, weight=None, intercept=True, start=None, passes=1):
    """A run over the rows, and the rows."""
    run = Run(learner, X.shape[1], intercept=intercept, start=start)
    for _ in range(passes):
        play([run], X, [y], weight)
    return run, Data(X, y, weight, bias=float(intercept))


def certificate(learner, *rows, u=None, planted=None, label=None, **options):
    return certify_run(*trained(learner, *rows, **options), u=u, planted=planted, label=label)


def classical(run, data):
    """The bound of the classical form at the certificate's u."""
    return applied_theorem(run)(run, data, replay(run, data), None, 0.01).bound


def totals(c):
    return c.measured, c.bound, c.comparator.loss


# --- verdicts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("learner", "weight", "number"),
    [
        (L.widrow_hoff(1.0, "explicit"), None, "1"),
        (L.widrow_hoff(1.25, "explicit"), None, "1.25"),
        (L.descent("square", eta=0.5), None, "1"),
        (L.widrow_hoff(0.25, "explicit"), 4.0, "1"),
        (L.widrow_hoff(0.25, "explicit"), 6.0, "1.5"),
        (L.eg(1.0, 2.0), None, "4"),
        (L.descent("square", "balanced", 0.25, radius=2.0), None, "2"),
        (L.widrow_hoff(1.0, "explicit").with_rates([1.75]), None, "1.75"),
        (L.descent("square", eta=1.0).with_rates([0.5]), None, "1"),
    ],
)
def test_void_says_which_number_broke_the_assumption(learner, weight, number):
    c = certificate(learner, ONE, np.ones(1), None if weight is None else np.full(1, weight), intercept=False)
    assert c.verdict is Verdict.VOID
    (need,) = [need for need in c.assumptions if need.met is False]
    assert f"= {number}" in need.text.replace(",", " ").split("which")[0].strip() + " "
    assert number in need.text.replace(",", "").split()
    assert math.isnan(c.bound)
    assert math.isnan(c.slack)
    assert all(math.isnan(p.bound) for p in c.path)
    assert "promises" not in str(c)
    assert c.regret == pytest.approx(c.lost - c.best.loss)


@pytest.mark.parametrize("learner", [L.widrow_hoff(1.0 - 2.0**-40, "explicit"), L.eg((1.0 - 2.0**-40) / 4.0, 2.0)])
def test_a_rate_just_below_the_limit_holds(learner):
    c = certificate(learner, ONE, np.ones(1), intercept=False)
    assert c.verdict is Verdict.HOLDS
    assert c.bound >= c.measured


@pytest.mark.parametrize("weight", [1.0 / 3.0, 0.1, 0.7, 1.1])
@pytest.mark.parametrize("length", [1.0 / 3.0, 0.3, 0.7, 1.7])
def test_at_the_limit_the_verdict_is_decided_without_dividing_by_0(weight, length):
    rows = np.array([[length]])
    eta = 1.0 / (weight * length * length)
    for rate in (np.nextafter(eta, 0.0), eta, np.nextafter(eta, np.inf)):
        c = certificate(L.widrow_hoff(rate, "explicit"), rows, np.ones(1), np.full(1, weight), intercept=False)
        assert c.verdict is (Verdict.HOLDS if c.assumptions[0].met else Verdict.VOID)


def test_the_intercept_counts_in_the_norm():
    c = certificate(L.widrow_hoff(0.5, "explicit"), ONE, np.ones(1))
    assert c.verdict is Verdict.VOID
    assert "= 1," in c.assumptions[0].text


def test_weight_zero_rows_do_not_count_in_the_norm():
    rows, weight = np.array([[1.0], [100.0]]), np.array([1.0, 0.0])
    c = certificate(L.widrow_hoff(0.5, "explicit"), rows, np.ones(2), weight, intercept=False)
    assert c.verdict is Verdict.HOLDS
    assert c.rounds == 1


def test_glm_tron_void_beyond_its_rate_and_where_nothing_is_planted():
    y = 1.0 / (1.0 + np.exp(-2.0 * np.ones(1)))
    c = certificate(L.glm_tron("logistic", 8.0), ONE, y, intercept=False, planted=[2.0])
    assert c.verdict is Verdict.VOID
    assert any(need.met is False and "= 2," in need.text for need in c.assumptions)
    c = certificate(L.glm_tron("logistic", 4.0), ONE, y + 0.001, intercept=False, planted=[2.0])
    assert c.verdict is Verdict.VOID
    assert any(need.met is False and "0.001" in need.text for need in c.assumptions)
    c = certificate(L.glm_tron("logistic", 4.0), ONE, y, intercept=False, planted=[2.0])
    assert c.verdict is Verdict.HOLDS
    assert c.theorem is theorems.GLM_TRON
    c = certificate(L.glm_tron("logistic", 4.0, power=0.5), ONE, y, intercept=False, planted=[2.0])
    assert c.verdict is Verdict.VOID
    assert any(need.met is False and "rate" in need.text for need in c.assumptions)


UNIT = 0.5 + 0.5 * SIGN
NO_THEOREM = {
    "scale-free at falling rates": (L.descent("square", "scale-free", update="implicit", power=0.5), Y),
    "Winnow at falling rates": (L.winnow(0.1, power=0.5), SIGN),
}


@pytest.mark.parametrize("name", NO_THEOREM)
def test_uncheckable_where_no_theorem_covers_the_run(name):
    learner, y = NO_THEOREM[name]
    run, data = trained(learner, y=y)
    c = certify_run(run, data)
    assert c.verdict is Verdict.UNCHECKABLE
    assert c.theorem is theorems.NONE
    assert math.isnan(c.bound)
    assert [need.met for need in c.assumptions] == [None]
    assert ("speaks of a constant rate" if learner.theorem else "implicit steps") in c.assumptions[0].text
    assert math.isfinite(c.measured)
    assert c.regret == c.lost - c.best.loss
    assert "promises" not in str(c)


PROXIMAL = {
    "absolute": (L.descent("absolute", update="implicit"), Y),
    "logistic": (L.descent("logistic", update="implicit"), UNIT),
    "hinge": (L.descent("hinge", update="implicit"), SIGN),
    "absolute at falling rates": (L.descent("absolute", update="implicit", power=0.5), Y),
    "logistic, balanced": (L.descent("logistic", "balanced", update="implicit", radius=2.0), UNIT),
    "hinge, simplex": (L.descent("hinge", "simplex", update="implicit"), SIGN),
    "absolute, simplex, falling rates": (L.descent("absolute", "simplex", update="implicit", power=0.5), Y),
    "implicit square at falling rates": (L.widrow_hoff(0.1, "implicit", power=0.5), Y),
    "implicit EG": (L.eg(0.1, 2.0, update="implicit"), Y),
    "implicit EG on the simplex": (L.eg(0.1, None, update="implicit"), Y),
}


@nightly(but=["hinge, simplex", "logistic, balanced", "absolute", "logistic", "implicit EG"])
@pytest.mark.parametrize("name", PROXIMAL)
def test_implicit_descent_holds_and_follows_its_potential(name):
    learner, y = PROXIMAL[name]
    run, data = trained(learner, y=y)
    geometry = learner.geometry.name, learner.geometry.radius
    for u in (None, np.array([0.1, 0.2, 0.3, 0.4])):
        c = certify_run(run, data, u=u)
        assert c.verdict is Verdict.HOLDS and c.theorem.name.startswith("implicit descent")
        want = naive.divergence(c.comparator.u.tolist(), run.weights.tolist(), *geometry)
        assert c.path[-1].potential == pytest.approx(want, rel=1e-9)


def test_winnow_at_changing_rates_is_uncheckable():
    c = certificate(L.winnow(0.1, power=0.5), X / 4.0, SIGN)
    assert c.verdict is Verdict.UNCHECKABLE
    assert "winnow speaks of a constant rate" in c.assumptions[0].text


def test_void_and_diverging_runs_still_tell_the_distance_to_the_rival():
    run, data = trained(L.widrow_hoff(0.5, "explicit"))
    c = certify_run(run, data, u=np.zeros(4))
    assert c.verdict is Verdict.VOID
    assert c.path[-1].potential == pytest.approx(float(run.weights @ run.weights), rel=1e-9)


def test_the_verdict_has_a_band_for_rounding_and_no_more():
    assert theorems.verdict(1.0, 2.0, 0.0) == (Verdict.HOLDS, False)
    assert theorems.verdict(1.0 + 1e-15, 1.0, 0.0) == (Verdict.HOLDS, True)
    assert theorems.verdict(1.0 - 1e-15, 1.0, 0.0) == (Verdict.HOLDS, True)
    assert theorems.verdict(1.0 + 1e-8, 1.0, 0.0) == (Verdict.BROKEN, False)
    assert theorems.verdict(1e-10, 0.0, 1.0) == (Verdict.HOLDS, True)
    assert theorems.verdict(1e-8, 0.0, 1.0) == (Verdict.BROKEN, False)
    for measured, bound in ((math.inf, 1.0), (1.0, math.inf), (1.0, math.nan), (math.nan, 1.0)):
        assert theorems.verdict(measured, bound, 1.0) == (Verdict.VOID, False)


@pytest.mark.parametrize("loss", ["square", "absolute"])
def test_the_band_is_of_what_the_start_loses(loss):
    """Targets far from 0 are no reason for a wide band where the first of them is the start."""
    near = certificate(L.running(loss))
    run, data = trained(L.running(loss), y=Y + 3e7)
    far = certify_run(run, data)
    assert far.slack == pytest.approx(near.slack, rel=1e-4) and far.slack > 0.02 * far.bound
    assert near.verdict is far.verdict is Verdict.HOLDS and not near.equality and not far.equality
    scale, rounding = in_hindsight(run, data, play_again(run, data), None, 0.01).applied[0].band
    lost = np.abs(Y - Y[0]) ** {"square": 2, "absolute": 1}[loss]
    assert scale == pytest.approx(lost.sum(), rel=1e-6)
    assert 24 * 3e7 * 2.0**-53 < rounding < 1e-6 * far.bound


def test_the_lemma_is_not_broken_by_rounding():
    """A loss near ln 2 times a rate of 5000 has more rounding than the lemma's own small terms."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        rows, y = 0.003 * rng.normal(size=(6, 1)), 0.5 + 1e-5 * rng.normal(size=6)
        c = certificate(L.descent("logistic", eta=5000.0), rows, y, intercept=False)
        assert c.verdict is Verdict.HOLDS, c.notes


def test_equality_is_said():
    c = certificate(L.widrow_hoff(0.5, "explicit"), ONE, np.ones(1), intercept=False)
    assert c.verdict is Verdict.HOLDS
    assert c.equality
    assert "met with equality" in str(c)
    assert not certificate(L.widrow_hoff(0.01, "explicit")).equality


THEOREMS = [
    (L.widrow_hoff(0.01, "explicit"), Y, theorems.WIDROW_HOFF_MET),
    (L.descent("square", eta=0.01), Y, theorems.WIDROW_HOFF_MET),
    (L.widrow_hoff(0.01, "explicit", power=0.5), Y, theorems.WIDROW_HOFF_PLAIN),
    (L.widrow_hoff(10.0, "implicit"), Y, theorems.IMPLICIT_MET),
    (L.eg(0.01, 2.0), Y, theorems.EG_MET),
    (L.eg(0.01, None), Y, theorems.EG_MET),
    (L.eg(0.01, 2.0, power=0.5), Y, theorems.CONVEX_PLAIN),
    (L.descent("absolute"), Y, theorems.CONVEX_MET),
    (L.descent("hinge", "simplex"), SIGN, theorems.CONVEX_MET),
    (L.descent("perceptron", eta=2.0), SIGN, theorems.CONVEX_MET),
    (L.descent("logistic", "balanced", power=0.5), UNIT, theorems.CONVEX_PLAIN),
    (L.perceptron(), SIGN, theorems.PERCEPTRON_NOISY),
    (L.winnow(0.01), SIGN, theorems.WINNOW),
    (L.winnow(0.01, balanced=False), SIGN, theorems.WINNOW),
    (L.glm_tron("logistic"), UNIT, theorems.CONVEX_MET),
    (L.glm_tron("identity", 0.01), Y, theorems.CONVEX_MET),
]


@pytest.mark.parametrize(
    "learner",
    [
        L.eg(0.01, 2.0, power=0.5),
        L.eg(0.01, 2.0, "implicit", power=0.5),
        L.widrow_hoff(0.01, "explicit", geometry="scale-free"),
        replace(L.widrow_hoff(0.01, "explicit"), theorem=None),
    ],
)
def test_what_is_said_of_a_quadratic_loss_is_the_squared_error(learner):
    """Whatever factor the learner's own loss has, and whatever its theorem is."""
    run, data = trained(learner)
    c, errors = certify_run(run, data), replay(run, data).z - Y
    assert c.measured == c.lost == pytest.approx(float(errors @ errors))
    assert c.constant == pytest.approx(float(((Y - Y.mean()) ** 2).sum()))
    assert c.means["loss"] == pytest.approx(float(np.mean(errors**2)))
    assert c.comparator.loss == pytest.approx(float(((data.margins(c.comparator.u) - Y) ** 2).sum()))
    assert c.best.loss == pytest.approx(float(((data.margins(c.best.u) - Y) ** 2).sum()))
    assert c.verdict is (Verdict.UNCHECKABLE if c.theorem is theorems.NONE else Verdict.HOLDS)


LESS = {theorems.WINNOW: theorems.WINNOW_MET}  # where the classical bound is not trivial


@pytest.mark.parametrize(("learner", "y", "theorem"), THEOREMS)
@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_each_learner_has_its_theorem(learner, y, theorem, weight):
    c = certificate(learner, X, y, weight, passes=2)
    assert c.theorem in (theorem, LESS.get(theorem))
    assert c.verdict is Verdict.HOLDS
    assert c.measured <= c.bound
    assert c.rounds == 2 * (24 if weight is None else np.count_nonzero(weight))


def test_the_perceptrons_bound_counts_the_lengths_of_mistakes_alone():
    rows = np.array([[1.0], [10.0]] * 4)  # one mistake, of length 1
    c = certificate(L.perceptron(), rows, np.ones(8), intercept=False)
    assert c.verdict is Verdict.HOLDS
    assert c.measured == 1.0
    assert c.bound == pytest.approx(1.0, rel=1e-9)
    eye, sign = np.eye(4), np.array([1.0, -1.0, -1.0, 1.0])
    c = certificate(L.perceptron(), np.vstack([eye, eye]), np.tile(sign, 2), intercept=False, u=sign)
    assert (c.measured, c.bound) == (4.0, 4.0)
    c = certificate(L.perceptron(), eye, sign, intercept=False, u=0.999 * sign)
    assert c.theorem is theorems.PERCEPTRON_NOISY
    assert c.bound == pytest.approx(4 * 0.001 + 4 * 0.999)


def test_the_implicit_certificate_also_gives_the_sharper_form():
    run, data = trained(L.widrow_hoff(2.0, "implicit"))
    c = certify_run(run, data)
    (note,) = [note for note in c.notes if note.startswith("sharper")]
    left, right = (float(part.split()[0]) for part in note.split(" = ")[1].split(" ≤ "))
    played = naive.play(X.tolist(), Y.tolist(), rule="widrow-hoff", update="implicit", eta=2.0, bias=1.0)
    want = naive.implicit_widrow_hoff(X.tolist(), Y.tolist(), played, c.comparator.u.tolist(), bias=1.0)
    assert (left, right) == pytest.approx(want, rel=1e-5)
    assert left <= right


# --- refusals ---------------------------------------------------------------------------------------------------------

RUNS = [(L.widrow_hoff(0.01, "explicit"), Y), (L.perceptron(), SIGN), (L.winnow(0.1), SIGN), (L.eg(0.01, None), Y)]
OTHER_ROWS = {
    "one number": lambda X, y: (X + np.eye(24, 3), y),
    "the order": lambda X, y: (X[::-1], y[::-1]),
    "the targets": lambda X, y: (X, np.roll(y, 1)),
    "all signs": lambda X, y: (X, -y),
    "the columns": lambda X, y: (X[:, [1, 0, 2]], y),
    "the scale": lambda X, y: (2.0 * X, y),
}


@pytest.mark.parametrize("change", OTHER_ROWS)
@pytest.mark.parametrize(("learner", "y"), RUNS)
def test_other_rows_are_refused(learner, y, change):
    run, _ = trained(learner, y=y)
    other, targets = OTHER_ROWS[change](X, y)
    with pytest.raises(MismatchError, match="not trained on these rows"):
        certify_run(run, Data(other, targets, None, bias=1.0))


def test_weights_that_cancel_are_the_same_in_another_storage():
    """What is left of weights that cancelled is rounding, and differs between dense and sparse rows."""
    rng, y = np.random.default_rng(0), np.array([0.7, 0.0])
    for _ in range(30):
        rows = np.tile(rng.normal(size=(1, 8)), (2, 1))
        run, _ = trained(L.widrow_hoff(1.0 / float(rows[0] @ rows[0]), "explicit"), rows, y, intercept=False)
        assert certify_run(run, Data(sp.csr_matrix(rows), y), u=np.zeros(8)).measured == pytest.approx(0.98)


def test_other_weights_are_refused():
    run, _ = trained(L.widrow_hoff(0.01, "explicit"), X, Y, np.full(24, 2.0))
    with pytest.raises(MismatchError):
        certify_run(run, Data(X, Y, None, bias=1.0))


def test_another_width_is_refused():
    run, _ = trained(L.widrow_hoff(0.01, "explicit"))
    with pytest.raises(MismatchError, match=r"4 coordinates.*3"):
        certify_run(run, Data(X, Y, None))
    with pytest.raises(MismatchError, match=r"4 coordinates.*3"):
        certify_run(run, Data(X[:, :2], Y, None, bias=1.0))


@pytest.mark.parametrize("rows", [23, 13, 5])
def test_another_row_count_is_refused(rows):
    run, _ = trained(L.widrow_hoff(0.01, "explicit"))
    with pytest.raises(MismatchError, match=rf"24 rounds.*{rows} rows"):
        certify_run(run, Data(X[:rows], Y[:rows], None, bias=1.0))


def test_more_rows_than_were_played_are_refused():
    run, _ = trained(L.widrow_hoff(0.01, "explicit"), X[:12], Y[:12])
    with pytest.raises(MismatchError, match="12 rounds"):
        certify_run(run, Data(X, Y, None, bias=1.0))


def test_half_of_the_rows_is_no_pass_over_them():
    run, _ = trained(L.widrow_hoff(0.01, "explicit"))
    with pytest.raises(MismatchError, match="not trained on these rows"):
        certify_run(run, Data(X[:12], Y[:12], None, bias=1.0))


def test_a_run_without_rounds_is_refused():
    with pytest.raises(MismatchError, match="no round"):
        certify_run(Run(L.widrow_hoff(), 3), Data(X, Y, None, bias=1.0))


@pytest.mark.parametrize(("learner", "y"), [*RUNS, (L.descent("absolute"), Y)])
def test_a_rival_of_the_wrong_length_or_not_finite_is_refused(learner, y):
    run, data = trained(learner, y=y)
    with pytest.raises(ValueError, match="must have 4 coordinates"):
        certify_run(run, data, u=np.zeros(3))
    with pytest.raises(ValueError, match="must be finite"):
        certify_run(run, data, u=[0.25, 0.25, math.nan, 0.25])


@pytest.mark.parametrize(
    ("learner", "y"),
    [(L.eg(0.01, None), Y), (L.winnow(0.1, balanced=False), SIGN), (L.descent("hinge", "simplex"), SIGN)],
)
@pytest.mark.parametrize("u", [[0.5, 0.5, 0.5, -0.5], [0.25, 0.25, 0.25, 0.2500001], [0.0, 0.0, 0.0, 0.0]])
def test_a_rival_outside_the_simplex_is_refused(learner, y, u):
    run, data = trained(learner, y=y)
    with pytest.raises(ValueError, match="simplex"):
        certify_run(run, data, u=u)


@pytest.mark.parametrize(
    ("learner", "y", "radius"),
    [(L.eg(0.01, 2.0), Y, 2.0), (L.winnow(0.1), SIGN, 1.0), (L.descent("logistic", "balanced", radius=0.5), UNIT, 0.5)],
)
def test_a_rival_outside_the_ball_is_refused(learner, y, radius):
    run, data = trained(learner, y=y)
    corner = radius * np.array([0.5, -0.5, 0.0, 0.0])
    assert certify_run(run, data, u=corner).verdict in (Verdict.HOLDS, Verdict.VOID)
    with pytest.raises(ValueError, match="radius"):
        certify_run(run, data, u=1.0001 * corner)


def test_a_planted_vector_is_for_glm_tron():
    run, data = trained(L.widrow_hoff(0.01, "explicit"))
    with pytest.raises(ValueError, match="glm-tron"):
        certify_run(run, data, planted=np.zeros(4))
    run, data = trained(L.glm_tron("logistic"), y=UNIT)
    with pytest.raises(ValueError, match="4 coordinates"):
        certify_run(run, data, planted=np.zeros(2))


@pytest.mark.parametrize(
    ("learner", "bad"),
    [(L.perceptron(), 0.0), (L.winnow(0.1), 2.0), (L.descent("logistic"), 1.5), (L.descent("hinge"), 0.5)],
)
def test_labels_outside_their_range_are_never_played_nor_certified(learner, bad):
    y = (UNIT if learner.targets == "unit" else SIGN).copy()
    run, _ = trained(learner, y=y)
    y[3] = bad
    with pytest.raises(RowError, match="row 3"):
        trained(learner, y=y)
    with pytest.raises(ValueError, match=r"not trained on these rows|labels|between"):
        certify_run(run, Data(X, y, None, bias=1.0))


# --- sources, storages, passes, weights -------------------------------------------------------------------------------


def chunks(size):
    return lambda: ((X[k : k + size], Y[k : k + size], None) for k in range(0, 24, size))


def test_a_source_that_cannot_be_read_twice_is_refused():
    run, _ = trained(L.widrow_hoff(0.01, "explicit"))
    once = chunks(7)()
    data = Data.from_chunks(lambda: once, bias=1.0)
    with pytest.raises(ValueError, match=r"0 rows on a second reading.*new iterator"):
        certify_run(run, data)


def test_a_source_that_changes_between_readings_is_refused():
    run, _ = trained(L.widrow_hoff(0.01, "explicit"))
    readings = iter([Y, Y + 1.0])

    def source():
        y = next(readings)
        return ((X[k : k + 7], y[k : k + 7], None) for k in range(0, 24, 7))

    data = Data.from_chunks(source, bias=1.0)
    with pytest.raises(ValueError, match="other rows on a second reading"):
        certify_run(run, data)


@pytest.mark.parametrize("learner", [L.widrow_hoff(0.01, "explicit"), L.eg(0.01, 2.0), L.descent("absolute")])
def test_chunks_sparse_and_strided_rows_give_the_same_certificate(learner):
    run, data = trained(learner)
    want = certify_run(run, data, u=np.full(4, 0.25))
    for other in (
        Data.from_chunks(chunks(7), bias=1.0),
        Data(sp.csr_matrix(X), Y, None, bias=1.0),
        Data(np.asfortranarray(X), Y, None, bias=1.0),
    ):
        c = certify_run(run, other, u=np.full(4, 0.25))
        assert totals(c) == pytest.approx(totals(want), rel=1e-12)
        found = certify_run(run, other)
        assert found.verdict is Verdict.HOLDS
        assert found.bound <= want.bound * (1.0 + 1e-12)


@pytest.mark.parametrize(("learner", "y", "theorem"), THEOREMS)
def test_passes_are_one_long_sequence(learner, y, theorem):
    u = np.full(4, 0.25)
    run, data = trained(learner, y=y, passes=3)
    c = certify_run(run, data, u=u)
    long, rows = trained(learner, np.tile(X, (3, 1)), np.tile(y, 3))
    want = certify_run(long, rows, u=u)
    assert c.rounds == 72
    assert totals(c) == pytest.approx(totals(want), rel=1e-12)
    assert [p.rounds for p in c.path] == [p.rounds for p in want.path] == [1, 2, 4, 8, 16, 32, 64, 72]
    assert certify_run(run, data).bound <= want.bound * (1.0 + 1e-9) or theorem in MISTAKES


MISTAKES = (theorems.PERCEPTRON_NOISY, theorems.WINNOW)


@pytest.mark.parametrize(("learner", "y", "theorem"), THEOREMS)
def test_a_row_of_weight_zero_is_no_row(learner, y, theorem):
    on = WEIGHT > 0.0
    assert not on.all()
    c = certificate(learner, X, y, WEIGHT, u=np.full(4, 0.25))
    want = certificate(learner, X[on], y[on], WEIGHT[on], u=np.full(4, 0.25))
    assert c.theorem in (theorem, LESS.get(theorem))
    assert totals(c) == pytest.approx(totals(want), rel=1e-12)
    assert c.rounds == want.rounds == on.sum()


def test_a_weight_multiplies_the_loss():
    c = certificate(L.widrow_hoff(0.01, "explicit"), X, Y, WEIGHT)
    played = naive.play(X.tolist(), Y.tolist(), rule="widrow-hoff", eta=0.01, weight=WEIGHT.tolist(), bias=1.0)
    want = naive.widrow_hoff_met(
        X.tolist(), Y.tolist(), played, c.comparator.u.tolist(), weight=WEIGHT.tolist(), bias=1.0
    )
    assert (c.measured, c.bound) == pytest.approx(want, rel=1e-12)
    assert "weights included" in c.assumptions[0].text


@pytest.mark.parametrize("rows", [np.zeros((3, 2)), np.zeros((1, 1))])
@pytest.mark.parametrize(("learner", "targets"), [(learner, learner.targets) for learner, _, _ in THEOREMS])
def test_rows_of_zeros_have_a_certificate(learner, targets, rows):
    y = np.ones(len(rows))
    c = certificate(learner, rows, y, intercept=False)
    assert c.verdict in (Verdict.HOLDS, Verdict.VOID)


# --- the rival and the rate in hindsight ------------------------------------------------------------------------------


@pytest.mark.parametrize(("learner", "y", "theorem"), [case for case in THEOREMS if case[2] not in MISTAKES])
def test_no_rival_is_better_by_more_than_the_gap(learner, y, theorem):
    """But for the last distance, which is taken off once u is found."""
    run, data = trained(learner, y=y)
    best = certify_run(run, data)
    last = learner.rate.at(24.0) * (1.0 if "descent" in theorem.name else learner.loss.scale)
    times = {theorems.EG_MET: 2.0, theorems.IMPLICIT_MET: 1.0 + last * run.facts.weight_x2}.get(theorem, 1.0)

    def without_last(c):
        return c.bound + times * c.path[-1].potential / last

    assert 0.0 <= best.comparator.gap <= 0.011 * best.bound * (1.0 + 10.0 * run.facts.x2**2)
    assert best.comparator.norm == pytest.approx(float(np.linalg.norm(best.comparator.u)))
    rng = np.random.default_rng(0)
    for _ in range(30):
        u = best.comparator.u + 0.2 * rng.normal(size=4)
        if type(learner.geometry).__name__ != "Euclidean":
            u = np.abs(u)
            u *= learner.geometry.radius / u.sum()
        other = certify_run(run, data, u=u)
        assert other.verdict is Verdict.HOLDS
        assert without_last(other) >= without_last(best) - best.comparator.gap - 1e-9 * best.bound
        assert other.comparator.gap == math.inf
        np.testing.assert_array_equal(other.comparator.u, u)


def rates(best):
    return best * np.concatenate([np.geomspace(0.01, 100.0, 161), [0.999, 1.001]])


SQUARES = [
    (L.widrow_hoff(0.002, "explicit"), 1.0, "euclidean", 1.0),
    (L.descent("square", eta=0.002), 2.0, "euclidean", 1.0),
    (L.eg(0.002, 2.0), 1.0, "balanced", 2.0),
    (L.eg(0.002, None), 1.0, "simplex", 1.0),
    (L.descent("square", "balanced", 0.002, radius=3.0), 2.0, "balanced", 3.0),
]


@pytest.mark.parametrize("weight", [None, np.maximum(WEIGHT, 0.5)])
@pytest.mark.parametrize(("learner", "scale", "geometry", "radius"), SQUARES)
def test_the_best_eta_of_the_explicit_square_bounds(learner, scale, geometry, radius, weight):
    run, data = trained(learner, X, Y, weight)
    c = certify_run(run, data)
    space = {"geometry": geometry, "radius": radius}
    words = {"weight": None if weight is None else weight.tolist(), "bias": 1.0, **space}
    played = naive.play(X.tolist(), Y.tolist(), rule="widrow-hoff", eta=0.002 * scale, **words)

    def bound(eta):
        other = replace(played, rates=[scale * eta] * 24)
        return naive.eg(X.tolist(), Y.tolist(), other, c.comparator.u.tolist(), **words)[1]

    assert bound(0.002) == pytest.approx(classical(run, data), rel=1e-12)
    least = bound(c.best_eta)
    assert least < bound(0.002)
    assert all(least <= bound(eta) for eta in rates(c.best_eta))


@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_the_best_eta_of_the_implicit_bound(scale):
    learner = L.widrow_hoff(0.3, "implicit") if scale == 1.0 else L.descent("square", eta=0.3, update="implicit")
    run, data = trained(learner, X, Y, WEIGHT)
    c = certify_run(run, data)
    words = {"weight": WEIGHT.tolist(), "bias": 1.0}
    played = naive.play(X.tolist(), Y.tolist(), rule="widrow-hoff", update="implicit", eta=0.3 * scale, **words)

    def bound(eta):
        other = replace(played, rates=[scale * eta] * len(played.rates))
        return naive.implicit_widrow_hoff_total(X.tolist(), Y.tolist(), other, c.comparator.u.tolist(), **words)[1]

    assert bound(0.3) == pytest.approx(classical(run, data), rel=1e-12)
    assert all(bound(c.best_eta) <= bound(eta) for eta in rates(c.best_eta))


@pytest.mark.parametrize("geometry", ["euclidean", "simplex", "balanced"])
def test_the_best_eta_of_the_convex_bound(geometry):
    run, data = trained(L.descent("absolute", geometry, 0.05), X, Y, WEIGHT)
    c = certify_run(run, data)
    distance = naive.divergence(c.comparator.u.tolist(), run.first.tolist(), geometry, 1.0)

    def bound(eta):
        return theorems.convex(eta, c.comparator.loss, distance, run.facts.gradient)

    assert bound(0.05) == pytest.approx(classical(run, data), rel=1e-9)
    assert all(bound(c.best_eta) <= bound(eta) for eta in rates(c.best_eta))


@pytest.mark.parametrize("weight", [None, np.full(24, 2.0)])
@pytest.mark.parametrize("balanced", [True, False])
def test_the_best_eta_of_winnow_on_separable_rows(balanced, weight):
    rows = np.random.default_rng(0).choice([-1.0, 1.0], (24, 4))
    y = rows[:, 1]
    learner = L.winnow(0.1, balanced=balanced)
    run, data = trained(learner, rows, y, weight, intercept=False)
    c = certify_run(run, data)
    assert c.verdict is Verdict.HOLDS
    heaviest = 1.0 if weight is None else 2.0
    found = winnow(data, learner.geometry, 0.1, run.first, 1.0, heaviest)
    np.testing.assert_array_equal(found.u, c.comparator.u)
    geometry = "balanced" if balanced else "simplex"
    played = naive.play(rows, y, rule="perceptron", eta=0.1, weight=weight, geometry=geometry)
    wrong = y * np.array(played.margins) <= 0.0
    hinge = heaviest * float(np.maximum(0.0, found.margin - y * (rows @ found.u))[wrong].sum())

    distance = naive.divergence(found.u.tolist(), run.first.tolist(), geometry, 1.0)

    def bound(eta):
        return theorems.winnow(eta, 1.0, heaviest, distance, found.margin, hinge)

    assert min(bound(0.1), 24.0 * heaviest) == pytest.approx(classical(run, data), rel=1e-9)
    least = bound(c.best_eta)
    assert math.isfinite(least)
    assert all(not bound(eta) < least * (1.0 - 1e-9) for eta in rates(c.best_eta))


def test_the_best_eta_of_glm_tron():
    w = np.array([0.5, -0.25, 0.125, 0.0])
    y = np.array([naive.sigmoid(float(z)) for z in np.hstack([X, np.ones((24, 1))]) @ w])
    run, data = trained(L.glm_tron("logistic", 0.1), X, y, WEIGHT)
    c = certify_run(run, data, planted=w)
    assert c.verdict is Verdict.HOLDS

    def bound(eta):
        return theorems.glm_tron(eta, run.facts.weight_x2, 0.25, float(w @ w))

    assert bound(0.1) == pytest.approx(c.bound, rel=1e-12)
    assert all(not bound(eta) < bound(c.best_eta) for eta in rates(c.best_eta))


# --- the written forms ------------------------------------------------------------------------------------------------


def plain(value):
    """Whether a value is made of what JSON knows."""
    if isinstance(value, dict):
        return all(type(k) is str and plain(v) for k, v in value.items())
    return all(map(plain, value)) if isinstance(value, list) else type(value) in (str, int, float, bool, type(None))


@pytest.mark.parametrize(
    ("learner", "y"),
    [
        *((learner, y) for learner, y, _ in THEOREMS),
        (L.widrow_hoff(9.0, "explicit"), Y),
        *NO_THEOREM.values(),
    ],
)
@pytest.mark.parametrize("given", [True, False])
def test_to_dict_is_json(learner, y, given):
    c = certificate(learner, X, y, u=np.full(4, 0.25) if given else None, label="a")
    told = c.to_dict()
    assert plain(told)
    again = json.loads(json.dumps(told, allow_nan=False))
    assert again == told
    assert again["verdict"] == c.verdict.value
    assert again["measured"] == c.measured
    assert again["comparator"]["u"] == c.comparator.u.tolist()
    assert again["theorem"]["name"] == c.theorem.name
    assert again["label"] == "a"
    assert len(again["path"]) == len(c.path)
    assert again["slack"] == (c.slack if math.isfinite(c.slack) else None)
    assert again["regret"] == c.regret
    assert [need["met"] for need in again["assumptions"]] == [need.met for need in c.assumptions]


def test_html_is_escaped():
    c = certificate(L.widrow_hoff(0.01, "explicit"), label="<script>alert('x & y')</script>")
    html = c._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;alert(&#x27;x &amp; y&#x27;)&lt;/script&gt;" in html
    assert html.count("<tr>") == len(c.path) + 1
    assert "HOLDS" in html


def test_the_text_can_be_read_aloud():
    c = certificate(L.widrow_hoff(0.01, "explicit"))
    text = str(c)
    assert f"off by {math.sqrt(c.measured / 24):#.3g} on average (root mean square); always " in text
    assert f"\n{c.verdict.value}, {c.worth}: Widrow-Hoff, as met (Cesa-Bianchi, Long, Warmuth 1996)\n" in text
    for part in (
        f"{c.measured:.6g}",
        f"{c.bound:.6g}",
        f"{c.comparator.loss:.6g}",
        "24 rounds",
        f"{c.best_eta:.6g}",
        "✓",
    ):
        assert part in text


def test_the_union_of_classes():
    holds = certificate(L.perceptron(), X, SIGN, label="a")
    other = certificate(L.perceptron(), X, -SIGN, label="b")
    both = Certificates((holds, other))
    assert both.verdict is Verdict.HOLDS
    assert both.bound == holds.bound + other.bound
    assert str(both).splitlines()[-1].startswith("all classes: HOLDS")
    assert f"{both.bound:.6g}" in str(both).splitlines()[-1]
    told = json.loads(json.dumps(both.to_dict(), allow_nan=False))
    assert [each["label"] for each in told["each"]] == ["a", "b"]
    assert told["bound"] == both.bound
    assert both._repr_html_().count("<table>") == 2


@pytest.mark.parametrize(
    ("verdicts", "gravest"),
    [
        ("HOLDS HOLDS", "HOLDS"),
        ("HOLDS UNCHECKABLE", "UNCHECKABLE"),
        ("UNCHECKABLE VOID HOLDS", "VOID"),
        ("VOID BROKEN HOLDS", "BROKEN"),
    ],
)
def test_the_union_has_the_gravest_verdict(verdicts, gravest):
    c = certificate(L.perceptron(), X, SIGN)
    each = tuple(replace(c, verdict=Verdict[v], bound=c.bound if v == "HOLDS" else math.nan) for v in verdicts.split())
    both = Certificates(each)
    assert both.verdict is Verdict[gravest]
    last = str(both).splitlines()[-1]
    assert last.startswith(f"all classes: {gravest}")
    assert ("≤" in last) == (gravest == "HOLDS")
    json.dumps(both.to_dict(), allow_nan=False)
