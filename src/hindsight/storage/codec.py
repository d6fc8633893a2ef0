"""Values as a JSON document and tensors, and back, bit for bit and without running anything.

Floats are written in hex, arrays as tensors, long lists of text or numbers as tensors too. A document names classes
that are registered (`hindsight.storage.registry`) and no others, and the fields it gives them are checked.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ModelError
from .fields import check_types
from .registry import entry_of, find, name_of, want

if TYPE_CHECKING:
    from .registry import Storable

BITS = {kind.__name__: kind for kind in (np.random.MT19937, np.random.PCG64, np.random.PCG64DXSM, np.random.Philox)}
NATIVE = tuple(np.dtype(d) for d in ("f8", "i8", "u1"))
OTHER = re.compile(r"[|<]?([biu][1248]|f[248]|[mM]8(\[\w{1,8}\])?)")
NUMPY = {
    kind.__name__: kind
    for kind in (np.bool_, np.float64, np.float32, np.float16, np.str_, np.int64, np.int32, np.int16, np.int8,
                 np.uint64, np.uint32, np.uint16, np.uint8)
}  # fmt: skip
RECORD_TYPES = {"f": np.dtype(np.float64), "i": np.dtype(np.int64)}  # the types that fields of records may have
LONG_STRING = 4096  # characters from which a string becomes a tensor
LONG_LIST = 32  # entries from which a list becomes a tensor
LARGEST_TEXT = 1 << 26  # bytes of all fixed-width string arrays at most
PLACES = {"MT19937": ("pos", 624), "Philox": ("buffer_pos", 4)}  # the largest positions of generators in their buffers


# ---------------------------------------------------------------- to a document


def encode(value: Any) -> tuple[str, dict[str, np.ndarray]]:
    """Return the document and the tensors of a value.

    Parameters
    ----------
    value : object
        Plain values, text, lists, tuples, dicts, arrays, random generators and objects of registered classes.

    Returns
    -------
    document : str
        JSON.
    tensors : dict of str to ndarray
        The float64, int64 and uint8 arrays that the document names.

    Raises
    ------
    TypeError
        If a part of the value cannot be saved; the message says which.
    """
    writer = _Writer()
    try:
        return json.dumps(writer.put(value, ""), separators=(",", ":"), allow_nan=False), writer.tensors
    except RecursionError:
        raise TypeError("it holds itself, or is nested too deeply") from None


class _Writer:
    def __init__(self) -> None:
        self.tensors: dict[str, np.ndarray] = {}
        self.seen: dict[int, tuple[str, Any]] = {}  # arrays seen, kept alive so that their ids are not reused
        self.text = 0  # bytes of string arrays so far

    def put(self, value: Any, where: str) -> Any:
        kind = type(value)
        if value is None or kind in (bool, int) or (kind is str and len(value) <= LONG_STRING):
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
        if kind is np.ndarray or (kind is np.recarray and value.dtype.names):
            return self._array(value, where)
        entry = entry_of(kind)
        if entry is not None:
            return {f"${name_of(kind)}": self._fields(entry, value, where)}
        if NUMPY.get(kind.__name__) is kind:
            return {"$scalar": [kind.__name__, self.put(value.item(), where)]}
        if kind in (np.random.RandomState, np.random.Generator):
            return self._random(value, where)
        raise TypeError(f"{where or 'it'} is of type {kind.__name__}, which cannot be saved")

    def _fields(self, entry: Storable, value: Any, where: str) -> Any:
        if isinstance(value, enum.Enum):
            return value.name
        if dataclasses.is_dataclass(value):
            found = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        elif issubclass(entry.cls, tuple):
            found = value._asdict()
        else:
            found = value.__getstate__() or {}
        return {k: self.put(v, f"{where}.{k}" if where else k) for k, v in found.items() if k not in entry.omit}

    def _list(self, value: list[Any], where: str) -> Any:
        kinds = {type(v) for v in value} if len(value) > LONG_LIST else set()
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
        if len(value) <= LONG_LIST and all(type(k) is str and k[:1] != "$" for k in value):
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
        if value.dtype.names is not None:
            return self._record(value, where)
        shape, dtype = list(value.shape), value.dtype.newbyteorder("<").str
        if OTHER.fullmatch(dtype):
            plain = np.ascontiguousarray(value, value.dtype.newbyteorder("<")).reshape(-1)
            return {"$bytes": [self._tensor(plain.view(np.uint8)), dtype, shape]}
        if value.dtype.kind == "U" and self.text + value.nbytes <= LARGEST_TEXT:
            self.text += value.nbytes
            return {"$text": [self.put(value.reshape(-1).tolist(), where), value.dtype.itemsize // 4, shape]}
        if value.dtype.kind == "O":
            return {"$objects": [self.put(value.reshape(-1).tolist(), where), shape]}
        raise TypeError(f"{where} is an array of {value.dtype}, which cannot be saved")

    def _record(self, value: np.ndarray, where: str) -> Any:
        names = value.dtype.names or ()
        if not names or any(value.dtype[name] not in RECORD_TYPES.values() for name in names):
            raise TypeError(f"{where} is an array of {value.dtype}, which cannot be saved")
        columns = np.stack([np.asarray(value[name]).view(np.int64) for name in names], axis=-1)
        kinds = "".join(value.dtype[name].kind for name in names)
        how = [kinds, value.dtype.isalignedstruct, isinstance(value, np.recarray)]
        return {"$record": [self._tensor(columns), list(names), *how]}

    def _random(self, value: Any, where: str) -> Any:
        state = value.get_state(legacy=False) if isinstance(value, np.random.RandomState) else value.bit_generator.state
        if state["bit_generator"] not in BITS:
            raise TypeError(f"{where} draws from {state['bit_generator']}, which cannot be saved")
        return {"$random": [isinstance(value, np.random.Generator), self.put(state, where)]}


# ---------------------------------------------------------------- and back


def decode(document: str, tensors: dict[str, np.ndarray]) -> Any:
    """Return the value that `encode` wrote.

    Parameters
    ----------
    document : str
        JSON.
    tensors : dict of str to ndarray
        The arrays that the document names.

    Returns
    -------
    object
        The value.

    Raises
    ------
    ModelError
        If the document does not describe a value, or uses a class that is not registered.
    """
    try:
        return _Reader(tensors).get(json.loads(document))
    except ModelError:
        raise
    except KeyError as error:
        raise ModelError(f"invalid document: {error!s:.80} is missing") from None
    except RecursionError:
        raise ModelError("invalid document: it is nested too deeply") from None
    except (ValueError, TypeError, IndexError, AttributeError, OverflowError) as error:
        what = " ".join(str(error).split()) or type(error).__name__
        raise ModelError(f"invalid document: {what}") from None


class _Reader:
    """Reads the values of a document; its methods `tag_NAME` are those that ``{"$NAME": ...}`` can ask for."""

    def __init__(self, tensors: dict[str, np.ndarray]) -> None:
        self.tensors = tensors
        self.spread: set[str] = set()  # tensors that became lists or text: each does once, so memory is bounded
        self.text = 0  # bytes of string arrays so far

    def get(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.get(v) for v in value]
        if not isinstance(value, dict):
            want(type(value) is not float, "a float must be written in hex")
            return value
        if len(value) != 1 or not next(iter(value)).startswith("$"):
            return {k: self.get(v) for k, v in value.items()}
        ((tag, body),) = value.items()
        if ":" in tag:
            return self._object(find(tag[1:]), body)
        read: Any = getattr(self, f"tag_{tag[1:]}", None)
        want(read is not None, f"{tag!r:.40} is unknown")
        return read(body)

    def _tensor(self, name: Any) -> np.ndarray:
        want(isinstance(name, str) and name in self.tensors, f"tensor {name!r:.40} is missing")
        return self.tensors[name]

    def _once(self, name: Any) -> np.ndarray:
        """A tensor to be converted to Python objects; allowed once, because they need more memory than the file."""
        found = self._tensor(name)
        want(name not in self.spread, f"tensor {name!r:.40} is used twice")
        self.spread.add(name)
        return found

    def tag_float(self, body: str) -> float:
        return float.fromhex(body)

    def tag_scalar(self, body: list[Any]) -> Any:
        kind, item = body[0], self.get(body[1])
        want(type(item) in (bool, int, float, str), "a scalar must be a number, a boolean or a string")
        want(isinstance(kind, str) and kind in NUMPY, f"a scalar of type {kind!r:.40} is not supported")
        return NUMPY[kind](item)

    def tag_string(self, body: str) -> str:
        return self._once(body).tobytes().decode("utf-8", "surrogatepass")

    def tag_tuple(self, body: list[Any]) -> tuple[Any, ...]:
        return tuple(self.get(list(body)))

    def tag_array(self, body: str) -> np.ndarray:
        return self._tensor(body)

    def tag_texts(self, body: list[str]) -> list[str]:
        data, ends = self._once(body[0]).tobytes(), self._once(body[1])
        want(ends.dtype == np.int64 and ends.ndim == 1, "the ends of strings must be a vector of int64")
        want(bool((np.diff(ends, prepend=0) >= 0).all()), "the ends of strings must not decrease")
        want((int(ends[-1]) if ends.size else 0) == len(data), "the last string must end where the text does")
        spans = zip([0, *ends[:-1].tolist()], ends.tolist(), strict=False)
        if data.isascii():
            text = data.decode("ascii")
            return [text[a:b] for a, b in spans]
        return [data[a:b].decode("utf-8", "surrogatepass") for a, b in spans]

    def tag_list(self, body: str) -> list[Any]:
        return self._once(body).tolist()

    def tag_map(self, body: list[Any]) -> dict[Any, Any]:
        keys, values = self.get(body[0]), self.get(body[1])
        found = dict(zip(keys, values, strict=True))
        want(len(found) == len(keys), "a key occurs twice")
        return found

    def tag_bytes(self, body: list[Any]) -> np.ndarray:
        name, dtype, shape = body
        want(isinstance(dtype, str) and OTHER.fullmatch(dtype) is not None, f"dtype {dtype!r:.40} is not supported")
        raw = self._tensor(name)
        want(raw.dtype == np.uint8 and raw.ndim == 1, "the bytes of an array must be a vector of uint8")
        want(dtype[-2:] != "b1" or bool((raw <= 1).all()), "a boolean must be 0 or 1")
        return raw.view(dtype).reshape(_shape(shape))

    def tag_record(self, body: list[Any]) -> np.ndarray:
        values, names, kinds, aligned, attributes = self._tensor(body[0]), *body[1:]
        known = isinstance(names, list) and len(names) > 0 and all(type(name) is str and name for name in names)
        want(known and len(set(names)) == len(names), "the fields of a record must have different names")
        want(
            isinstance(kinds, str) and set(kinds) <= set(RECORD_TYPES) and len(kinds) == len(names),
            "the fields of a record must be numbers of 64 bits",
        )
        want(
            values.dtype == np.int64 and values.ndim > 0 and values.shape[-1] == len(names),
            f"a record of {len(names)} fields has an array of {values.dtype} of shape {values.shape}",
        )
        dtype = np.dtype([(name, RECORD_TYPES[k]) for name, k in zip(names, kinds, strict=True)], align=aligned is True)
        out: np.ndarray = values.view(dtype)[..., 0]
        return out.view(np.recarray) if attributes is True else out

    def tag_text(self, body: list[Any]) -> np.ndarray:
        items, width, shape = self.get(body[0]), body[1], _shape(body[2])
        want(isinstance(items, list) and type(width) is int and width >= 0, "an array of strings must be a list")
        self.text += width * 4 * len(items)
        want(self.text <= LARGEST_TEXT, f"arrays of strings must have at most {LARGEST_TEXT:,} bytes")
        want(
            all(type(v) is str and len(v) <= width for v in items),
            f"the entries of an array of strings must be strings of at most {width} characters",
        )
        return np.array(items, f"<U{width}").reshape(shape)

    def tag_objects(self, body: list[Any]) -> np.ndarray:
        items = self.get(body[0])
        out = np.empty(len(items), object)
        for k, item in enumerate(items):
            out[k] = item
        return out.reshape(_shape(body[1]))

    def tag_random(self, body: list[Any]) -> Any:
        modern, state = body[0], self.get(body[1])
        kind = state["bit_generator"]
        want(isinstance(kind, str) and kind in BITS, f"the random generator {kind!r:.40} is not supported")
        name, end = PLACES.get(kind, ("", 0))
        place = state["state"].get(name, state.get(name)) if name else 0  # numpy accepts any value, and reads there
        want(type(place) is int and 0 <= place <= end, f"`{name}` of {kind} must be a whole number from 0 to {end}")
        source = BITS[kind]()
        if modern:
            source.state = state
            return np.random.Generator(source)
        out = np.random.RandomState(source)
        out.set_state(state)
        return out

    def _object(self, entry: Storable, body: Any) -> Any:
        cls = entry.cls
        if issubclass(cls, enum.Enum):
            want(isinstance(body, str) and body in cls.__members__, f"{cls.__name__} has no member {body!r:.40}")
            return cls[body]
        want(isinstance(body, dict), f"the fields of {cls.__name__} are missing")
        fields = {k: self.get(v) for k, v in body.items()}
        if issubclass(cls, tuple):
            want(list(fields) == list(cls._fields), f"{cls.__name__} must have the fields {', '.join(cls._fields)}")
        for name in entry.omit:
            want(name not in fields, f"{cls.__name__} cannot have a field {name!r}")
        if entry.typed:
            check_types(cls, fields)
        for check in entry.checks:
            check(fields)
        if dataclasses.is_dataclass(cls) or issubclass(cls, tuple):
            return cls(**fields)
        return _filled(cls, fields)


def _filled(cls: Any, fields: dict[str, Any]) -> Any:
    """An object with these attributes; none may hide a method or a property."""
    for name in fields:
        taken = getattr(cls, name, None)
        want(
            name.isidentifier() and name[:2] != "__" and not callable(taken) and not isinstance(taken, property),
            f"{cls.__name__} cannot have a field {name!r:.40}",
        )
    out = object.__new__(cls)
    getattr(out, "__setstate__", out.__dict__.update)(fields)
    return out


def _shape(shape: Any) -> list[int]:
    want(isinstance(shape, list), "the shape is missing")
    want(all(type(n) is int and n >= 0 for n in shape), "the shape must be a list of non-negative integers")
    return list(shape)
