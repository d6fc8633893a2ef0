"""Progress on standard error: of a run as a table, JSON lines or nothing, and of certificates; with bars."""

from __future__ import annotations

import json
import math
import signal
import sys
import time
from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING, Any

from ..certificates.wording import figure_of
from ..formatting import percent
from ..kernels.side_by_side import observers
from ..online.panel import shares_of
from ..signals import heeded
from .text import new_console, print_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..training.state import TrainingState
    from .learn_command import LearnCommand


LIVE, SLOW = 2.0, 30.0  # seconds after which there is a line again: of rows that come from a pipe, and of a file
LEAST = 0.5  # seconds that must have passed for a speed
GOAL = 0.01  # relative gap at which most searches end
SOON = 1.0  # seconds without a row learnt after which it is said why
COMPILING = "compiling the learners, once for this machine: later runs start at once"
SHOWS = ("auto", "table", "json", "none")


class Progress:
    """Prints a line after 100, 1,000, 10,000, ... rows, every few seconds, and at the end; settings come first.

    In JSON there is a line after 1, 2, 4, 8, ... rows. The speed is measured from the first line on, because there may
    be compilation before it. From the first row to the last, signals interrupt the command.

    Parameters
    ----------
    command : LearnCommand
        The command that learns.
    """

    def __init__(self, command: LearnCommand) -> None:
        self.command, self.show = command, command.results.progress
        self.state: TrainingState | None = None
        self.bar: Any = None
        self.slow = Timer(SOON, command.notify, [COMPILING])
        self.handlers: dict[signal.Signals, Any] = {}

    def _begin(self, state: TrainingState) -> None:
        """Learning starts, or starts again, from this state."""
        self.close()
        self.state, self.titles = state, self.command.session.titles
        self.preface: list[str] | None = [] if self.command.results.quiet else list(self.command.settings(state))
        self.shown = self.began = time.perf_counter()
        self.first: tuple[int, float] | None = None  # rows and time at which it was called first
        self.before, self.last, self.weight = [0.0] * len(self.titles), state.rows_done, 0.0
        if state.rows_done:
            self.before, self.weight = state.compared_losses(), state.weight
        self.factor, self.next = (2, 1) if self.show == "json" else (10, 100)
        self._pass(state.rows_done)
        if self.show == "auto" and sys.stderr.isatty():
            self._bar()
        self.slow = Timer(SOON, self.command.notify, [COMPILING])
        self.slow.daemon = True
        if sys.stderr.isatty() and state.plan.reread:  # otherwise the rows may be long in coming
            self.slow.start()
        self.handlers = {number: signal.signal(number, self.command.interrupt) for number in heeded()}
        observers.append(self._compiled)

    def _compiled(self, done: int, of: int) -> None:
        """Show beside the bar how many of the loops are compiled."""
        self.command.compiled = True
        if self.bar is not None:
            self.slow.cancel()
            self.bar.update(self.task, description=f"{COMPILING} ({done} of {of} loops)" if done < of else "")

    def _pass(self, rows: int) -> None:
        while self.next <= rows:
            self.next *= self.factor

    def _bar(self) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

        size = BarColumn(), TextColumn("{task.percentage:>3.0f}%"), TransferSpeedColumn(), TimeRemainingColumn()
        columns = *size, TextColumn("{task.description}")
        self.bar = Progress(*columns, console=new_console(error=True), transient=True)
        self.task = self.bar.add_task("", total=None)
        self.bar.start()

    def next_stop(self, rows_done: int) -> int | None:
        """The number of rows at which the next line is due; None if no lines are printed."""
        return None if self.show == "none" else self.next

    def advance(self, state: TrainingState) -> None:
        """Take note that rows were learnt, or that learning starts."""
        if state is not self.state:
            self._begin(state)
            return
        self.slow.cancel()
        if self.preface is not None:
            self._head(state, self.preface)
            self.preface = None
        if self.bar is not None:
            size = state.source.size if state.source is not None else None
            total = None if size is None else size * state.plan.passes
            self.bar.update(self.task, total=total, completed=state.bytes_read + state.passes_done * (size or 0))
        now, seconds = time.perf_counter(), SLOW if state.plan.reread else LIVE
        if self.first is None and state.rows_done > self.last:
            self.first = state.rows_done, now
        waited = now - self.shown > seconds and state.rows_done > self.last
        if self.show != "none" and (state.rows_done == self.next or waited):
            self._line(state)

    def finish(self, state: TrainingState) -> None:
        """All rows were learnt, or the run was interrupted."""
        if self.show != "none" and state.rows_done > self.last:
            self._line(state)
        self.close()

    def close(self) -> None:
        """Remove the bar and restore the signal handlers."""
        self.slow.cancel()
        if self._compiled in observers:
            observers.remove(self._compiled)
        if self.bar is not None:
            self.bar.stop()
            self.bar = None
        while self.handlers:
            number, handler = self.handlers.popitem()
            signal.signal(number, handler)

    def _print(self, line: str) -> None:
        if self.bar is not None:
            print_lines([line], console=self.bar.console)
        else:
            print(line, file=sys.stderr, flush=True)

    def _head(self, state: TrainingState, preface: list[str]) -> None:
        if self.show not in ("auto", "table"):
            return
        for line in preface:
            self._print(line)
        labels, logs = state.labels is not None, state.in_logs
        unit = "log loss" if logs else "accuracy" if labels else "RMSE"
        if len(self.titles) > 1:
            for k, title in enumerate(self.titles):
                self._print(f"  [{k + 1}] {title}")
            each = "".join(f" {f'[{k + 1}]':>10}" for k in range(len(self.titles)))
            self._print(f"{'rows':>12}{each} {'constant':>10} {'rows/s':>11}  ({unit})")
            return
        accuracy = f" {'accuracy':>10}" if logs else ""
        self._print(f"{'rows':>12} {unit:>10} {'since last':>10} {'constant':>10}{accuracy} {'rows/s':>11}")

    def _line(self, state: TrainingState) -> None:
        done, losses = state.rows_done, state.compared_losses()
        weight, now = state.weight, time.perf_counter()
        since = [(now - was) / ((weight - self.weight) or 1.0) for now, was in zip(losses, self.before, strict=True)]
        means = [loss / weight for loss in losses]
        constant = state.mean_of_constant()
        if self.show == "json":
            speed = done / (now - self.began)
            record: dict[str, Any] = {"rows": done, "read": state.bytes_read, "rows_per_second": round(speed)}
            record |= {"of": state.constant_quantity}
            record |= {"mean_loss": means, "since_last": since, "best_constant": constant}
            shares = shares_of(state.runs[0])
            record |= ({"mistakes": state.mistakes} if state.labels else {}) | ({"shares": shares} if shares else {})
            self._print(json.dumps(record))
        else:
            figures = [*means, since[0], constant] if len(means) == 1 else [*means, constant]
            cells = [figure_of(state.constant_quantity, v) for v in figures]
            if state.in_logs and len(means) == 1:
                rows = state.runs[0][0].facts.rounds or 1
                cells.append(percent(1.0 - state.mistakes[0] / rows))
            line = f"{done:>12,}" + "".join(f" {cell:>10}" for cell in cells) + f" {self._speed(done, now):>11}"
            self._print(line.rstrip())
        self.before, self.last, self.weight, self.shown = losses, done, weight, now
        self._pass(done)

    def _speed(self, done: int, now: float) -> str:
        """Rows per second since the first rows were learnt; empty if the time is too short to tell."""
        rows, began = self.first or (done, now)
        return f"{(done - rows) / (now - began):,.0f}" if now - began > LEAST else ""


# ---------------------------------------------------------------- certificates


@contextmanager
def search_bar(wanted: bool = True) -> Iterator[Callable[[str, float], None] | None]:
    """A function that shows progress on standard error; None if that is not a terminal.

    Parameters
    ----------
    wanted : bool, default True
        Whether to show anything.
    """
    if not (wanted and sys.stderr.isatty()):
        yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[gap]}"), TimeElapsedColumn())
    bar = Progress(*columns, console=new_console(error=True), transient=True)
    task: Any = bar.add_task("certifying", total=1.0, gap="")

    def notify(what: str, gap: float) -> None:
        bar.update(task, description=f"seeking {what}", completed=done_of(gap), gap=gap_text(gap))

    with bar:
        yield notify


def done_of(gap: float) -> float:
    """The progress of a search, from 0 to 1, by the number of digits of its gap."""
    if not gap > GOAL:
        return 1.0
    return 0.0 if gap >= 1.0 else math.log(gap) / math.log(GOAL)


def gap_text(gap: float) -> str:
    """The gap in words."""
    return f"gap {100.0 * gap:.2g} %" if math.isfinite(gap) and gap < 10.0 else "no gap known yet"
