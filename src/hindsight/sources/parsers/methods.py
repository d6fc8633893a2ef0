"""Methods of NamedTuples in compiled code."""

import inspect
from types import FunctionType

from numba.core.types import BaseNamedTuple
from numba.extending import overload_method

from ...kernels.compiler import INLINE

_known: set[tuple[str, ...]] = set()


def part(kind):
    """Let compiled code call the methods of a NamedTuple class: numba takes those of the tuple's own class."""
    for name, method in vars(kind).items():
        if isinstance(method, FunctionType) and not name.startswith("_"):
            arguments = tuple(inspect.signature(method).parameters)
            if (name, *arguments) not in _known:
                _known.add((name, *arguments))
                find = eval(f"lambda {', '.join(arguments)}: getattr(self.instance_class, {name!r}, None)")
                overload_method(BaseNamedTuple, name, jit_options=INLINE)(find)
    return kind
