"""The corpus: what is printed, certified and saved today, over small streams that ask much of it.

`ENTRIES` lists what is recorded: every learner of the table with every choice of its parts, panels, batch methods,
densities and forecasts. All go through the public names alone, so that the corpus outlives what is behind them.
`differences` compares a record with the one that is stored.
"""

import gzip
import inspect
import json
import math
import os
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any
from unittest import mock

import llvmlite.binding
import numba
import numpy as np
import scipy
import scipy.sparse as sp
from sklearn.base import is_classifier

import hindsight
from conftest import CHOSEN, FLAT
from discovery import ONLINE, PUBLIC
from hindsight import density, forecast
from hindsight.certificates.best import fewest
from hindsight.online import learners, parts

FOLDER = Path(__file__).parent / "corpus"

# --- streams --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stream:
    """Rows, numbers near a linear function of them, and weights."""

    X: np.ndarray
    z: np.ndarray
    weight: np.ndarray | None = None

    def targets(self, kind: str) -> np.ndarray:
        """Targets of a kind, made of the numbers."""
        spread = float(np.abs(self.z).max()) or 1.0
        if kind == "sign":
            return np.where(self.z > 0.0, 1, -1)
        if kind == "unit":
            return 1.0 / (1.0 + np.exp(-2.0 * self.z / spread))
        return np.floor(4.0 * np.abs(self.z) / spread) if kind == "count" else self.z

    def data(self, kind: str, storage: str = "dense64") -> tuple[Any, ...]:
        """Rows in a storage, targets, and weights where there are any."""
        X: Any = self.X.astype(np.float32 if storage.endswith("32") else np.float64)
        X = sp.csr_matrix(X) if storage.startswith("csr") else X
        return (X, self.targets(kind)) if self.weight is None else (X, self.targets(kind), self.weight)


def _rows(seed: int, m: int, n: int, noise: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    """Rows that float32 holds too, and a noisy linear function of them; both are multiples of powers of 2."""
    rng = np.random.default_rng(seed)
    X = np.round(64.0 * rng.uniform(-1.0, 1.0, (m, n))) / 64.0
    z = X @ np.array([1.0, -0.75, 0.5, 0.25, -0.5, 0.125, 1.0, -1.0])[np.arange(n) % 8] + 0.25
    return X, z + np.round(64.0 * noise * rng.normal(size=m)) / 64.0


def _streams() -> Iterator[tuple[str, Stream]]:
    X, z = _rows(1, 90, 4)
    yield "plain", Stream(X, z)
    yield "weights", Stream(X, z, np.random.default_rng(1).choice([0.0, 0.5, 1.0, 3.0], 90))
    X, z = _rows(2, 60, 5)
    X[:, 3], X[:, 4] = 2.0 * X[:, 0] - X[:, 1], 1.0
    yield "collinear", Stream(X, z)
    X, z = _rows(3, 12, 3)
    yield "duplicates", Stream(np.tile(X, (4, 1)), np.concatenate((z, z, -z, z)))
    X, z = _rows(4, 60, 3)
    yield "huge", Stream(2.0**20 * X, 2.0**20 * z)
    yield "tiny", Stream(2.0**-20 * X, 2.0**-20 * z)
    X, z = _rows(5, 50, 3)
    yield "units", Stream(X * [2.0**20, 1.0, 2.0**-20], z)
    X, z = _rows(6, 60, 3, 0.0)
    yield "separable", Stream(X, z)
    yield "single", Stream(X[:1], z[:1])
    X, _ = _rows(7, 30, 3)
    yield "same", Stream(X, np.full(30, 1.5))
    X, z = _rows(8, 160, 3)
    z[40:100] *= -1.0
    z[100:] += 8.0
    yield "jumps", Stream(X, z)
    X, z = _rows(9, 12, 20)
    yield "wide", Stream(X, z)
    X, z = _rows(10, 70, 8, 0.1)
    X *= np.random.default_rng(10).random(X.shape) < 0.2
    X[:2] = 0.0
    yield "sparse", Stream(X, z)


STREAMS = dict(_streams())

# --- what is recorded -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """One record: the file it is in, its name there, how it is made, and whether `make test` makes it."""

    family: str
    name: str
    make: Callable[[], Any]
    quick: bool


@contextmanager
def patience() -> Iterator[None]:
    """The integer programme has two seconds, which a busy machine may not keep: give it more."""
    with mock.patch.object(fewest, "SECONDS", 600.0):
        yield


def record(make: Callable[[], Any]) -> Any:
    """What `make` gives, as plain values, beside its text and its warnings; or the words with which it refuses."""
    with warnings.catch_warnings(record=True) as heard, patience():
        warnings.simplefilter("always")
        try:
            found = make()
        except (ValueError, TypeError) as error:
            return {"refused": f"{type(error).__name__}: {error}"}
    out = (
        {"is": plain(found.to_dict()), "text": str(found).splitlines()}
        if hasattr(found, "to_dict")
        else {"is": plain(found)}
    )
    said = sorted({str(each.message) for each in heard})
    return out | ({"warnings": said} if said else {})


def plain(value: Any) -> Any:
    """The value as JSON has it, numbers to twelve digits."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(v) for v in value]
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(f"{value:.12g}") if math.isfinite(value) else str(value)
    return value if value is None else str(value)


def learnt(stream: str, kind: str, storage: str = "dense64", *, cut: int = 0, **options: Any) -> Any:
    """The certificate of a model that learnt from a stream; with `cut` in two parts."""
    data = STREAMS[stream].data(kind, storage)
    if kind == "sign":
        options["labels"] = ["-1", "1"]
    if not cut:
        return hindsight.learn(data, certify=True, **options).certificate
    model = hindsight.learn(tuple(part[:cut] for part in data), **options)
    return model.partial_fit(tuple(part[cut:] for part in data)).certify(data)


def _choices(name: str) -> Iterator[dict[str, Any]]:
    """Every choice of parts that a learner of the table takes by name."""
    tables = {"loss": parts.LOSSES, "link": parts.LINKS, "geometry": parts.GEOMETRIES, "update": parts.UPDATES}
    tables |= {"balanced": (True, False), "second_order": ("auto", "no")}
    given = inspect.signature(learners.LEARNERS[name].make).parameters
    chosen = {option: list(table) for option, table in tables.items() if option in given}
    yield from (dict(zip(chosen, each, strict=True)) for each in product(*chosen.values()))


def _target(name: str, options: dict[str, Any]) -> str:
    """The kind of targets that a learner asks for."""
    if "link" in options:
        return "unit"
    try:
        kind = learners.LEARNERS[name].make(**options).targets
    except (ValueError, TypeError):
        return "real"
    return "sign" if kind == "unit" else kind


def _online() -> Iterator[Entry]:
    """Every learner, loss, geometry and update over every stream; each loss of it in other storages over some."""
    for name in learners.LEARNERS:
        for k, options in enumerate(_choices(name)):
            kind, said = _target(name, options), " ".join(str(v) for v in (name, *options.values()))
            stored_as = [storage for storage in STORAGES if is_stored(name, options, storage)]
            for j, stream in enumerate(STREAMS):
                for storage in stored_as if stream in STORED else STORAGES[:1]:
                    make = partial(learnt, stream, kind, storage, learner=name, **options)
                    quick = is_quick(name, options, storage) and (k + j) % 3 == 0
                    yield Entry(name, f"{said} | {stream} | {storage}", make, quick)


STORAGES, STORED = ("dense64", "csr64", "dense32"), ("plain", "weights", "wide", "sparse")


def is_stored(name: str, options: dict[str, Any], storage: str) -> bool:
    """Whether a learner is recorded in this storage: the first of its choices in all, and what the laws play there."""
    first = options == next(_choices(name))
    return storage == "dense64" or first or _case(options) in CHOSEN[storage]


def _case(options: dict[str, Any]) -> str:
    """What the laws call a descent."""
    return "-".join(("descent", *(options.get(part, "") for part in ("loss", "geometry", "update"))))


def is_quick(name: str, options: dict[str, Any], storage: str) -> bool:
    """Whether the tests compile this loop anyway; those of the other ones are compiled for the night alone."""
    if name == "descent":
        return _case(options) in CHOSEN[storage]
    if options.get("loss") in FLAT or (name == "auto" and options["loss"] not in ("square", "logistic")):
        return False
    return storage == "dense64" or (storage == "csr64" and name in ("auto", "perceptron", "widrow-hoff"))


# What is not the choice of a part: how rows are scaled, passes, rates that fall, penalties, parts learnt one by one.
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "auto drift": ("real", {"drift": 0.01}),
    "auto drift logistic": ("sign", {"drift": 0.01}),
    "auto passes": ("real", {"passes": 3}),
    "auto resumed": ("real", {"cut": 5}),
    "auto resumed logistic": ("sign", {"cut": 7}),
    "auto no intercept": ("real", {"intercept": False}),
    "auto max-abs": ("real", {"scale": "max-abs"}),
    "perceptron passes": ("sign", {"learner": "perceptron", "passes": 3}),
    "perceptron row-unit": ("sign", {"learner": "perceptron", "scale": "row-unit"}),
    "perceptron resumed": ("sign", {"learner": "perceptron", "cut": 5}),
    "winnow margin": ("sign", {"learner": "winnow", "margin": 0.2}),
    "winnow max-abs": ("sign", {"learner": "winnow", "scale": "max-abs", "passes": 2}),
    "widrow-hoff power": ("real", {"learner": "widrow-hoff", "power": 0.5, "update": "explicit", "eta": 0.2}),
    "widrow-hoff global-unit": ("real", {"learner": "widrow-hoff", "scale": "global-unit"}),
    "widrow-hoff standard": ("real", {"learner": "widrow-hoff", "scale": "standard"}),
    "widrow-hoff resumed": ("real", {"learner": "widrow-hoff", "cut": 5, "update": "explicit"}),
    "widrow-hoff passes": ("real", {"learner": "widrow-hoff", "passes": 3, "intercept": False}),
    "widrow-hoff shuffled": ("real", {"learner": "widrow-hoff", "shuffle": True, "seed": 3}),
    "eg radius": ("real", {"learner": "eg", "radius": 4.0, "scale": "max-abs"}),
    "eg simplex": ("real", {"learner": "eg", "radius": None}),
    "descent l1": ("real", {"learner": "descent", "l1": 0.01, "l2": 0.1, "scale": "max-abs"}),
    "descent l2 logistic": ("sign", {"learner": "descent", "loss": "logistic", "l2": 0.1, "update": "implicit"}),
    "descent power": ("sign", {"learner": "descent", "loss": "hinge", "power": 0.5}),
    "descent quantile": ("real", {"learner": "descent", "loss": "quantile", "quantile": 0.9}),
    "ridge resumed": ("real", {"learner": "ridge", "cut": 5}),
    "ridge passes": ("real", {"learner": "ridge", "passes": 2}),
    "newton resumed": ("sign", {"learner": "newton", "cut": 5}),
    "running resumed": ("real", {"learner": "running", "cut": 5}),
}
COMPILED = ("auto", "perceptron", "winnow", "widrow-hoff", "eg", "ridge", "running resumed")


def _variants() -> Iterator[Entry]:
    for k, (name, (kind, options)) in enumerate(VARIANTS.items()):
        for j, stream in enumerate(STREAMS):
            quick = name.startswith(COMPILED) and (k + j) % 5 == 0
            yield Entry("variants", f"{name} | {stream}", partial(learnt, stream, kind, **options), quick)


def three_classes(learner: str, stream: str) -> Any:
    """The certificates of one run per class."""
    found = STREAMS[stream]
    y = np.array(["low", "middle", "high"])[np.searchsorted(np.quantile(found.z, [0.3, 0.7]), found.z)]
    data = (found.X, y) if found.weight is None else (found.X, y, found.weight)
    return hindsight.learn(data, learner=learner, certify=True).certificate


def audited(kind: str, stream: str, **given: Any) -> Any:
    """The certificate of an estimator, sought for afterwards, against a given u."""
    found = STREAMS[stream]
    model = hindsight.PerceptronClassifier() if kind == "sign" else hindsight.WidrowHoffRegressor(0.05)
    model.fit(found.X, found.targets(kind), found.weight)
    return model.certify(found.X, found.targets(kind), found.weight, **given)


def planted(link: str, stream: str) -> Any:
    """GLM-tron where the targets are those of a known predictor."""
    X, w = np.ascontiguousarray(STREAMS[stream].X[:, :3]), np.array([0.5, -1.0, 0.25, 1.0])
    z = X @ w[:3] + w[3]
    y = 1.0 / (1.0 + np.exp(-z)) if link == "logistic" else np.clip(z, 0.0, 1.0)
    return hindsight.GLMtronRegressor(link, eta=0.2).fit(X, y).certify(X, y, planted=w)


def _more() -> Iterator[Entry]:
    for learner in ("auto", "perceptron", "widrow-hoff"):
        for stream in ("plain", "weights", "separable"):
            yield Entry("variants", f"{learner} classes | {stream}", partial(three_classes, learner, stream), True)
    for kind, stream in product(("sign", "real"), ("plain", "weights", "separable")):
        u = np.zeros(STREAMS[stream].X.shape[1] + 1)
        u[0] = 1.0
        yield Entry("variants", f"given u {kind} | {stream}", partial(audited, kind, stream, u=u), True)
    for link in ("logistic", "clipped"):
        yield Entry("variants", f"planted {link} | plain", partial(planted, link, "plain"), True)


# --- batch methods, programmes, densities, forecasts ----------------------------------------------------------------

SETTINGS = {"rounds": 30, "max_passes": 20}  # so that they end soon


def fitted(kind: type, stream: str, storage: str = "dense64") -> Any:
    """The certificate of a batch method, or what it predicts where it has none."""
    found = STREAMS[stream]
    taken = inspect.signature(kind).parameters
    model = kind(**{name: value for name, value in SETTINGS.items() if name in taken})
    targets = "sign" if is_classifier(model) else "unit" if hasattr(model, "certify") else "real"
    X, y, *weight = found.data(targets, storage)
    if kind is hindsight.IsotonicRegressor:
        X = X[:, 0]
    elif kind is hindsight.Calibrator:
        X = found.targets("unit")
    given = {"sample_weight": weight[0]} if weight and "sample_weight" in inspect.signature(kind.fit).parameters else {}
    model.fit(X, y, **given)
    return model.certify(X, y, **given) if hasattr(model, "certify") else {"predicts": model.predict(X[:20])}


BATCH = [kind for kind in PUBLIC if kind not in ONLINE and hasattr(kind, "predict")]


def programme(solve: Callable[..., Any], stream: str) -> Any:
    """What a programme over labelled rows finds, field by field."""
    found = STREAMS[stream]
    out = solve(found.X[:40], found.targets("sign")[:40])
    return {name: getattr(out, name) for name in getattr(out, "__dataclass_fields__", None) or out._fields}


QUICK = ("collinear", "separable", "single", "wide", "units")  # where programmes end at once


def _batch() -> Iterator[Entry]:
    for k, kind in enumerate(BATCH):
        for j, stream in enumerate(STREAMS):
            for storage in ("dense64", "csr64") if stream == "sparse" else ("dense64",):
                make = partial(fitted, kind, stream, storage)
                yield Entry("batch", f"{kind.__name__} | {stream} | {storage}", make, (k + j) % 3 == 0)
    for solve, stream in product((hindsight.separate, hindsight.fewest_mistakes), STREAMS):
        yield Entry("batch", f"{solve.__name__} | {stream}", partial(programme, solve, stream), stream in QUICK)


def _densities_and_rows() -> dict[str, tuple[Callable[[], Any], Any]]:
    rng = np.random.default_rng(11)
    bits, counts, waits = rng.integers(0, 2, 60), rng.poisson(3.0, 60), rng.exponential(2.0, 60).round(4)
    numbers = rng.normal(size=(60, 2)).round(4)
    letters = np.array(list("abca"))[rng.integers(0, 4, 60)]
    both = {"a": letters, "b": numbers[:, 0]}
    return {
        "Bernoulli": (density.Bernoulli, bits),
        "Categorical": (lambda: density.Categorical(list("abc")), letters),
        "Categorical growing": (density.Categorical, letters),
        "Exponential": (density.Exponential, waits),
        "FullGaussian": (lambda: density.FullGaussian(2), numbers),
        "Gamma": (density.Gamma, waits + 0.01),
        "Gaussian": (density.Gaussian, numbers[:, 0]),
        "Gaussian forget": (lambda: density.Gaussian(forget=0.95), numbers[:, 0]),
        "Histogram": (lambda: density.Histogram(-5.0, 5.0, 8), numbers[:, 0]),
        "Poisson": (density.Poisson, counts),
        "Product": (
            lambda: density.Product({"a": density.Categorical(list("abc")), "b": density.Gaussian()}),
            both,
        ),
    }


DENSITIES = _densities_and_rows()


def certified_density(name: str) -> Any:
    """The certificate of a density over its rows."""
    make, rows = DENSITIES[name]
    return make().update(rows).certificate()


def _densities() -> Iterator[Entry]:
    for name in DENSITIES:
        yield Entry("densities", name, partial(certified_density, name), True)


def _forecasts() -> Iterator[Entry]:
    rng = np.random.default_rng(12)
    p = rng.uniform(0.05, 0.95, 150).round(3)
    y = (rng.random(150) < p).astype(float)
    other, blunt = np.clip(p + 0.2, 0.0, 1.0), np.full(150, 0.5)
    scored: dict[str, Callable[[], Any]] = {
        "compare square": lambda: forecast.compare(y, {"p": p, "q": other, "r": blunt}),
        "compare log anytime": lambda: forecast.compare(y, {"p": p, "r": blunt}, loss="log", anytime=True),
        "reliability": lambda: forecast.reliability(y, other),
        "calibration test": lambda: forecast.calibration_test(y, other),
        "calibration test fair": lambda: forecast.calibration_test(y, p),
    }
    for name, make in scored.items():
        yield Entry("forecasts", name, make, True)
    for stream in ("plain", "weights", "separable"):
        yield Entry("forecasts", f"risk | {stream}", partial(risk, stream), True)


def risk(stream: str) -> Any:
    """The bound on the risk of the mean of one pass."""
    found = STREAMS[stream]
    model = hindsight.WidrowHoffRegressor(0.05, "explicit", average="before").fit(found.X, found.z)
    return {"text": str(hindsight.risk_certificate(model, found.X, found.z, bound=100.0)).splitlines()}


ENTRIES = [*_online(), *_variants(), *_more(), *_batch(), *_densities(), *_forecasts()]
FAMILIES = list(dict.fromkeys(entry.family for entry in ENTRIES))

# --- files ----------------------------------------------------------------------------------------------------------

CUT, MORE = 40, 60  # rows that a saved model has learnt from, and those with which it goes on
ROWS = STREAMS["jumps"]


def _of_learn(name: str) -> Any:
    kind = _target(name, next(_choices(name)))
    labels = ["-1", "1"] if kind == "sign" else None
    return hindsight.learn((ROWS.X[:CUT], ROWS.targets(kind)[:CUT]), learner=name, labels=labels)


def _of_estimator(kind: type) -> Any:
    X, y = _given(kind)
    return kind(**{k: v for k, v in SETTINGS.items() if k in inspect.signature(kind).parameters}).fit(X[:CUT], y[:CUT])


def _given(kind: type) -> tuple[np.ndarray, np.ndarray]:
    """Rows and targets for an estimator."""
    if is_classifier(kind()):
        return ROWS.X, ROWS.targets("sign")
    y = ROWS.targets("unit")
    return (ROWS.X[:, 0] if kind is hindsight.IsotonicRegressor else ROWS.X), y


def _of_density(name: str) -> Any:
    return DENSITIES[name][0]().update(_part(DENSITIES[name][1], slice(0, CUT)))


def _part(rows: Any, part: slice) -> Any:
    return {k: v[part] for k, v in rows.items()} if isinstance(rows, dict) else rows[part]


MODELS: dict[str, Callable[[], Any]] = {
    **{f"model-{name}": partial(_of_learn, name) for name in learners.LEARNERS},
    **{
        f"estimator-{kind.__name__}": partial(_of_estimator, kind)
        for kind in PUBLIC
        if kind is not hindsight.Calibrator
    },
    **{f"density-{name}": partial(_of_density, name) for name in DENSITIES if " " not in name},
}


def answers(name: str, model: Any) -> list[float]:
    """What a model of `MODELS` says of rows it has not seen."""
    family, _, what = name.partition("-")
    later = slice(MORE, MORE + 12)
    if family == "density":
        return [float(v) for v in np.ravel(model.logp(_part(DENSITIES[what][1], slice(CUT, None))))]
    if family == "model":
        return [float(v) for v in model.margins(ROWS.X[later]).ravel()]
    rows = _given(type(model))[0][later]
    says = model.decision_function if hasattr(model, "decision_function") else model.predict
    return [float(v) for v in np.ravel(says(rows))]


def goes_on(name: str, model: Any) -> bool:
    """Have a model learn from further rows; False if its kind learns from all rows at once."""
    family, _, what = name.partition("-")
    if family == "density":
        model.update(_part(DENSITIES[what][1], slice(CUT, None)))
        return True
    if family == "model":
        kind = _target(what, next(_choices(what)))
        model.partial_fit(ROWS.X[CUT:MORE], ROWS.targets(kind)[CUT:MORE])
        return True
    if not hasattr(model, "partial_fit"):
        return False
    X, y = _given(type(model))
    model.partial_fit(X[CUT:MORE], y[CUT:MORE])
    return True


def told_by(name: str, path: Path) -> dict[str, Any]:
    """What the file of a model answers, before and after it learns from further rows."""
    model = hindsight.load(path)
    out = {"answers": answers(name, model)}
    return out | ({"after": answers(name, model)} if goes_on(name, model) else {})


def machine() -> dict[str, str]:
    """What decides the last bits: the compiler, the processor it compiles for, and the products of matrices."""
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]["version"]
    kind = os.environ.get("OPENBLAS_CORETYPE", "")
    return {
        "numba": numba.__version__,
        "processor": f"{llvmlite.binding.get_host_cpu_name()} {kind}".strip(),
        "numpy": np.__version__,
        "blas": str(blas),
        "scipy": scipy.__version__,
    }


@cache
def at_home() -> bool:
    """Whether the corpus was written on such a machine."""
    path = FOLDER / "machine.json"
    return not path.exists() or json.loads(path.read_text()) == machine()


def write_machine() -> None:
    """Note the machine on which the corpus is written."""
    (FOLDER / "machine.json").write_text(json.dumps(machine(), indent=1) + "\n")


def table(rows: int = 60) -> str:
    """A table in CSV, for checkpoints of the command."""
    colours = ("red", "green", "blue")
    lines = [f"{x[0]},{colours[k * 4 % 7 % 3]},{x[1]},{int(z > 0)},{z}" for k, (x, z) in
             enumerate(zip(ROWS.X[:rows].tolist(), ROWS.z[:rows].tolist(), strict=True))]  # fmt: skip
    return "\n".join(["a,colour,b,label,y", *lines]) + "\n"


BEFORE = ("auto",)  # whose default learner had no correction yet, and goes on without one
CHECKPOINTS = {  # what is learnt, and stopped before its end
    "auto": "--target y --ignore label",
    "perceptron": "--target label --ignore y --learner perceptron",
    "several": "--target y --ignore label --learner widrow-hoff,eg --eta 0.01,0.1 --passes 2",
}

# --- stored and compared --------------------------------------------------------------------------------------------


@cache
def stored(family: str) -> dict[str, Any]:
    """The records of a family; {} where there is no file."""
    path = FOLDER / f"{family}.json.gz"
    return dict(json.loads(gzip.decompress(path.read_bytes()))) if path.exists() else {}


def known(entry: Entry) -> Any:
    """The stored record of an entry; None where there is none. One that says "as" is that of another storage."""
    found = stored(entry.family).get(entry.name)
    return stored(entry.family)[found["as"]] if found and "as" in found else found


def write(family: str, made: dict[str, Any]) -> None:
    """Store the records of a family, those equal to the one of dense rows by its name alone."""
    out = {}
    for name, found in made.items():
        first = " | ".join((*name.split(" | ")[:2], STORAGES[0]))
        same = first != name and first in made and not differences(made[first], found)
        out[name] = {"as": first} if same else found
    text = json.dumps(out, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{family}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    stored.cache_clear()


CLOSE = 1e-9  # relative, for numbers
LEFT = 1e-12  # of what was lost: the rest that rounding leaves of a loss that is 0
BETWEEN = ("slack", "regret", "gap")  # differences of two numbers, as close as those are
# Where the compiler, the processor or the products of matrices are others, sums are rounded otherwise. A search then
# ends within its own tolerance at another u: it loses the same to nine digits, but its coordinates agree to a few
# digits only where the minimum is flat, and how near it is shown to be (the gap, and the words for it) may differ.
ELSEWHERE = {"gap": 1e-2, "u": 2e-2, "w": 2e-2, "norm": 2e-2}
NEAR = re.compile(
    r"within [\d.e-]+ % of |best found|best fixed predictor|found: the \w+|least squares, rank \d+ of \d+"
)


def differences(old: Any, new: Any, path: str = "", size: float = 0.0, home: bool | None = None) -> list[str]:
    """Where a record differs from the stored one, a line each: the key, the stored value, the value now.

    Parameters
    ----------
    old, new : plain values
        The record as it is stored, and as it is now.
    path : str
        Where they stand in the whole record.
    size : float
        What was lost, beside which rounding is judged.
    home : bool or None, default None
        Whether they were made on the same machine; None finds out.
    """
    home = at_home() if home is None else home
    name = re.sub(r"[\d.]+$", "", path).rpartition(".")[2]
    if isinstance(old, dict) and isinstance(new, dict):
        lost = [old.get(k) for k in ("measured", "lost", "constant")]
        size = max([abs(v) for v in lost if isinstance(v, (int, float))], default=size)
        out = []
        for key in sorted(old.keys() | new.keys()):
            here = f"{path}.{key}" if path else key
            if key in old and key in new:
                out += differences(old[key], new[key], here, size, home)
            else:
                out.append(f"{here}: stored {old.get(key, 'nothing')!r}, now {new.get(key, 'nothing')!r}")
        return out
    if isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            gone, come = ([each for each in one if each not in other] for one, other in ((old, new), (new, old)))
            return [f"{path}: stored {gone!r} of {len(old)}, now {come!r} of {len(new)}"]
        if name in ("u", "w"):  # coordinates are compared with the largest of them
            size = max([abs(v) for v in old if isinstance(v, (int, float))], default=0.0)
        pairs = enumerate(zip(old, new, strict=True))
        return [line for k, (a, b) in pairs for line in differences(a, b, f"{path}.{k}", size, home)]
    if isinstance(old, str) and isinstance(new, str):
        same = same_words(old, new) or (not home and same_words(*(NEAR.sub("", each) for each in (old, new)), 2e-2))
    elif _is_float(old, new):
        of_size = CLOSE if name in (*BETWEEN, "u", "w") else LEFT
        looser = 0.0 if home else ELSEWHERE.get(name, 0.0)
        large = max(abs(old), abs(new))
        same = abs(old - new) <= max(max(CLOSE, looser) * large, max(of_size, looser) * size)
    else:
        same = type(old) is type(new) and old == new
    return [] if same else [f"{path}: stored {old!r}, now {new!r}"]


def _is_float(old: Any, new: Any) -> bool:
    kinds = {type(old), type(new)}
    return kinds == {float} or kinds == {float, int}


NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[-+]?\d+)?")
NOISE = 1e-9  # printed numbers below are taken for what rounding left: the record itself has them in full


def same_words(old: str, new: str, close: float = 0.0) -> bool:
    """Whether two texts have the same words and whole numbers, and other numbers to one of their last digit, or to so
    large a part of them."""
    if old == new:
        return True
    if NUMBER.sub("#", old) != NUMBER.sub("#", new):
        return False
    for a, b in zip(NUMBER.findall(old), NUMBER.findall(new), strict=True):
        if a != b:
            if a.isdigit() and b.isdigit():
                return False
            x, y = float(a), float(b)
            if abs(x - y) > max(1.01 * min(_unit(a), _unit(b)), close * x) and max(x, y) > NOISE:
                return False
    return True


def _unit(number: str) -> float:
    """One of the last digit."""
    digits, _, power = number.partition("e")
    return float(10.0 ** (int(power or 0) - len(digits.partition(".")[2])))
