"""Models and estimators in one file: everything comes back bit for bit, and a file can ask for nothing else."""

import copy
import enum
import importlib
import inspect
import json
import math
import os
import pkgutil
import sys
from typing import NamedTuple

import numba
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator

import hindsight
from commands import python
from conftest import CASES, UNSAVED, lasting, targets
from discovery import PUBLIC
from hindsight.certificates.certificate import Certificates
from hindsight.errors import ModelError, RowError
from hindsight.online import learners
from hindsight.online.run import Run, play
from hindsight.online.saving import PARTS
from hindsight.storage import container as files
from hindsight.storage import model, registry
from hindsight.storage.codec import decode, encode
from hindsight.storage.model import load, save_estimator
from hindsight.storage.registry import storable, want
from hindsight.training.model import Model

pytestmark = pytest.mark.filterwarnings("ignore::hindsight.AssumptionWarning")
ESTIMATORS = {kind.__name__: kind for kind in PUBLIC}


def equal(a, b) -> bool:
    """The same value in every bit and every type."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        if a.dtype != b.dtype or a.shape != b.shape:
            return False
        return equal(a.tolist(), b.tolist()) if a.dtype == object else a.tobytes() == b.tobytes()
    if isinstance(a, float):
        return a.hex() == b.hex()
    if hasattr(a, "_fields") and len(a) and isinstance(a[0], np.ndarray):
        return all(equal(getattr(a, name), getattr(b, name)) for name in lasting(a))
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, dict):
        a, b = ({k: v for k, v in each.items() if k not in UNSAVED} for each in (a, b))
        return list(a) == list(b) and all(equal(a[k], b[k]) for k in a)
    if hasattr(a, "__dict__") and type(a).__module__.startswith("hindsight") and not isinstance(a, enum.Enum):
        return equal(vars(a), vars(b))
    if isinstance(a, (np.random.RandomState, np.random.Generator)):
        return equal(a.integers(0, 9, 99) if hasattr(a, "integers") else a.randint(0, 9, 99),
                     b.integers(0, 9, 99) if hasattr(b, "integers") else b.randint(0, 9, 99))  # fmt: skip
    return bool(a == b)


def back(value):
    document, tensors = encode(value)
    return decode(document, {name: tensor.copy() for name, tensor in tensors.items()})


def stream(name: str, rows: int = 60, features: int = 5):
    case = next(case for case in CASES if case.name == name)
    rng = np.random.default_rng(len(name))
    X = rng.uniform(-1, 1, (rows, features))
    return case, X, targets(case, X, rng)


def odd_bits(shape, rng) -> np.ndarray:
    """NaN of any payload, infinities, zeros of both signs, subnormals and all the rest."""
    out = rng.integers(0, 1 << 64, shape, np.uint64).view(np.float64)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 5e-324, -5e-324, 1e308]
    pick = rng.random(shape) < 0.5
    out[pick] = rng.choice(special, pick.sum())
    return out


# ---------------------------------------------------------------- values


scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True, allow_subnormal=True) | st.text(max_size=8)
    | st.text(st.characters(codec=None, categories=["Cs", "Lu"]), max_size=3)
)  # fmt: skip
keys = st.integers() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=2)
tags = st.sampled_from(["$float", "$online.run:Run", "$:Run", "$map"])
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=3) | tags, inner, max_size=3)
        | st.dictionaries(
            st.integers() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=2), inner, max_size=3
        )
    ),
    max_leaves=15,
)


@given(values)
def test_any_plain_value_comes_back(value):
    assert equal(back(value), value)


@given(
    st.lists(st.text(max_size=3), max_size=80)
    | st.lists(st.floats(), max_size=80)
    | st.lists(st.integers(), max_size=80)
)
def test_long_lists_and_dicts_come_back(value):
    assert equal(back(value), value)
    named = {f"{k}": v for k, v in enumerate(value)}
    assert equal(back(named), named)


@pytest.mark.parametrize(
    "dtype", ["f8", "f4", "f2", "i8", "i4", "u8", "u1", "i1", "?", ">f8", ">i4", "M8[ns]", "m8[D]"]
)
def test_arrays_come_back(dtype):
    rng = np.random.default_rng(0)
    for shape in ((), (0,), (3,), (2, 3), (0, 2)):
        made = np.frombuffer(rng.bytes(int(np.prod(shape)) * np.dtype(dtype).itemsize), dtype).reshape(shape)
        made = np.asarray(rng.random(shape) < 0.5) if dtype == "?" else made.copy()
        found = back({"a": made, "b": made[::2] if shape and shape[0] else made})
        for name, was in (("a", made), ("b", made[::2] if shape and shape[0] else made)):
            assert found[name].shape == was.shape and found[name].dtype == was.dtype.newbyteorder("=")
            assert found[name].tobytes() == was.astype(was.dtype.newbyteorder("<")).tobytes()


@pytest.mark.parametrize("aligned", [True, False])
@pytest.mark.parametrize("kind", [np.ndarray, np.recarray])
def test_records_of_floats_come_back(aligned, kind):
    rng = np.random.default_rng(0)
    kinds = {"rounds": np.float64, "loss": np.float64, "errors": np.int64, "β": np.float64}
    dtype = np.dtype(list(kinds.items()), align=aligned)
    for shape in ((1,), (), (2, 3), (0,)):
        made = np.zeros(shape, dtype)
        for name in dtype.names:
            made[name] = (odd_bits(shape, rng) if shape else 2.5) if kinds[name] is np.float64 else 7
        made = made.view(kind)
        found = back({"a": made})["a"]
        assert type(found) is kind and found.dtype == made.dtype and found.shape == made.shape
        assert found.tobytes() == made.tobytes() and found.flags.writeable and found.flags.c_contiguous
        assert numba.typeof(found) == numba.typeof(made)
    for other in (np.zeros(1, [("a", np.float64), ("b", np.int32)]), np.zeros(1, [("a", ">f8")]), np.zeros(1, []),
                  np.zeros(1, [("a", np.float64, (2,))]), np.zeros(3).view(np.recarray)):  # fmt: skip
        with pytest.raises(TypeError, match="cannot be saved"):
            encode({"a": other})


def test_numbers_of_numpy_keep_their_type():
    """A float32 times a float is a float32, times a float64 it is a float64: predictions would not be the same."""
    for kind in (np.float64, np.float32, np.float16, np.int64, np.uint8, np.uint64):
        for value in (0, 1, 200) if np.dtype(kind).kind != "u" else (0, 255, np.iinfo(kind).max):
            assert equal(back([kind(value)]), [kind(value)])
    assert equal(back([np.float64("nan"), np.float32("-0.0"), np.float64(0.1), np.bool_(True), np.str_("ä")])[2:],
                 [np.float64(0.1), np.bool_(True), np.str_("ä")])  # fmt: skip
    assert encode(np.float64(0.1))[0] == '{"$scalar":["float64",{"$float":"0x1.999999999999ap-4"}]}'


def test_long_texts_are_no_part_of_the_header():
    for text in ("x" * 100_000, "ä\udc80" * 3000, "y" * 4096, "y" * 4097):
        assert equal(back({"a": text}), {"a": text}) and len(encode({"a": text})[0]) < 5000


def test_text_and_object_arrays_come_back():
    for made in (
        np.array(["a", "bcd", ""]),
        np.array(["a"], "U9"),
        np.array([["ä", "\U0001f600"]]),
        np.array([], "U1"),
        np.array(["a", 1, None, 2.5, True], object),
        np.array([[1, "b"], [(1, 2), "d"]], object),
        np.array([f"name {k}" for k in range(100)], object),
    ):
        assert equal(back(made), made)


def test_an_array_that_two_share_is_shared_again():
    shared = np.arange(3.0)
    found = back({"a": shared, "b": [shared], "c": shared.copy()})
    assert found["a"] is found["b"][0] and found["a"] is not found["c"]
    assert len(encode({"a": shared, "b": shared})[1]) == 1


def test_random_generators_go_on_where_they_were():
    for kind in (np.random.MT19937, np.random.PCG64, np.random.PCG64DXSM, np.random.Philox):
        rng = np.random.Generator(kind(3))
        rng.normal(size=7), rng.integers(0, 9, dtype=np.int32)  # leaves half a draw over
        assert equal(back(copy.deepcopy(rng)), rng)
    legacy = np.random.RandomState(3)
    legacy.normal(size=7)  # leaves one normal over
    found = back(legacy)
    assert equal(found.normal(size=3), legacy.normal(size=3))


def test_hyper_parameters_are_hex():
    document, _ = encode({"eta": 0.1, "big": math.inf})
    assert document == '{"eta":{"$float":"0x1.999999999999ap-4"},"big":{"$float":"inf"}}'


def test_what_cannot_be_saved_is_named(tmp_path):
    loop: list = []
    loop.append(loop)
    run = Run(learners.perceptron(), 2)
    run.extra = print
    for value, message in (
        ({"a": [1, {"b": print}]}, r"a\[1\]\.b is of type builtin_function_or_method"),
        ({"a": object()}, "a is of type object"),
        ({"a": {1, 2}}, "a is of type set"),
        ({"a": b"x"}, "a is of type bytes"),
        ({"a": np.zeros(2, complex)}, "a is an array of complex128"),
        ({"a": np.zeros(2, "S3")}, r"a is an array of \|S3"),
        ({"a": loop}, "it holds itself"),
        ({"a": type("Run", (), {})()}, "a is of type Run"),
        ({"a": run}, r"a\.extra is of type"),
    ):
        with pytest.raises(ModelError, match=f"m: cannot be saved: {message}"):
            model.save(tmp_path / "m", "model", value)
    assert not os.listdir(tmp_path)


# ---------------------------------------------------------------- runs and models


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("average", [True, False])
def test_every_run_comes_back(case, average):
    rng = np.random.default_rng(1)
    rates = rng.uniform(0.1, 1, 9) if average else None
    run = Run(case.learner(power=0.25, rates=rates), 4, intercept=average, average=average)
    for array in (*run.state, run.first):
        array[:] = np.nan_to_num(odd_bits(array.shape, rng), posinf=np.inf, neginf=-np.inf)  # NaN is refused
    for record in (run.progress, run.tally):
        for name in record.dtype.names:
            record[name] = np.nan_to_num(odd_bits((1,), rng), posinf=np.inf, neginf=-np.inf)
    run.progress[0].rounds, run.tally[0].rounds, run.tally[0].mistakes, run.tally[0].x2 = 9.0, 9.0, 5.0, np.inf
    run.start = odd_bits(run.width, rng)
    run.digest = "a name that a later version adds"
    found = back(run)
    assert equal(vars(found), vars(run)) and found.learner.name == run.learner.name
    assert all(type(getattr(found.learner, k)) is type(getattr(run.learner, k)) for k in ("loss", "update", "geometry"))


@pytest.mark.parametrize(
    "name", ["perceptron", "winnow-balanced", "eg-simplex", "widrow-hoff-implicit", "glm-tron-clipped"]
)
def test_a_loaded_run_goes_on_as_if_nothing_had_been(tmp_path, name):
    case, X, y = stream(name)
    for average in (True, False):
        whole, first = (Run(case.learner(), 5, average=average) for _ in "ab")
        play([whole], X, [y])
        play([first], X[:23], [y[:23]])
        Model([first]).save(tmp_path / "m")
        second = load(tmp_path / "m").runs[0]
        play([second], X[23:], [y[23:]])
        assert equal(vars(second), vars(whole)) and second.facts == whole.facts
        assert second.weights.tobytes() == whole.weights.tobytes()
        if average:
            assert second.mean("after").tobytes() == whole.mean("after").tobytes()


def labelled():
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (80, 3))
    y = np.array(["no", "maybe", "yes"])[(X @ [1, 2, -1] > 0).astype(int) + (X[:, 0] > 0)]
    runs = [Run(learners.perceptron(), 3, average=True) for _ in range(3)]
    play(runs, X, [np.where(y == label, 1.0, -1.0) for label in ("maybe", "no", "yes")])
    return X, runs


def test_a_model_comes_back(tmp_path):
    X, runs = labelled()
    made = Model(
        runs, ["a", "b", "c"], ["maybe", "no", "yes"], "before",
        {"learner": "perceptron", "eta": 0.1, "passes": 1, "ignore": ["id"], "limit": None},
        {"scale": "max-abs", "factors": np.array([0.1, 3.0, -0.0]), "categories": {"a": ["x", "y"]}},
        "sha256:00",
    )  # fmt: skip
    made.save(tmp_path / "m")
    found = load(tmp_path / "m")
    assert type(found) is Model and equal(vars(found), vars(made))
    assert equal(found.predict(X), made.predict(X)) and equal(found.margins(X), made.margins(X))
    assert found.versions["hindsight"] == hindsight.__version__
    first = (tmp_path / "m").read_bytes()
    found.save(tmp_path / "m")
    assert (tmp_path / "m").read_bytes() == first


def test_a_certificate_comes_back(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (40, 2))
    est = hindsight.WidrowHoffRegressor(update="explicit").fit(X, X @ [1.0, 2.0], certify=True)
    Model(est.runs_, certificate=est.certificate_).save(tmp_path / "m")
    found = load(tmp_path / "m").certificate
    assert equal(found, est.certificate_) and found.lines() == est.certificate_.lines()
    both = Certificates((est.certificate_, est.certificate_))
    Model(est.runs_, certificate=both).save(tmp_path / "m")
    assert load(tmp_path / "m").certificate.lines() == both.lines()


def test_predictions_do_not_depend_on_the_company_of_a_row(tmp_path):
    X, runs = labelled()
    made = Model(runs, ["a", "b", "c"], ["maybe", "no", "yes"])
    z = made.margins(X)
    assert np.abs(z - (X @ made.weights[:, :3].T + made.weights[:, 3])).max() < 1e-12
    assert all(equal(made.margins(X[k : k + 1])[0], z[k]) for k in range(len(X)))
    assert equal(made.margins(np.asfortranarray(X)), z)
    sparse = made.margins(sp.csr_matrix(X))
    assert np.abs(sparse - z).max() < 1e-12
    assert all(equal(made.margins(sp.csr_matrix(X[k : k + 1]))[0], sparse[k]) for k in range(len(X)))
    many = np.tile(X, (500, 1))
    assert equal(made.margins(many)[-80:], z)
    many[20001, 1] = np.nan
    with pytest.raises(RowError, match=r"row 20001, column 1 \('b'\): value NaN is not finite"):
        made.margins(many)
    for wrong in (X[:, :2], X[0], np.zeros((2, 4))):
        with pytest.raises(ValueError, match="the model has 3 features"):
            made.margins(wrong)


def test_a_model_that_is_none_is_refused():
    two = [Run(learners.perceptron(), 3) for _ in range(2)]
    for options, message in (
        ({"runs": []}, "at least one run"),
        ({"runs": two}, "no labels"),
        ({"runs": two, "labels": ["a", "b"]}, "2 runs for 2 labels"),
        ({"runs": [two[0], Run(learners.perceptron(), 2)], "labels": ["a"]}, "the same features"),
        ({"runs": two[:1], "names": ["a"]}, "1 names for 3 features"),
        ({"runs": two[:1], "average": "before"}, "kept no average"),
        ({"runs": [Run(learners.eg(), 3)], "average": "before"}, "kept no average"),
        ({"runs": two[:1], "average": "mean"}, "average must be"),
    ):
        with pytest.raises(ValueError, match=message):
            Model(**options)


# ---------------------------------------------------------------- estimators


def fitted(name, labels=None, **options):
    rng = np.random.default_rng(2)
    X = rng.uniform(0, 0.3, (50, 4))
    y = X @ [1, -1, 2, 0.5] if labels is None else np.asarray(labels)[rng.integers(0, len(labels), 50)]
    if name in ("IsotonicRegressor", "Calibrator"):
        X, y = X[:, 0], X[:, 1] > 0.15 if name == "Calibrator" else y
    elif name == "ThresholdClassifier":
        y = y > "u"
    return ESTIMATORS[name](**options).fit(X, y), X, y


def outputs(estimator, X):
    found = {}
    for method in ("predict", "decision_function", "predict_proba", "transform"):
        if hasattr(estimator, method):
            found[method] = getattr(estimator, method)(X)
    return found


@pytest.fixture
def all_public(monkeypatch):
    """Estimators that are not yet public are tested all the same."""
    for name, kind in ESTIMATORS.items():
        monkeypatch.setattr(hindsight, name, kind, raising=False)
    monkeypatch.setattr(hindsight, "__all__", sorted({*hindsight.__all__, *ESTIMATORS}))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_comes_back_and_goes_on(tmp_path, all_public, name):
    takes = inspect.signature(ESTIMATORS[name]).parameters
    more = {"average": "after", "fit_intercept": False, "keep_margins": True} if "keep_margins" in takes else {}
    more = {option: value for option, value in more.items() if option in takes}
    for options in ({}, more) if more else ({},):
        made, X, y = fitted(name, ["u", "v", "w"] if "Classifier" in name else None, **options)
        before = copy.deepcopy(made)
        save_estimator(made, tmp_path / "m")
        found = load(tmp_path / "m")
        assert type(found) is type(made) and equal(found.get_params(), made.get_params())
        assert equal(vars(found), vars(before))
        assert outputs(made, X) and equal(outputs(found, X), outputs(made, X))
        if hasattr(made, "partial_fit"):
            later, target = X[::-1].copy(), y[::-1].copy()
            made.partial_fit(later, target)
            found.partial_fit(later, target)
            assert equal(outputs(found, X), outputs(made, X))
            assert equal(vars(found), vars(made))


def names_of_all_classes() -> set[str]:
    for place in pkgutil.walk_packages(hindsight.__path__, "hindsight."):
        if not place.name.endswith("__main__"):
            importlib.import_module(place.name)
    return {name for name in registry._registered if not name.startswith((":", "storage."))}


def test_every_class_is_found_by_importing_the_module_that_a_file_names():
    """While a class registers itself, the module that its name gives is being imported."""
    script = """
import importlib, pkgutil, sys, hindsight
from hindsight.storage import registry

def watched(cls, **options):
    real(cls, **options)
    home, frame, places = registry._names[cls].partition(":")[0], sys._getframe(1), set()
    while frame is not None:
        places.add(frame.f_globals.get("__name__"))
        frame = frame.f_back
    expected = cls.__module__ if home == "hindsight" else f"hindsight.{home}"
    print(registry._names[cls], expected in places and registry.MODULE.fullmatch(home) is not None)
    return cls

real, registry.storable = registry.storable, watched
for place in pkgutil.walk_packages(hindsight.__path__, "hindsight."):
    if not place.name.endswith("__main__"):
        importlib.import_module(place.name)
"""
    found = dict(line.split() for line in python(script).splitlines())
    assert set(found.values()) == {"True"}
    assert set(found) == names_of_all_classes()
    assert {f"hindsight:{name}" for name in ESTIMATORS} <= set(found)


def test_a_fresh_process_loads_what_it_has_not_imported(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (40, 2))
    made = hindsight.WidrowHoffRegressor().fit(X, X @ [1.0, 2.0], certify=True)
    made.save(tmp_path / "estimator")
    Model(made.runs_, certificate=made.certificate_).save(tmp_path / "model")
    script = """
import sys
from hindsight import load
print(any(name in sys.modules for name in ("hindsight.online.run", "hindsight.training.model", "sklearn")))
for path in sys.argv[1:]:
    found = load(path)
    print(type(found).__name__, getattr(found, "runs_", None) is not None or found.certificate.verdict.name)
"""
    found = python(script, tmp_path / "model", tmp_path / "estimator").splitlines()
    assert found == ["False", "Model HOLDS", "WidrowHoffRegressor True"]


class Huber(NamedTuple):
    delta: float


class HuberState(NamedTuple):
    """As a geometry's state: vectors, matrices and scalars."""

    weights: np.ndarray
    matrix: np.ndarray
    rounds: np.ndarray


def positive(fields):
    want(fields["delta"] > 0, "`delta` must be above 0")


@pytest.fixture
def extended(monkeypatch):
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    monkeypatch.setattr(registry, "_names", dict(registry._names))
    storable(Huber, check=positive)
    storable(HuberState)


def test_classes_of_user_code_are_saved_once_registered(extended):
    state = HuberState(np.arange(3.0), np.eye(3), np.array([7.0]))
    assert equal(back([Huber(0.5), state]), [Huber(0.5), state])
    document, tensors = encode([Huber(0.5)])
    assert document == '[{"$:Huber":{"delta":{"$float":"0x1.0000000000000p-1"}}}]'
    with pytest.raises(ModelError, match="`delta` must be above 0"):
        decode(document.replace("0x1.", "-0x1."), tensors)
    for wrong in ('{"$:Huber":{}}', '{"$:Huber":{"delta":1,"more":2}}', '{"$:HuberState":{"weights":1}}'):
        with pytest.raises(ModelError, match="must have the fields"):
            decode(wrong, {})
    del registry._registered[":Huber"]
    message = r"^the model uses Huber, which is not registered: import the module that registers it first \(command: "
    with pytest.raises(ModelError, match=message):
        decode(document, tensors)


def test_a_name_belongs_to_one_class(extended):
    storable(Huber)  # again
    with pytest.raises(ValueError, match="a class named Huber of module test_model is already registered"):
        storable(type("Huber", (), {"__module__": "elsewhere"}))
    storable(type("Run", (), {}))  # a class of user code takes nothing from ours
    assert type(back(Run(learners.perceptron(), 2))) is Run
    storable(type("Huber", (), {"__module__": Huber.__module__}))  # as when a notebook's cell is run again
    with pytest.raises(TypeError, match="it is of type Huber, which cannot be saved"):
        encode(Huber(0.5))


HOMES = ["os", "antigravity", "online", "online.run.os", "..os", ".os", "os.", "online..run", "online/run", "../run",
         "__main__", "__init__", "Online.run", "online.Run", "online.run\n", "hindsight.online.run", " online.run",
         "sources.nothing", "x" * 5000]  # fmt: skip


@pytest.mark.parametrize("home", HOMES, ids=lambda home: home[:20])
def test_a_document_imports_modules_of_ours_alone(home):
    before = {name for name in sys.modules if not name.startswith("hindsight.")}
    for name in ("Run", "path", "__builtins__", "", "a:b"):
        with pytest.raises(ModelError, match=r"the model uses .* which this version does not have") as error:
            decode(json.dumps({f"${home}:{name}": {}}), {})
        assert "\n" not in str(error.value) and len(str(error.value)) < 300
    assert before >= {name for name in sys.modules if not name.startswith("hindsight.")}


def test_every_part_of_every_learner_is_known():
    rules = [*learners.LOSSES.values(), *learners.LINKS.values()]
    assert set(map(type, rules)) == PARTS["loss"]
    assert set(map(type, learners.UPDATES.values())) == PARTS["update"]
    own = (learners.running(), learners.ridge(), learners.vaw(), learners.newton(), learners.diagonal_newton())
    own += (learners.descent(l1=0.1), learners.ridge(window=2))
    named = {type(learners.space(name, 1.0)) for name in learners.GEOMETRIES}
    assert named | {type(learner.geometry) for learner in own} == PARTS["geometry"]


def test_densities_come_back(all_public):
    from hindsight import density

    rng = np.random.default_rng(0)
    whole = rng.integers(0, 3, (40, 2))
    for made, rows in (
        (density.Gaussian(columns=2), rng.normal(size=(40, 2))),
        (density.Gaussian(columns=2, forget=0.9), rng.normal(size=(40, 2))),
        (density.Poisson(columns=2), whole),
        (density.Gamma(columns=2), rng.uniform(1, 2, (40, 2))),
        (density.Categorical(range(3), columns=2), whole),
    ):
        made.update(rows[:30])
        found = back(made)
        assert type(found) is type(made)
        assert equal(found.update(rows[30:]).logp(rows), made.update(rows[30:]).logp(rows))


def test_estimators_within_estimators(tmp_path, all_public):
    from sklearn.linear_model import LogisticRegression

    inner, X, y = fitted("DescentClassifier", ["u", "v"])
    calibrator = ESTIMATORS["Calibrator"]
    made = calibrator(inner).fit(X, y)
    save_estimator(made, tmp_path / "m")
    assert equal(outputs(load(tmp_path / "m"), X), outputs(made, X))
    with pytest.raises(ModelError, match="is of type LogisticRegression, which cannot be saved"):
        save_estimator(calibrator(LogisticRegression()).fit(X, y), tmp_path / "m")


LABELS = [[0, 1], [3, 5, 9], ["no", "yes"], [True, False], [1.0, -2.0], np.array([b"a", b"b"]).astype("U7"),
          np.array(["x", "yy", "z"], object), np.array([0, 1, 2], np.uint8)]  # fmt: skip


@pytest.mark.parametrize("labels", LABELS, ids=str)
def test_classes_of_any_type_come_back(tmp_path, labels):
    made, X, _ = fitted("PerceptronClassifier", labels)
    save_estimator(made, tmp_path / "m")
    assert equal(load(tmp_path / "m").predict(X), made.predict(X))
    assert equal(load(tmp_path / "m").classes_, made.classes_)


def test_rows_one_at_a_time_go_on(tmp_path):
    """Names of any kind met one by one, with room for more, and classes that join on the way."""
    rng = np.random.default_rng(4)
    names = ["a", 7, ("b", 1), 2.5, "c", "d", None, "e"]
    rows = [
        {names[j]: float(rng.normal()) for j in rng.permutation(8)[: rng.integers(1, 1 + min(8, t + 1))]}
        for t in range(60)
    ]
    labels = [
        "x" if t < 10 else rng.choice(["x", "y"]).item() if t < 30 else rng.choice(["x", "y", "z"]).item()
        for t in range(60)
    ]
    for stop in (1, 5, 12, 29, 31, 45):
        whole = hindsight.PerceptronClassifier(average="before")
        for x, y in zip(rows[:stop], labels, strict=False):
            whole.learn_one(x, y)
            whole.predict_one(x)
        save_estimator(whole, tmp_path / "m")
        found = load(tmp_path / "m")
        for x, y in zip(rows[stop:], labels[stop:], strict=True):
            assert equal(found.predict_one(x), whole.predict_one(x))
            whole.learn_one(x, y)
            found.learn_one(x, y)
        assert equal([vars(run) for run in found.runs_], [vars(run) for run in whole.runs_])
        assert equal(found._column, whole._column) and equal(found.classes_, whole.classes_)


def test_names_rates_start_and_certificates_come_back(tmp_path):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(5)
    X = pd.DataFrame(rng.uniform(-1, 1, (40, 3)), columns=["α", "b c", "d"])
    y = X.to_numpy() @ [1.0, 2.0, 3.0]
    made = hindsight.WidrowHoffRegressor(
        rates=np.linspace(0.1, 0.2, 80, dtype=np.float32), start=[1, 2.5, np.float64(3), 0], update="explicit"
    ).fit(X, y, certify=True)
    save_estimator(made, tmp_path / "m")
    found = load(tmp_path / "m")
    assert equal(found.predict(X), made.predict(X)) and equal(found.certificate_, made.certificate_)
    assert found.feature_names_in_.tolist() == ["α", "b c", "d"]
    assert equal(found.certify(X, y).to_dict(), made.certify(X, y).to_dict())
    assert found.runs_[0].learner.rate.rates.dtype == np.float64 and found.rates.dtype == np.float32
    found.fit(X, y)
    assert equal(found.predict(X), made.predict(X))


def test_an_unfitted_estimator_comes_back_unfitted(tmp_path):
    save_estimator(hindsight.EGRegressor(eta=0.25), tmp_path / "m")
    found = load(tmp_path / "m")
    assert found.eta == 0.25 and not found.__sklearn_is_fitted__()


def test_only_our_own_estimators_are_saved(tmp_path):
    class EGRegressor(hindsight.EGRegressor):
        pass

    for other in (EGRegressor(), BaseEstimator(), 3, Run(learners.perceptron(), 2)):
        with pytest.raises(ModelError, match="is not an estimator of hindsight"):
            save_estimator(other, tmp_path / "m")
    with pytest.raises(ModelError, match=r"m: cannot be saved: estimator\.eta is of type"):
        save_estimator(hindsight.EGRegressor(eta=print), tmp_path / "m")


# ---------------------------------------------------------------- files that lie


def small_model() -> Model:
    _, runs = labelled()
    return Model(runs[:1], ["a", "b", "c"], settings={"eta": 0.1})


def test_every_truncation_and_every_flipped_bit_of_a_model_is_refused(tmp_path):
    path = tmp_path / "m"
    small_model().save(path)
    whole = path.read_bytes()
    messages = set()
    with open(path, "r+b", buffering=0) as file:
        for place, byte in enumerate(whole):
            for bit in range(8):
                os.pwrite(file.fileno(), bytes([byte ^ 1 << bit]), place)
                with pytest.raises(ModelError) as error:
                    load(path)
                messages.add(str(error.value))
            os.pwrite(file.fileno(), bytes([byte]), place)
        load(path)
        for size in reversed(range(len(whole))):
            file.truncate(size)
            with pytest.raises(ModelError):
                load(path)
    assert all(m.startswith(f"{path}: ") and "\n" not in m for m in messages)


def change(path, edit, kind="model"):
    """The file with its document edited, and sealed anew."""
    _, document, tensors = files.read(path, ["model", "estimator"])
    found = json.loads(document)
    found = edit(found, tensors) or found
    files.write(path, kind, json.dumps(found), tensors)


def model_of(found):
    return found["$training.model:Model"]


def run_of(found):
    return model_of(found)["runs"][0]["$online.run:Run"]


def learner_of(found):
    return run_of(found)["learner"]["$online.learners:Learner"]


def state_of(found):
    (state,) = run_of(found)["state"].values()
    return state


def tensor(field, make):
    """The tensor of a field of the run, of a field of its state ("state.theta"), or of one of its records, changed."""

    def edit(found, tensors):
        where = state_of(found) if field.startswith("state.") else run_of(found)
        body = where[field.removeprefix("state.")]
        name = body["$record"][0] if "$record" in body else body["$array"]
        tensors[name] = make(tensors[name])

    return edit


def rounds(value):
    """The bits of a number of rounds, in the first field of the record of progress."""

    def edit(bits):
        out = bits.copy()
        out[..., 0] = np.float64(value).view(np.int64)
        return out

    return edit


def texts(found, tensors, ends):
    tensors["text"], tensors["ends"] = np.frombuffer(b"abc", np.uint8), np.array(ends)
    model_of(found)["names"] = {"$texts": ["text", "ends"]}


def put(where, key, value):
    def edit(found, tensors):
        where(found)[key] = value

    return edit


ONE, OF = {"$float": "0x1p0"}, "$online.learners:"
LIES = {
    "no-dict": (lambda found, tensors: ["runs"], "it does not hold a model"),
    "missing": (lambda found, tensors: {"runs": []}, "it does not hold a model"),
    "no-runs": (put(model_of, "runs", []), "at least one run"),
    "more": (put(model_of, "more", 1), "more"),
    "plain-float": (put(model_of, "digest", 0.1), "a float must be written in hex"),
    "scalar": (put(model_of, "digest", {"$scalar": ["object", 1]}), "scalar of type 'object'"),
    "scalar-of": (put(model_of, "digest", {"$scalar": ["float64", [1]]}), "a scalar must be a number"),
    "bad-hex": (put(model_of, "digest", {"$float": "0x1p99999"}), "invalid document"),
    "names": (put(model_of, "names", [1, 2, 3]), r"`Model.names` must be of type list\[str\]"),
    "tag": (put(model_of, "digest", {"$import": "os"}), r"'\$import' is unknown"),
    "method": (put(model_of, "digest", {"$get": "os"}), r"'\$get' is unknown"),
    "dunder": (put(model_of, "digest", {"$_init__": {}}), "is unknown"),
    "no-tensor": (put(model_of, "digest", {"$array": "nowhere"}), "nowhere"),
    "list-tensor": (put(model_of, "digest", {"$array": [1]}), r"tensor \[1\] is missing"),
    "texts": (put(model_of, "names", {"$texts": ["t0", "t1"]}), "ends of strings must be a vector"),
    "overlap": (lambda found, tensors: texts(found, tensors, [2, 1, 3]), "must not decrease"),
    "before": (lambda found, tensors: texts(found, tensors, [-1, 1, 3]), "must not decrease"),
    "beyond": (lambda found, tensors: texts(found, tensors, [1, 2, 4]), "must end where the text does"),
    "no-text": (put(model_of, "digest", ["a"]), "`Model.digest` must be of type str"),
    "no-settings": (put(model_of, "settings", ["a"]), "`Model.settings` must be of type dict"),
    "no-certificate": (put(model_of, "certificate", {"verdict": "HOLDS"}), "`certificate` must be of type"),
    "no-versions": (put(model_of, "versions", {"a": 1}), "`Model.versions` must be of type dict"),
    "wide": (put(model_of, "digest", {"$text": [["a"], 1 << 30, [1]]}), "at most 67,108,864 bytes"),
    "structured": (put(model_of, "digest", {"$bytes": ["t0", "O8", [1]]}), "dtype 'O8' is not supported"),
    "reshape": (put(model_of, "digest", {"$objects": [[1], [1 << 60]]}), "cannot reshape"),
    "negative": (put(model_of, "digest", {"$objects": [[1], [-1]]}), "shape must be a list of non-negative integers"),
    "map": (put(model_of, "digest", {"$map": [[1, 1], [2, 3]]}), "a key occurs twice"),
    "unhashable": (put(model_of, "digest", {"$map": [[[1]], [2]]}), "unhashable"),
    "random": (
        put(model_of, "digest", {"$random": [True, {"bit_generator": "os"}]}),
        "random generator 'os' is not supported",
    ),
    "matrix": (tensor("state.theta", lambda a: np.zeros((3, 4))), r"`theta` has the shape \(3, 4\), \(4,\) expected"),
    "no-rows": (tensor("state.moment", lambda a: np.zeros(0)), r"`moment` has the shape \(0,\), \(4,\) expected"),
    "width": (tensor("state.theta", lambda a: np.zeros(9)), r"`theta` has the shape \(9,\), \(4,\) expected"),
    "first": (tensor("first", lambda a: np.zeros(9)), r"`theta` has the shape \(4,\), \(9,\) expected"),
    "integers": (tensor("state.theta", lambda a: np.zeros(4, np.int64)), "`theta` must be an array of float64"),
    "scalars": (tensor("state.clock", lambda a: np.zeros(3)), r"`clock` has the shape \(3,\), \(1,\) expected"),
    "no-state": (put(run_of, "state", [1.0]), "float must be written in hex"),
    "facts": (put(run_of, "tally", ONE), "`tally` must be a record of rounds, weight"),
    "rounds": (tensor("progress", rounds(-5.0)), "number of rounds is -5.0"),
    "nan-rounds": (tensor("progress", rounds(np.nan)), "`progress.rounds` is not a number"),
    "half-rounds": (tensor("progress", rounds(0.5)), "number of rounds is 0.5"),
    "bias": (put(run_of, "bias", {"$float": "0x1p1"}), "`bias` must be 0 or 1"),
    "shadow": (put(run_of, "resize", 1), "Run cannot have a field 'resize'"),
    "run-class": (put(run_of, "__class__", 1), "cannot have a field '__class__'"),
    "no-learner": (put(run_of, "learner", "perceptron"), "`learner` must be a learner"),
    "start": (put(run_of, "start", "x"), "`start` must be a vector"),
    "geometry": (
        put(learner_of, "geometry", {OF + "RateSchedule": None}),
        "the fields of RateSchedule are missing",
    ),
    "swapped": (
        put(learner_of, "geometry", {OF + "Explicit": {"scale": ONE}}),
        "`geometry` must be a geometry",
    ),
    "loss": (put(learner_of, "loss", {OF + "Hinge": {"margin": "x"}}), "`Hinge.margin` must be a finite"),
    "infinite": (
        put(learner_of, "geometry", {OF + "Simplex": {"radius": {"$float": "inf"}}}),
        "`Simplex.radius` must be a finite number",
    ),
    "zero": (
        put(learner_of, "geometry", {OF + "Simplex": {"radius": {"$float": "0x0p0"}}}),
        "`Simplex.radius` must be above 0",
    ),
    "wrong-rows": (
        put(learner_of, "geometry", {OF + "Balanced": {"radius": ONE}}),
        "the state must be a EntropicState",
    ),
    "averaging": (put(run_of, "averaging", False), r"`moment` has the shape \(4,\), \(0,\) expected"),
    "no-averaging": (put(run_of, "averaging", 1), "`averaging` must be true or false"),
    "user-class": (
        put(model_of, "digest", {"$:Huber": {}}),
        "^[^:]*: the model uses Huber, which is not registered: import "
        r"the module that registers it first \(command: --extend FILE\)$",
    ),
    "record": (put(model_of, "digest", {"$record": ["t0", ["a", "a"], "ff", False, False]}), "different names"),
    "record-names": (put(model_of, "digest", {"$record": ["t0", [1], "f", False, False]}), "different names"),
    "record-size": (
        put(model_of, "digest", {"$record": ["t0", ["a"], "f", False, False]}),
        "a record of 1 fields has an array",
    ),
    "part-fields": (
        put(learner_of, "geometry", {OF + "Simplex": {}}),
        "Simplex must have the fields radius",
    ),
    "rates": (
        put(
            learner_of,
            "rate",
            {
                OF + "RateSchedule": {
                    "eta": ONE,
                    "power": {"$float": "0x0p0"},
                    "rates": ONE,
                }
            },
        ),
        "`RateSchedule.rates` must be a vector",
    ),
    "targets": (put(learner_of, "targets", "any"), "`targets` must be real, sign, unit or count"),
    "verdict": (
        put(model_of, "certificate", {"$certificates.theorems:Verdict": "__class__"}),
        "Verdict has no member '__class__'",
    ),
    "field": (put(model_of, "certificate", {"$online.facts:Facts": {"nothing": 1}}), "nothing"),
    "lines": (put(model_of, "certificate", {"$online.facts:Facts": {"a\nb": 1}}), "a b"),
    "line-tag": (put(model_of, "digest", {"$a\nb": 1}), "is unknown"),
    "line-class": (put(model_of, "digest", {"$:a\nb": 1}), "not registered"),
    "line-key": (put(run_of, "a\nb", 1), "cannot have a field"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_document_that_lies_is_refused(tmp_path, lie):
    edit, message = LIES[lie]
    small_model().save(tmp_path / "m")
    change(tmp_path / "m", lambda found, tensors: None)
    load(tmp_path / "m")
    change(tmp_path / "m", edit)
    with pytest.raises(ModelError, match=message) as error:
        load(tmp_path / "m")
    assert str(error.value).startswith(f"{tmp_path / 'm'}: ") and "\n" not in str(error.value)


def test_deep_nesting_is_refused(tmp_path):
    files.write(tmp_path / "m", "model", "[" * 100_000 + "]" * 100_000, {})
    with pytest.raises(ModelError, match="nested too deeply"):
        load(tmp_path / "m")


def test_a_file_names_no_class_but_our_estimators(tmp_path):
    made, X, _ = fitted("PerceptronClassifier", ["u", "v", "w"])
    tag = "$hindsight:PerceptronClassifier"

    def strange(field, value):
        def edit(found, tensors):
            found["estimator"][tag][field] = value

        return edit

    def renamed(name):
        return lambda found, tensors: found.update(estimator={name: found["estimator"][tag]})

    edits = [
        (renamed(f"$hindsight:{name}"), "which this version does not have")
        for name in ("certify", "RowError", "Facts", "Run", "os.system", "__import__", "_HOME", "OnlineEstimator", "")
    ]
    edits += [
        (renamed("$estimators.classify:PerceptronClassifier"), "which this version does not have"),
        (renamed("$PerceptronClassifier"), "is unknown"),
        (renamed("$:PerceptronClassifier"), "is not registered"),
        (strange("predict", 1), "cannot have a field 'predict'"),
        (strange("__class__", 1), "cannot have a field '__class__'"),
        (strange("coef_", 1), "cannot have a field 'coef_'"),
        (strange("a b", 1), "cannot have a field 'a b'"),
        (strange("runs_", 3), "`runs_` must be a list of runs"),
        (strange("runs_", [3]), "`runs_` must be a list of runs"),
        (strange("n_features_in_", 5), "`n_features_in_` is 5, but a run has 4 features"),
        (strange("n_features_in_", -1), "`n_features_in_` is -1, but"),
        (strange("n_features_in_", "4"), "`n_features_in_` is '4', but"),
        (
            lambda found, tensors: found["estimator"][tag].pop("average") and None,
            "the parameter `average` of .* missing",
        ),
        (lambda found, tensors: found["estimator"].update({tag: 3}), "the fields of PerceptronClassifier are missing"),
        (lambda found, tensors: found.update(estimator=3), "it does not hold an estimator"),
        (lambda found, tensors: found.update(estimator=found["estimator"][tag]["runs_"][0]), "not hold an estimator"),
        (lambda found, tensors: found.update(versions=None), "`versions` must be a mapping of strings"),
    ]
    for edit, message in edits:
        save_estimator(made, tmp_path / "m")
        change(tmp_path / "m", edit, "estimator")
        with pytest.raises(ModelError, match=message):
            load(tmp_path / "m")
    save_estimator(made, tmp_path / "m")
    change(tmp_path / "m", lambda found, tensors: None, "estimator")
    assert equal(load(tmp_path / "m").predict(X), made.predict(X))
    change(tmp_path / "m", lambda found, tensors: None, "model")
    with pytest.raises(ModelError):
        load(tmp_path / "m")


@pytest.mark.parametrize("targets", [[1.0, 2.0], np.array([1.0, 2.0])])
def test_learn_says_how_rows_and_targets_are_given(targets):
    with pytest.raises(ValueError, match=r"learn\(\(X, y\)\)"):
        hindsight.learn(np.eye(2), targets)
