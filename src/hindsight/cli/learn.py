"""`hindsight learn` and `hindsight learners`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from .application import app, one_line_errors
from .options import LearnerOptions, LearnHelp, ResultOptions, RowOptions, plan_of
from .text import as_is

ROWS, LEARNER, RESULTS, CLUSTER = "Rows", "Learner", "Results", "Cluster"


@app.command()
def learners() -> None:
    """List the learners: one update rule, θ ← θ − η · slope · x, in different geometries."""
    from rich.console import Console
    from rich.table import Table as Grid

    from ..online.learners import LEARNERS

    grid = Grid(title="w = weights(θ)    z = w·x    θ ← θ − η · slope · x", title_justify="left", box=None)
    for column in ("learner", "task", "geometry", "slope", "steps", "from"):
        grid.add_column(column, overflow="fold")
    for row in LEARNERS.values():
        cells = row.name, row.task, row.geometry, pretty(row.slope), pretty(row.when), row.source
        grid.add_row(*map(as_is, cells))
    Console().print(grid)


def pretty(formula: str) -> str:
    """A formula with mathematical signs."""
    for plain, fine in (("<=", "≤"), ("w.x", "w·x"), ("eta", "η"), ("^2", "²"), ("d loss / d(", "∂loss/∂(")):
        formula = formula.replace(plain, fine)
    return formula


def option(text: str, panel: str, *names: str, **more: Any) -> Any:
    """An option of `learn`; names in braces are filled in by `LearnHelp`."""
    return typer.Option(*names, help=text, rich_help_panel=panel, **more)


@app.command(cls=LearnHelp)
def learn(
    context: typer.Context,
    data: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="CSV, TSV, Parquet, Arrow, JSON, svmlight, Vowpal Wabbit text, npy or npz, gzip, zstd or zip too; "
            "a folder of such files, or of a service; - for standard input; or sample:diabetes|breast-cancer|digits.",
        ),
    ],
    target: Annotated[str | None, option("The column to predict.", ROWS)] = None,
    weight: Annotated[str | None, option("The column with the importance of each row.", ROWS)] = None,
    features: Annotated[str | None, option("Columns to learn from: A,B,C (all others if not given).", ROWS)] = None,
    ignore: Annotated[str | None, option("Columns to leave out: A,B,C.", ROWS)] = None,
    types: Annotated[
        str | None,
        option("What columns hold: age:number,zip:category,note:text,when:date,id:ignore (else it is found).", ROWS),
    ] = None,
    categorical: Annotated[str, option("Columns of categories: A,B,C, or auto (those with text).", ROWS)] = "",
    missing: Annotated[
        str | None, option("What to do with a missing value: {missing} (indicator; with --strict error).", ROWS)
    ] = None,
    na: Annotated[str | None, option("Further words for a missing value: A,B,C.", ROWS)] = None,
    cross: Annotated[
        list[str] | None,
        option("Products of two columns as features: A,B; may be given several times.", ROWS, "--cross", "-q"),
    ] = None,
    labels: Annotated[str | None, option("The labels: A,B,C (those found if not given).", ROWS)] = None,
    format: Annotated[str | None, option("The format: {formats}.", ROWS)] = None,
    header: Annotated[
        bool | None,
        option("Whether the first line names the columns (else 1, 2, ...).", ROWS, "--header/--no-header"),
    ] = None,
    separator: Annotated[str | None, option("What separates fields: one character, tab or space.", ROWS)] = None,
    encoding: Annotated[str | None, option("The encoding of text, as latin-1.", ROWS)] = None,
    decimal: Annotated[str | None, option("The decimal sign: . or a comma.", ROWS)] = None,
    strict: Annotated[
        bool, option("Take only UTF-8, commas, a header, numbers and no missing value.", ROWS, "--strict")
    ] = False,
    hash_bits: Annotated[int | None, option("Hash sparse features to 2^BITS columns.", ROWS, "--hash")] = None,
    scale: Annotated[str, option("How to scale rows: {scales}.", ROWS)] = "none",
    limit: Annotated[int | None, option("The most rows to take.", ROWS, min=1)] = None,
    sample: Annotated[
        float | None, option("Take each row with this probability, the same rows in every pass.", ROWS)
    ] = None,
    shuffle: Annotated[bool, option("Learn from the rows in a random order.", ROWS, "--shuffle")] = False,
    seed: Annotated[int, option("Seed of --sample and --shuffle.", ROWS, min=0)] = 0,
    passes: Annotated[int, option("The number of passes over the rows.", ROWS, min=1)] = 1,
    origin: Annotated[
        str | None,
        option("Go on with this model, as if FILE had followed what it learnt from.", ROWS, "--from", metavar="MODEL"),
    ] = None,
    learner: Annotated[str, option("One of {learners} (or {batch}, in batches); several: A,B.", LEARNER)] = ("auto"),
    eta: Annotated[str | None, option("The rate η, above 0; several: 0.01,0.1.", LEARNER)] = None,
    power: Annotated[float, option("Rates fall as η·t^−power.", LEARNER)] = 0.0,
    update: Annotated[str | None, option("{takers}: one of {updates}.", LEARNER)] = None,
    loss: Annotated[str | None, option("{takers}: one of {losses}.", LEARNER)] = None,
    geometry: Annotated[str | None, option("{takers}: one of {geometries}.", LEARNER)] = None,
    l1: Annotated[float | None, option("{takers}: penalty l1·|w|₁ of a round; makes weights 0.", LEARNER)] = None,
    l2: Annotated[float | None, option("{takers}: penalty l2·|w|²/2 of a round.", LEARNER)] = None,
    quantile: Annotated[float | None, option("--loss quantile: which, between 0 and 1 (0.5).", LEARNER)] = None,
    delta: Annotated[float | None, option("--loss huber: from where on errors count linearly (1).", LEARNER)] = None,
    radius: Annotated[float | None, option("{takers}: L1 norm of signed weights.", LEARNER)] = None,
    margin: Annotated[float | None, option("{takers}: a margin between 0 and 1 that sets η.", LEARNER)] = None,
    link: Annotated[str | None, option("{takers}: one of {links}.", LEARNER)] = None,
    second_order: Annotated[
        str | None, option("{takers}: whether members with a matrix join: auto, yes, no.", LEARNER)
    ] = None,
    kappa: Annotated[float | None, option("{takers}: the prior, or the part of the curvature.", LEARNER)] = None,
    prior: Annotated[float | None, option("{takers}: the prior.", LEARNER)] = None,
    drift: Annotated[
        float | None, option("{takers}: weight that members share again after each row, as 0.001.", LEARNER)
    ] = None,
    intercept: Annotated[bool, option("A constant coordinate 1 ({batch} has none).", LEARNER)] = True,
    rounds: Annotated[int | None, option("{batch}: passes over all rows (100 if not given).", LEARNER, min=1)] = None,
    lipschitz: Annotated[float | None, option("{batch}: the largest slope of its link.", LEARNER)] = None,
    compare: Annotated[
        bool, option("Compare several learners: for every pair an interval, valid at every time.", RESULTS, "--compare")
    ] = False,
    bounds: Annotated[
        str | None, option("--compare: where all targets lie, if they are numbers.", RESULTS, metavar="LOW,HIGH")
    ] = None,
    certify: Annotated[bool, option("Print the certificate.", RESULTS, "--certify")] = False,
    report: Annotated[str | None, option("Certify, and write a report in HTML.", RESULTS, metavar="PAGE")] = None,
    save: Annotated[str | None, option("Write the model.", RESULTS, metavar="MODEL")] = None,
    predictions: Annotated[
        str | None,
        option("Write each row's target, and its prediction before it was learnt: .csv, .jsonl or .parquet.", RESULTS),
    ] = None,
    rejects: Annotated[str | None, option("Write bad rows here, and continue.", RESULTS, metavar="FILE")] = None,
    checkpoint: Annotated[str | None, option("Write checkpoints here.", RESULTS, metavar="DIR")] = None,
    every: Annotated[int, option("Rows between checkpoints.", RESULTS, min=1)] = 1_000_000,
    resume: Annotated[bool, option("Resume from the newest checkpoint.", RESULTS, "--resume")] = False,
    progress: Annotated[str, option("Progress on standard error: {shows}.", RESULTS)] = "auto",
    cluster: Annotated[str | None, option("Learn on a Dask cluster, as tcp://HOST:8786.", CLUSTER)] = None,
    workers: Annotated[int | None, option("Learn in so many processes, by Dask.", CLUSTER, min=1)] = None,
    as_json: Annotated[bool, option("Print the result as JSON.", RESULTS, "--json")] = False,
) -> None:
    """Learn from rows in one pass; each is predicted before it is learnt.

    With --certify: what the run lost, what the best constant and the best fixed predictor in hindsight lose, what the
    theorem promises, and whether this data met its assumptions. The exit status is 1 only if a bound is BROKEN, 2 for
    bad input, and 130 or 143 when the run was interrupted (with --checkpoint it can then be resumed).
    """
    some = {"update": update, "loss": loss, "geometry": geometry, "radius": radius, "margin": margin, "link": link,
            "second_order": second_order, "kappa": kappa, "prior": prior, "drift": drift,
            "l1": l1, "l2": l2, "quantile": quantile, "delta": delta}  # fmt: skip
    options = {k: v for k, v in some.items() if v is not None} | ({"power": power} if power else {})
    rows_read = RowOptions(
        data, target, weight, features, ignore, categorical, missing, labels, format, header, hash_bits, scale, limit,
        sample, seed, passes, strict, types, separator, encoding, decimal, na, shuffle, tuple(cross or ()),
    )  # fmt: skip
    chosen = LearnerOptions(learner, eta, options, intercept, rounds, lipschitz)
    results = ResultOptions(
        certify, report, save, predictions, rejects, checkpoint, every, resume, progress, as_json,
        compare, bounds,
    )  # fmt: skip
    with one_line_errors():
        if is_service(data):
            status = learn_again(data, results, given_options(context))
        elif origin is not None:
            status = go_on(origin, rows_read, results, given_options(context))
        else:
            status = command(rows_read, chosen, results, cluster, workers)
    if status:
        raise typer.Exit(status)


OF_FURTHER_ROWS = (
    *("data", "origin", "format", "limit", "sample", "shuffle", "seed", "certify", "report", "save", "predictions"),
    *("rejects", "checkpoint", "every", "resume", "progress", "as_json"),
)


def given_options(context: typer.Context) -> dict[str, str]:
    """The options that were given, by parameter, as they are spelt."""
    spelt = {p.name: p.opts[0] for p in context.command.params if p.name is not None}
    sources = {name: context.get_parameter_source(name) for name in spelt}
    return {name: spelt[name] for name, source in sources.items() if source is not None and source.name != "DEFAULT"}


def go_on(origin: str, rows: RowOptions, results: ResultOptions, given: dict[str, str]) -> int:
    """Go on with a model; the exit status."""
    from dataclasses import replace

    from ..errors import ModelError
    from ..training.going_on import plan_after
    from ..training.saved import open_model
    from .learn_command import LearnCommand

    model = open_model(origin)
    if rows.target == model.settings.get("target"):
        given.pop("target", None)
    for name, spelt in given.items():
        if name not in OF_FURTHER_ROWS:
            raise ValueError(f"{spelt} cannot be said with --from: it is settled by the model")
    keep = {"format": rows.format, "rejects": results.rejects is not None}
    try:
        plan = plan_after(
            model, rows.data, limit=rows.limit, sample=rows.sample, shuffle=rows.shuffle, seed=rows.seed, **keep
        )
    except ModelError as error:
        raise ValueError(f"{origin}: {error}") from None
    plan = replace(plan, digest=results.save is not None or results.checkpoint is not None)
    return LearnCommand(plan, results, model).run()


def is_service(path: str) -> bool:
    """Whether these are the rows of a service."""
    import os

    there = [os.path.exists(os.path.join(path, name)) for name in ("settings.json", "service.db", "log")]
    return there[0] and any(there[1:])


OF_SERVICES = ("data", "certify", "save", "as_json")


def learn_again(path: str, results: ResultOptions, given: dict[str, str]) -> int:
    """Learn all rows in the log of a service again, to the same bits; the exit status."""
    import json
    import time

    from ..certificates.theorems import Verdict
    from ..serve.replay import StoredRows, replay
    from ..training.certify import certify_runs, combined
    from ..training.plan import describe_learner
    from .results import result, summary

    for name, spelt in given.items():
        if name not in OF_SERVICES:
            raise ValueError(f"{spelt} cannot be said for the folder of a service: it is settled there")
    began = time.perf_counter()
    live = replay(path)
    state, seconds = live.state, time.perf_counter() - began
    assert state is not None
    rows = StoredRows(live.plan, state.labels, None, None, path=path)
    certificates = [certify_runs(rows, state.runs[0])] if results.certify else []
    if results.save is not None:
        live.to_model(combined(certificates[0]) if certificates else None).save(results.save)
    titles = [describe_learner(learner) for learner in live.plan.make()]
    if results.as_json:
        print(json.dumps(result(state, titles, certificates, seconds, None)))
    else:
        for line in summary(state, titles, certificates, seconds):
            print(line)
    return int(any(c.verdict is Verdict.BROKEN for each in certificates for c in each))


def command(
    rows: RowOptions, learner: LearnerOptions, results: ResultOptions, cluster: str | None, workers: int | None
) -> int:
    """Run the command; its exit status."""
    from ..training.batch import BATCH_LEARNERS
    from ..training.plan import check_choice
    from .progress import SHOWS

    check_choice("progress", results.progress, SHOWS)
    if cluster is not None or workers is not None:
        from .cluster import learn_on_cluster

        return learn_on_cluster(rows, learner, results, cluster, workers)
    if learner.names in BATCH_LEARNERS:
        from .batch import learn_in_batches

        return learn_in_batches(rows, learner, results)
    from .learn_command import LearnCommand, check_online

    check_online(learner)
    return LearnCommand(plan_of(rows, learner, results), results).run()
