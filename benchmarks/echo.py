"""Echo cancellation against padasip's filter, and against the time that the sound lasts.

Run it from anywhere: ``python benchmarks/echo.py [--quick] [--markdown]``; seconds. Both take the same steps (padasip's
`FilterNLMS` at mu = 1 with eps = 1/eta), which is checked. padasip is given the delay line as a view, as we take it;
it keeps the weights of every sample, so its signal is shorter and its time is per sample. Without padasip its loop is
stood in for by one in numpy that keeps nothing, which is faster than padasip is.

``--quality`` prints instead how much of the echo the filters cancel in simulated rooms (examples/echo.py), in dB and as
the mean over four rooms; padasip's filter at mu = 1 is our NLMS with its eps, 0.001.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from common import Row, Seconds, installed, interleave, table  # before numpy: it sets the number of threads

# isort: split
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from hindsight import echo

RATE, ETA = 16_000, 0.1


def sound(seconds: float, taps: int) -> tuple[np.ndarray, np.ndarray]:
    """White noise, and its echo with noise."""
    rng = np.random.default_rng(0)
    far = 0.1 * rng.standard_normal(int(seconds * RATE))
    response = rng.standard_normal(taps) * 0.99 ** np.arange(taps)
    mic = np.convolve(far, 0.1 * response)[: far.size]
    return far, mic + 0.001 * rng.standard_normal(far.size)


def plain_nlms(mic: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """padasip's loop without the history of weights."""
    w, left = np.zeros(rows.shape[1]), np.empty(mic.size)
    for k in range(mic.size):
        x = rows[k]
        left[k] = mic[k] - np.dot(w, x)
        w += 1.0 / (1.0 / ETA + np.dot(x, x)) * x * left[k]
    return left


def peer(taps: int) -> tuple[str, Any]:
    """The peer's name, and its loop from targets and rows to what is left."""
    if installed("padasip") is None:
        return "numpy loop (padasip is not installed)", plain_nlms
    import padasip

    def run(mic: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return padasip.filters.FilterNLMS(taps, mu=1.0, eps=1.0 / ETA, w="zeros").run(mic, rows)[1]

    return f"padasip {installed('padasip')} FilterNLMS", run


def echo_rows(seconds: float, taps: int, repetitions: int) -> list[Row]:
    """One length of the filter."""
    far, mic = sound(seconds, taps)
    part = min(far.size, RATE // 2)
    rows = sliding_window_view(np.concatenate((np.zeros(taps - 1), far[:part])), taps)
    name, theirs = peer(taps)
    ours = echo.cancel(far[:part], mic[:part], RATE, taps=taps, filter="nlms", eta=ETA).clean
    apart = float(np.abs(ours - theirs(mic[:part], rows)).max())
    if not apart <= 1e-12:
        raise SystemExit(f"what is left of the echo differs from the peer's by {apart:.2g}")
    work = {
        "ours": lambda: Seconds(echo.cancel(far, mic, RATE, taps=taps, filter="nlms", eta=ETA).seconds / far.size),
        "peer": lambda: theirs(mic[:part], rows),
    }
    times = interleave(work, repetitions)
    mine, peers = times["ours"], [t / part for t in times["peer"]]
    what = f"echo, {taps:,} taps, one sample"
    return [
        Row(what, mine, name, peers, "faster", 10),
        Row(f"{what} at 16 kHz", mine, "how long it sounds", [1.0 / RATE] * len(mine), "faster", 20),
    ]


def quality(taps: int = 2048, rooms: int = 4) -> str:
    """How much each filter cancels of each kind of sound, in dB, as a table."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
    from echo import NEAR, cancelled, scene

    spans = {
        "white noise, 0 to 1 s": ("white noise", 1e-4, 0.0, 1.0),
        "white noise, 2 to 5 s": ("white noise", 1e-4, 2.0, 5.0),
        "white noise, noisy, 2 to 5 s": ("white noise", 1e-2, 2.0, 5.0),
        "speech, 0 to 1 s": ("speech", 1e-4, 0.0, 1.0),
        "speech, 2 to 5 s": ("speech", 1e-4, 2.0, 5.0),
        "speech, noisy, 2 to 5 s": ("speech", 1e-2, 2.0, 5.0),
        "speech, near-end talk": ("talk", 1e-2, *NEAR),
        "speech, after the talk": ("talk", 1e-2, NEAR[1], 10.0),
        "speech, 1 s after the room changed": ("moved", 1e-2, 6.0, 7.0),
        "speech, 4 s after the room changed": ("moved", 1e-2, 9.0, 10.0),
    }
    lines = ["| echo cancelled, dB | `kalman` | `nlms` | NLMS at full steps |", "|---|---|---|---|"]
    for name, (kind, noise, start, end) in spans.items():
        sums = np.zeros(3)
        for seed in range(rooms):
            far, heard, other = scene(kind, seed, noise=noise)
            mic = heard + other
            for k, settings in enumerate(({}, {"filter": "nlms"}, {"filter": "nlms", "eta": 1e3})):
                left = echo.cancel(far, mic, RATE, taps=taps, **settings).clean - other
                sums[k] += cancelled(heard, left, start, end) / rooms
        lines.append(f"| {name} | " + " | ".join(f"{value:.1f}" for value in sums) + " |")
    return "\n".join(lines)


def main() -> None:
    """Measure everything and print the table."""
    parser = argparse.ArgumentParser(description="Time echo cancellation against padasip and against the clock.")
    parser.add_argument("--quick", action="store_true", help="less sound, once: a smoke test")
    parser.add_argument("--markdown", action="store_true", help="print the table for the README")
    parser.add_argument("--quality", action="store_true", help="print how much is cancelled, not how fast")
    options = parser.parse_args()
    if options.quality:
        print(quality())
        return
    seconds, repetitions = (2.0, 1) if options.quick else (30.0, 7)
    rows = [row for taps in (512, 1024) for row in echo_rows(seconds, taps, repetitions)]
    print(table(rows, options.markdown))


if __name__ == "__main__":
    main()
