"""How a run is going, on standard error: a table whose rows double, JSON lines, or nothing; a bar on a terminal."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..training.session import Course

SHOWS = ("auto", "table", "json", "none")


class Progress:
    """Rows of the table at 1, 2, 4, 8, ... rows learnt and at the end; `preface` stands before the first."""

    def __init__(self, show: str, course: Course, titles: list[str], preface: list[str]) -> None:
        self.show = "table" if show == "auto" else show
        self.titles, self.began = titles, time.perf_counter()
        self.before, self.last, self.weight = [0.0] * len(titles), course.done, 0.0
        if course.done:
            self.before, self.weight = course.losses(), course.weight
        self.next = 1 << course.done.bit_length() if course.done else 1
        self.bar: Any = None
        self.task: Any = None
        if show == "auto" and sys.stderr.isatty():
            self._bar()
        self.preface: list[str] | None = preface

    def _bar(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

        columns = (BarColumn(), TextColumn("{task.percentage:>3.0f}%"), TransferSpeedColumn(), TimeRemainingColumn())
        self.bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self.task = self.bar.add_task("", total=None)
        self.bar.start()

    def mark(self, done: int) -> int | None:
        """The number of rows at which a line is due; None where there are no lines."""
        return None if self.show == "none" else self.next

    def step(self, course: Course) -> None:
        """Some rows were learnt."""
        if self.preface is not None:
            self._head(course, self.preface)
            self.preface = None
        if self.bar is not None:
            size = course.source.size if course.source is not None else None
            total = None if size is None else size * course.plan.passes
            self.bar.update(self.task, total=total, completed=course.read + course.turn * (size or 0))
        if self.show != "none" and course.done == self.next:
            self._line(course)

    def end(self, course: Course) -> None:
        """All rows were learnt, or the run was interrupted."""
        if self.show != "none" and course.done > self.last:
            self._line(course)
        self.close()

    def close(self) -> None:
        """Take the bar away."""
        if self.bar is not None:
            self.bar.stop()
            self.bar = None

    def _print(self, line: str) -> None:
        if self.bar is not None:
            self.bar.console.print(line, highlight=False, markup=False, soft_wrap=True)
        else:
            print(line, file=sys.stderr, flush=True)

    def _head(self, course: Course, preface: list[str]) -> None:
        for line in preface:
            if self.show == "table":
                self._print(line)
        if self.show != "table":
            return
        mistakes = f" {'mistakes':>10}" if course.labels else ""
        if len(self.titles) == 1:
            self._print(f"{'rows':>12} {'mean loss':>12} {'since last':>12}{mistakes} {'constant':>12} {'rows/s':>10}")
        else:
            for k, title in enumerate(self.titles):
                self._print(f"  [{k + 1}] {title}")
            each = "".join(f" {f'[{k + 1}]':>12}" for k in range(len(self.titles)))
            self._print(f"{'rows':>12}{each} {'constant':>12} {'rows/s':>10}")

    def _line(self, course: Course) -> None:
        done, losses = course.done, course.losses()
        weight = course.weight
        since = [(now - was) / ((weight - self.weight) or 1.0) for now, was in zip(losses, self.before, strict=True)]
        means = [loss / weight for loss in losses]
        constant, speed = course.best_constant() / weight, done / (time.perf_counter() - self.began)
        if self.show == "json":
            line: dict[str, Any] = {"rows": done, "read": course.read, "rows_per_second": round(speed)}
            line |= {"mean_loss": means, "since_last": since, "best_constant": constant}
            self._print(json.dumps(line | ({"mistakes": course.wrong} if course.labels else {})))
        elif len(means) == 1:
            wrong = f" {course.wrong[0]:>10,}" if course.labels else ""
            self._print(f"{done:>12,} {means[0]:>12.6g} {since[0]:>12.6g}{wrong} {constant:>12.6g} {speed:>10,.0f}")
        else:
            self._print(f"{done:>12,}" + "".join(f" {v:>12.6g}" for v in means) + f" {constant:>12.6g} {speed:>10,.0f}")
        self.before, self.last, self.weight, self.next = losses, done, weight, 2 * self.next
