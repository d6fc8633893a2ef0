"""Counts of requests, and how long they took, as text that Prometheus reads."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter, deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PATHS = ("/", "/predict", "/learn", "/outcome", "/model", "/facts", "/certificate", "/metrics", "/health", "/events")
QUANTILES = (("p50", 0.5), ("p99", 0.99))
EDGES = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)


class Metrics:
    """Requests by path, method and status, and histograms of their seconds."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self.seconds: dict[str, list[float]] = {}
        self.recent: dict[str, deque[float]] = {path: deque(maxlen=1024) for path in ("/predict", "/learn")}
        self.rows: deque[tuple[float, int]] = deque(maxlen=600)

    def add(self, path: str, method: str, status: int, seconds: float) -> None:
        """Count a request."""
        path = path if path in PATHS else "other"
        self.requests[path, method, status] += 1
        if path not in self.recent or status >= 400:
            return
        self.recent[path].append(seconds)
        held = self.seconds.setdefault(path, [0.0] * (len(EDGES) + 2))
        held[bisect_left(EDGES, seconds)] += 1
        held[-1] += seconds

    def note_rows(self, sequence: int) -> None:
        """Take note of how many rows there are now."""
        self.rows.append((time.monotonic(), sequence))

    def rate(self, over: float = 10.0) -> float:
        """Rows per second of late."""
        if len(self.rows) < 2:
            return 0.0
        last, now = self.rows[-1], time.monotonic()
        first = next(each for each in self.rows if now - each[0] <= over or each is last)
        return (last[1] - first[1]) / (last[0] - first[0]) if last[0] > first[0] else 0.0

    def quantiles(self, path: str) -> dict[str, float | None]:
        """The median and the 99th percentile of the newest requests, in seconds."""
        held = sorted(self.recent[path])
        return {name: held[min(len(held) - 1, int(part * len(held)))] if held else None for name, part in QUANTILES}

    def text(self, summary: dict[str, Any], waiting: int) -> str:
        """All of it, with where learning stands."""
        return "\n".join(self._lines(summary, waiting)) + "\n"

    def _lines(self, summary: dict[str, Any], waiting: int) -> Iterator[str]:
        gauges: Sequence[tuple[str, str, str, Any]] = (
            ("rows_total", "counter", "Rows in the log.", summary["sequence"]),
            ("commits_total", "counter", "Commits to the log.", summary["commit"]),
            ("refused_rows_total", "counter", "Rows refused.", summary["refused"]),
            ("pending_rows", "gauge", "Rows that wait for their outcome.", summary["pending"]),
            ("features", "gauge", "Features.", summary["features"]),
            ("waiting_requests", "gauge", "Requests that wait to be learnt.", waiting),
            ("sync_seconds", "gauge", "Seconds that the last commit took to reach the disk.", summary["sync"]),
            ("log_bytes_total", "counter", "Bytes written to the log since the start.", summary["log_bytes"]),
            ("learning", "gauge", "Whether rows are learnt.", int(summary["broken"] is None)),
            ("mean_loss", "gauge", "Progressive loss per row.", summary.get("mean_loss")),
            ("mean_best_loss", "gauge", "Loss per row of the best fixed linear predictor so far.", mean_best(summary)),
            ("mean_constant_loss", "gauge", "Loss per row of the best constant so far.", summary.get("mean_constant")),
        )
        for name, kind, what, value in gauges:
            if value is not None:
                yield f"# HELP hindsight_{name} {what}"
                yield f"# TYPE hindsight_{name} {kind}"
                yield f"hindsight_{name} {value!r}"
        yield "# HELP hindsight_requests_total Requests."
        yield "# TYPE hindsight_requests_total counter"
        for (path, method, status), count in sorted(self.requests.items()):
            yield f'hindsight_requests_total{{path="{path}",method="{clean(method)}",status="{status}"}} {count}'
        yield "# HELP hindsight_request_seconds Seconds that requests took."
        yield "# TYPE hindsight_request_seconds histogram"
        for path, held in sorted(self.seconds.items()):
            total = 0.0
            for edge, number in zip((*EDGES, "+Inf"), held, strict=False):
                total += number
                yield f'hindsight_request_seconds_bucket{{path="{path}",le="{edge}"}} {total:.0f}'
            yield f'hindsight_request_seconds_count{{path="{path}"}} {total:.0f}'
            yield f'hindsight_request_seconds_sum{{path="{path}"}} {held[-1]!r}'


def mean_best(summary: dict[str, Any]) -> float | None:
    """What the best fixed predictor in hindsight loses per row; None where it is not known."""
    best = summary.get("best")
    return None if best is None else best / summary["weight"]


def clean(method: str) -> str:
    """A method that may stand in a label."""
    return method if method in ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH") else "other"
