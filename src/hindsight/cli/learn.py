"""`hindsight learn` and `hindsight learners`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table as Grid

from .app import app, one_line_errors

if TYPE_CHECKING:
    import numpy as np

    from ..learners import Learner
    from ..run import Run
    from ..sources import Table

NAMES = "perceptron, winnow, widrow-hoff, eg, descent or glm-tron"


@app.command()
def learners() -> None:
    """List the learners: one update rule, θ ← θ − η · slope · x, in different geometries."""
    from ..learners import TABLE

    grid = Grid(title="w = weights(θ)    z = w·x    θ ← θ − η · slope · x", title_justify="left", box=None)
    for column in ("learner", "task", "geometry", "slope", "steps", "from"):
        grid.add_column(column, overflow="fold")
    for row in TABLE:
        grid.add_row(row.name, row.task, row.geometry, pretty(row.slope), pretty(row.when), row.source)
    Console().print(grid)


def pretty(formula: str) -> str:
    """Formulas as the notes write them."""
    for plain, fine in (("<=", "≤"), ("w.x", "w·x"), ("eta", "η"), ("^2", "²"), ("d loss / d(", "∂loss/∂(")):
        formula = formula.replace(plain, fine)
    return formula


@app.command()
def learn(
    source: Annotated[
        str, typer.Argument(metavar="FILE", help="A CSV file with a header, or sample:diabetes|breast-cancer|digits.")
    ],
    target: Annotated[str | None, typer.Option(help="The column to predict.")] = None,
    learner: Annotated[str, typer.Option(help=f"{NAMES}.")] = "widrow-hoff",
    eta: Annotated[float | None, typer.Option(help="The rate η, above 0.  [default: the learner's own]")] = None,
    power: Annotated[float, typer.Option(help="Rates fall as η·t^−power.")] = 0.0,
    update: Annotated[str | None, typer.Option(help="explicit or implicit.  [default: the learner's own]")] = None,
    loss: Annotated[str | None, typer.Option(help="descent: square, absolute, logistic, hinge or perceptron.")] = None,
    geometry: Annotated[str | None, typer.Option(help="descent: euclidean, simplex or balanced.")] = None,
    radius: Annotated[float | None, typer.Option(help="eg, descent: L1 norm of signed weights.")] = None,
    margin: Annotated[float | None, typer.Option(help="winnow: a margin between 0 and 1 that sets η.")] = None,
    link: Annotated[str | None, typer.Option(help="glm-tron: identity, logistic or clipped.")] = None,
    intercept: Annotated[bool, typer.Option(help="A constant coordinate 1.")] = True,
    passes: Annotated[int, typer.Option(min=1, help="Times through the rows.")] = 1,
    certify: Annotated[bool, typer.Option("--certify", help="Print the certificate of the run.")] = False,
    report: Annotated[str | None, typer.Option(metavar="PAGE", help="Certify, and write an HTML page.")] = None,
) -> None:
    """Learn from a stream in one pass; every row is predicted before it is learnt.

    With --certify: what the run lost, what the rival in hindsight loses, what the theorem promises, and whether this
    data met its assumptions. The exit status is 1 only if a bound is BROKEN.
    """
    given = {"eta": eta, "update": update, "loss": loss, "geometry": geometry, "radius": radius, "margin": margin}
    options = {k: v for k, v in {**given, "link": link}.items() if v is not None}
    if power:
        options["power"] = power
    with one_line_errors():
        broken = _learn(source, target, learner, options, intercept, passes, certify, report)
    if broken:
        raise typer.Exit(1)


def _learn(
    source: str,
    target: str | None,
    name: str,
    options: dict[str, Any],
    intercept: bool,
    passes: int,
    certify: bool,
    page: str | None,
) -> bool:
    from ..learners import BY_NAME, choice
    from ..sources import read

    row = BY_NAME[choice("--learner", name, BY_NAME)]
    learner = make(row.make, name, options)
    table = read(source, target)
    runs, targets, labels = prepare(learner, table.y, table.X.shape[1], intercept, row.task)
    console = Console()
    console.print(f"[bold]{source}[/]  {table.about}", highlight=False)
    for line in settings(learner, runs, labels, intercept, passes):
        console.print("  " + line, highlight=False, markup=False)
    began = time.perf_counter()
    progress(console, learner, runs, table, targets, passes, labels)
    summary(console, learner, runs, time.perf_counter() - began)
    if not certify and page is None:
        return False
    return certificates(console, source, table, runs, targets, labels, intercept, page)


def certificates(
    console: Console,
    source: str,
    table: Table,
    runs: list[Run],
    targets: list[np.ndarray],
    labels: list[str] | None,
    intercept: bool,
    page: str | None,
) -> bool:
    """Print the certificate, write the page, and tell whether a bound is broken."""
    from ..certificate import Certificates
    from ..certification import certify_run
    from ..rivals import Data
    from ..theorems import Verdict

    names = labels if labels is not None and len(runs) > 1 else [None]
    each = [
        certify_run(run, Data(table.X, y, bias=float(intercept)), label=name)
        for run, y, name in zip(runs, targets, names, strict=True)
    ]
    done = each[0] if len(each) == 1 else Certificates(tuple(each))
    console.print()
    for line in done.lines():
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    if page is not None:
        from ..report import write

        write(page, source, table.about, each)
        console.print(f"report: {page}", highlight=False)
    return done.verdict is Verdict.BROKEN


def make(factory: Any, name: str, options: dict[str, Any]) -> Learner:
    """The learner, or which option it does not take."""
    import inspect

    taken = inspect.signature(factory).parameters
    for option in options:
        if option not in taken:
            raise ValueError(f"--{option} is not an option of {name} (it takes: {', '.join(taken) or 'none'})")
    built: Learner = factory(**options)
    return built


def prepare(
    learner: Learner, raw: np.ndarray, features: int, intercept: bool, task: str
) -> tuple[list[Run], list[np.ndarray], list[str] | None]:
    """Runs and their targets: numbers for a regression, labels (two, or one against the rest) otherwise."""
    import numpy as np

    from ..run import Run

    classify = task == "classify" or learner.targets in ("sign", "unit")
    if not classify:
        try:
            y = raw.astype(np.float64)
        except ValueError:
            bad = next(v for v in raw if not _number(v))
            hint = "labels want --learner perceptron or winnow, or descent with --loss logistic or hinge"
            raise ValueError(f"target {str(bad)!r} is not a number: {hint}") from None
        return [Run(learner, features, intercept=intercept)], [y], None
    labels = sorted(set(raw.tolist()), key=lambda v: (not _number(v), float(v) if _number(v) else 0.0, v))
    if len(labels) < 2:
        raise ValueError(f"the target has one value only: {labels[0]!r}")
    if len(labels) > 100:
        raise ValueError(f"the target has {len(labels)} values: for numbers take --learner widrow-hoff")
    low = 0.0 if learner.targets == "unit" else -1.0
    ours = labels[1:] if len(labels) == 2 else labels
    targets = [np.where(raw == label, 1.0, low) for label in ours]
    return [Run(learner, features, intercept=intercept) for _ in ours], targets, labels


def _number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def settings(learner: Learner, runs: list[Run], labels: list[str] | None, intercept: bool, passes: int) -> list[str]:
    """Every setting, given or default."""
    rule, geometry, step = learner.rule, learner.geometry, learner.step
    rate = f"η = {step.eta:g}" + (f"·t^−{step.power:g}" if step.power else "")
    parts = [learner.name, f"{type(learner.update).__name__.lower()} step", rate]
    parts.append(f"rule {type(rule).__name__.lower()}({rule[0]:g})")
    name = type(geometry).__name__.lower()
    parts.append(f"geometry {name}" + ("" if name == "euclidean" else f" of radius {geometry.radius:g}"))
    lines = [", ".join(parts), f"intercept {'yes' if intercept else 'no'}, {passes} pass{'es' if passes > 1 else ''}"]
    if labels is not None:
        if len(runs) == 1:
            lines.append(f"labels: {labels[0]} is −1, {labels[1]} is +1")
        else:
            lines.append(f"labels: {len(labels)} classes, each against the rest: {', '.join(labels)}")
    return lines


def progress(
    console: Console,
    learner: Learner,
    runs: list[Run],
    table: Table,
    targets: list[np.ndarray],
    passes: int,
    labels: list[str] | None,
) -> None:
    """Play the rows; a line of the table at 1, 2, 4, 8, ... rounds and at the end."""
    import numpy as np

    from ..run import RowError, play

    X, m = table.X, len(table.X)
    head = f"{'rounds':>12} {'mean loss':>12} {'since last':>12}" + (f" {'mistakes':>10}" if labels else "")
    console.print(head, style="bold", highlight=False)
    done, wrong, last, before = 0, 0, 0, 0.0
    margins = np.empty((m, len(runs)))
    mark = 1
    for _ in range(passes):
        a = 0
        while a < m:
            b = min(m, a + mark - done)
            try:
                play(runs, X[a:b], [y[a:b] for y in targets], None, margins[a:b], table.names)
            except RowError as error:
                raise ValueError(f"{table.places[a + error.row]}{error.message}") from None
            if labels:
                wrong += mistakes(margins[a:b], targets, table.y[a:b], labels, a)
            done, a = done + b - a, b
            if done == mark or done == m * passes:
                total = sum(shown(run, learner) for run in runs)
                line = f"{done:>12,} {total / done:>12.6g} {(total - before) / (done - last):>12.6g}"
                console.print(line + (f" {wrong:>10,}" if labels else ""), highlight=False)
                last, before, mark = done, total, 2 * done


def shown(run: Run, learner: Learner) -> float:
    """The loss the learner is judged by: squared error where it predicts numbers, else the loss it descends."""
    facts = run.facts
    return facts.square if learner.score == "square" else facts.loss


def mistakes(z: np.ndarray, targets: list[np.ndarray], raw: np.ndarray, labels: list[str], a: int) -> int:
    """Rows whose label the margins did not give before it was seen; with two labels a zero margin is a mistake."""
    import numpy as np

    if z.shape[1] == 1:
        sign = np.where(targets[0][a : a + len(z)] > 0, 1.0, -1.0)
        return int((sign * z[:, 0] <= 0).sum())
    return int((np.array(labels)[z.argmax(axis=1)] != raw).sum())


def summary(console: Console, learner: Learner, runs: list[Run], seconds: float) -> None:
    """The facts of the run."""
    from ..run import doubts

    facts = runs[0].facts
    for run in runs[1:]:
        facts = facts + run.facts
    rounds = runs[0].rounds
    total = sum(shown(run, learner) for run in runs)
    what = {"square": "squared error", "loss": "loss"}[learner.score]
    console.print(f"{rounds:,} rounds: {what} {total:.6g}, mean {total / rounds:.6g}", highlight=False)
    console.print(
        f"max |x|₂ = {facts.x2:.6g}, max |x|∞ = {facts.xinf:.6g}, Σ|g|² = {facts.gradient:.6g}", highlight=False
    )
    speed = f", {rounds / seconds:,.0f} rows/s" if seconds > 2.0 else ""  # below that, loading the kernel counts most
    console.print(f"{seconds:.2f} s{speed}", highlight=False)
    for doubt in doubts(runs[0]):
        console.print(f"warning: {doubt}", style="yellow", highlight=False, markup=False)
