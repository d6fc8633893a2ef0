"""Progress of a run on standard error: a table, JSON lines, or nothing; on a terminal also a bar."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any

from .text import print_lines

if TYPE_CHECKING:
    from ..training.state import TrainingState


def shares_of(runs: list[Any]) -> dict[str, float]:
    """The weight of each member of a panel; empty where the runs are of no panel."""
    from ..online import panel

    return panel.shares_of(runs)


def leader(state: TrainingState) -> str:
    """The member of a panel with the largest weight, and that."""
    shares = shares_of(state.runs[0])
    if not shares:
        return ""
    name = max(shares, key=lambda name: shares[name])
    return f"  {name} {100 * shares[name]:.0f} %"


LIVE = 2.0  # seconds after which rows that come from a pipe are shown
SHOWS = ("auto", "table", "json", "none")


class Progress:
    """A line after 1, 2, 4, 8, ... rows and at the end, of a pipe also every few seconds; first comes `preface`."""

    def __init__(self, show: str, state: TrainingState, titles: list[str], preface: list[str]) -> None:
        self.show = "table" if show == "auto" else show
        self.titles, self.began = titles, time.perf_counter()
        self.shown = self.began
        self.before, self.last, self.weight = [0.0] * len(titles), state.rows_done, 0.0
        if state.rows_done:
            self.before, self.weight = state.compared_losses(), state.weight
        self.next = 1 << state.rows_done.bit_length() if state.rows_done else 1
        self.bar: Any = None
        self.task: Any = None
        if show == "auto" and sys.stderr.isatty():
            self._bar()
        self.preface: list[str] | None = preface

    def _bar(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

        size = BarColumn(), TextColumn("{task.percentage:>3.0f}%"), TransferSpeedColumn(), TimeRemainingColumn()
        columns = *size, TextColumn("{task.description}")
        self.bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self.task = self.bar.add_task("", total=None)
        self.bar.start()

    def next_stop(self, rows_done: int) -> int | None:
        """The number of rows at which the next line is due; None where there are no lines."""
        return None if self.show == "none" else self.next

    def advance(self, state: TrainingState) -> None:
        """Some rows were learnt."""
        if self.preface is not None:
            self._head(state, self.preface)
            self.preface = None
        if self.bar is not None:
            size = state.source.size if state.source is not None else None
            total = None if size is None else size * state.plan.passes
            self.bar.update(self.task, total=total, completed=state.bytes_read + state.passes_done * (size or 0))
        waited = not state.plan.reread and time.perf_counter() - self.shown > LIVE and state.rows_done > self.last
        if self.show != "none" and (state.rows_done == self.next or waited):
            self._line(state)

    def finish(self, state: TrainingState) -> None:
        """All rows were learnt, or the run was interrupted."""
        if self.show != "none" and state.rows_done > self.last:
            self._line(state)
        self.close()

    def close(self) -> None:
        """Remove the bar."""
        if self.bar is not None:
            self.bar.stop()
            self.bar = None

    def _print(self, line: str) -> None:
        if self.bar is not None:
            print_lines(self.bar.console, [line])
        else:
            print(line, file=sys.stderr, flush=True)

    def _head(self, state: TrainingState, preface: list[str]) -> None:
        for line in preface:
            if self.show == "table":
                self._print(line)
        if self.show != "table":
            return
        mistakes = f" {'mistakes':>10}" if state.labels else ""
        own = state.in_own_units
        mean = "mean loss" if own else "error rate" if state.labels else "sq. error"
        if len(self.titles) == 1:
            leader = "  leading member" if shares_of(state.runs[0]) else ""
            self._print(f"{'rows':>12} {mean:>12} {'since last':>12}{mistakes} {'constant':>12} {'rows/s':>10}{leader}")
        else:
            for k, title in enumerate(self.titles):
                self._print(f"  [{k + 1}] {title}")
            each = "".join(f" {f'[{k + 1}]':>12}" for k in range(len(self.titles)))
            self._print(f"{'rows':>12}{each} {'constant':>12} {'rows/s':>10}{'' if own else f'  ({mean})'}")

    def _line(self, state: TrainingState) -> None:
        done, losses = state.rows_done, state.compared_losses()
        weight = state.weight
        since = [(now - was) / ((weight - self.weight) or 1.0) for now, was in zip(losses, self.before, strict=True)]
        means = [loss / weight for loss in losses]
        constant, speed = state.mean_of_constant(), done / (time.perf_counter() - self.began)
        if self.show == "json":
            record: dict[str, Any] = {"rows": done, "read": state.bytes_read, "rows_per_second": round(speed)}
            record |= {"of": state.constant_quantity}
            record |= {"mean_loss": means, "since_last": since, "best_constant": constant}
            shares = shares_of(state.runs[0])
            record |= ({"mistakes": state.mistakes} if state.labels else {}) | ({"shares": shares} if shares else {})
            self._print(json.dumps(record))
        elif len(means) == 1:
            wrong = f" {state.mistakes[0]:>10,}" if state.labels else ""
            line = f"{done:>12,} {means[0]:>12.6g} {since[0]:>12.6g}{wrong} {constant:>12.6g} {speed:>10,.0f}"
            self._print(line + leader(state))
        else:
            self._print(f"{done:>12,}" + "".join(f" {v:>12.6g}" for v in means) + f" {constant:>12.6g} {speed:>10,.0f}")
        self.before, self.last, self.weight, self.shown = losses, done, weight, time.perf_counter()
        while self.next <= done:
            self.next *= 2
