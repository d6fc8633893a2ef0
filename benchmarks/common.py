"""What the benchmarks share: one thread, shuffled repetitions, memory that is kept, and one table of ratios.

Import it before numpy: it starts a benchmark anew where the environment is not yet as it must be.
"""

from __future__ import annotations

import gc
import os
import platform
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

THREADS = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
# Let malloc keep what it frees. Otherwise every call pays for fresh pages, at a price set by what ran before it.
MALLOC = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 36), "MALLOC_TOP_PAD_": str(1 << 28)}

if Path(sys.argv[0]).resolve().parent == Path(__file__).resolve().parent and not MALLOC.keys() <= os.environ.keys():
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, **THREADS, **MALLOC})


class Seconds(float):
    """A time that a piece of work took itself, instead of the time its call took."""


def interleave(work: dict[str, Callable[[], Any]], repetitions: int, *, warm: bool = True) -> dict[str, list[float]]:
    """Seconds of each piece of work. Every repetition does each once, in a new order: none always follows another."""
    if warm:
        for do in work.values():
            do()
    times: dict[str, list[float]] = {name: [] for name in work}
    shuffle = random.Random(0)
    gc.disable()  # rows kept as dicts would be visited inside whichever call happens to allocate
    for _ in range(repetitions):
        for name in shuffle.sample(list(work), len(work)):
            gc.collect()
            began = time.perf_counter()
            took = work[name]()
            wall = time.perf_counter() - began
            times[name].append(float(took) if isinstance(took, Seconds) else wall)
    gc.enable()
    return times


def users_environment() -> dict[str, str]:
    """What a cold process of a user sees: malloc as it is, and modules that are compiled once and kept."""
    return {k: v for k, v in os.environ.items() if k not in (*MALLOC, "PYTHONDONTWRITEBYTECODE")}


def child(*command: Any, cpu: int | None = None) -> str:
    """Run a Python command line in a process of its own, on one core if `cpu` says which; what it printed."""
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        env=users_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=None if cpu is None else lambda: os.sched_setaffinity(0, {cpu}),
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} failed: {done.stdout[-600:]}")
    return done.stdout


def installed(package: str) -> str | None:
    """The version of a package, or None."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


@dataclass
class Row:
    """One line of the table: our times, a peer's, what is asked of their ratio.

    `measure` is "faster" (peer / ours, at least), "slower" (ours / peer, at most), "more" (ours - peer in seconds, at
    most) or "total" (ours in seconds, at most). `per` is how many rows or calls a time covers, to be shown for one.
    """

    work: str
    ours: Sequence[float]
    peer: str
    theirs: Sequence[float]
    measure: str
    asked: float
    goal: float | None = None
    per: int = 1

    def value(self, middle: Callable[[Sequence[float]], float]) -> float:
        ours, theirs = middle(self.ours), middle(self.theirs)
        return {"faster": theirs / ours, "slower": ours / theirs, "more": ours - theirs, "total": ours}[self.measure]

    def shown(self, times: Sequence[float]) -> str:
        return f"{short(statistics.median(times) / self.per)} ({short(min(times) / self.per)})"

    def cells(self) -> list[str]:
        ours, theirs = self.shown(self.ours), self.shown(self.theirs)
        unit = "×" if self.measure in ("faster", "slower") else " s"
        sign = "≥" if self.measure == "faster" else "≤"
        middle, least = self.value(statistics.median), self.value(min)
        met = middle >= self.asked if self.measure == "faster" else middle <= self.asked
        asked = f"{sign} {self.asked:g}{unit}" + (" more" if self.measure == "more" else "")
        if self.goal is not None:
            asked += f", goal {self.goal:g}{unit}"
        digits = ".0f" if middle >= 100 else ".2f"
        shown = f"{middle:{digits}}{unit} ({least:{digits}})"
        return [self.work, ours, f"{self.peer}: {theirs}", shown, asked, "yes" if met else "NO"]


def short(seconds: float) -> str:
    """Three digits and a unit."""
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


HEAD = ["work", "ours", "peer", "ratio", "asked", "met"]


def table(rows: Sequence[Row], markdown: bool) -> str:
    """The table; in Markdown with date, machine and versions before it."""
    cells = [row.cells() for row in rows]
    if markdown:
        lines = [HEAD, ["---"] * len(HEAD), *cells]
        head = f"{about()}. Medians (minima in brackets).\n\n"
        return head + "\n".join("| " + " | ".join(line) + " |" for line in lines)
    widths = [max(len(line[k]) for line in [HEAD, *cells]) for k in range(len(HEAD))]
    lines = ["  ".join(f"{c:{w}}" for c, w in zip(line, widths, strict=True)).rstrip() for line in [HEAD, *cells]]
    return "\n".join([about(), "medians (minima in brackets)", "", *lines])


def about() -> str:
    """Date, processor and versions of what is timed, on one thread."""
    return f"{date.today()}, {processor()}, one thread, {versions()}"


def versions() -> str:
    """Python's and those of the packages that matter."""
    names = ("numpy", "scipy", "numba", "scikit-learn", "river", "vowpalwabbit", "lightgbm", "padasip")
    packages = [f"{name} {installed(name)}" for name in names if installed(name)]
    return ", ".join([f"Python {platform.python_version()}", *packages])


def processor() -> str:
    """The processor's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
