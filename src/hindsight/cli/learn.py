"""`hindsight learn` and `hindsight learners`."""

from __future__ import annotations

from typing import Annotated

import typer

from ..training.options import BATCH_LEARNERS, ClusterOptions, LearnerOptions, ResultOptions, RowOptions
from .application import verb
from .text import as_is, new_console


@verb()
def learners() -> None:
    """List the learners: one update rule, θ ← θ − η · slope · x, in different geometries."""
    from rich.table import Table as Grid

    from ..online.learners import LEARNERS

    grid = Grid(title="w = weights(θ)    z = w·x    θ ← θ − η · slope · x", title_justify="left", box=None)
    for column in ("learner", "task", "geometry", "slope", "steps", "from"):
        grid.add_column(column, overflow="fold")
    for row in LEARNERS.values():
        cells = row.name, row.task, row.geometry, pretty(row.slope), pretty(row.when), row.source
        grid.add_row(*map(as_is, cells))
    new_console().print(grid)


def pretty(formula: str) -> str:
    """A formula with mathematical signs."""
    for plain, fine in (("<=", "≤"), ("w.x", "w·x"), ("eta", "η"), ("^2", "²"), ("d loss / d(", "∂loss/∂(")):
        formula = formula.replace(plain, fine)
    return formula


@verb()
def learn(
    context: typer.Context,
    rows: RowOptions,
    *,
    origin: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="MODEL",
            help="Go on with this model, as if FILE had followed what it learnt from.",
            rich_help_panel=RowOptions.title,
        ),
    ] = None,
    learner: LearnerOptions,
    results: ResultOptions,
    place: ClusterOptions,
) -> int:
    """Learn from rows in one pass; each is predicted before it is learnt.

    With --certify: what the run lost, what the best constant and the best fixed predictor in hindsight lose, what the
    theorem promises, and whether this data met its assumptions. The exit status is 1 only if a bound is BROKEN, 2 for
    bad input, and 130 or 143 when the run was interrupted (with --checkpoint it can then be resumed).
    """
    if is_service(rows.data):
        return learn_again(rows.data, results, given_options(context))
    if origin is not None:
        return go_on(origin, rows, results, given_options(context))
    from ..training.plan import Plan, check_choice
    from .progress import SHOWS

    check_choice("progress", results.progress, SHOWS)
    if place.cluster is not None or place.workers is not None:
        from .cluster import learn_on_cluster

        return learn_on_cluster(rows, learner, results, place.cluster, place.workers)
    if learner.learner in BATCH_LEARNERS:
        from .batch import learn_in_batches

        return learn_in_batches(rows, learner, results)
    from .learn_command import LearnCommand

    plan = Plan.from_options(rows, learner, rejects=results.rejects is not None, digest=results.digest)
    return LearnCommand(plan, results).run()


OF_FURTHER_ROWS = (
    *("data", "origin", "format", "limit", "sample", "shuffle", "seed", "certify", "report", "save", "predictions"),
    *("rejects", "checkpoint", "every", "resume", "progress", "details", "as_json"),
)


def given_options(context: typer.Context) -> dict[str, str]:
    """The spelling of the given options, by parameter."""
    spelt = {p.name: p.opts[0] for p in context.command.params if p.name is not None}
    sources = {name: context.get_parameter_source(name) for name in spelt}
    return {name: spelt[name] for name, source in sources.items() if source is not None and source.name != "DEFAULT"}


def go_on(origin: str, rows: RowOptions, results: ResultOptions, given: dict[str, str]) -> int:
    """Continue training a model; return the exit status."""
    from dataclasses import replace

    from ..errors import ModelError
    from ..training.model import open_model
    from ..training.state import plan_after
    from .learn_command import LearnCommand

    model = open_model(origin)
    if rows.target == model.settings.get("target"):
        given.pop("target", None)
    for name, spelt in given.items():
        if name not in OF_FURTHER_ROWS:
            raise ValueError(f"{spelt} cannot be given with --from: it is settled by the model")
    taken = {name: getattr(rows, name) for name in ("limit", "sample", "shuffle", "seed", "format")}
    try:
        plan = plan_after(model, rows.data, rejects=results.rejects is not None, **taken)
    except ModelError as error:
        raise ValueError(f"{origin}: {error}") from None
    return LearnCommand(replace(plan, digest=results.digest), results, model).run()


def is_service(path: str) -> bool:
    """Whether the data is the log of a service."""
    import os

    there = [os.path.exists(os.path.join(path, name)) for name in ("settings.json", "service.db", "log")]
    return there[0] and any(there[1:])


OF_SERVICES = ("data", "certify", "save", "details", "as_json")


def learn_again(path: str, results: ResultOptions, given: dict[str, str]) -> int:
    """Learn all rows in the log of a service again, with the same result to the bit; return the exit status."""
    import time

    from ..serve.replay import StoredRows, replay
    from ..training.certify import certify_runs
    from .results import model_certificate, print_result

    for name, spelt in given.items():
        if name not in OF_SERVICES:
            raise ValueError(f"{spelt} cannot be given for the folder of a service: it is settled there")
    began = time.perf_counter()
    live = replay(path)
    state, seconds = live.state, time.perf_counter() - began
    assert state is not None
    rows = StoredRows(live.plan, state.labels, None, None, path=path)
    certificates = [certify_runs(rows, state.runs[0])] if results.certify else []
    if results.save is not None:
        live.to_model(model_certificate(certificates)).save(results.save)
    return print_result(results, state, certificates, seconds)
