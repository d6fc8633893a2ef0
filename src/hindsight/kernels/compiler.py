"""The one way code is compiled: cached across processes, and compiled again when any file of this package changes.

numba looks for edits in the file of the compiled function alone, yet a loop is made of parts that stand in other
files. What a function closes over belongs to the key of its cache entry, so every kernel is given one cell more: a
stamp of all files here.
"""

from __future__ import annotations

import types
import zlib
from functools import cache
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.types import BaseNamedTuple
from numba.extending import overload_method

# Without reference counts (nothing here allocates) and with every part inlined, a round costs a third of what it
# would otherwise; division by zero gives an infinity, which the loop looks for, rather than an exception.
BARE: dict[str, Any] = {"error_model": "numpy", "_nrt": False}
INLINE = {**BARE, "forceinline": True}


@cache
def stamp_of(folder: Path) -> int:
    """A number that changes when a Python file of a folder is edited, added or removed."""
    seen = [(file.name, file.stat().st_mtime_ns) for file in sorted(folder.glob("*.py"))]
    return zlib.crc32(repr(seen).encode())


def stamped(function: Any) -> Any:
    """The same function with a stamp of this folder and of its own among what it closes over."""
    code = function.__code__
    stamp = stamp_of(Path(__file__).parent), stamp_of(Path(code.co_filename).parent)
    out = types.FunctionType(
        code.replace(co_freevars=(*code.co_freevars, "stamp")),
        function.__globals__,
        function.__name__,
        function.__defaults__,
        (*(function.__closure__ or ()), types.CellType(stamp)),
    )
    out.__doc__, out.__module__, out.__qualname__ = function.__doc__, function.__module__, function.__qualname__
    return out


def compiled(**options: Any) -> Any:
    """A decorator that compiles with these options of numba, the stamp in the key of the cache."""
    return lambda function: njit(cache=True, **BARE | options)(stamped(function))


kernel = compiled(nogil=True)  # what Python calls
inlined = compiled(forceinline=True)  # what kernels call


# The methods of parts, and their arguments; numba takes the method of the part's own class.
METHODS = {
    # rules
    "slope": "self, z, y",
    "loss": "self, z, y",
    "mean": "self, z",
    "error": "self, z, y",
    "wrong": "self, z, y",
    "bend": "self, z",
    "implicit": "self, z, y, a",
    "moved": "self, w, d, x",
    # updates and steps
    "pull": "self, rule, geometry, v, s, rows, t, z, q, y, a",
    "rate": "self, t",
    # rows
    "ready": "self, t",
    "span": "self, t",
    "index": "self, k",
    "value": "self, t, k",
    "line": "self, t",
    "inner": "self, v, i, t",
    "add": "self, rule, v, i, t, d",
    "move": "self, rule, geometry, v, t, d, mass, shift",
    # geometries
    "dot": "self, v, s, rows, t",
    "tick": "self, s",
    "step": "self, rule, v, s, rows, t, d",
    "solve": "self, rule, v, s, rows, t, z, q, y, a",
    "share": "self, theta, shift",
    "height": "self, theta",
    "norm": "self, q, top",
    "reach": "self, v, s",
    "limit": "self",
}
for _name, _args in METHODS.items():
    overload_method(BaseNamedTuple, _name, jit_options=INLINE)(eval(f"lambda {_args}: self.instance_class.{_name}"))
