"""What the default learners lose where nothing is tuned, against Vowpal Wabbit, scikit-learn, River and LightGBM.

Run it from anywhere: ``python benchmarks/quality.py [--quick] [--page FILE]``; minutes, or seconds with --quick.
River, Vowpal Wabbit and LightGBM come with the extra ``hindsight-learn[bench]``; without them their columns are left
out. The
environment variable HINDSIGHT_STREAMS may name a folder of more streams; `streams` says how they are written.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import installed  # before numpy: it sets the number of threads

# isort: split
import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgWarning
from scipy.sparse.linalg import lsqr
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from hindsight import AutoClassifier, AutoRegressor
from peers import peers
from quality_page import OURS, Figures, page, short
from streams import ROWS, Stream, from_scikit_learn, generated, in_folder

CLOSE = 1.10  # times the loss of its best member: what the panel may lose at most
MOVED = 1e-9  # of the largest prediction: what other units of the columns may change
EXTRA = "pip install hindsight-learn[bench]"


def constant(stream: Stream) -> float:
    """That of the best constant."""
    mean = float((stream.y > 0.0).mean() if stream.labels else stream.y[1:].mean())
    return stream.loss(np.full(stream.y.size, math.log(mean / (1.0 - mean)) if stream.labels else mean))


def in_hindsight(stream: Stream) -> float:
    """That of the best linear predictor that we find with all rows at hand."""
    X = StandardScaler(with_mean=not sp.issparse(stream.X)).fit_transform(stream.X)
    if stream.labels:
        solver = "lbfgs" if sp.issparse(X) else "newton-cholesky"
        with warnings.catch_warnings():  # labels that can be separated have no best predictor
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", LinAlgWarning)
            model = LogisticRegression(C=1e6, tol=1e-6, max_iter=1000, solver=solver).fit(X, stream.y)
        return stream.loss(model.decision_function(X))
    one = np.ones((stream.y.size, 1))
    X = sp.hstack([X, one], format="csr") if sp.issparse(X) else np.hstack([X, one])
    A, y = X[1:], stream.y[1:]
    w = lsqr(A, y, atol=1e-12, btol=1e-12)[0] if sp.issparse(A) else np.linalg.lstsq(A, y)[0]
    return stream.loss(X @ w)


def auto(stream: Stream) -> Any:
    """The default learner for a stream, after one pass."""
    model = (AutoClassifier if stream.labels else AutoRegressor)(keep_margins=True)
    return model.fit(stream.X, stream.y)


def measure(stream: Stream) -> Figures:
    """Every learner on one stream."""
    base = constant(stream)
    model = auto(stream)
    lost = stream.loss(model.margins_)
    certificate = model.certify(stream.X, stream.y)
    if not math.isclose(lost, certificate.measured, rel_tol=1e-9):
        raise SystemExit(f"{stream.name}: auto lost {lost}, and its certificate is of {certificate.measured}")
    learners: dict[str, float | None] = {OURS: lost / base}
    for name, learn in peers().items():
        margins = learn(stream)
        learners[name] = None if margins is None else stream.loss(margins) / base
    members = {member.name: member.loss / base for member in certificate.members}
    promise, account = certificate.bound / lost, certificate.account
    return Figures(
        stream.name, stream.labels, stream.X.shape, in_hindsight(stream) / base, learners, members, promise,
        None if account is None else account.bound / lost, certificate.verdict.value,
    )  # fmt: skip


def moved(stream: Stream) -> float:
    """The largest change of a prediction when columns are measured in other units."""
    factors = 10.0 ** np.random.default_rng(0).choice([-6.0, 0.0, 6.0], stream.X.shape[1])
    margins, other = auto(stream).margins_, auto(stream.scaled(factors)).margins_
    return float(np.abs(margins - other).max() / np.abs(margins).max())


def checks(figures: Sequence[Figures], units: Sequence[Stream]) -> list[tuple[bool, str]]:
    """What must be true of our own learners, and whether it is."""
    values = [
        v for f in figures for v in (f.learners[OURS], *f.members.values(), f.promise, f.account) if v is not None
    ]
    wrong = [f"{f.name} {f.verdict}" for f in figures if f.verdict != "HOLDS"]
    worst = max(figures, key=lambda f: f.to_best)
    most = max(moved(stream) for stream in units)
    return [
        (
            all(math.isfinite(v) for v in values),
            f"all {len(values):,} values of `auto`, its members and its certificates are finite",
        ),
        (not wrong, f"all {len(figures)} certificates hold" + (f": not {', '.join(wrong)}" if wrong else "")),
        (
            worst.to_best <= CLOSE,
            f"`auto` never loses more than {CLOSE:.2f} times what its best member does: {worst.to_best:.3f} on "
            f"`{worst.name}`",
        ),
        (
            most <= MOVED,
            f"columns of {len(units)} generated streams times 1e-6 or 1e6 move no prediction by more than {MOVED:g} of "
            f"the largest: at most {most:.1g}",
        ),
    ]


def collect(quick: bool) -> list[Stream]:
    """All streams; one that is there already is left out."""
    streams = [*from_scikit_learn(), *generated(ROWS // 10 if quick else ROWS)]
    folder = os.environ.get("HINDSIGHT_STREAMS")
    for stream in in_folder(Path(folder)) if folder and not quick else []:
        twin = next((other.name for other in streams if other.same(stream)), None)
        if twin is None:
            streams.append(stream)
        else:
            print(f"{stream.name} of the folder is the same as {twin}, and left out", file=sys.stderr)
    return streams


def main() -> None:
    """Measure everything; print the page, or write it."""
    parser = argparse.ArgumentParser(description="Compare what the default learners lose with what their peers do.")
    parser.add_argument("--quick", action="store_true", help="ten times fewer generated rows, no folder: a smoke test")
    parser.add_argument("--page", type=Path, help="where to write the page, instead of printing it")
    options = parser.parse_args()
    if options.quick and options.page:
        parser.error("--quick is no measurement: it writes no page")
    for peer in ("river", "vowpalwabbit", "lightgbm"):
        if not installed(peer):
            print(f"{peer} is not installed, so its columns are left out: {EXTRA}", file=sys.stderr)
    streams, figures = collect(options.quick), []
    for k, stream in enumerate(streams, 1):
        began = time.perf_counter()
        figures.append(measure(stream))
        found = ", ".join(f"{name} {short(lost)}" for name, lost in figures[-1].learners.items())
        print(f"{k}/{len(streams)} {stream.name}: {found} ({time.perf_counter() - began:.1f} s)", file=sys.stderr)
    found = checks(figures, [s for s in generated(ROWS // 10 if options.quick else ROWS) if "scales" not in s.name])
    lines = [f"{text}: {'yes' if met else 'NO'}" for met, text in found]
    text = page(figures, lines)
    if options.page:
        options.page.write_text(text, encoding="utf-8")
        print(*text.partition("## Streams")[0].partition("## Summary")[1:], sep="")
    else:
        print(text)


if __name__ == "__main__":
    main()
