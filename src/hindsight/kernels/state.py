"""The state of a geometry as a typed record: a NamedTuple of arrays whose annotations say how each field behaves.

::

    class AdaGradState(NamedTuple):
        weights: Annotated[np.ndarray, vector(odd=True)]
        squares: Annotated[np.ndarray, vector()]

Every entry of a field starts at `start` (for a matrix, only the diagonal), including the entries of new features. An
`odd` field changes its sign when labels are negated. An `averaging` field is empty unless iterates are averaged. Fields
are saved under their names. A `scratch` field holds nothing from one round to the next: it is written before it is
read, even when a row is only predicted. A scalar is an array of one number, so that compiled code can write to it.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple, get_type_hints

import numpy as np

from .compiler import method_names

LINE = 64  # bytes of a cache line


class Field(NamedTuple):
    """How a field of a state behaves; `axes` is 0 for a scalar, 1 for a vector, 2 for a matrix."""

    axes: int
    start: float = 0.0
    odd: bool = False
    averaging: bool = False
    scratch: bool = False


def scalar(start: float = 0.0, *, scratch: bool = False) -> Field:
    """One number."""
    return Field(0, start, scratch=scratch)


def vector(start: float = 0.0, *, odd: bool = False, averaging: bool = False, scratch: bool = False) -> Field:
    """One number per coordinate."""
    return Field(1, start, odd, averaging, scratch)


def matrix(diagonal: float = 0.0, *, scratch: bool = False) -> Field:
    """One number per pair of coordinates, starting at a multiple of the identity."""
    return Field(2, diagonal, scratch=scratch)


@cache
def fields_of(kind: Any) -> dict[str, Field]:
    """The fields of a class of states by name; raise a TypeError if an annotation does not describe one."""
    found = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        notes = [note for note in getattr(hint, "__metadata__", ()) if isinstance(note, Field)]
        if len(notes) != 1:
            raise TypeError(f"{kind.__name__}.{name} must be annotated with scalar(), vector() or matrix()")
        if name in method_names():
            raise TypeError(f"{kind.__name__}.{name} has the name of a method of parts: choose another")
        found[name] = notes[0]
    return found


def aligned(size: int) -> np.ndarray:
    """Zeros aligned to a cache line, so that no group of eight is spread over two lines."""
    room = np.zeros(size + LINE // 8)
    first = -room.ctypes.data % LINE // 8
    return room[first : first + size]


def empty(kind: Any, width: int, averaging: bool) -> Any:
    """A state of `width` coordinates at its start."""
    out = {}
    for name, field in fields_of(kind).items():
        size = 0 if field.averaging and not averaging else width**field.axes
        values = aligned(size)
        if field.axes == 2:
            values = values.reshape(width, width)
            np.fill_diagonal(values, field.start)
        elif field.start != 0.0:
            values[:] = field.start
        out[name] = values
    return kind(**out)


def snapshot(state: Any) -> tuple[np.ndarray, ...]:
    """A copy of every field, for `restore`."""
    return tuple(values.copy() for values in state)


def restore(state: Any, kept: tuple[np.ndarray, ...]) -> None:
    """Write a snapshot back."""
    for values, old in zip(state, kept, strict=True):
        values[...] = old


def copied(state: Any) -> Any:
    """A copy of the state with its own arrays."""
    return type(state)(*(values.copy() for values in state))


def reader(state: Any) -> Any:
    """The state for a reader that only predicts, in parallel with others: the same arrays, but its own scratch."""
    kind = type(state)
    fields = fields_of(kind).values()
    pairs = zip(state, fields, strict=True)
    return kind(*(v.copy() if field.scratch or not v.flags.writeable else v for v, field in pairs))


def resized(state: Any, old: int, new: int, intercept: bool, backwards: bool = False) -> Any:
    """The state with room for `new` features instead of `old`; the intercept's coordinate stays last.

    The first features are kept, which are the last entries if features are in reverse order.
    """
    kind, kept, tail = type(state), min(old, new), int(intercept)
    to, of = (new - kept, old - kept) if backwards else (0, 0)
    place = np.r_[to : to + kept, new : new + tail]  # where the coordinates that stay go, and where they were
    was = np.r_[of : of + kept, old : old + tail]
    fields = fields_of(kind).values()
    averaging = any(values.size for values, field in zip(state, fields, strict=True) if field.averaging)
    fresh = empty(kind, new + tail, averaging)
    for values, before, field in zip(fresh, state, fields, strict=True):
        if field.axes == 0:
            values[:] = before
        elif values.size:
            index, source = (np.ix_(place, place), np.ix_(was, was)) if field.axes == 2 else (place, was)
            values[index] = before[source]
    return fresh


def mirrored(state: Any) -> Any:
    """The state for negated labels: odd fields with the opposite sign."""
    kind = type(state)
    fields = fields_of(kind).values()
    return kind(*(-values if field.odd else values.copy() for values, field in zip(state, fields, strict=True)))


def fault(kind: Any, state: Any, width: int, averaging: bool) -> str | None:
    """A description of what is wrong with a state that was read from a file; None if it is valid."""
    if type(state) is not kind:
        return f"the state must be a {kind.__name__}"
    for name, field in fields_of(kind).items():
        values = getattr(state, name)
        if not isinstance(values, np.ndarray) or values.dtype != np.float64 or not values.flags.c_contiguous:
            return f"the state's `{name}` must be an array of float64"
        shape = (0,) if field.averaging and not averaging else (width,) * field.axes or (1,)
        if values.shape != shape:
            return f"the state's `{name}` has the shape {values.shape}, {shape} expected"
        if np.isnan(values).any():
            return f"the state's `{name}` must be numbers"
    return None
