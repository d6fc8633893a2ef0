"""`hindsight learn` and `hindsight learners`."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table as Grid

from .app import app, one_line_errors
from .options import LearnerOptions, LearnHelp, ResultOptions, RowOptions, plan_of
from .text import as_is

ROWS, LEARNER, RESULTS, CLUSTER = "Rows", "Learner", "Results", "Cluster"


@app.command()
def learners() -> None:
    """List the learners: one update rule, θ ← θ − η · slope · x, in different geometries."""
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
    data: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="CSV, TSV, Parquet, Arrow, JSON lines, svmlight, Vowpal Wabbit text, npy or npz, gzip or zstd too; "
            "a folder of such files; - for standard input; or sample:diabetes|breast-cancer|digits.",
        ),
    ],
    target: Annotated[str | None, option("The column to predict.", ROWS)] = None,
    weight: Annotated[str | None, option("The column with the importance of each row.", ROWS)] = None,
    features: Annotated[str | None, option("Columns to learn from: A,B,C (all others if not given).", ROWS)] = None,
    ignore: Annotated[str | None, option("Columns to leave out: A,B,C.", ROWS)] = None,
    categorical: Annotated[str, option("Columns of categories: A,B,C, or auto (those with text).", ROWS)] = "",
    missing: Annotated[str, option("What to do with a missing value: {missing}.", ROWS)] = "error",
    labels: Annotated[str | None, option("The labels: A,B,C (those found if not given).", ROWS)] = None,
    format: Annotated[str | None, option("The format: {formats}.", ROWS)] = None,
    header: Annotated[bool, option("Whether the first line of CSV names the columns (else 1, 2, ...).", ROWS)] = True,
    hash_bits: Annotated[int | None, option("Hash sparse features to 2^BITS columns.", ROWS, "--hash")] = None,
    scale: Annotated[str, option("How to scale rows: {scales}.", ROWS)] = "none",
    limit: Annotated[int | None, option("The most rows to take.", ROWS, min=1)] = None,
    sample: Annotated[
        float | None, option("Take each row with this probability, the same rows in every pass.", ROWS)
    ] = None,
    seed: Annotated[int, option("Seed of --sample.", ROWS, min=0)] = 0,
    passes: Annotated[int, option("The number of passes over the rows.", ROWS, min=1)] = 1,
    learner: Annotated[str, option("One of {learners} (or {batch}, in batches); several: A,B.", LEARNER)] = ("auto"),
    eta: Annotated[str | None, option("The rate η, above 0; several: 0.01,0.1.", LEARNER)] = None,
    power: Annotated[float, option("Rates fall as η·t^−power.", LEARNER)] = 0.0,
    update: Annotated[str | None, option("{takers}: one of {updates}.", LEARNER)] = None,
    loss: Annotated[str | None, option("{takers}: one of {losses}.", LEARNER)] = None,
    geometry: Annotated[str | None, option("{takers}: one of {geometries}.", LEARNER)] = None,
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
    certify: Annotated[bool, option("Print the certificate; reads the rows again.", RESULTS, "--certify")] = False,
    report: Annotated[str | None, option("Certify, and write an HTML page.", RESULTS, metavar="PAGE")] = None,
    save: Annotated[str | None, option("Write the model.", RESULTS, metavar="MODEL")] = None,
    predictions: Annotated[str | None, option("Write each row's prediction before it was learnt.", RESULTS)] = None,
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

    With --certify: what the run lost, what the rival in hindsight loses, what the theorem promises, and whether this
    data met its assumptions. The exit status is 1 only if a bound is BROKEN, 2 for bad input, and 130 or 143 when the
    run was interrupted (with --checkpoint it can then be resumed).
    """
    some = {"update": update, "loss": loss, "geometry": geometry, "radius": radius, "margin": margin, "link": link,
            "second_order": second_order, "kappa": kappa, "prior": prior, "drift": drift}  # fmt: skip
    options = {k: v for k, v in some.items() if v is not None} | ({"power": power} if power else {})
    rows_read = RowOptions(
        data, target, weight, features, ignore, categorical, missing, labels, format, header, hash_bits, scale, limit,
        sample, seed, passes,
    )  # fmt: skip
    chosen = LearnerOptions(learner, eta, options, intercept, rounds, lipschitz)
    results = ResultOptions(
        certify or report is not None, report, save, predictions, rejects, checkpoint, every, resume, progress, as_json
    )
    with one_line_errors():
        status = command(rows_read, chosen, results, cluster, workers)
    if status:
        raise typer.Exit(status)


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
