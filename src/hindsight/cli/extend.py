"""`hindsight --extend FILE_OR_MODULE`: user code that registers losses, updates, geometries and learners."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path

VARIABLE = "HINDSIGHT_EXTEND"


def load_extensions(given: list[str]) -> None:
    """Import the extensions named by the environment variable, then the given ones."""
    known = [where for where in os.environ.get(VARIABLE, "").split(os.pathsep) if where]
    for where in dict.fromkeys([*known, *given]):
        try:
            load_extension(where)
        except Exception as error:  # whatever the user's code raises
            message = " ".join(f"{error}".split())
            kind = "" if type(error) is ValueError else f"{type(error).__name__}: "
            raise ValueError(f"--extend {where}: cannot be imported: {kind}{message}") from None


def load_extension(where: str) -> None:
    """Import a Python file as a module named after its stem, or a module by its name; once per process."""
    path = Path(where)
    if not (path.suffix == ".py" or os.sep in where or path.exists()):
        importlib.import_module(where)
        return
    if not path.is_file():
        raise ValueError("Is a directory" if path.is_dir() else "No such file or directory")
    name, path = path.stem, path.resolve()
    if name in sys.modules:
        known = getattr(sys.modules[name], "__file__", None)
        if known is not None and Path(known).resolve() == path:
            return
    if name in sys.modules or name in sys.stdlib_module_names:
        raise ValueError(f"there is another module {name!r}: rename the file")
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ValueError("not a Python file: its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
