"""Checks of the fields of loaded objects: their annotated types, and the shapes that compiled loops rely on."""

from __future__ import annotations

import dataclasses
import inspect
import sys
import types
import typing
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Any

import numpy as np

from .registry import want

LARGEST = 1 << 53  # counts stay below it: as float64 they are exact
NUMBERS: dict[type, tuple[type, ...]] = {
    bool: (bool, np.bool_),
    int: (int, np.integer),
    float: (float, int, np.floating, np.integer),
    str: (str,),
}


def check_types(cls: Any, given: dict[str, Any]) -> None:
    """Raise an error if fields of a dataclass or a named tuple do not have their annotated types.

    Parameters
    ----------
    cls : type
        The class.
    given : dict
        Its fields.

    Raises
    ------
    ModelError
        If a value is of another type.

    Examples
    --------
    >>> @dataclasses.dataclass
    ... class Point:
    ...     x: float
    ...     notes: tuple[str, ...] = ()
    >>> check_types(Point, {"x": 1.5, "notes": ("a",)})
    >>> check_types(Point, {"x": "1.5"})
    Traceback (most recent call last):
        ...
    hindsight.errors.ModelError: invalid document: `Point.x` must be of type float
    """
    for name, hint in annotations_of(cls).items():
        if name in given and not conforms(given[name], hint):
            want(False, f"`{cls.__name__}.{name}` must be {in_words(hint):.60}")


def check_value(what: str, value: Any, hint: Any) -> None:
    """Raise an error if a value does not have a type; `what` names the value in the message."""
    want(conforms(value, hint), f"{what} must be {in_words(hint):.120}")


def in_words(hint: Any) -> str:
    """A type in the words of a message."""
    if typing.get_origin(hint) is typing.Annotated and isinstance(hint.__metadata__[-1], str):
        return str(hint.__metadata__[-1])
    if typing.is_typeddict(hint):
        return f"a mapping with the keys {', '.join(hint.__annotations__)}"
    return "of type " + (hint.__name__ if isinstance(hint, type) else str(hint).replace("typing.", ""))


@cache
def annotations_of(cls: Any) -> dict[str, Any]:
    """The annotated type of each field or item; Any for names that only type checkers can resolve."""
    found: dict[str, Any] = {}
    for kind in reversed(cls.__mro__):
        names = vars(sys.modules.get(kind.__module__, typing))
        for name, hint in inspect.get_annotations(kind).items():
            text = hint.__forward_arg__ if isinstance(hint, typing.ForwardRef) else hint
            try:
                found[name] = eval(text, dict(names)) if isinstance(text, str) else text  # our own source, not the file
            except (NameError, TypeError, AttributeError):
                found[name] = Any
    if issubclass(cls, tuple):
        return {name: found[name] for name in cls._fields if name in found}
    fields = {field.name for field in dataclasses.fields(cls)} if dataclasses.is_dataclass(cls) else set(found)
    return {name: hint for name, hint in found.items() if name in fields}


def conforms(value: Any, hint: Any) -> bool:
    """Whether a value has an annotated type, including numbers of Python and numpy and arrays of numbers."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return True
    if origin is typing.Annotated:
        return conforms(value, args[0]) and all(check(value) for check in args[1:] if callable(check))
    if origin is typing.Literal:
        return type(value) is str and value in args
    if typing.is_typeddict(hint):
        known = isinstance(value, dict) and hint.__required_keys__ <= set(value) <= set(hint.__annotations__)
        return known and all(
            conforms(value[name], each) for name, each in annotations_of(hint).items() if name in value
        )
    if origin in (types.UnionType, typing.Union):
        return any(conforms(value, each) for each in args)
    if hint is None or hint is type(None):
        return value is None
    if hint in NUMBERS:
        kinds = NUMBERS[hint]
        return isinstance(value, kinds) and (bool in kinds or not isinstance(value, (bool, np.bool_)))
    if hint is np.ndarray or origin is np.ndarray:
        plain = isinstance(value, np.ndarray) and value.dtype.kind != "O" and value.flags.c_contiguous
        return plain and (not args or value.dtype == typing.get_args(args[1])[0])
    if origin is tuple:
        if len(args) == 2 and args[1] is ...:
            return isinstance(value, tuple) and all(conforms(each, args[0]) for each in value)
        return isinstance(value, tuple) and len(value) == len(args) and all(map(conforms, value, args))
    if origin in (list, Sequence):
        known = isinstance(value, list if origin is list else (list, tuple))
        return known and all(conforms(each, args[0]) for each in value)
    if origin in (dict, Mapping):
        known = isinstance(value, dict) and all(conforms(each, args[0]) for each in value)
        return known and all(conforms(each, args[1]) for each in value.values())
    kind = origin or hint
    return not isinstance(kind, type) or isinstance(value, kind)


def is_vector(value: Any, size: int | None = None) -> bool:
    """Return whether a decoded value is a contiguous vector of float64 (of this size), as compiled loops read them."""
    return is_array(value, 1) and (size is None or value.size == size)


def is_array(value: Any, axes: int) -> bool:
    """Return whether a decoded value is a contiguous array of float64 with `axes` axes."""
    known = isinstance(value, np.ndarray) and value.dtype == np.float64
    return known and value.ndim == axes and value.flags.c_contiguous


def is_finite(value: Any) -> bool:
    """Return whether all numbers of an array are finite."""
    return bool(np.isfinite(value).all())


def is_count(value: Any) -> bool:
    """Return whether a decoded value is a whole number, at least 0 and small enough to be exact as a float."""
    return type(value) is int and 0 <= value < LARGEST


def is_number(value: Any) -> bool:
    """Return whether a decoded value is a finite float."""
    return isinstance(value, float) and -np.inf < value < np.inf


def check_record(name: str, record: Any, kind: np.dtype[Any], counts: tuple[str, ...] = (), size: int = 1) -> None:
    """Raise an error unless this is an array of `size` records of a type; fields in `counts` must be whole numbers.

    No field may be NaN, which sums of a run never are.
    """
    known = isinstance(record, np.recarray) and record.shape == (size,) and record.dtype.names == kind.names
    same = known and all(record.dtype[field] == kind[field] for field in kind.names or ())
    want(same, f"`{name}` must be a record of {', '.join(kind.names or ())}")
    for each in record:
        values = dict(zip(kind.names or (), each.item(), strict=True))
        for field, value in values.items():
            want(value == value, f"`{name}.{field}` is not a number")
        for field in counts:
            fits = 0 <= values[field] < LARGEST and float(values[field]).is_integer()
            want(fits, f"`{name}`: the number of {field} is {values[field]!r}")


def check_places(name: str, places: Any, count: int) -> None:
    """Raise an error unless this is a dict with the values 0, ..., count - 1, by which compiled loops find columns."""
    known = type(places) is dict and len(places) == count
    in_order = known and all(type(v) is int and v == k for k, v in enumerate(places.values()))
    want(in_order, f"`{name}` must number {count} names from 0 on")


Count = Annotated[int, is_count, "a count"]
Number = Annotated[float, is_number, "a finite number"]
Positive = Annotated[float, lambda value: is_number(value) and value > 0.0, "a number above 0"]
Vector = Annotated[np.ndarray, is_vector, "a vector of numbers"]
FiniteVector = Annotated[np.ndarray, is_vector, is_finite, "a vector of finite numbers"]
