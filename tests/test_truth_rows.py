"""A model knows its rows: others are refused, the same ones in another form are not; old certificates are dropped."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import is_classifier

import hindsight as h
from conftest import CASES, feed, run_of, store, stream
from discovery import ONLINE
from hindsight.certificates.certify import certify_run
from hindsight.errors import MismatchError
from hindsight.online import run as runs
from hindsight.online.learners import widrow_hoff
from hindsight.online.run import Run, play
from hindsight.rows.data import Data

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


def test_a_target_that_differs_in_the_last_digits_is_refused():
    model = h.WidrowHoffRegressor(0.01).fit(X, Y)
    y = Y.copy()
    y[50] += 1e-8
    assert "targets" in refused(model, X, y)
    y[50] = np.nextafter(Y[50], np.inf)
    assert "targets" in refused(model, X, y)
    assert model.certify(X, Y).verdict is h.Verdict.HOLDS


def test_rows_that_were_right_cannot_be_shrunk():
    model = h.PerceptronClassifier(keep_margins=True).fit(X, LABEL)
    right = np.where(LABEL == "yes", 1.0, -1.0) * model.margins_ > 0.0
    assert 10 < right.sum() < 190
    other = X.copy()
    other[right] /= 1000.0
    assert "values" in refused(model, other, LABEL)


@pytest.mark.parametrize("value", [1.0, 0.7])
def test_rows_without_a_common_column_cannot_be_exchanged(value):
    rows = np.zeros((40, 4))
    rows[np.arange(40), np.arange(40) % 4] = value
    y = np.full(40, 0.5)
    other = rows.copy()
    other[[8, 9]] = rows[[9, 8]]
    for model in (h.WidrowHoffRegressor(0.1, fit_intercept=False), h.EGRegressor(0.1, fit_intercept=False)):
        model.fit(rows, y)
        assert "values" in refused(model, other, y)
        assert model.certify(rows, y).verdict is h.Verdict.HOLDS


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
def test_gradient_descent_refuses_a_target_that_differs_in_the_last_digits(batch):
    model = h.GradientDescentRegressor(eta=0.1, rounds=20, batch=batch, random_state=0).fit(X, Y)
    y = Y.copy()
    y[50] += 1e-12
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
    other[3] *= 1.0 + 1e-13
    model.fit(X, y).fit(other, y)
    refused(model, X, y)
    refused(model, other, y)
    model.set_params(warm_start=False)
    model.fit(other, y).certify(other, y)


# --- the same rows ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", [c for c in CASES if "descent" not in c.name], ids=str)
def test_storage_and_chunks_change_no_checksum(case):
    """The sum is of the rows alone: one learner reads them in every storage, the others in the two that are common."""
    rows, y, weight = stream(case)
    rows[5, 1] = -0.0
    want = run_of(case, 7)
    feed(want, rows, y, weight)
    assert want.checksum[0] == want.rounds
    assert want.checksum[1:].all()
    for storage in ("dense32", "strided", "csr64", "csr32") if case.name == "widrow-hoff-implicit" else ("csr64",):
        run = run_of(case, 7)
        feed(run, store(rows, storage), y, weight, sizes=[1, 3, 11])
        np.testing.assert_array_equal(run.checksum, want.checksum)
        data = Data(store(rows, storage), y, weight, bias=1.0)
        np.testing.assert_array_equal(data.checksum(), want.checksum)


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
    np.testing.assert_array_equal(parts.runs_[0].checksum, h.WidrowHoffRegressor(0.5).fit(X, Y).runs_[0].checksum)


@pytest.fixture(params=["in blocks", "in a second thread"])
def adding(monkeypatch, request):
    """Checksums are added in blocks of a few rows, or in a second thread."""
    monkeypatch.setattr(runs, "ALONE", 100)
    if request.param != "in blocks":
        monkeypatch.setattr(runs, "APART", 0)
        monkeypatch.setattr(runs.numba.config, "NUMBA_NUM_THREADS", 4)


@pytest.mark.usefixtures("adding")
def test_how_checksums_are_added_changes_nothing():
    labels = np.arange(200) % 3
    want = [Data(X, np.where(labels == k, 1.0, -1.0), None, 1.0).checksum() for k in range(3)]
    model = h.PerceptronClassifier().fit(X, labels)
    for run, sums in zip(model.runs_, want, strict=True):
        np.testing.assert_array_equal(run.checksum, sums)
    model.certify(X, labels)
    bad = X.copy()
    bad[100, 2] = np.nan
    with pytest.raises(ValueError, match="row 100"):
        model.partial_fit(bad, labels)
    for run, sums in zip(model.runs_, want, strict=True):
        np.testing.assert_array_equal(run.checksum, sums)


@pytest.mark.usefixtures("adding")
def test_columns_out_of_order_and_given_twice_are_those_that_were_learnt():
    entries, columns = np.tile([1.0, 2.0, 3.0, 4.0], 30), np.tile([2, 0, 1, 1], 30)
    rows = sp.csr_matrix((entries, columns, np.arange(0, 121, 2)), shape=(60, 3))
    rows.data[:2], rows.indices[:2] = (2.0, 1.0), (0, 2)
    y = np.arange(60.0) / 60.0
    model = h.WidrowHoffRegressor(0.01).fit(rows, y)
    np.testing.assert_array_equal(model.runs_[0].checksum, Data(rows.toarray(), y, None, 1.0).checksum())


def test_margins_alone_change_no_checksum():
    run = Run(widrow_hoff(0.1), 4)
    play([run], X, [Y], np.zeros(200), np.empty((200, 1)), idle=True)
    assert not run.checksum.any()


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
        np.testing.assert_array_equal(model.runs_[0].checksum, whole.runs_[0].checksum)
        model.certify(X[:60], labels)
        other = X[:60].copy()
        other[7, 3] = np.nextafter(other[7, 3], 9.0)
        refused(model, other, labels)


def test_a_third_class_keeps_what_the_first_two_learnt():
    model = h.DescentClassifier().fit(X[:50], np.arange(50) % 2)
    model.learn_one(X[50], 2)
    codes = np.append(np.arange(50) % 2, 2)
    for k in (0, 1):
        want = Data(X[:51], np.where(codes == k, 1.0, 0.0), None, bias=1.0)
        np.testing.assert_array_equal(model.runs_[k].checksum, want.checksum())


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
        other[199, 0] = np.nextafter(other[199, 0], 9.0)
        refused(again, other, target)


def test_a_run_without_a_checksum_is_certified_with_a_note():
    run = Run(widrow_hoff(0.01, "explicit"), 4)
    play([run], X, [Y])
    assert not any("checksum" in note for note in certify_run(run, Data(X, Y, None, bias=1.0)).notes)
    run.checksum[:] = 0
    assert any("no checksum" in note for note in certify_run(run, Data(X, Y, None, bias=1.0)).notes)


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
