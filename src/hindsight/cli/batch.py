"""`hindsight learn --learner isotron`: all rows are read first, and every round is a pass over them."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from ..certificates.theorems import Verdict
from ..errors import OptionError
from ..training.learning import fit_isotron
from ..training.outputs import check_files
from ..training.plan import Plan
from .text import print_error_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..training.options import LearnerOptions, ResultOptions, RowOptions


def learn_in_batches(rows: RowOptions, learner: LearnerOptions, results: ResultOptions) -> int:
    """Read, fit, and print the result; the exit status."""
    check(rows, learner, results)
    check_files(results, rows.data)
    eta, rounds = learner.one_eta(), learner.rounds or 100
    plan = Plan(rows.data, rows.target, (), rows.reading(), limit=rows.limit, sample=rows.sample, seed=rows.seed)
    model, read = fit_isotron(plan, rounds, learner.lipschitz, eta, not results.quiet and sys.stderr.isatty())
    m, n = read.X.shape
    if not results.quiet:
        for line in table(rows, learner, model, rounds):
            print_error_line(line)
    certificate = model.certify(read.X, read.y, read.weight) if results.certifies else None
    if certificate is not None and results.report is not None:
        from ..reports.estimators import write_fitted

        write_fitted(results.report, plan, model, read, certificate)
    if results.save is not None:
        model.save(results.save)
    histories = model.histories_
    if results.as_json:
        out: dict[str, Any] = {"data": rows.data, "rows": m, "features": n, "rounds": rounds}
        out["losses"] = [list(map(float, history.loss)) for history in histories]
        out["best_round"] = [int(history.best) + 1 for history in histories]
        out["weights"] = [dict(zip(read.names, w.tolist(), strict=True)) for w in model.coef_.reshape(-1, n)]
        print(json.dumps(out | ({} if certificate is None else {"certificate": certificate.to_dict()})))
    else:
        print(f"{m:,} rows × {n:,} features")
        for history in histories:
            t = history.best + 1
            print(f"mean squared error {history.loss[t - 1]:.6g} in round {t}, the best of {rounds}")
        for line in [] if certificate is None else certificate.lines():
            print(line)
        if results.report is not None:
            print(f"report: {results.report}")
    return int(certificate is not None and certificate.verdict is Verdict.BROKEN)


def check(rows: RowOptions, learner: LearnerOptions, results: ResultOptions) -> None:
    """Refuse options of learners that go through the rows once."""
    online = {
        "interval": learner.interval,
        "scale": rows.scale != "none",
        "passes": rows.passes > 1,
        "labels": rows.labels,
    }
    online |= {name: getattr(results, name) for name in ("predictions", "rejects", "checkpoint", "resume")}
    for name in [*learner.options, *(name for name, value in online.items() if value)]:
        raise OptionError(name, f"is not an option of {learner.learner}, which learns from all rows at once")


def table(rows: RowOptions, learner: LearnerOptions, model: Any, rounds: int) -> Iterator[str]:
    """The settings, and the loss after 1, 2, 4, ... rounds."""
    slopes = "isotonic regression" if learner.lipschitz is None else f"slopes at most {learner.lipschitz:g}"
    yield f"{rows.data}  target {rows.target!r}" if rows.target else rows.data
    yield f"  {learner.learner}, link by {slopes}, η = {model.eta_:g}, {rounds} rounds"
    for k, history in enumerate(model.histories_):
        losses = history.loss
        if len(model.histories_) > 1:
            yield f"  {model.classes_[k]} against the rest"
        yield f"{'round':>12} {'mean squared error':>20}"
        for t in sorted({min(len(losses), 2**i) for i in range(len(losses).bit_length() + 1)}):
            yield f"{t:>12,} {losses[t - 1]:>20.6g}"
