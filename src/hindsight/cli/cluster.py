"""`hindsight learn --cluster ADDRESS` or `--workers N`: rows in partitions, read and learnt by Dask's workers."""

from __future__ import annotations

import json
import math
import sys
import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..certificates.wording import Scores
from ..errors import OptionError
from ..formatting import brief
from ..online.learners import LEARNERS
from ..sources import file_format
from ..sources.opening import list_files
from ..training.outputs import check_files
from ..training.plan import Plan, check_choice
from .text import label_lines, print_error_line, status_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..cluster.rows import ClusterRows
    from ..cluster.shards import Epochs
    from ..training.model import Model
    from ..training.options import LearnerOptions, ResultOptions, RowOptions

EXACT = ("isotron", "least-squares", "gradient-descent", "glm-tron-batch")  # fitted as one machine would


def learn_on_cluster(
    rows: RowOptions, learner: LearnerOptions, results: ResultOptions, address: str | None, workers: int | None
) -> int:
    """Learn, and print the result; the exit status."""
    check_cluster_options(rows, learner, results)
    check_files(results, rows.data)
    with client_of(address, workers) as client:
        if not results.quiet:
            count = len(client.nthreads())
            print_error_line(f"{rows.data}  {count} worker{'s' * (count > 1)}, dashboard {client.dashboard_link}")
        if learner.learner in EXACT:
            return learn_exactly(rows, learner, results, client)
        return learn_on_shards(rows, learner, results, client)


@contextmanager
def client_of(address: str | None, workers: int | None) -> Iterator[Any]:
    """The client of a cluster, started here or found at an address."""
    from ..cluster.engine import connect, start

    if address is not None and workers is not None:
        raise OptionError("workers", "starts processes here: give it or --cluster, not both")
    with start(workers or 1) if address is None else connect(address) as client:
        yield client


def check_cluster_options(rows: RowOptions, learner: LearnerOptions, results: ResultOptions) -> None:
    """Refuse options that require all rows in order on one machine."""
    check_choice("learner", learner.learner, [*EXACT, *(name for name in LEARNERS if name != "auto")])
    exact = learner.learner in EXACT
    given = {name: getattr(results, name) for name in ("predictions", "rejects", "compare")}
    given |= {"bounds": results.bounds, "lipschitz": learner.lipschitz, "interval": learner.interval}
    given |= {"passes": exact and rows.passes > 1, "report": exact and results.report}
    given |= {"scale": exact and rows.scale != "none", "labels": exact and rows.labels}
    given |= {"checkpoint": not exact and results.checkpoint, "rounds": not exact and learner.rounds}
    given |= {"eta": learner.learner == "least-squares" and learner.eta}
    takes = {"gradient-descent": {"loss", "power"}, "glm-tron-batch": {"link"}}.get(learner.learner, set())
    given |= {name: exact and name not in takes for name in learner.options}
    if learner.learner == "least-squares" and results.certify:
        why = "it is the best fixed predictor itself, and has no regret to certify"
        raise OptionError("certify", f"is not an option of least-squares: {why}")
    for name, value in given.items():
        if value:
            raise OptionError(name, f"is not an option of {learner.learner} on a cluster")
    if rows.shuffle and rows.limit is not None:
        raise OptionError("limit", "and --shuffle: on a cluster take --sample, which draws from all partitions")
    if learner.learner == "isotron" and not learner.intercept:
        raise OptionError("no-intercept", "is not an option of isotron, which has no intercept")
    if rows.data == "-" or rows.data.startswith("sample:"):
        raise ValueError(f"{rows.data}: a cluster reads files: give a folder of them")
    form = rows.format or file_format(list_files(rows.data, rows.format)[0])
    if rows.target is None and form not in ("svmlight", "vw"):
        raise ValueError(f"{rows.data}: say which column to predict: --target COLUMN")


def read_rows(rows: RowOptions, results: ResultOptions, client: Any, labels: bool | None) -> ClusterRows:
    """Let the workers read the rows, and print how they are read."""
    from ..cluster.rows import read
    from .learn_command import counted, described

    def notify(line: str) -> None:
        if not results.quiet:
            print_error_line(line)

    found = read(
        rows.data, rows.target or "label", client=client, labels=labels, limit=rows.limit, sample=rows.sample,
        shuffle=rows.shuffle, seed=rows.seed, scale=rows.scale, notify=notify, **rows.reading(),
    )  # fmt: skip
    assert found.table is not None
    for line in described(found.table.source, found.table.partitions[0].state, results.details):
        notify(line)
    kept = "held by the workers" if found.held else "too many for the memory of the workers: read again for every pass"
    notify(f"  {found.rows:,} rows × {found.features:,} features in {len(found.shapes):,} partitions, {kept}")
    if rows.shuffle:
        notify(f"  each partition in a random order, drawn by seed {rows.seed}; partitions have no order")
    counts = found.counts()
    if gone := counts.pop("unlabelled", 0):
        notify(f"{gone:,} rows have no target: they were left out")
    for line in counted(counts):
        notify(line)
    return found


def print_round(unit: str, quiet: bool, t: int, loss: float) -> None:
    """Print the loss after 1, 2, 4, ... rounds."""
    if not quiet and t & (t - 1) == 0:
        if t == 1:
            print_error_line(f"{unit:>12} {'mean loss':>12}")
        print_error_line(f"{t:>12,} {brief(loss):>12}")


# ---------------------------------------------------------------- as one machine


def estimator(learner: LearnerOptions, rows: ClusterRows) -> Any:
    """The requested estimator: a classifier if targets are text or the loss is for labels."""
    from ..estimators.gradient_descent import GradientDescentClassifier, GradientDescentRegressor
    from ..estimators.isotron import GLMtronBatchRegressor, IsotronClassifier, IsotronRegressor
    from ..estimators.least_squares import LeastSquares

    eta, rounds, options = learner.one_eta(), learner.rounds or 100, learner.options
    if learner.learner == "isotron":
        return (IsotronClassifier if rows.text else IsotronRegressor)(None, rounds, eta)
    if learner.learner == "least-squares":
        return LeastSquares(fit_intercept=learner.intercept)
    if learner.learner == "glm-tron-batch":
        link = options.get("link", "logistic")
        return GLMtronBatchRegressor(link, rounds, eta, fit_intercept=learner.intercept)
    labels = rows.text or options.get("loss") in ("hinge", "perceptron")
    kind = GradientDescentClassifier if labels else GradientDescentRegressor
    more = {"power": options["power"]} if "power" in options else {}
    loss = options.get("loss", "logistic" if labels else "square")
    return kind(loss, 0.1 if eta is None else eta, rounds, fit_intercept=learner.intercept, **more)


def learn_exactly(rows: RowOptions, learner: LearnerOptions, results: ResultOptions, client: Any) -> int:
    """Fit with the result of a single machine, and print it."""
    from ..cluster.fitting import certify, fit

    numbers = learner.learner in ("least-squares", "glm-tron-batch")
    read = read_rows(rows, results, client, False if numbers else None)
    note = partial(print_round, "round", results.quiet)
    model = fit(estimator(learner, read), read, notify=note, checkpoint=results.checkpoint, resume=results.resume)
    certificate = certify(model, read) if results.certify else None
    if results.save is not None:
        model.save(results.save)
    weights = np.atleast_2d(model.coef_)
    out: dict[str, Any] = {"data": rows.data, "rows": read.rows, "features": read.features, "learner": learner.learner}
    out["weights"] = [dict(zip(read.names, w.tolist(), strict=True)) for w in weights]
    out["intercept"] = np.ravel(model.intercept_).tolist()
    lines = [f"{read.rows:,} rows × {read.features:,} features in {len(read.shapes):,} partitions"]
    if learner.learner == "least-squares":
        out |= {"loss": model.loss_, "condition": model.condition_}
        error = f"weighted sum of squares {brief(model.loss_)}"
        if not read.weighted:
            error = f"RMSE {brief(math.sqrt(model.loss_ / read.rows))} on these rows, which it has seen"
        lines.append(f"{error}; condition number {brief(model.condition_)}")
    elif hasattr(model, "histories_"):
        out["losses"] = [h.loss.tolist() for h in model.histories_]
        for h in model.histories_:
            lines.append(f"RMSE {brief(math.sqrt(h.loss[h.best]))} in round {h.best + 1}, the best of {h.loss.size}")
    else:
        out["losses"] = [run.values for run in model.runs_]
        lines += [f"mean loss {brief(run.values[-1])} in the last of {run.rounds} rounds" for run in model.runs_]
    return print_result(out, lines, certificate, results)


# ---------------------------------------------------------------- online, on shards


def learn_on_shards(rows: RowOptions, learner: LearnerOptions, results: ResultOptions, client: Any) -> int:
    """Train every shard separately, average after each epoch, and print the result."""
    from ..certificates.certificate import combined
    from ..cluster.blocks import View
    from ..cluster.shards import certify_epochs, play_epochs
    from ..rows.labels import run_count
    from ..training.plan import choose_loss, describe_learner
    from ..training.prepare import check_labels, in_order, labels_in

    learner.one_eta()
    plan, notes, _ = choose_loss(Plan.from_options(rows, learner, digest=results.digest))
    made, classify = plan.make()[0], plan.classify()
    if not made.rate.is_constant():
        raise OptionError("power", "changes the rate, which is constant on a cluster")
    began = time.perf_counter()
    read = read_rows(rows, results, client, None if classify else False)
    labels = None
    if classify:
        labels = in_order(set(plan.labels or labels_in(read.labels())))
        check_labels(labels)
    if not results.quiet:
        for line in (describe_learner(made), *notes, *label_lines(labels)):
            print_error_line(f"  {line}")
    count = 1 if labels is None else run_count(len(labels))
    classes, bias = None if labels is None else tuple(labels), float(learner.intercept)
    views = [View(made.targets, classes, k, bias=bias) for k in range(count)]
    note = partial(print_round, "epoch", results.quiet)
    runs = [play_epochs(made, read, view, rows.passes, notify=note) for view in views]
    seconds, certificates = time.perf_counter() - began, list[Any]()
    if results.certify or results.report is not None:
        names = [None] if count == 1 or labels is None else labels
        certificates = [certify_epochs(run, read, None, name) for run, name in zip(runs, names, strict=True)]
    certificate = combined(certificates) if certificates else None
    if results.report is not None:
        from ..cluster.reporting import report_shards

        report_shards(results.report, plan, read, runs, labels, certificates, seconds)
    if results.save is not None:
        averaged_model(plan, read, runs, labels, certificate).save(results.save)
    facts = [run.total for run in runs]
    out: dict[str, Any] = {"data": rows.data, "rows": read.rows, "features": read.features, "learner": learner.learner}
    out |= {"shards": len(read.shapes), "epochs": rows.passes, "loss": [f.loss for f in facts], "labels": labels}
    out["weights"] = [dict(zip(read.names, run.mixed[: read.features].tolist(), strict=True)) for run in runs]
    epochs = f"{rows.passes} epoch{'s' * (rows.passes > 1)}"
    lines = [f"{read.rows:,} rows × {read.features:,} features in {len(read.shapes):,} shards, {epochs}"]
    if labels is None:
        lines.append(Scores(square=facts[0].square / (facts[0].weight or 1.0)).sentence())
    elif count == 1:
        lines.append(Scores(right=1.0 - facts[0].mistake_weight / (facts[0].weight or 1.0)).sentence())
    lines += [f"mean {made.loss.name} loss {brief(f.mean_loss)}" for f in facts if labels is not None]
    lines[1] += ": each row was predicted before it was learnt, on its shard"
    lines += [] if results.report is None else [f"report: {results.report}"]
    return print_result(out, lines, certificate if results.certify else None, results)


def averaged_model(
    plan: Plan, read: ClusterRows, runs: list[Epochs], labels: list[str] | None, certificate: Any
) -> Model:
    """The model of the averaged weights, which stores how the files were read."""
    from ..rows.labels import type_of_texts
    from ..training.model import Model

    reading = {name: value for name, value in read.reading.items() if name not in ("labels", "scan")}
    made_by = {"kind": "sparse" if read.sparse else "dense", "source": reading, "scale": read.scale}
    preparation = made_by | {"state": read.state()}
    if labels is not None:
        assert read.table is not None
        preparation["labels"] = read.table.source.label_type or type_of_texts(labels)
    mixed = [run.at_mixed() for run in runs]
    return Model(mixed, read.names, labels, None, plan.settings(), preparation, None, certificate)


def print_result(out: dict[str, Any], lines: list[str], certificate: Any, results: ResultOptions) -> int:
    """Print the result; the exit status."""
    from ..formatting import _plain

    if results.as_json:
        print(json.dumps(_plain(out | ({} if certificate is None else {"certificate": certificate.to_dict()}))))
    else:
        if certificate is not None:
            lines += certificate.lines() if results.details else certificate.brief()
        print("\n".join(lines))
    sys.stdout.flush()
    return status_of(certificate)
