"""Counts and durations of requests, for Prometheus and the live page."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import choose_encoder

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH")
QUANTILES = (("p50", 0.5), ("p99", 0.99))
EDGES = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
FAMILIES: tuple[tuple[Any, str, str, str], ...] = (  # of the summary: kind, name, what it is, and its key there
    (CounterMetricFamily, "rows", "Rows in the log.", "sequence"),
    (CounterMetricFamily, "commits", "Commits to the log.", "commit"),
    (CounterMetricFamily, "refused_rows", "Rows refused.", "refused"),
    (GaugeMetricFamily, "pending_rows", "Rows that wait for their outcome.", "pending"),
    (GaugeMetricFamily, "features", "Features.", "features"),
    (GaugeMetricFamily, "waiting_requests", "Requests that wait to be learnt.", "waiting"),
    (GaugeMetricFamily, "sync_seconds", "Seconds that the last commit took to reach the disk.", "sync"),
    (CounterMetricFamily, "log_bytes", "Bytes written to the log since the start.", "log_bytes"),
    (GaugeMetricFamily, "learning", "Whether rows are learnt.", "learning"),
    (GaugeMetricFamily, "mean_loss", "Progressive loss per row.", "mean_loss"),
    (GaugeMetricFamily, "mean_best_loss", "Loss per row of the best fixed linear predictor so far.", "mean_best"),
    (GaugeMetricFamily, "mean_constant_loss", "Loss per row of the best constant so far.", "mean_constant"),
)


class Metrics:
    """Requests by path, method and status, histograms of their durations, and the progress of learning.

    Parameters
    ----------
    paths : collection of str
        The paths that are counted separately.
    """

    def __init__(self, paths: Collection[str]) -> None:
        self.paths = paths
        self.registry = CollectorRegistry()
        labels = ("path", "method", "status")
        self.requests = Counter("hindsight_requests", "Requests.", labels, registry=self.registry)
        about = "Seconds that requests took."
        self.seconds = Histogram("hindsight_request_seconds", about, ("path",), buckets=EDGES, registry=self.registry)
        self.recent: dict[str, deque[float]] = {path: deque(maxlen=1024) for path in ("/predict", "/learn")}
        self.rows: deque[tuple[float, int]] = deque(maxlen=600)
        self.summary: dict[str, Any] = {}
        self.registry.register(self)

    def add(self, path: str, method: str, status: int, seconds: float) -> None:
        """Count a request."""
        path = path if path in self.paths else "other"
        self.requests.labels(path, method if method in METHODS else "other", status).inc()
        if path in self.recent and status < 400:
            self.recent[path].append(seconds)
            self.seconds.labels(path).observe(seconds)

    def note_rows(self, sequence: int) -> None:
        """Record the current number of rows."""
        self.rows.append((time.monotonic(), sequence))

    def rate(self, over: float = 10.0) -> float:
        """Rows per second over the last `over` seconds."""
        if len(self.rows) < 2:
            return 0.0
        last, now = self.rows[-1], time.monotonic()
        first = next(each for each in self.rows if now - each[0] <= over or each is last)
        return (last[1] - first[1]) / (last[0] - first[0]) if last[0] > first[0] else 0.0

    def quantiles(self, path: str) -> dict[str, float | None]:
        """The median and the 99th percentile of the newest requests, in seconds."""
        held = sorted(self.recent[path])
        return {name: held[min(len(held) - 1, int(part * len(held)))] if held else None for name, part in QUANTILES}

    def collect(self) -> Iterator[Any]:
        """The progress of learning, in the form of a `prometheus_client` collector."""
        for kind, name, about, key in FAMILIES:
            if self.summary.get(key) is not None:
                yield kind(f"hindsight_{name}", about, value=self.summary[key])

    def text(self, summary: dict[str, Any], accept: str) -> tuple[bytes, str]:
        """All metrics in a format that the client accepts, and its content type."""
        best = summary.get("best")
        self.summary = summary | {"learning": summary["broken"] is None}
        self.summary["mean_best"] = None if best is None else best / summary["weight"]
        encoder, kind = choose_encoder(accept)
        return encoder(self.registry), kind
