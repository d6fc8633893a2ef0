"""Run the code on the pages of the documentation, and write what it prints below it.

A page may hold two kinds of blocks that run, from top to bottom, in one folder of their own:

- ``python``: the blocks of a page share their names;
- ``console``: each line that starts with "$ " is a command of a shell, of which ``hindsight`` is this package's.

So nothing that a command prints is written by hand. Pictures that a block saves are those that the page shows.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)


def has_code(page: Path) -> bool:
    """Whether there is anything on a page to run."""
    return BLOCK.search(page.read_text(encoding="utf-8")) is not None


def with_outputs(page: Path, folder: Path) -> str:
    """The text of a page, each of its blocks followed by what it printed; they run in a folder."""
    module = types.ModuleType("page")
    names = vars(module)

    def run(match: re.Match[str]) -> str:
        kind, code = match.groups()
        try:
            if kind == "console":
                return f"```console\n{''.join(shell(line, folder) for line in code.splitlines())}```\n"
            return match.group() + fenced(python(code, names))
        except Exception as error:
            line = match.string.count("\n", 0, match.start()) + 1
            error.add_note(f"in the block of {page.relative_to(ROOT)}, line {line}")
            raise

    with inside(folder), as_module(module):
        return BLOCK.sub(run, page.read_text(encoding="utf-8"))


def python(code: str, names: dict[str, Any]) -> str:
    """What a block of Python prints, warnings included."""
    with contextlib.redirect_stdout(io.StringIO()) as out, warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, category, *_: print(f"{category.__name__}: {message}")
        exec(compile(code, "<page>", "exec"), names)
    return out.getvalue()


def shell(line: str, folder: Path) -> str:
    """A line of a console and what it prints; a line that is no command is left as it is."""
    if not line.startswith("$ "):
        return f"{line}\n"
    ours = f'hindsight() {{ {shlex.quote(sys.executable)} -m hindsight "$@"; }}; set -o pipefail; {line[2:]}'
    environment = os.environ | {"COLUMNS": "110", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        ["bash", "-c", ours], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=folder, env=environment,
        encoding="utf-8",
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{line} ended with status {done.returncode}:\n{done.stdout}")
    return f"{line}\n{done.stdout.strip(chr(10))}\n" if done.stdout.strip() else f"{line}\n"


def fenced(text: str) -> str:
    """A block of text, or nothing."""
    return f"\n```text\n{text.rstrip()}\n```\n" if text.strip() else ""


@contextlib.contextmanager
def as_module(module: types.ModuleType) -> Iterator[None]:
    """Let classes of a page be found in it, as those of a file would be."""
    sys.modules[module.__name__] = module
    try:
        yield
    finally:
        del sys.modules[module.__name__]


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Be in a folder for a while; the package is found wherever that is."""
    before, path = Path.cwd(), os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(
        os.path.abspath(entry) for entry in (path or "").split(os.pathsep) if entry
    )
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
        if path is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = path
