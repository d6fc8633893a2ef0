"""Whether private parts of numba and Python may be used; docs/private_parts.md lists them and their plain alternatives.

The alternatives are used automatically if a version is unknown, and always with HINDSIGHT_PLAIN=1 in the environment.
"""

import os
import re
import sys
import sysconfig

import numba

PLAIN = os.environ.get("HINDSIGHT_PLAIN", "0") not in ("", "0")
FIRST, LAST = (0, 61), (0, 68)  # the versions of numba whose private parts are known


def version(text: str) -> tuple[int, int]:
    """The first two numbers of a version; (0, 0), which is never a known version, if it has none."""
    found = re.match(r"(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def numba_known(text: str = numba.__version__) -> bool:
    """Whether the private parts of this numba are known."""
    return not PLAIN and FIRST <= version(text) <= LAST


def dicts_readable(name: str = sys.implementation.name, free_threaded: object = None) -> bool:
    """Whether compiled code may read dicts: in CPython, whose ids are addresses, and under the interpreter's lock.

    In a free-threaded build another thread may change a dict while it is read.
    """
    free = sysconfig.get_config_var("Py_GIL_DISABLED") if free_threaded is None else free_threaded
    return not PLAIN and name == "cpython" and not free
