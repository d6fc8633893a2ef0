"""`hindsight compare` and `hindsight calibrate`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table as Grid

from ..errors import OptionError
from .app import app, one_line_errors
from .text import as_is, place_in_file, print_lines, print_title, split

if TYPE_CHECKING:
    import numpy as np

    from ..forecast import Band, Comparison, Interval, Reliability

FILE = typer.Argument(metavar="FILE", help="A table with a column of outcomes and one column per forecaster.")
OUTCOME = typer.Option(
    "--outcome", metavar="COLUMN", help="The column of the outcomes: 0 or 1; numbers with --loss quadratic."
)
WEIGHT = typer.Option(
    "--weight", metavar="COLUMN", help="The column with the importance of each row, fixed before its outcome."
)
LOSS = typer.Option("--loss", help="square (Brier), log, or quadratic for outcomes that are numbers.")
CHART = typer.Option("--chart", metavar="PICTURE", help="Draw a chart: a path that ends in .png, .svg or .html.")
JSON = typer.Option("--json", help="Print the result as JSON instead of tables.")
FIXED = {"ranges": "Hoeffding", "bernstein": "empirical Bernstein", "mixture": "mixture"}
ANYTIME = {**FIXED, "ranges": "normal mixture"}
PARTS = (
    "MCB, miscalibration: what isotonic recalibration would save. DSC, discrimination: what the recalibrated forecast",
    "saves over always forecasting the mean outcome. UNC, uncertainty: the loss of that. Mean loss = MCB - DSC + UNC.",
)


@app.command()
def compare(
    source: Annotated[str, FILE],
    outcome: Annotated[str, OUTCOME],
    forecasts: Annotated[str, typer.Option(metavar="A,B,...", help="The columns of the forecasters.")],
    weight: Annotated[str | None, WEIGHT] = None,
    loss: Annotated[str, LOSS] = "square",
    bounds: Annotated[str | None, typer.Option(metavar="LOW,HIGH", help="quadratic: where all outcomes lie.")] = None,
    alpha: Annotated[
        float, typer.Option(help="All intervals of one kind hold together, except with this probability.")
    ] = 0.05,
    anytime: Annotated[
        bool, typer.Option("--anytime", help="Judge by the confidence sequence, valid whenever you look or stop.")
    ] = False,
    by: Annotated[
        str, typer.Option(help="The interval to judge by, chosen in advance: mixture, ranges or bernstein.")
    ] = "mixture",
    horizon: Annotated[
        float | None,
        typer.Option(help="Rounds that confidence sequences and e-values are tuned for, named in advance.  [1000]"),
    ] = None,
    lag: Annotated[int, typer.Option(help="How many rounds ahead forecasts were made; 1 is the next round.")] = 1,
    chart: Annotated[str | None, CHART] = None,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Which forecaster is closer to the truth that nobody sees: mean losses, differences, and a verdict.

    Rows are in the order of time, and every forecast was fixed before its outcome. A difference estimates the mean over
    the rounds of what each difference was expected to be, given the past; for the square loss that is exactly the
    difference of the mean squared distances to the unknown probabilities.
    """
    with one_line_errors():
        from ..training.outputs import check_outputs

        check_outputs({"chart": chart}, source)
        _compare(
            source, outcome, split(forecasts), weight, loss, bounds, (alpha, anytime, by, horizon, lag), chart, as_json
        )


@app.command()
def calibrate(
    source: Annotated[str, FILE],
    outcome: Annotated[str, OUTCOME],
    forecast: Annotated[str, typer.Option(metavar="A[,B,...]", help="The column of the forecast, or several.")],
    weight: Annotated[str | None, WEIGHT] = None,
    loss: Annotated[str, LOSS] = "square",
    band: Annotated[str, typer.Option(help="The band of the chart: consistency, confidence or none.")] = "consistency",
    level: Annotated[float, typer.Option(help="The fraction of the resampled fits inside the band.")] = 0.9,
    resamples: Annotated[int, typer.Option(help="The number of resampled fits.")] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of the resampling.")] = 0,
    chart: Annotated[str | None, CHART] = None,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """How well forecasts are calibrated: mean loss = miscalibration − discrimination + uncertainty.

    Forecasts are recalibrated by isotonic regression, equal ones together. --chart draws reliability diagrams.
    """
    with one_line_errors():
        from ..training.outputs import check_outputs

        check_outputs({"chart": chart}, source)
        _calibrate(source, outcome, split(forecast), weight, loss, (band, level, resamples, seed), chart, as_json)


def _compare(
    source: str,
    outcome: str,
    names: list[str],
    weight: str | None,
    loss: str,
    bounds: str | None,
    judging: tuple[float, bool, str, float | None, int],
    chart: str | None,
    as_json: bool,
) -> None:
    from .. import charts
    from ..forecast import LaggedScores, Scores, comparison

    if chart is not None:
        charts.check(chart)
    limits = None if bounds is None else pair_of_numbers(bounds)
    alpha, anytime, by, horizon, lag = judging
    scores = Scores(names, loss, bounds=limits)
    if lag != 1:
        scores = LaggedScores(names, loss, bounds=limits, lag=lag)
    y, given, c = read(source, outcome, names, weight, scores.score)
    found = comparison(scores.update(y, given, c), alpha=alpha, anytime=anytime, by=by, horizon=horizon)
    if chart is not None:
        charts.save(picture(found, y, given, c, scores.score), chart)
    if as_json:
        print(json.dumps({"file": source, **found.to_dict()}, indent=2, ensure_ascii=False))
        return
    declared = f", bounds {bounds or 'not declared'}" if loss == "quadratic" else ""
    if lag > 1:
        declared += f", forecasts {lag} rounds ahead"
    show(source, f"outcome {outcome!r}, weight {weight or 'none'}, {loss} loss{declared}, α = {alpha:g}", found)


def picture(found: Comparison, y: Any, given: dict[str, Any], c: Any, score: Any) -> Any:
    """Differences, and for probabilities reliability diagrams below them."""
    from .. import charts
    from ..forecast import reliability

    if score.loss == "quadratic":
        return charts.together(found)
    each = {name: reliability(y, h, c, loss=score.loss) for name, h in given.items()}
    return charts.together(found, each, [one.band() for one in each.values()])


def show(source: str, settings: str, found: Comparison) -> None:
    """Print the tables, the verdicts and their assumptions."""
    console = Console()
    print_title(console, source, f"{found.rounds:,} rounds")
    kinds = ANYTIME if found.anytime else FIXED
    when = f"at every time, tuned for {found.horizon:,g} rounds" if found.anytime else "at this number of rounds"
    print_lines(console, [f"  {settings}", f"  verdict by the interval '{kinds[found.by]}', {when}", ""])
    grid = Grid("forecaster", box=None)
    grid.add_column("mean loss", justify="right")
    if found.best is not None:
        grid.add_column("e against being best", justify="right")
        grid.add_column("may be best")
    for name, mean in found.means.items():
        grid.add_row(as_is(name), f"{mean:.6g}", *standing(found, name))
    console.print(grid)
    console.print()
    grid = Grid("difference of", box=None)
    for column in ("mean losses", *kinds.values(), *([] if found.anytime else ["at every time"])):
        grid.add_column(column, justify="right")
    for pair in found.pairs:
        mine = pair.anytime if found.anytime else pair.fixed
        each = [getattr(mine, kind, None) for kind in kinds]
        if not found.anytime:
            each.append(getattr(pair.anytime, found.by, None))
        widths = [half_width(pair.difference, interval) for interval in each]
        grid.add_row(as_is(f"{pair.first} − {pair.second}"), f"{pair.difference:.6g}", *widths)
    console.print(grid)
    print_lines(console, ["", *found.lines()])


def standing(found: Comparison, name: str) -> list[str]:
    """The e-value against a forecaster's being among the best, and by which of the two sets it may be the best."""
    from ..forecast.evidence import shown

    if found.best is None:
        return []
    sets = {"by intervals": found.best.by_intervals, "by evidence": found.best.by_evidence}
    inside = [label for label, names in sets.items() if name in names]
    return [shown(found.best.log_e[name]), "yes" if len(inside) == 2 else ", ".join(inside) or "no"]


def half_width(difference: float, interval: Interval | None) -> str:
    """How far an interval reaches from the difference; VOID where nothing is promised."""
    return "VOID" if interval is None else f"± {max(interval.high - difference, difference - interval.low):.4g}"


def _calibrate(
    source: str,
    outcome: str,
    names: list[str],
    weight: str | None,
    loss: str,
    bands: tuple[str, float, int, int],
    chart: str | None,
    as_json: bool,
) -> None:
    from .. import charts
    from ..forecast import Score, reliability
    from ..validation import choice

    kind, level, resamples, seed = bands
    choice("--band", kind, ("consistency", "confidence", "none"))
    if chart is not None:
        charts.check(chart)
    score = Score(loss)
    y, given, c = read(source, outcome, names, weight, score)
    each = {name: reliability(y, h, c, loss=loss) for name, h in given.items()}
    if chart is not None:
        wanted = kind != "none" and loss != "quadratic"
        made: list[Band | None] = [
            one.band(kind, level=level, resamples=resamples, seed=seed) if wanted else None for one in each.values()
        ]
        charts.save(charts.diagrams(each, made), chart)
    if as_json:
        found = {name: one.to_dict() for name, one in each.items()}
        print(json.dumps({"file": source, "forecasts": found}, indent=2, ensure_ascii=False))
        return
    settings = f"outcome {outcome!r}, weight {weight or 'none'}, {loss} loss"
    if chart is not None:
        settings += f", band {kind}, level {level:g}, {resamples:,} resamples, seed {seed}"
    show_calibration(source, settings, each)


def show_calibration(source: str, settings: str, each: dict[str, Reliability]) -> None:
    """Print the decompositions, one row per forecast."""
    console, first = Console(), next(iter(each.values()))
    print_title(console, source, f"{first.rounds:,} rounds, mean outcome {first.mean:.6g}")
    print_lines(console, [f"  {settings}", ""])
    grid = Grid("forecast", box=None)
    for column in ("mean loss", "= miscalibration", "− discrimination", "+ uncertainty", "levels"):
        grid.add_column(column, justify="right")
    for name, one in each.items():
        parts = (one.score, one.miscalibration, one.discrimination, one.uncertainty)
        grid.add_row(as_is(name), *(f"{part:.6g}" for part in parts), f"{one.pools.value.size:,}")
    console.print(grid)
    print_lines(console, ["", *PARTS])


# ---------------------------------------------------------------- reading


def read(
    source: str, outcome: str, names: list[str], weight: str | None, score: Any
) -> tuple[np.ndarray, dict[str, np.ndarray], np.ndarray | None]:
    """Outcomes, forecasts and weights of a file, checked; an error names the file, the line, the column, the value."""
    from ..errors import RowError
    from ..forecast.scores import numbers, weights
    from ..sources import read_columns

    table = read_columns(source, [outcome, *names, *([] if weight is None else [weight])])
    try:
        y = score.outcomes(table[outcome], outcome)
        given = {name: score.forecasts(table[name], name) for name in names}
        c = None if weight is None else weights(numbers(table[weight], weight), y.size)
    except RowError as error:
        message = error.message.replace(
            "loss='quadratic'", "--loss quadratic --bounds LOW,HIGH, as 0,1 for half points"
        )
        raise ValueError(f"{place_in_file(source, error.row)}{message}") from None
    return y, given, c


def pair_of_numbers(text: str) -> tuple[float, float]:
    """LOW,HIGH as two numbers."""
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise OptionError("bounds", f"must be LOW,HIGH, two numbers; got {text!r}") from None
    return low, high
