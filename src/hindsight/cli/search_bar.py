"""A bar on the terminal while certificates are computed: what is sought, how near it is, and for how long."""

from __future__ import annotations

import math
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

GOAL = 0.01  # relative gap at which most searches end


@contextmanager
def search_bar(wanted: bool = True) -> Iterator[Callable[[str, float], None] | None]:
    """A function that shows progress on standard error; None where that is no terminal.

    Parameters
    ----------
    wanted : bool, default True
        Whether to show anything.
    """
    if not (wanted and sys.stderr.isatty()):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[gap]}"), TimeElapsedColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task: Any = bar.add_task("certifying", total=1.0, gap="")

    def notify(what: str, gap: float) -> None:
        bar.update(task, description=f"seeking {what}", completed=done_of(gap), gap=gap_text(gap))

    with bar:
        yield notify


def done_of(gap: float) -> float:
    """How far a search is, from 0 to 1: by the digits of its gap."""
    if not gap > GOAL:
        return 1.0
    return 0.0 if gap >= 1.0 else math.log(gap) / math.log(GOAL)


def gap_text(gap: float) -> str:
    """The gap in words."""
    return f"gap {100.0 * gap:.2g} %" if math.isfinite(gap) and gap < 10.0 else "no gap known yet"
