"""`hindsight learn --learner isotron`: all rows are read first, and every round is a pass over them."""

from __future__ import annotations

import json
import math
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import OptionError
from ..estimators.isotron import IsotronClassifier, IsotronRegressor
from ..formatting import brief
from ..training.evaluation import evaluate
from ..training.outputs import check_files
from ..training.plan import Plan
from ..training.prepare import read_all
from .text import print_error_line, status_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..certificates.wording import Scores
    from ..training.options import LearnerOptions, ResultOptions, RowOptions
    from ..training.prepare import AllRows


def learn_in_batches(rows: RowOptions, learner: LearnerOptions, results: ResultOptions) -> int:
    """Read, fit, and print the result; the exit status."""
    check_batch_options(rows, learner, results)
    check_files(results, rows.data)
    eta, rounds = learner.one_eta(), learner.rounds or 100
    plan = Plan(rows.data, rows.target, (), rows.reading(), limit=rows.limit, sample=rows.sample, seed=rows.seed)
    read = read_all(plan)
    m, n = read.X.shape
    kind = IsotronClassifier if read.y.dtype.kind == "U" else IsotronRegressor
    model: Any = kind(learner.lipschitz, rounds, eta, verbose=not results.quiet and sys.stderr.isatty())
    model.fit(read.X, read.y, read.weight)
    if not results.quiet:
        for line in rounds_table(rows, learner, model, rounds):
            print_error_line(line)
    certificate = model.certify(read.X, read.y, read.weight) if results.certifies else None
    if certificate is not None and results.report is not None:
        from ..reports.estimators import write_fitted

        write_fitted(results.report, plan, model, read, certificate)
    if results.save is not None:
        model.save(results.save)
    histories, figures = model.histories_, evaluate(model, read.X, read.y, weight=read.weight, light=True).scores
    if results.as_json:
        out: dict[str, Any] = {"data": rows.data, "rows": m, "features": n, "rounds": rounds}
        out["losses"] = [list(map(float, history.loss)) for history in histories]
        out["best_round"] = [int(history.best) + 1 for history in histories]
        out["figures"] = figures.to_dict()
        out["weights"] = [dict(zip(read.names, w.tolist(), strict=True)) for w in model.coef_.reshape(-1, n)]
        print(json.dumps(out | ({} if certificate is None else {"certificate": certificate.to_dict()})))
    else:
        for line in [*batch_summary(model, read, figures, certificate, rounds, results.details), *results.written]:
            print(line)
    return status_of(certificate)


def check_batch_options(rows: RowOptions, learner: LearnerOptions, results: ResultOptions) -> None:
    """Refuse options that only apply to one-pass learners."""
    online = {
        "interval": learner.interval,
        "scale": rows.scale != "none",
        "passes": rows.passes > 1,
        "labels": rows.labels,
    }
    online |= {name: getattr(results, name) for name in ("predictions", "rejects", "checkpoint", "resume")}
    for name in [*learner.options, *(name for name, value in online.items() if value)]:
        raise OptionError(name, f"is not an option of {learner.learner}, which learns from all rows at once")


def batch_summary(
    model: Any, read: AllRows, figures: Scores, certificate: Any, rounds: int, details: bool
) -> Iterator[str]:
    """The fitted model as lines of text."""
    histories, (m, n) = model.histories_, read.X.shape
    if getattr(certificate, "advice", ""):
        yield certificate.opening()[0]
    yield f"{figures.sentence()} (these rows, all of which it had seen)"
    for k, history in enumerate(histories if details or len(histories) == 1 else []):
        t, label = history.best + 1, f"{model.classes_[k]}: " if len(histories) > 1 else ""
        yield f"{label}RMSE {brief(math.sqrt(history.loss[t - 1]))} in round {t}, the best of {rounds}"
    if certificate is not None:
        yield from certificate.lines() if details else certificate.judgement()
    yield f"{m:,} rows × {n:,} features"


def rounds_table(rows: RowOptions, learner: LearnerOptions, model: Any, rounds: int) -> Iterator[str]:
    """The settings, and the error after 1, 2, 4, ... rounds, averaged over the labels if there are several."""
    goal = "its target" if rows.target is None else repr(rows.target)
    slopes = "isotonic regression" if learner.lipschitz is None else f"slopes at most {learner.lipschitz:g}"
    yield f"{rows.data}: predicting {goal}"
    yield f"  {learner.learner}, link by {slopes}, η = {model.eta_:g}, {rounds} rounds"
    losses = np.mean([history.loss for history in model.histories_], axis=0)
    yield f"{'round':>12} {'RMSE':>10}"
    for t in sorted({min(len(losses), 2**i) for i in range(len(losses).bit_length() + 1)}):
        yield f"{t:>12,} {brief(math.sqrt(losses[t - 1])):>10}"
