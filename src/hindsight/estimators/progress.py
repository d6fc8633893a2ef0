"""Progress bars on the error stream."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def progress_bar(
    show: bool, description: str, total: float | None, *, counted: bool = True
) -> Iterator[Callable[..., Any]]:
    """Show a progress bar on stderr while the block runs, and yield a function that updates it, if it is shown.

    Parameters
    ----------
    show : bool
        Whether to show a bar.
    description : str
        The initial description beside the bar.
    total : float or None
        The value of `completed` at the end, if known.
    counted : bool, default=True
        Whether to show "completed/total" beside the bar.

    Returns
    -------
    update : callable
        Takes the keywords of `rich.progress.Progress.update`: advance, completed, description.
    """
    if not show:
        yield lambda **changes: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    count = (MofNCompleteColumn(),) if counted else ()
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), *count, TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(description, total=total)
        yield lambda **changes: bar.update(task, **changes)
