"""Compilation of kernels, cached across processes, and repeated when any file of the folder changes.

numba checks only the file of the compiled function for edits, but a loop consists of parts from several files. numba
names its cache files after the function's qualified name, so every function gets a qualified name with a stamp of all
files in its folder, and of the options that numba does not check. An edit, a new part or a renamed one thus starts a
new cache. If numba does not accept the name, or the cache folder is not writable, code is compiled in every process.
"""

from __future__ import annotations

import inspect
import types
import warnings
import zlib
from functools import cache, wraps
from pathlib import Path
from typing import Any

from numba import config, njit, typeof
from numba.core.types import BaseNamedTuple
from numba.extending import overload, overload_method

from . import private
from .by_reference import by_reference

# Without reference counts (nothing here allocates) and with every part inlined, a round costs a third of what it
# would otherwise; division by zero gives an infinity, which the loop looks for, rather than an exception.
BARE: dict[str, Any] = {"error_model": "numpy", "no_cfunc_wrapper": True} | (
    {"_nrt": False} if private.numba_known() else {}
)
INLINE = BARE | ({"forceinline": True} if private.numba_known() else {})


@cache
def stamp_of(folder: Path) -> int:
    """A number that changes when a Python file of a folder is edited, added or removed."""
    seen = [(file.name, zlib.crc32(file.read_bytes())) for file in sorted(folder.glob("*.py"))]
    return zlib.crc32(repr((seen, INLINE, config.BOUNDSCHECK)).encode())


def stamp(function: Any) -> str:
    """The stamp in the name of a function's cache, from this folder and the function's folder."""
    folders = (Path(__file__).parent, Path(function.__code__.co_filename).parent)
    return "".join(f"{stamp_of(folder):08x}" for folder in dict.fromkeys(folders))


@cache
def warn_uncached() -> None:
    """Warn once that nothing is cached."""
    warnings.warn(
        "no folder can be written for compiled code: it is compiled anew at every start, which takes seconds; "
        "NUMBA_CACHE_DIR may name a folder for it",
        RuntimeWarning,
        stacklevel=3,
    )


def cached(function: Any, options: dict[str, Any]) -> Any:
    """Compile a function that Python calls, cached across processes if that is possible and safe."""
    mark, name = stamp(function), function.__qualname__
    function.__qualname__ = f"{name}-{mark}"
    try:
        found = njit(cache=True, **options)(function)
    except RuntimeError as error:
        if "cannot cache" not in str(error):
            raise
        warn_uncached()
    else:
        implementation = getattr(getattr(found, "_cache", None), "_impl", None)
        if mark in getattr(implementation, "filename_base", ""):
            return found
    function.__qualname__ = name
    return njit(**options)(function)


def compiled(**options: Any) -> Any:
    """A decorator that compiles functions that Python calls, with these numba options, cached across processes."""
    return lambda function: cached(function, BARE | options)


def entry_point(function: Any, args: tuple[Any, ...]) -> Any:
    """A kernel compiled for arguments of these types, bypassing numba's dispatcher if the numba version is known.

    The dispatcher costs several times more than a small row.
    """
    kinds = tuple(typeof(a) for a in args)
    function.compile(kinds)
    return function.overloads[kinds].entry_point if private.numba_known() else function


# A kernel is what Python calls. What only kernels call is compiled with them and has no cache of its own: its entries
# would name the types of parts, also of those that other processes do not know.
kernel = compiled(nogil=True)
inlined = njit(inline="always", **BARE)  # written into its callers before they are compiled


def helper(function: Any) -> Any:
    """Compile a function that only compiled code calls: without a Python wrapper that takes half the time.

    Python can still call it; the wrapper is then compiled at the first call.
    """
    if config.DISABLE_JIT:
        return function
    way_in = njit(**BARE)(function)

    @wraps(function)
    def from_python(*args: Any) -> Any:
        return way_in(*args)

    overload(from_python, jit_options=BARE, strict=False)(lambda *args: function)
    return from_python


@cache
def _uncached(function: Any) -> Any:
    return njit(nogil=True, **BARE)(getattr(function, "py_func", function))


def for_parts(function: Any, *parts: Any) -> Any:
    """The kernel to use with these parts; with a part from outside the package it is compiled in every process.

    A cache entry refers to the classes it was compiled for, and a process that cannot import one of them could not
    read any entry.
    """
    ours = all(type(part).__module__.partition(".")[0] == __package__.partition(".")[0] for part in parts)
    return function if ours else _uncached(function)


# Methods that only Python calls. To compiled code the name of a method hides a field of the same name, of any part.
PYTHON_ONLY = frozenset(("weights", "place", "place_dual", "check_start", "iterate_sum", "dual", "of_rounds"))
_known: set[tuple[str, ...]] = set()
_fields: set[str] = set()


def method_names() -> set[str]:
    """The names of all methods that compiled code can call."""
    return {name for name, *_ in _known}


def own_method(kind: Any, name: str, arguments: tuple[str, ...]) -> Any:
    """The method of a class, if it has one of that name that takes these arguments."""
    method = getattr(kind, name, None)
    fits = isinstance(method, types.FunctionType) and tuple(inspect.signature(method).parameters) == arguments
    return method if fits else None


def part(kind: Any) -> Any:
    """Let compiled code call the methods of a part, a NamedTuple class; numba uses the methods of the part's class.

    In every NamedTuple, numba looks for a method before it looks for a field, so no name can be both.
    """
    methods = {
        name: method
        for name, method in vars(kind).items()
        if isinstance(method, types.FunctionType) and not name.startswith("_") and name not in PYTHON_ONLY
    }
    fields = _fields.union(getattr(kind, "_fields", ()), getattr(getattr(kind, "State", None), "_fields", ()))
    both = fields & ({name for name, *_ in _known} | set(methods))
    if both:
        raise TypeError(f"{kind.__name__}: {min(both)} is a method of one part and a field of another: rename one")
    _fields.update(fields)
    if hasattr(kind, "State"):
        by_reference(kind.State)
    for name, method in methods.items():
        arguments = tuple(inspect.signature(method).parameters)
        if (name, *arguments) not in _known:
            _known.add((name, *arguments))
            words = f"lambda {', '.join(arguments)}: own_method(self.instance_class, {name!r}, {arguments!r})"
            find = eval(words, {"own_method": own_method})
            overload_method(BaseNamedTuple, name, jit_options=INLINE)(find)
    return kind
