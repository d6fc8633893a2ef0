"""The one way code is compiled: cached across processes, and compiled again when any file of its folder changes.

numba looks for edits in the file of the compiled function alone, yet a loop is made of parts that stand in other
files. numba names the files of its cache after the function's qualified name, so every function is given one with a
stamp of all files beside it: an edit, a new part or one renamed starts a new cache.
"""

from __future__ import annotations

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
    """The function, with a stamp of this folder and of its own in its qualified name."""
    folders = (Path(__file__).parent, Path(function.__code__.co_filename).parent)
    function.__qualname__ += "-" + "".join(f"{stamp_of(folder):08x}" for folder in dict.fromkeys(folders))
    return function


def compiled(**options: Any) -> Any:
    """A decorator that compiles with these options of numba, the stamp in the names of its cache."""
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


def overload_methods(methods: dict[str, str]) -> None:
    """Let kernels call these methods of parts, given as names with their arguments."""
    for name, args in methods.items():
        overload_method(BaseNamedTuple, name, jit_options=INLINE)(eval(f"lambda {args}: self.instance_class.{name}"))


overload_methods(METHODS)
