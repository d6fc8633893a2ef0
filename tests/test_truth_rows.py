"""A model knows its rows: others are refused, the same ones in another form are not; old certificates are dropped."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import is_classifier

import hindsight as h
from conftest import store
from discovery import ONLINE
from hindsight.certificates.certify import certify_run
from hindsight.errors import MismatchError
from hindsight.online.learners import widrow_hoff
from hindsight.online.run import Run, play
from hindsight.rows.data import Data
from hindsight.rows.table import check_known, measure

RNG = np.random.default_rng(11)
X = RNG.normal(size=(200, 4))
Y = X @ [1.0, -0.5, 0.25, 0.0] + 0.1 * RNG.normal(size=200)
SMALL = X / 8.0
LABEL = np.where(Y > 0.0, "yes", "no")


def refused(model, *rows, **options):
    with pytest.raises(MismatchError, match=r"^the model was not trained on these rows( in this order)?: ") as error:
        model.certify(*rows, **options)
    assert "\n" not in str(error.value)
    return str(error.value)


# --- rows that are not the run's ------------------------------------------------------------------------------------


def test_a_target_that_differs_in_the_seventh_digit_is_refused():
    model = h.WidrowHoffRegressor(0.01).fit(X, Y)
    y = Y.copy()
    y[50] += 1e-6
    refused(model, X, y)
    assert model.certify(X, Y).verdict is h.Verdict.HOLDS


def test_rows_that_were_right_cannot_be_shrunk():
    model = h.PerceptronClassifier(keep_margins=True).fit(X, LABEL)
    right = np.where(LABEL == "yes", 1.0, -1.0) * model.margins_ > 0.0
    assert 10 < right.sum() < 190
    other = X.copy()
    other[right] /= 1000.0
    refused(model, other, LABEL)


def test_rows_without_a_common_column_can_be_exchanged_only_if_the_run_is_the_same():
    rows = np.zeros((40, 4))
    rows[np.arange(40), np.arange(40) % 4] = 0.7
    y, swapped = np.full(40, 0.5), np.arange(40)
    swapped[[8, 9]] = 9, 8
    model = h.WidrowHoffRegressor(0.1, fit_intercept=False).fit(rows, y)
    mine, other = model.certify(rows, y), model.certify(rows[swapped], y)  # every margin, loss and step is the same
    assert (other.measured, other.bound) == (mine.measured, mine.bound) and mine.verdict is h.Verdict.HOLDS
    rows[9] *= 1.5
    model.fit(rows, y)
    refused(model, rows[swapped], y)


def test_a_row_without_a_mistake_is_known_by_its_margin_and_its_norm():
    """The perceptron does not step on it, so neither the weights nor any sum of losses shows it."""
    rows, label = np.array([[1.0, 0.0, 0.0], [2.0, 0.0, 0.0], [3.0, 1.0, 0.0], [1.5, 0.0, 1.0]]), [1, 1, 1, 1]
    rows, label = np.vstack([rows, -rows[:1]]), [*label, 0]
    model = h.PerceptronClassifier(fit_intercept=False).fit(rows, label)
    assert model.facts_.mistakes == 1
    for t, column, value in ((1, 0, 2.5), (1, 2, 0.5)):  # the second changes no margin
        other = rows.copy()
        other[t, column] = value
        refused(model, other, label)
    refused(model, rows[[0, 3, 2, 1, 4]], label)
    assert model.certify(rows, label).verdict is h.Verdict.HOLDS


def test_other_weights_are_refused_and_weight_0_is_no_row():
    weight = RNG.choice([0.0, 0.5, 1.0, 2.0], 200)
    model = h.PerceptronClassifier().fit(X, LABEL, weight)
    on = weight > 0.0
    model.certify(X[on], LABEL[on], weight[on])
    other = np.where(on, weight, 0.0)
    other[np.flatnonzero(on)[7]] += 0.25
    refused(model, X, LABEL, other)


@pytest.mark.parametrize(
    "model", [h.IsotronRegressor(rounds=5), h.IsotronRegressor(rounds=5, lipschitz=1.0, held_out=0.2)]
)
def test_isotron_refuses_targets_that_were_moved(model):
    y = 1.0 / (1.0 + np.exp(-Y))
    model.fit(X, y)
    refused(model, X, y + 1000.0)
    refused(model, X[:, ::-1], y)
    assert model.certify(X, y).verdict is h.Verdict.UNCHECKABLE


def test_glm_tron_in_rounds_and_isotron_classes_refuse_others_too():
    y = 1.0 / (1.0 + np.exp(-Y))
    glm = h.GLMtronBatchRegressor(rounds=3).fit(X, y)
    refused(glm, X, np.roll(y, 1))
    glm.certify(X, y)
    many = h.IsotronClassifier(rounds=3).fit(X, np.arange(200) % 3)
    refused(many, X, (np.arange(200) + 1) % 3)
    many.certify(X, np.arange(200) % 3)


def test_the_batch_perceptron_refuses_rows_it_never_stepped_on():
    far = X.copy()
    far[:, 0] += np.where(LABEL == "yes", 5.0, -5.0)
    model = h.BatchPerceptronClassifier().fit(far, LABEL)
    other = far.copy()
    other[150] *= 2.0
    refused(model, other, LABEL)
    assert model.certify(far, LABEL).verdict is h.Verdict.HOLDS


@pytest.mark.parametrize("batch", ["full", 1])
def test_gradient_descent_refuses_a_target_that_differs_in_the_seventh_digit(batch):
    model = h.GradientDescentRegressor(eta=0.1, rounds=20, batch=batch, random_state=0).fit(X, Y)
    y = Y.copy()
    y[50] += 1e-6
    refused(model, X, y)
    swapped = Y.copy()
    swapped[[0, 1]] = Y[[1, 0]]
    refused(model, X, swapped)
    model.certify(X, Y)


@pytest.mark.parametrize(
    "model",
    [h.GradientDescentRegressor(eta=0.1, rounds=5, warm_start=True), h.BatchPerceptronClassifier(2, warm_start=True)],
)
def test_rows_that_changed_between_two_fits_are_certified_for_neither(model):
    y = Y if isinstance(model, h.GradientDescentRegressor) else LABEL
    other = X.copy()
    other[3] *= 1.0 + 1e-6
    model.fit(X, y).fit(other, y)
    refused(model, X, y)
    refused(model, other, y)
    model.set_params(warm_start=False)
    model.fit(other, y).certify(other, y)


# --- the same rows ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ordered", [True, False])
def test_batch_methods_know_their_rows_in_any_storage_and_in_any_blocks(ordered):
    rows = RNG.normal(size=(60, 5)) * (RNG.random((60, 5)) < 0.6)
    rows[5, 1] = -0.0
    weight = RNG.choice([0.0, 0.5, 1.0], 60)
    rows = rows.astype(np.float32).astype(np.float64)
    known = Data(rows, Y[:60], weight, bias=1.0).measured("real").known_by(ordered)
    assert known[0] == np.count_nonzero(weight)
    for storage in ("dense32", "strided", "csr64", "csr32"):
        found = Data(store(rows, storage), Y[:60], weight, bias=1.0).measured("real").known_by(ordered)
        np.testing.assert_allclose(found, known, rtol=1e-14)
    parts = [slice(0, 1), slice(1, 40), slice(40, 60)]
    blocks = [measure(Data(rows[part], Y[:60][part], weight[part], bias=1.0), "real") for part in parts]
    np.testing.assert_allclose(sum(blocks[1:], blocks[0]).known_by(ordered), known, rtol=1e-14)


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("values or weights", lambda X, y, c: (X[:, ::-1], y, c)),  # columns of rows that keep their norms
        ("values or weights", lambda X, y, c: (np.where(np.arange(200)[:, None] == 7, -X, X), y, c)),
        ("values or weights and targets", lambda X, y, c: (X, y, np.where(np.arange(200) == 7, 2.0, c))),
        ("targets", lambda X, y, c: (X, np.where(np.arange(200) == 7, -y, y), c)),
        ("values or weights and targets", lambda X, y, c: (X[:-1], y[:-1], c[:-1])),
    ],
)
@pytest.mark.parametrize("ordered", [True, False])
def test_rows_of_batch_methods_that_changed_are_others(ordered, what, change):
    known, found = (
        Data(*rows).measured("real").known_by(ordered) for rows in ((X, Y, np.ones(200)), change(X, Y, np.ones(200)))
    )
    check_known(known, known, ordered)
    with pytest.raises(MismatchError, match=f": {what} differ from those it learnt$"):
        check_known(known, found, ordered)


def test_the_order_of_the_rows_of_batch_methods_counts_where_it_does():
    measured, swapped = (Data(X[order], Y[order]).measured("real") for order in (np.arange(200), np.r_[1, 0, 2:200]))
    check_known(measured.known_by(False), swapped.known_by(False), False)
    with pytest.raises(MismatchError, match="in this order"):
        check_known(measured.known_by(), swapped.known_by())


def test_a_model_of_dense_rows_is_certified_on_sparse_ones():
    holes = (X * (RNG.random(X.shape) < 0.5)).astype(np.float32)
    model = h.WidrowHoffRegressor(0.01).fit(holes, Y)
    for rows in (sp.csr_matrix(holes), sp.csc_array(holes.astype(np.float64)), np.asfortranarray(holes)):
        assert model.certify(rows, Y).verdict is h.Verdict.HOLDS


def test_passes_and_later_calls_go_on():
    model = h.WidrowHoffRegressor(0.01, passes=3).fit(X, Y)
    assert model.certify(X, Y).rounds == 600
    parts = h.WidrowHoffRegressor(0.01).partial_fit(X[:70], Y[:70]).partial_fit(X[70:], Y[70:])
    parts.certify(X, Y)


def test_columns_out_of_order_and_given_twice_are_those_that_were_learnt():
    entries, columns = np.tile([1.0, 2.0, 3.0, 4.0], 30), np.tile([2, 0, 1, 1], 30)
    rows = sp.csr_matrix((entries, columns, np.arange(0, 121, 2)), shape=(60, 3))
    rows.data[:2], rows.indices[:2] = (2.0, 1.0), (0, 2)
    y = np.arange(60.0) / 60.0
    h.WidrowHoffRegressor(0.01).fit(rows, y).certify(rows.toarray(), y)


def test_margins_alone_change_no_facts():
    run = Run(widrow_hoff(0.1), 4)
    before = run.tally.copy()
    play([run], X, [Y], np.zeros(200), np.empty((200, 1)), idle=True)
    np.testing.assert_array_equal(run.tally, before)


@pytest.mark.parametrize("names", [True, False])
@pytest.mark.parametrize("kind", [h.PerceptronClassifier, h.DescentClassifier])
def test_rows_learnt_one_at_a_time_are_known(kind, names):
    """Also where classes come one by one, so that runs are mirrored and signs change."""
    for order in (["b", "a"], ["a", "b"], ["c", "a", "b"]):
        labels = [order[k] if k < len(order) else order[(k * k) % len(order)] for k in range(60)]
        if len(order) == 3:  # a run of a third class starts late, and has no whole pass: two classes are one run
            labels = [order[min(k, 1)] if k < 2 else order[k % 2] for k in range(60)]
        model = kind()
        for x, label in zip(X[:60], labels, strict=True):
            model.learn_one({f"f{j}": float(v) for j, v in enumerate(x)} if names else x, label)
        whole = kind().fit(X[:60], labels)
        np.testing.assert_allclose(model.runs_[0].tally[0].item(), whole.runs_[0].tally[0].item(), rtol=1e-12)
        model.certify(X[:60], labels)
        other = X[:60].copy()
        other[7, 3] += 1e-3
        refused(model, other, labels)


def test_a_third_class_keeps_what_the_first_two_learnt():
    model = h.DescentClassifier().fit(X[:50], np.arange(50) % 2)
    model.learn_one(X[50], 2)
    codes = np.append(np.arange(50) % 2, 2)
    for k in (0, 1):
        certify_run(model.runs_[k], Data(X[:51], np.where(codes == k, 1.0, 0.0), None, bias=1.0))


def test_a_saved_model_knows_its_rows(tmp_path):
    y = 1.0 / (1.0 + np.exp(-Y))
    for model, target in (
        (h.WidrowHoffRegressor(0.01), Y),
        (h.IsotronRegressor(rounds=3), y),
        (h.BatchPerceptronClassifier(3), LABEL),
        (h.GradientDescentRegressor(rounds=3), Y),
    ):
        model.fit(X, target).save(tmp_path / "model")
        again = h.load(tmp_path / "model")
        again.certify(X, target)
        other = X.copy()
        other[199, 0] += 1e-3
        refused(again, other, target)


@pytest.mark.parametrize("name", ["widrow_hoff", "auto", "descent"])
def test_a_model_of_an_earlier_version_is_certified_by_its_weights_and_facts(name, tmp_path):
    """Files of 0.1 have a checksum of the rows of a run, which is no longer read, and nothing of their order."""
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(60, 3))
    y = rows @ [1.0, -0.5, 0.25] + 0.1 * rng.normal(size=60)
    model = h.load(Path(__file__).parent / "earlier" / name)
    assert model.certify(rows, y).verdict is h.Verdict.HOLDS
    other = y.copy()
    other[50] += 1e-3
    refused(model, rows, other)
    if name != "descent":
        model.partial_fit(rows, y).save(tmp_path / "again")
        again = h.load(tmp_path / "again").certify(np.vstack([rows, rows]), np.append(y, y))
        assert again.rounds >= 119


# --- a source that changes --------------------------------------------------------------------------------------------


def test_a_callable_whose_rows_change_between_readings_is_refused():
    model = h.WidrowHoffRegressor(0.01).fit(X, Y)
    readings = iter([0.0, 0.0, 1e-12, 0.0, 0.0, 0.0])

    def source():
        rows = X.copy()
        rows[3, 0] += next(readings)
        yield rows, Y, None

    with pytest.raises(ValueError, match=r"other rows on a second reading|not trained on these rows"):
        model.certify(source)


def test_a_callable_that_gives_other_rows_with_the_same_targets_is_refused():
    """They are alike on every reading, and the run over them ends with the same weights: its steps are the same."""
    model = h.PerceptronClassifier(keep_margins=True).fit(X, LABEL)
    right = np.where(LABEL == "yes", 1.0, -1.0) * model.margins_ > 0.0
    other = np.where(right[:, None], X / 1000.0, X)
    refused(model, lambda: iter([(other, LABEL, None)]))
    model.certify(lambda: iter([(X[:99], LABEL[:99], None), (X[99:], LABEL[99:], None)]))


# --- certificates that have become old --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ONLINE, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("how", ["partial_fit", "learn_one", "learn_one after predict_one"])
def test_an_old_certificate_is_dropped(kind, how, tmp_path):
    X = np.clip(SMALL, -1.0, 1.0)
    y = np.where(Y > 0.0, 1, 0) if is_classifier(kind()) else np.clip(SMALL[:, 0], 0.0, 1.0)
    model = kind().fit(X, y, certify=True)
    assert model.certificate_.rounds == 200
    if how == "partial_fit":
        with pytest.raises(ValueError, match="not finite"):
            model.partial_fit(X * np.nan, y)
        assert model.certificate_.rounds == 200
        model.partial_fit(X, y)
    else:
        if how != "learn_one":
            model.predict_one(X[0])
        model.learn_one(X[0], y[0])
        model.learn_one(X[1], y[1])
    assert not hasattr(model, "certificate_")
    model.save(tmp_path / "model")
    assert not hasattr(h.load(tmp_path / "model"), "certificate_")
