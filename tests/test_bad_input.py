"""Bad input: one clear ValueError that says where and what, and nothing has changed."""

import copy
import re

import numpy as np
import pytest
import scipy.sparse as sp

from conftest import UNSAVED, lasting, nightly
from discovery import classifiers, online, regressors
from hindsight import (
    AutoRegressor,
    DescentClassifier,
    DescentRegressor,
    EGRegressor,
    GLMtronRegressor,
    PerceptronClassifier,
    WidrowHoffRegressor,
    WinnowClassifier,
    evaluate,
    load,
    open_source,
)
from hindsight.errors import SourceError
from hindsight.online import learners
from hindsight.online.run import Run, play

M, N = 30, 4
NAMES = ["a", "b", "c", "d"]
CACHES = ("_lock", "_ones", "_row", "_swift", "_places")  # what only saves time


def frozen(value):
    """A value as something that compares bit for bit."""
    if isinstance(value, np.ndarray):
        return (value.shape, value.dtype.str, value.tolist() if value.dtype == object else value.tobytes())
    if isinstance(value, Run):
        return tuple(frozen(v) for k, v in sorted(vars(value).items()) if k not in ("learner", *UNSAVED))
    if hasattr(value, "_fields") and hasattr(type(value), "__annotations__") and value and hasattr(value[0], "dtype"):
        return [frozen(getattr(value, name)) for name in lasting(value)]
    if isinstance(value, (list, tuple)):
        return [frozen(v) for v in value]
    if type(value).__repr__ is object.__repr__ and hasattr(value, "__dict__"):  # it shows where it is, not what it is
        return {name: frozen(v) for name, v in sorted(vars(value).items())}
    return repr(value)


def state(model):
    """All that an estimator, a run or a list of runs is."""
    if isinstance(model, (list, Run)):
        return frozen(model)
    return {k: frozen(v) for k, v in vars(model).items() if k not in CACHES}


def refuses(model, call, *words):
    """The call raises one clear ValueError with all these words, and the model is as before it."""
    before = state(model)
    with pytest.raises(ValueError) as caught:  # noqa: PT011  # the words below are the match
        call()
    message = str(caught.value)
    for word in words:
        assert word in message, f"{word!r} is not in {message!r}"
    assert "np." not in message, f"a value is shown as numpy writes it: {message!r}"
    assert state(model) == before


def data(kind="real", seed=70):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.05, 0.4, (M, N)) * rng.choice([-1.0, 1.0], (M, N))
    y = rng.uniform(0.0, 0.3, M)
    return X, (np.where(y > 0.15, "yes", "no") if kind == "label" else y)


VARIANTS = {
    "WidrowHoffRegressor": [{}, {"update": "explicit", "average": "before", "fit_intercept": False}],
    "EGRegressor": [{"average": "after"}, {"radius": None}],
    "DescentRegressor": [{"loss": "logistic", "geometry": "balanced", "update": "implicit"}],
    "GLMtronRegressor": [{"link": "clipped"}],
    "PerceptronClassifier": [{"average": "before"}],
    "WinnowClassifier": [{}, {"balanced": False}],
}
MODELS = online(VARIANTS, NAMES)
REGRESSORS, CLASSIFIERS = regressors(MODELS), classifiers(MODELS)
STORED = {
    "dense": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "strided": np.asfortranarray,
    "csr": sp.csr_matrix,
}
CHOSEN = ["*Auto*", "*EGRegressor(f*", "*Perceptron*", "*Ridge*", "*WidrowHoffRegressor()", "*WinnowClassifier(f*"]


def every(function):
    """Run a test with all models; `make test` takes one of each geometry, since each is a loop to compile."""
    ids = [repr(model).replace("\n", "")[:50] for model in MODELS]
    return nightly(but=CHOSEN)(pytest.mark.parametrize("model", MODELS, ids=ids)(function))


def fitted(model):
    """A fresh copy that has learnt a little, and rows it takes."""
    X, y = data("label" if hasattr(model, "decision_function") else "real")
    return copy.deepcopy(model).fit(X, y), X, y


def in_every_way(model, X, y, *words, **options):
    """`fit` and `partial_fit` refuse, the fitted model and a fresh one alike; a fresh one stays unfitted."""
    refuses(model, lambda: model.partial_fit(X, y, **options), *words)
    refuses(model, lambda: model.fit(X, y, **options), *words)
    new = type(model)(**model.get_params())
    refuses(new, lambda: new.fit(X, y, **options), *words)
    refuses(new, lambda: new.partial_fit(X, y, **options), *words)
    assert not hasattr(new, "runs_")


# --- rows -----------------------------------------------------------------------------------------------------------


@nightly(
    but=[f"*-dense-{name}*" for name in ("Auto", "Perceptron", "Ridge", "WidrowHoffRegressor0", "WinnowClassifier0")]
    + ["*-csr-Widrow*", "*-csr-WinnowClassifier0", "*-float32-Widrow*", "*-strided-Widrow*"]
)
@pytest.mark.parametrize(
    ("model", "stored"),
    [
        pytest.param(model, stored, id=f"{stored}-{type(model).__name__}")
        for stored in ("dense", "csr", "float32", "strided")
        for model in (
            MODELS if stored in ("dense", "csr") else [WidrowHoffRegressor(), WinnowClassifier(features=NAMES)]
        )
    ],
)
@pytest.mark.parametrize(("value", "shown"), [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "-inf")])
def test_a_value_that_is_not_finite(model, stored, value, shown):
    model, X, y = fitted(model)
    X = X.copy()
    X[17, 2] = value
    in_every_way(model, STORED[stored](X), y, "row 17", "column 2", shown)


def test_a_value_that_is_not_finite_is_called_by_its_name():
    pd = pytest.importorskip("pandas")
    X, y = data()
    frame = pd.DataFrame(X, columns=["height", "weight", "age", "shoe"])
    model = WidrowHoffRegressor().fit(frame, y)
    frame.loc[3, "weight"] = np.nan
    in_every_way(model, frame, y, "row 3", "column 1", "'weight'", "NaN")


@every
def test_rows_of_another_width(model):
    model, X, y = fitted(model)
    for wide in (X[:, :3], np.hstack([X, X])):
        for rows in (wide, sp.csr_matrix(wide)):
            refuses(model, lambda rows=rows: model.partial_fit(rows, y), str(wide.shape[1]), str(N), "features")
            refuses(model, lambda rows=rows: model.predict(rows), str(wide.shape[1]), str(N), "features")


@every
@pytest.mark.parametrize("shape", [(0, N), (M, 0), (0, 0)])
def test_an_empty_matrix(model, shape):
    model, _, y = fitted(model)
    for empty in (np.zeros(shape), sp.csr_matrix(shape)):
        refuses(model, lambda empty=empty: model.fit(empty, y[: shape[0]]))
        refuses(model, lambda empty=empty: model.partial_fit(empty, y[: shape[0]]))


@every
def test_as_many_targets_as_rows(model):
    model, X, y = fitted(model)
    in_every_way(model, X, y[:-1], str(M), str(M - 1))


def csr(data, indices, indptr, shape):
    """A CSR matrix whose arrays nobody has looked at."""
    X = sp.csr_matrix(shape)
    X.data, X.indices, X.indptr = np.array(data, float), np.array(indices, np.int32), np.array(indptr, np.int32)
    return X


BAD_INDEX = {
    "beyond": ([0, 1, 3, 4], ("row 1", "index 4", "0..3")),
    "far beyond": ([0, 1, 3, 2**31 - 1], ("row 1", "index 2147483647")),
    "negative": ([0, 1, 3, -1], ("row 1", "index -1")),
    "first negative": ([0, 1, -7, 2], ("row 1", "index -7")),
}


@every
@pytest.mark.parametrize("how", BAD_INDEX)
def test_a_csr_index_outside_the_width(model, how):
    model, _, y = fitted(model)
    indices, words = BAD_INDEX[how]
    X = csr([0.1, 0.2, 0.3, 0.1], indices, [0, 2, 4], (2, N))
    y = np.array(["yes", "no"]) if hasattr(model, "decision_function") else y[:2]
    in_every_way(model, X, y, *words)


@pytest.mark.parametrize("how", BAD_INDEX)
@pytest.mark.parametrize("name", ["perceptron", "winnow", "widrow-hoff", "eg"])
def test_a_csr_index_outside_the_width_in_a_run(name, how):
    run = Run(learners.LEARNERS[name].make(), N)
    indices, words = BAD_INDEX[how]
    X = csr([0.1, 0.2, 0.3, 0.1], indices, [0, 2, 4], (2, N))
    refuses(run, lambda: play([run], X, [np.ones(2)]), *words)


# --- targets --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", REGRESSORS, ids=lambda m: repr(m)[:50])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_target_that_is_not_finite(model, value):
    model, X, y = fitted(model)
    y = y.copy()
    y[11] = value
    in_every_way(model, X, y, "row 11", str(value))
    refuses(model, lambda: model.learn_one(X[0], value), str(value))


@pytest.mark.parametrize("value", [-0.25, 1.5])
def test_a_target_outside_the_unit_interval(value):
    model, X, y = fitted(DescentRegressor("logistic"))
    y = y.copy()
    y[11] = value
    in_every_way(model, X, y, "row 11", str(value), "between 0 and 1")
    refuses(model, lambda: model.learn_one(X[0], value), str(value), "between 0 and 1")


@pytest.mark.parametrize("name", ["perceptron", "winnow"])
def test_a_label_that_is_no_sign(name):
    run = Run(learners.LEARNERS[name].make(), N)
    X, y = data()
    y = np.sign(y - 0.15)
    y[5] = 0.0
    refuses(run, lambda: play([run], X, [y]), "row 5", "0.0", "-1 or 1")


@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda m: repr(m)[:50])
def test_a_class_that_was_not_declared(model):
    model, X, y = fitted(model)
    y = np.where(np.arange(M) == 9, "maybe", y)
    refuses(model, lambda: model.partial_fit(X, y), "row 9", "'maybe'", "not declared")
    refuses(model, lambda: model.partial_fit(X, y, classes=["no", "yes", "maybe"]), "classes")


@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda m: repr(m)[:50])
def test_one_class_is_not_enough(model):
    model, X, _ = fitted(model)
    refuses(model, lambda: model.fit(X, np.full(M, "yes")), "two classes", "'yes'")


@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda m: repr(m)[:50])
def test_a_class_that_is_nan(model):
    model, X, _ = fitted(model)
    refuses(model, lambda: model.fit(X, np.where(np.arange(M) == 4, np.nan, np.arange(M) % 2)), "row 4", "nan")


@every
def test_no_targets(model):
    model, X, _ = fitted(model)
    refuses(model, lambda: model.fit(X, None), "y")


# --- weights --------------------------------------------------------------------------------------------------------


@every
@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf, -1e-300])
def test_a_weight_that_is_negative_or_not_finite(model, value):
    model, X, y = fitted(model)
    weight = np.ones(M)
    weight[13] = value
    in_every_way(model, X, y, "weight", sample_weight=weight)
    if not np.isnan(value) and not np.isinf(value):
        in_every_way(model, X, y, "row 13", str(value), sample_weight=weight)
    refuses(model, lambda: model.learn_one(X[0], y[0], value), "weight", str(value))


@every
def test_weights_that_are_all_zero(model):
    model, X, y = fitted(model)
    in_every_way(model, X, y, "weights", "zero", sample_weight=np.zeros(M))


@every
def test_as_many_weights_as_rows(model):
    model, X, y = fitted(model)
    in_every_way(model, X, y, "sample_weight", sample_weight=np.ones(M - 1))


# --- parameters -----------------------------------------------------------------------------------------------------

PARAMETERS = [
    *[(WidrowHoffRegressor, "eta", v) for v in (0, -0.1, np.nan, np.inf, "fast", None, True)],
    *[
        (kind, "eta", 0.0)
        for kind in (EGRegressor, DescentRegressor, DescentClassifier, GLMtronRegressor, WinnowClassifier)
    ],
    *[(WidrowHoffRegressor, "power", v) for v in (np.nan, "slow")],
    *[(WidrowHoffRegressor, "update", v) for v in ("both", None)],
    *[(EGRegressor, "radius", v) for v in (0.0, -1.0, np.inf)],
    *[(WinnowClassifier, "margin", v) for v in (0.0, 1.0, -0.5, np.nan)],
    *[(DescentRegressor, "loss", v) for v in ("cubic", "hinge", 3)],
    (DescentClassifier, "loss", "cubic"),
    (DescentRegressor, "geometry", "round"),
    (GLMtronRegressor, "link", "cauchit"),
    *[(WidrowHoffRegressor, "average", v) for v in ("mean", True)],
    *[(WidrowHoffRegressor, "passes", v) for v in (0, -1, 1.5, None)],
    *[(WidrowHoffRegressor, "start", v) for v in ([1.0], [1.0, 2.0, 3.0, 4.0, np.nan], np.zeros((2, 5)))],
    *[(EGRegressor, "start", v) for v in ([0.5, 0.5, 0.5, 0.0, 0.0],)],
    *[(WidrowHoffRegressor, "rates", v) for v in ([0.1] * 9 + [0.0] + [0.1] * 20, [np.nan] * 30, [-1.0] * 30)],
]


@pytest.mark.parametrize(("kind", "name", "value"), PARAMETERS)
def test_a_parameter_outside_its_domain(kind, name, value):
    X, y = data("label" if hasattr(kind, "decision_function") else "real")
    model = kind().fit(X, y).set_params(**{name: value})
    refuses(model, lambda: model.fit(X, y), name)
    new = kind(**{name: value})
    refuses(new, lambda: new.fit(X, y), name)
    if name != "passes":  # which only `fit` makes
        refuses(new, lambda: new.partial_fit(X, y), name)
        refuses(new, lambda: new.learn_one(X[0], y[0]), name)


def test_rates_say_which_is_wrong():
    model = WidrowHoffRegressor(rates=[0.1, 0.0, 0.1])
    refuses(model, lambda: model.fit(np.eye(2), [1.0, 2.0]), "rates[1]", "0.0")


@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_rates_that_are_too_few(storage):
    X, y = data()
    rows = STORED[storage](X)
    model = WidrowHoffRegressor(rates=np.full(M, 0.1)).fit(rows, y)
    refuses(model, lambda: model.partial_fit(rows[:1], y[:1]), f"{M} rates")
    refuses(model, lambda: model.learn_one(X[0], y[0]), f"{M} rates")
    refuses(model, lambda: model.learn_one(dict(enumerate(X[0].tolist())), y[0]), f"{M} rates")
    model.learn_one(X[0], y[0], 0.0)  # weight 0 is no round
    assert model.facts_.rounds == M
    short = WidrowHoffRegressor(rates=np.full(M - 1, 0.1))
    refuses(short, lambda: short.fit(rows, y), f"{M - 1} rates")
    short.fit(rows, y, sample_weight=np.r_[0.0, np.ones(M - 1)])
    twice = WidrowHoffRegressor(rates=np.full(M + 5, 0.1), passes=2)
    refuses(twice, lambda: twice.fit(rows, y), "rates")


# --- steps that overflow --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("average", [None, "before"])
@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.filterwarnings("ignore::hindsight.AssumptionWarning")
def test_a_step_that_overflows(storage, average):
    """Explicit Widrow-Hoff with eta |x|^2 = 10^100: |w| grows 10^100-fold a round."""
    model = WidrowHoffRegressor(1e100, "explicit", fit_intercept=False, average=average)
    X, y = np.ones((6, 1)), np.ones(6)
    model.partial_fit(STORED[storage](X[:1]), y[:1])
    refuses(model, lambda: model.partial_fit(STORED[storage](X), y), "row 1", "non-finite", "smaller eta")
    refuses(model, lambda: model.fit(STORED[storage](X), y), "row 2", "non-finite")
    assert np.isfinite(model.coef_).all()
    row = (lambda: X[0]) if storage == "dense" else (lambda: {0: 1.0})
    model.learn_one(row(), 1.0)
    refuses(model, lambda: model.learn_one(row(), 1.0), "non-finite")
    assert np.isfinite(model.coef_).all() and np.isfinite(model.facts_.loss)


@pytest.mark.parametrize("value", [1e200, -1e300])
@pytest.mark.parametrize("storage", ["dense", "strided", "csr"])
def test_a_row_whose_norm_overflows(storage, value):
    X, y = data()
    model = WidrowHoffRegressor().fit(X, y)
    X = X.copy()
    X[8, 1] = value
    in_every_way(model, STORED[storage](X), y, "row 8", "column 1", f"{value:g}")


@pytest.mark.filterwarnings("ignore::hindsight.AssumptionWarning")
@pytest.mark.parametrize("radius", [None, 1.0])
def test_multiplicative_steps_that_overflow_theta(radius):
    model = EGRegressor(1e10, radius, fit_intercept=False).fit(np.array([[0.5, 0.1]]), [0.2])
    huge = np.array([[0.5, 0.1], [1e150, 1e100]])  # eta (w.x - y) x is about 1e310
    refuses(model, lambda: model.partial_fit(huge, [0.2, 5.0]), "row 1", "non-finite")
    assert np.isfinite(model.coef_).all()
    new = EGRegressor(1e300, radius, fit_intercept=False)  # here theta is finite, but no weight can be read from it
    refuses(new, lambda: new.fit(np.array([[0.5, 0.1]]), [0.2]), "row 0", "non-finite")


@nightly(but=["*-AutoRegressor*", "*-WidrowHoffRegressor()"])
@pytest.mark.parametrize("model", [m for m in REGRESSORS if m._learner().targets == "real"], ids=lambda m: repr(m)[:50])
@pytest.mark.parametrize("value", [1e160, -1.7e308])
def test_targets_so_large_that_the_loss_overflows(model, value, tmp_path):
    """Refused as a feature of that size is, wherever it comes; the model before it can be saved and loaded."""
    model, X, y = fitted(model)
    for at in (0, 1, M - 1):
        huge = y.copy()
        huge[at] = value
        in_every_way(model, X, huge, f"row {at}", f"target {value:g}", "scale the targets")
    for row in (X[0], dict(zip(NAMES, X[0], strict=True))):
        one = type(model)(**model.get_params()).learn_one(row, 0.25)
        refuses(one, lambda one=one, row=row: one.learn_one(row, value), f"target {value:g}")
    model.save(tmp_path / "model")
    assert np.array_equal(load(tmp_path / "model").predict(X), model.predict(X)) and np.isfinite(model.predict(X)).all()


def test_weights_so_large_that_the_loss_overflows():
    X, y = data()
    for model in (WidrowHoffRegressor().fit(X, y), AutoRegressor().fit(X, y)):
        refuses(model, lambda model=model: model.partial_fit(X, 1e80 * y, np.full(M, 1e200)), "row 0", "non-finite")


# --- values that numpy would turn into others -------------------------------------------------------------------------


NOT_REAL = {
    "a date": (lambda a: np.full(a.shape, "NaT", "M8[s]"), "datetime64[s], not numbers"),
    "a duration": (lambda a: np.full(a.shape, 5, "m8[s]"), "timedelta64[s], not numbers"),
    "complex": (lambda a: a + 1j, "Complex data not supported"),
    "masked": (lambda a: np.ma.array(a, mask=np.arange(a.size).reshape(a.shape) == a.size - 1), "is masked"),
}


@every
@pytest.mark.parametrize("what", NOT_REAL)
def test_values_that_numpy_would_turn_into_others(model, what):
    model, X, y = fitted(model)
    change, words = NOT_REAL[what]
    in_every_way(model, change(X), y, "X", words)
    refuses(model, lambda: model.predict(change(X)), "X", words)
    refuses(model, lambda: model.learn_one(change(X[0]), y[0]), "x", words)
    if what != "masked":  # a list of masked values is one of what is under the mask
        refuses(model, lambda: model.learn_one(list(change(X[0])), y[0]), "x", words)
    if y.dtype.kind == "f":
        in_every_way(model, X, change(y), "y", words)
    in_every_way(model, X, y, "sample_weight", words, sample_weight=change(np.ones(M)))


def test_masked_and_missing_labels():
    X, y = data("label")
    model = PerceptronClassifier().fit(X, y)
    in_every_way(model, X, np.ma.array(y, mask=np.arange(M) == 7), "y[7] is masked")
    days = np.where(y == "yes", "2024-01-01", "NaT").astype("M8[D]")
    refuses(model, lambda: model.fit(X, days), f"row {int(np.isnat(days).argmax())}", "label NaT")
    whole = np.ma.array(X, mask=False)  # nothing is masked
    assert np.array_equal(PerceptronClassifier().fit(whole, y).coef_, model.coef_)


def test_masked_rows_of_a_source_and_of_an_evaluation():
    X, y = data()
    masked, hidden = np.ma.array(X, mask=X > 0.39), np.ma.array(y, mask=y > 0.25)
    model = WidrowHoffRegressor().fit(X, y)
    for given, words in (((masked, y), "X["), ((X, hidden), "targets["), ((X, y, hidden), "weights[")):
        with pytest.raises(SourceError, match=re.escape(words)) as caught:
            open_source(given, "y")
        assert "is masked: fill masked values" in str(caught.value)
    for call in (lambda: evaluate(model, X, hidden), lambda: evaluate(model, X, y, weight=hidden)):
        with pytest.raises(ValueError, match=r"\[\d+\] is masked"):
            call()


# --- one row --------------------------------------------------------------------------------------------------------


@nightly(only=["*AutoClassifier*"])  # sparse rows of a panel: AutoRegressor has some
@every
@pytest.mark.parametrize("value", [np.nan, np.inf, "tall", None])
def test_a_dict_with_a_value_that_is_no_number(model, value):
    model, X, y = fitted(model)
    twin = copy.deepcopy(model)
    good = dict(enumerate(X[0].tolist()))
    model.learn_one(good, y[0])
    twin.learn_one(good, y[0])
    refuses(model, lambda: model.learn_one({0: 0.1, 3: value}, y[0]), "3", "NaN" if value is np.nan else str(value))
    model.learn_one(good, y[1])
    twin.learn_one(good, y[1])
    assert state(model) == state(twin)


@every
def test_an_array_of_another_width(model):
    model, X, y = fitted(model)
    for x in (X[0, :3], np.zeros(9), X[:1], 3.0):
        refuses(model, lambda x=x: model.learn_one(x, y[0]), str(N))
        refuses(model, lambda x=x: model.predict_one(x), str(N))


@every
def test_an_array_with_a_value_that_is_not_finite(model):
    model, X, y = fitted(model)
    x = X[0].copy()
    x[2] = np.nan
    refuses(model, lambda: model.learn_one(x, y[0]), "column 2", "NaN")
    refuses(model, lambda: model.predict_one(x), "finite")


@pytest.mark.parametrize("average", [None, "before"])
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200, "tall"])
def test_a_new_name_that_comes_with_a_bad_row_was_never_there(average, value):
    model = WidrowHoffRegressor(average=average)
    model.learn_one({"a": 1.0, "b": 0.5}, 1.0)
    twin = copy.deepcopy(model)
    refuses(model, lambda: model.learn_one({"a": 0.1, "new": value}, 1.0), "new")
    refuses(model, lambda: model.learn_one({"new": 1.0, "b": value}, 1.0), "b")
    refuses(model, lambda: model.learn_one({"new": 1.0, "b": 1.0}, np.nan), "nan")
    refuses(model, lambda: model.learn_one({"new": 1.0, "b": 1.0}, 1.0, -1.0), "weight")
    for x in ({"c": 1.0, "a": 0.5}, {"new": 0.5, "a": 1.0}, {"b": 1.0}):  # the column of c must not depend on "new"
        assert model.learn_one(x, 0.5).predict_one(x) == twin.learn_one(x, 0.5).predict_one(x)
        assert state(model) == state(twin)


@pytest.mark.parametrize("value", [np.nan, "tall"])
def test_a_new_class_that_comes_with_a_bad_row_was_never_there(value):
    model, _, y = fitted(PerceptronClassifier())
    twin = copy.deepcopy(model)
    refuses(model, lambda: model.learn_one({0: 1.0, 1: value}, "maybe"))
    refuses(model, lambda: model.learn_one({0: 1.0, "new": value}, "maybe"))
    refuses(model, lambda: model.learn_one({0: 1.0}, "maybe", -1.0), "weight")
    model.learn_one({0: 1.0}, y[0])
    twin.learn_one({0: 1.0}, y[0])
    assert state(model) == state(twin)


def test_a_first_row_that_is_bad_leaves_nothing():
    for model in (WidrowHoffRegressor(), PerceptronClassifier()):
        for x in ({"a": np.nan}, {"a": "tall"}, np.array([1.0, np.inf]), np.zeros((2, 2)), np.zeros(0)):
            refuses(model, lambda model=model, x=x: model.learn_one(x, 1.0))
            assert not hasattr(model, "runs_")


def test_a_warning_made_an_error_changes_nothing():
    """`-W error` turns an AssumptionWarning into an exception: all or nothing holds there too."""
    model = WidrowHoffRegressor(0.1, "explicit").fit(np.ones((2, 1)), [1.0, 1.0])
    before = state(model)
    with pytest.raises(UserWarning, match="reached"):
        model.partial_fit(np.full((2, 1), 5.0), [1.0, 1.0])
    assert state(model) == before
