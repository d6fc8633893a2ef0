"""Learnt state as a JSON document and tensors, and back, bit for bit and without running anything.

Floats are written in hex, arrays as tensors, long lists of text or numbers as tensors too. Of classes there are those
named here and no other: a document can only ask for them by name, and what it fills them with is checked.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import re
import sys
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ModelError
from ..kernels.entropic import Balanced, Simplex
from ..kernels.euclidean import Euclidean
from ..kernels.online import FACTS
from ..kernels.state import ROUNDS, SCALARS
from ..online.learners import Learner

if TYPE_CHECKING:
    from collections.abc import Callable


RULES = ("Square", "Absolute", "Logistic", "Tanh", "Probit", "Hinge", "Clipped")
PARTS = {
    "loss": RULES,
    "update": ("Explicit", "Implicit"),
    "geometry": ("Euclidean", "Simplex", "Balanced"),
    "rate": ("RateSchedule",),
}
KINDS = {  # the classes of ours that a document may name, by module
    "kernels.losses": RULES,
    "kernels.updates": PARTS["update"],
    "kernels.geometries": PARTS["geometry"],
    "kernels.rates": PARTS["rate"],
    "online.learners": ("Learner",),
    "online.run": ("Run",),
    "online.facts": ("Facts",),
    "certificates.theorems": ("Theorem", "Verdict"),
    "certificates.certificate": ("Assumption", "Comparator", "Milestone", "Certificate", "Certificates"),
    "certificates.risk": ("RiskCertificate",),
    "batch.gradient_descent": ("Sweep",),
    "batch.least_squares": ("Factor", "Solution"),
    "batch.perceptron": ("Halfspace",),
    "batch.separability": ("Separation", "FewestMistakes"),
    "batch.isotonic": ("Pools", "Isotonic"),
    "batch.isotron": ("History",),
    "density.certificate": ("DensityCertificate",),
    "density.counts": ("Categorical", "Bernoulli", "Poisson", "Histogram"),
    "density.durations": ("Gamma", "Exponential"),
    "density.gaussian": ("Gaussian", "FullGaussian"),
    "kernels.densities": ("Dirichlet", "Restaurant", "Rate", "Waiting", "Normal"),
    "density.keyed": ("Keyed",),
    "density.ngram": ("NGram",),
    "density.product": ("Product",),
}  # fmt: skip
HOMES = {name: f"hindsight.{module}" for module, names in KINDS.items() for name in names}
ROWS = {Euclidean: (1, 2), Simplex: (2, 4), Balanced: (2, 4)}  # of a run's state, without and with averages
BITS = {kind.__name__: kind for kind in (np.random.MT19937, np.random.PCG64, np.random.PCG64DXSM, np.random.Philox)}
NATIVE = tuple(np.dtype(d) for d in ("f8", "i8", "u1"))
OTHER = re.compile(r"[|<]?([biu][1248]|f[248]|[mM]8(\[\w{1,8}\])?)")
NUMPY = {
    kind.__name__: kind
    for kind in (np.bool_, np.float64, np.float32, np.float16, np.str_, np.int64, np.int32, np.int16, np.int8,
                 np.uint64, np.uint32, np.uint16, np.uint8)
}  # fmt: skip
TAGS = (
    "$estimator",
    "$string",
    "$scalar",
    "$float",
    "$tuple",
    "$array",
    "$texts",
    "$list",
    "$map",
    "$bytes",
    "$text",
    "$objects",
    "$random",
)
TEMPORARY = ("_ones", "_row", "_swift", "_places")  # attributes of estimators that are made again when needed
WORDS = 4096  # characters of a text from which it becomes a tensor
LONG = 32  # entries of a list from which it becomes a tensor
TEXT = 1 << 26  # bytes of a fixed-width text array at most


# ---------------------------------------------------------------- to a document


def encode(value: Any) -> tuple[str, dict[str, np.ndarray]]:
    """The document and the tensors of a value; a TypeError names the part that is none of the known kinds."""
    writer = _Writer()
    try:
        return json.dumps(writer.put(value, ""), separators=(",", ":"), allow_nan=False), writer.tensors
    except RecursionError:
        raise TypeError("it holds itself, or is nested too deeply") from None


class _Writer:
    def __init__(self) -> None:
        self.tensors: dict[str, np.ndarray] = {}
        self.seen: dict[int, tuple[str, Any]] = {}  # arrays met, kept alive so that no other takes their id

    def put(self, value: Any, where: str) -> Any:
        kind = type(value)
        if value is None or kind in (bool, int) or (kind is str and len(value) <= WORDS):
            return value
        if kind is str:
            return {"$string": self._tensor(np.frombuffer(value.encode("utf-8", "surrogatepass"), np.uint8))}
        if kind is float:
            return {"$float": value.hex()}
        if kind is list:
            return self._list(value, where)
        if kind is dict:
            return self._dict(value, where)
        if kind is tuple:
            return {"$tuple": [self.put(v, f"{where}[{k}]") for k, v in enumerate(value)]}
        if kind is np.ndarray:
            return self._array(value, where)
        if HOMES.get(kind.__name__) == kind.__module__:
            return {f"${kind.__name__}": self._fields(value, where)}
        if NUMPY.get(kind.__name__) is kind:
            return {"$scalar": [kind.__name__, self.put(value.item(), where)]}
        if kind in (np.random.RandomState, np.random.Generator):
            return self._random(value, where)
        if estimator_kind(kind.__name__) is kind:
            found = {k: v for k, v in value.__getstate__().items() if k not in TEMPORARY}
            return {"$estimator": [kind.__name__, {k: self.put(v, f"{where}.{k}") for k, v in found.items()}]}
        raise TypeError(f"{where or 'it'} is of type {kind.__name__}, which cannot be saved")

    def _fields(self, value: Any, where: str) -> Any:
        if isinstance(value, enum.Enum):
            return value.name
        if dataclasses.is_dataclass(value):
            found = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        else:
            found = vars(value) if hasattr(value, "__dict__") else value._asdict()
        return {k: self.put(v, f"{where}.{k}") for k, v in found.items()}

    def _list(self, value: list[Any], where: str) -> Any:
        kinds = {type(v) for v in value} if len(value) > LONG else set()
        if kinds == {str}:
            text = "".join(value)
            data = text.encode("utf-8", "surrogatepass")
            sizes = map(len, value if text.isascii() else (v.encode("utf-8", "surrogatepass") for v in value))
            ends = np.cumsum(np.fromiter(sizes, np.int64, len(value)))
            return {"$texts": [self._tensor(np.frombuffer(data, np.uint8)), self._tensor(ends)]}
        if kinds == {float}:
            return {"$list": self._tensor(np.array(value, np.float64))}
        if kinds == {int} and min(value) >= -(1 << 63) and max(value) < 1 << 63:
            return {"$list": self._tensor(np.array(value, np.int64))}
        return [self.put(v, f"{where}[{k}]") for k, v in enumerate(value)]

    def _dict(self, value: dict[Any, Any], where: str) -> Any:
        if len(value) <= LONG and all(type(k) is str and k[:1] != "$" for k in value):
            return {k: self.put(v, f"{where}.{k}" if where else k) for k, v in value.items()}
        return {"$map": [self.put(list(value), f"{where} keys"), self.put(list(value.values()), f"{where} values")]}

    def _tensor(self, array: np.ndarray) -> str:
        name = f"t{len(self.tensors)}"
        self.tensors[name] = array
        return name

    def _array(self, value: np.ndarray, where: str) -> Any:
        if id(value) not in self.seen:
            self.seen[id(value)] = (self._new_array(value, where), value)
        return self.seen[id(value)][0]

    def _new_array(self, value: np.ndarray, where: str) -> Any:
        if value.dtype in NATIVE:
            return {"$array": self._tensor(value)}
        shape, dtype = list(value.shape), value.dtype.newbyteorder("<").str
        if OTHER.fullmatch(dtype):
            plain = np.ascontiguousarray(value, value.dtype.newbyteorder("<")).reshape(-1)
            return {"$bytes": [self._tensor(plain.view(np.uint8)), dtype, shape]}
        if value.dtype.kind == "U" and value.nbytes <= TEXT:
            return {"$text": [self.put(value.reshape(-1).tolist(), where), value.dtype.itemsize // 4, shape]}
        if value.dtype.kind == "O":
            return {"$objects": [self.put(value.reshape(-1).tolist(), where), shape]}
        raise TypeError(f"{where} is an array of {value.dtype}, which cannot be saved")

    def _random(self, value: Any, where: str) -> Any:
        state = value.get_state(legacy=False) if isinstance(value, np.random.RandomState) else value.bit_generator.state
        if state["bit_generator"] not in BITS:
            raise TypeError(f"{where} draws from {state['bit_generator']}, which cannot be saved")
        return {"$random": [isinstance(value, np.random.Generator), self.put(state, where)]}


# ---------------------------------------------------------------- and back


def decode(document: str, tensors: dict[str, np.ndarray]) -> Any:
    """The value of a document; what is no such value is one ModelError."""
    try:
        return _Reader(tensors).get(json.loads(document))
    except ModelError:
        raise
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError) as error:
        raise ModelError(f"its document does not describe a state: {error or type(error).__name__}") from None


def _want(true: bool, what: str) -> None:
    if not true:
        raise ModelError(f"its document is wrong: {what}")


class _Reader:
    def __init__(self, tensors: dict[str, np.ndarray]) -> None:
        self.tensors = tensors

    def get(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.get(v) for v in value]
        if not isinstance(value, dict):
            _want(type(value) is not float, "a float that is not in hex")
            return value
        if len(value) != 1 or not next(iter(value)).startswith("$"):
            return {k: self.get(v) for k, v in value.items()}
        ((tag, body),) = value.items()
        if tag[1:] in HOMES:
            return self._kind(kind_of(tag[1:]), body)
        _want(tag in TAGS, f"{tag[:40]} is unknown")
        return getattr(self, "_" + tag[1:])(body)

    def _float(self, body: str) -> float:
        return float.fromhex(body)

    def _scalar(self, body: list[Any]) -> Any:
        item = self.get(body[1])
        _want(type(item) in (bool, int, float, str), "a number that is none")
        return NUMPY[body[0]](item)

    def _string(self, body: str) -> str:
        return self.tensors[body].tobytes().decode("utf-8", "surrogatepass")

    def _tuple(self, body: list[Any]) -> tuple[Any, ...]:
        return tuple(self.get(list(body)))

    def _array(self, body: str) -> np.ndarray:
        return self.tensors[body]

    def _texts(self, body: list[str]) -> list[str]:
        data, ends = self.tensors[body[0]].tobytes(), self.tensors[body[1]]
        _want(ends.dtype == np.int64 and ends.ndim == 1, "texts without ends")
        _want(bool((np.diff(ends, prepend=0) >= 0).all()), "texts that overlap")
        _want((int(ends[-1]) if ends.size else 0) == len(data), "texts of another length")
        spans = zip([0, *ends[:-1].tolist()], ends.tolist(), strict=False)
        if data.isascii():
            text = data.decode("ascii")
            return [text[a:b] for a, b in spans]
        return [data[a:b].decode("utf-8", "surrogatepass") for a, b in spans]

    def _list(self, body: str) -> list[Any]:
        return self.tensors[body].tolist()

    def _map(self, body: list[Any]) -> dict[Any, Any]:
        keys, values = self.get(body[0]), self.get(body[1])
        found = dict(zip(keys, values, strict=True))
        _want(len(found) == len(keys), "a name stands twice")
        return found

    def _bytes(self, body: list[Any]) -> np.ndarray:
        name, dtype, shape = body
        _want(OTHER.fullmatch(dtype) is not None, f"an array of {dtype[:20]}")
        return self.tensors[name].view(dtype).reshape(_shape(shape))

    def _text(self, body: list[Any]) -> np.ndarray:
        items, width, shape = self.get(body[0]), body[1], _shape(body[2])
        _want(type(width) is int and 0 <= width * 4 * len(items) <= TEXT, "text that is too wide")
        _want(all(type(v) is str and len(v) <= width for v in items), "text that is no text")
        return np.array(items, f"<U{width}").reshape(shape)

    def _objects(self, body: list[Any]) -> np.ndarray:
        items = self.get(body[0])
        out = np.empty(len(items), object)
        for k, item in enumerate(items):
            out[k] = item
        return out.reshape(_shape(body[1]))

    def _random(self, body: list[Any]) -> Any:
        modern, state = body[0], self.get(body[1])
        source = BITS[state["bit_generator"]]()
        if modern:
            source.state = state
            return np.random.Generator(source)
        out = np.random.RandomState(source)
        out.set_state(state)
        return out

    # ---- our own classes

    def _kind(self, kind: Any, body: Any) -> Any:
        if issubclass(kind, enum.Enum):
            return kind[body]
        found = {k: self.get(v) for k, v in body.items()}
        if kind.__name__ in CHECKS:
            CHECKS[kind.__name__](found)
        if dataclasses.is_dataclass(kind) or issubclass(kind, tuple):
            if (
                issubclass(kind, tuple)
                and HOMES[kind.__name__].startswith("hindsight.kernels.")
                and kind.__name__ in {n for names in PARTS.values() for n in names}
            ):
                _part(kind, found)
            return kind(**found)
        return _filled(kind, found)

    def _estimator(self, body: list[Any]) -> Any:
        name, state = body[0], {k: self.get(v) for k, v in body[1].items()}
        kind = estimator_kind(name)
        _want(kind is not None, f"{str(name)[:60]!r} is no estimator of this version")
        missing = [k for k in kind().get_params(deep=False) if k not in state]
        _want(not missing, f"{name} without {missing[:1]}")
        runs, features = state.get("runs_", []), state.get("n_features_in_")
        _want(isinstance(runs, list) and all(hasattr(run, "v") for run in runs), "runs_ are no runs")
        for run in runs:
            fits = type(features) is int and 0 < features <= run.v.shape[1] - run.bias and run.bias == runs[0].bias
            _want(fits, f"{features!r} features, but weights of shape {run.v.shape}")
        return _filled(kind, state)


@cache
def kind_of(name: str) -> Any:
    """The class of ours by that name."""
    return getattr(import_module(HOMES[name]), name)


def estimator_kind(name: Any) -> Any:
    """The estimator of ours with that public name, or None."""
    ours = sys.modules["hindsight"]
    if not isinstance(name, str) or name not in ours.__all__:
        return None
    from sklearn.base import BaseEstimator

    found = getattr(ours, name)
    return found if isinstance(found, type) and issubclass(found, BaseEstimator) else None


def _filled(kind: Any, found: dict[str, Any]) -> Any:
    """An object with these fields, none of which stands in the way of a method."""
    for name in found:
        _want(type(name) is str and name.isidentifier() and name[:2] != "__", f"a field {name!r:.40}")
        taken = getattr(kind, name, None)
        _want(not callable(taken) and not isinstance(taken, property), f"a field {name!r:.40}")
    out = object.__new__(kind)
    out.__dict__.update(found)
    return out


def _shape(shape: Any) -> list[int]:
    _want(isinstance(shape, list) and all(type(n) is int and n >= 0 for n in shape), "a shape that is none")
    return list(shape)


def _part(kind: Any, found: dict[str, Any]) -> None:
    """A part of a learner has numbers, and rates that are above 0."""
    _want(list(found) == list(kind._fields), f"{kind.__name__} has {', '.join(kind._fields)}")
    for name, value in found.items():
        if name == "rates":
            _want(_is_vector(value) and bool(((value > 0) & (value < np.inf)).all()), "rates that are not above 0")
        else:
            _want(type(value) is float and abs(value) < np.inf, f"{kind.__name__}.{name} is no finite number")
            _want(name not in ("eta", "radius") or value > 0, f"{kind.__name__}.{name} is not above 0")


def _learner(found: dict[str, Any]) -> None:
    for name, kinds in PARTS.items():
        _want(type(found[name]).__name__ in kinds, f"a learner whose {name} is no {name}")
    _want(isinstance(found["name"], str), "a learner without a name")
    _want(found["targets"] in ("real", "sign", "unit") and found["score"] in ("loss", "square"), "an unknown score")


def _run(found: dict[str, Any]) -> None:
    """A run has arrays of the sizes that the compiled loop takes for granted."""
    v, s, f, first, bias, learner = (found[k] for k in ("v", "s", "f", "first", "bias", "learner"))
    _want(isinstance(learner, Learner), "a run without a learner")
    _want(type(bias) is float and bias in (0.0, 1.0), "an intercept that is neither 0 nor 1")
    _want(isinstance(v, np.ndarray) and v.dtype == np.float64 and v.ndim == 2 and v.flags.c_contiguous, "no weights")
    _want(len(v) in ROWS[type(learner.geometry)] and v.shape[1] > bias, f"weights of shape {v.shape}")
    _want(_is_vector(s) and s.size == SCALARS and _is_vector(f) and f.size == FACTS, "facts of another size")
    _want(_is_vector(first) and first.size == v.shape[1], "first weights of another size")
    _want(found["start"] is None or _is_vector(found["start"]), "a start that is no vector")
    rounds = float(s[ROUNDS])
    _want(0 <= rounds < 2.0**53 and rounds.is_integer(), f"{rounds!r} rounds")


def _sweep(found: dict[str, Any]) -> None:
    """Likewise a sweep."""
    from ..kernels.descent import SCALARS as COUNT

    v, s, f, bias = (found[k] for k in ("v", "s", "f", "bias"))
    _want(isinstance(found["learner"], Learner), "a sweep without a learner")
    _want(type(bias) is float and bias in (0.0, 1.0), "an intercept that is neither 0 nor 1")
    _want(isinstance(v, np.ndarray) and v.dtype == np.float64 and v.flags.c_contiguous, "no weights")
    _want(v.ndim == 2 and len(v) == 3 and v.shape[1] > bias, f"weights of shape {v.shape}")
    _want(_is_vector(s) and s.size == COUNT and _is_vector(f) and f.size == FACTS, "facts of another size")
    _want(all(_is_vector(found[k]) and found[k].size == v.shape[1] for k in ("first", "best")), "no first weights")


CHECKS: dict[str, Callable[[dict[str, Any]], None]] = {"Learner": _learner, "Run": _run, "Sweep": _sweep}


def _is_vector(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == np.float64 and value.ndim == 1 and value.flags.c_contiguous
