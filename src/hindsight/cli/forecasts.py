"""`hindsight compare` and `hindsight calibrate`."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..errors import OptionError
from ..training.options import option, pair_of_numbers, split
from .application import verb
from .text import check_chart, place_in_file, print_json, print_lines, print_table, print_title

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

    from ..forecast import Band, CalibrationTest, Comparison, Interval, Pair, Reliability, Score, Scores

FIXED = {"ranges": "Hoeffding", "bernstein": "empirical Bernstein", "mixture": "mixture"}
ANYTIME = {**FIXED, "ranges": "normal mixture"}
PARTS = (
    "MCB, miscalibration: what isotonic recalibration would save. DSC, discrimination: what the recalibrated forecast",
    "saves over always forecasting the mean outcome. UNC, uncertainty: the loss of that. Mean loss = MCB - DSC + UNC.",
)


@dataclass(frozen=True)
class ForecastOptions:
    """Which columns of a table are forecasts, and how they are scored."""

    source: str = option(
        "A table with a column of outcomes and one column per forecaster.", argument=True, metavar="FILE"
    )
    outcome: str = option(
        "The column of the outcomes: 0 or 1, a class, or a number, as the loss wants it. A row without an outcome is "
        "counted and not scored.",
        default=..., metavar="COLUMN",
    )  # fmt: skip
    weight: str | None = option(
        "The column with the importance of each row, fixed before its outcome.", metavar="COLUMN"
    )
    loss: str = option(
        "square (Brier) or log for probabilities; for numbers: quadratic or poisson (counts) for means, pinball for "
        "quantiles, winkler for intervals.",
        default="square",
    )
    bounds: tuple[float, float] | None = option(
        "Where all outcomes lie that are numbers; needed for quadratic and poisson.", read=pair_of_numbers,
        metavar="LOW,HIGH",
    )  # fmt: skip
    quantile: float | None = option("pinball: which quantile is forecast, as 0.9.", metavar="Q")
    classes: Sequence[str] | None = option(
        "The classes that outcomes are labels of, for square and log.", read=split, metavar="X,Y,..."
    )
    lag: int = option("How many rounds ahead forecasts were made; 1 is the next round.", default=1)
    chart: str | None = option("Draw a chart: a path that ends in .png, .svg or .html.", metavar="PICTURE")
    as_json: bool = option("Print the result as JSON instead of tables.", "--json", default=False)

    @cached_property
    def score(self) -> Score:
        """The loss of the forecasts; its errors name the options."""
        from ..forecast import Score

        classes = None if self.classes is None else tuple(self.classes)
        try:
            return Score(self.loss, self.bounds, self.quantile, getattr(self, "coverage", None), classes)
        except ValueError as error:
            text = re.sub(r"loss='(\w+)'", r"--loss \1", str(error))
            raise ValueError(re.sub(r"(needs|takes no) (\w+)$", r"\1 --\2", text)) from None

    def settings(self) -> str:
        """The options in words."""
        score = self.score
        out = f"outcome {self.outcome!r}, weight {self.weight or 'none'}, {score.loss} loss"
        if score.quantile is not None:
            out += f", quantile {score.quantile:g}"
        if score.coverage is not None:
            out += f", coverage {score.coverage:g}"
        if score.classes is not None:
            out += f", classes {', '.join(score.parts)}"
        if score.bounds is not None:
            out += f", bounds {score.bounds[0]:g},{score.bounds[1]:g}"
        out += ", bounds not declared" if score.missing else ""
        return out + (f", forecasts {self.lag} rounds ahead" if self.lag > 1 else "")


@dataclass(frozen=True)
class CompareOptions(ForecastOptions):
    """Which forecasters are compared, and with which intervals."""

    forecasts: Sequence[str] = option(
        "The columns of the forecasters. With --classes x,y those named A:x and A:y, with --loss winkler A:low and "
        "A:high; in columns named otherwise a star stands for the class: 'A_*' for A_x and A_y.", default=...,
        read=split, metavar="A,B,...",
    )  # fmt: skip
    coverage: float | None = option("winkler: the probability that the intervals are to hold, as 0.9.")
    late: str | None = option("A table with outcomes that came later, in the order in which they came.", metavar="FILE")
    row_id: str | None = option(
        "The column that says in both files which row is which; without it --late has a column 'row', from 1.", "--id",
        metavar="COLUMN",
    )  # fmt: skip
    alpha: float = option("All intervals of one kind hold together, except with this probability.", default=0.05)
    anytime: bool = option(
        "Judge by the confidence sequence, valid whenever you look or stop.", "--anytime", default=False
    )
    by: str = option("The interval to judge by, chosen in advance: mixture, ranges or bernstein.", default="mixture")
    horizon: float | None = option("Rounds that intervals and e-values are tuned for, named in advance.  [1000]")


@dataclass(frozen=True)
class CalibrateOptions(ForecastOptions):
    """Which forecasts are recalibrated, and the band around them."""

    forecasts: Sequence[str] = option(
        "The column of the forecast, or several.", "--forecast", default=..., read=split, metavar="A[,B,...]"
    )
    band: str = option("The band of the chart: consistency, confidence or none.", default="consistency")
    level: float = option("The fraction of the resampled fits inside the band.", default=0.9)
    resamples: int = option("The number of resampled fits.", default=1000)
    seed: int = option("Seed of the resampling.", default=0)


@verb()
def compare(how: CompareOptions) -> None:
    """Compare forecasters: mean losses, differences with intervals, and which is closer to the unknown truth.

    Rows are in the order of time, and every forecast was fixed before its outcome. A difference estimates the mean over
    the rounds of what each difference was expected to be, given the past; for the square loss that is exactly the
    difference of the mean squared distances to the unknown probabilities.
    """
    from .. import charts
    from ..forecast import Scores, comparison

    check_chart(how.chart, how.source)
    score, names = how.score, [shown_name(name) for name in how.forecasts]
    options = {k: getattr(score, k) for k in ("bounds", "quantile", "coverage", "classes")}
    scores = Scores(names, score.loss, lag=how.lag, **options)
    y, outcomes, given, c, ids = read_forecasts(how, how.row_id)
    scores.update(outcomes, given, c, ids)
    if how.late is not None:
        bring(how, how.late, scores, y, ids)
    found = comparison(scores, alpha=how.alpha, anytime=how.anytime, by=how.by, horizon=how.horizon)
    if how.chart is not None:
        charts.save(comparison_chart(found, y, given, c, score), how.chart)
    if how.as_json:
        print_json({"file": how.source, **found.to_dict()})
        return
    show_comparison(how.source, f"{how.settings()}, α = {how.alpha:g}", found)


@verb()
def calibrate(how: CalibrateOptions) -> None:
    """Test how well forecasts are calibrated: mean loss = miscalibration − discrimination + uncertainty, and a test.

    Forecasts are recalibrated by isotonic regression, equal ones together, and each class against the rest. The e-value
    against "this forecaster is calibrated" holds whenever you look: rows are in the order of time, and each forecast
    knew the earlier outcomes (those --lag rounds before it). --chart draws reliability diagrams, and the e-value along
    the stream.
    """
    from .. import charts
    from ..forecast import calibration_test, reliability
    from ..forecast.scores import NUMERIC
    from ..validation import choice

    check_chart(how.chart, how.source)
    score = how.score
    choice("--band", how.band, ("consistency", "confidence", "none"))
    if score.loss == "winkler":
        raise OptionError("loss", "winkler is calibrated end by end: take --loss pinball --quantile Q for each end")
    y, outcomes, given, c, _ = read_forecasts(how)
    options: dict[str, Any] = {"loss": score.loss, "quantile": score.quantile}
    each = {name: reliability(seen, h, c, **options) for name, seen, h in one_by_one(y, given, score)}
    tests = None
    if not score.missing:
        options |= {"bounds": score.bounds, "classes": score.classes, "lag": how.lag}
        tests = {name: calibration_test(outcomes, h, c, **options) for name, h in given.items()}
    settings, banded = how.settings(), how.band != "none" and score.loss not in NUMERIC
    if how.chart is not None:
        drawn: dict[str, Any] = {"level": how.level, "resamples": how.resamples, "seed": how.seed}
        made: list[Band | None] = [one.band(how.band, **drawn) if banded else None for one in each.values()]
        charts.save(charts.diagrams(each, made, tests), how.chart)
        if score.loss not in NUMERIC:
            settings += f", band {how.band}, level {how.level:g}, {how.resamples:,} resamples, seed {how.seed}"
    if how.as_json:
        found = {
            name: (one_by_class(name, each, score) if score.classes else each[name].to_dict())
            | {"test": None if tests is None else tests[name].to_dict()}
            for name in given
        }
        print_json({"file": how.source, "forecasts": found})
        return
    show_calibration(how.source, settings, each, tests, score.classes is not None)


def bring(how: CompareOptions, path: str, scores: Scores, y: np.ndarray, ids: Any) -> None:
    """Add outcomes that arrived later, from a separate file, to the scores, and write them to `y`."""
    import numpy as np

    from ..forecast.scores import label_text as as_text
    from ..forecast.scores import numbers
    from ..sources import read_columns

    key = how.row_id or "row"
    found = read_columns(path, [key, how.outcome])
    with named_place(path, how):
        late = how.score.outcomes(found[how.outcome], how.outcome)
        keys = found[key]
        if how.row_id is None:
            keys = numbers(keys, key) - 1.0
    left = set(scores.waiting)
    for t, value in enumerate(keys.tolist()):
        if value not in left:
            where = f"{place_in_file(path, t)}, column {key!r}: {as_text(found[key][t].item())!r}"
            raise ValueError(f"{where} is no row of {how.source} that waits for its outcome")
        left.remove(value)
    scores.bring(keys, found[how.outcome])
    places = {k: t for t, k in enumerate(range(y.size) if ids is None else np.asarray(ids).tolist())}
    y[[places[k] for k in keys.tolist()]] = late


def comparison_chart(found: Comparison, y: Any, given: dict[str, Any], c: Any, score: Any) -> Any:
    """The chart of differences, for probabilities with reliability diagrams below."""
    from .. import charts
    from ..forecast import reliability

    if score.parts or score.loss not in ("square", "log"):
        return charts.together(found)
    each = {name: reliability(y, h, c, loss=score.loss) for name, h in given.items()}
    return charts.together(found, each, [one.band() for one in each.values()])


def show_comparison(source: str, settings: str, found: Comparison) -> None:
    """Print the tables, the verdicts and their assumptions."""
    print_title(source, f"{found.rounds:,} rounds")
    kinds = ANYTIME if found.anytime else FIXED
    when = f"at every time, tuned for {found.horizon:,g} rounds" if found.anytime else "at this number of rounds"
    print_lines([f"  {settings}", f"  verdict by the interval '{kinds[found.by]}', {when}", ""])
    columns = ["forecaster", "mean loss", *([] if found.best is None else ["e against being best", "may be best"])]
    means = [(name, f"{mean:.6g}", *standing(found, name)) for name, mean in found.means.items()]
    print_table(columns, means, left=["may be best"])
    print()
    columns = ["difference of", "mean losses", *kinds.values(), *([] if found.anytime else ["at every time"])]
    print_table(columns, ([f"{p.first} − {p.second}", f"{p.difference:.6g}", *widths(found, p)] for p in found.pairs))
    print_lines(["", *found.lines()])


def widths(found: Comparison, pair: Pair) -> list[str]:
    """The half-widths of the intervals of a pair, one of each kind, and that valid at every time."""
    mine = pair.anytime if found.anytime else pair.fixed
    each = [getattr(mine, kind, None) for kind in FIXED]
    if not found.anytime:
        each.append(getattr(pair.anytime, found.by, None))
    return [half_width(pair.difference, interval) for interval in each]


def standing(found: Comparison, name: str) -> list[str]:
    """The e-value against "this forecaster is among the best", and which of the two sets contain it."""
    from ..forecast.evidence import shown

    if found.best is None:
        return []
    sets = {"by intervals": found.best.by_intervals, "by evidence": found.best.by_evidence}
    inside = [label for label, names in sets.items() if name in names]
    return [shown(found.best.log_e[name]), "yes" if len(inside) == 2 else ", ".join(inside) or "no"]


def half_width(difference: float, interval: Interval | None) -> str:
    """The half-width of an interval; VOID if there is none."""
    return "VOID" if interval is None else f"± {max(interval.high - difference, difference - interval.low):.4g}"


def one_by_one(y: Any, given: dict[str, Any], score: Score) -> Iterator[tuple[str, Any, Any]]:
    """Outcomes and forecasts as single numbers, by name; for classes each against the rest."""
    import numpy as np

    for name, h in given.items():
        if score.classes is None:
            yield name, y, h
        for k, part in enumerate(score.parts):
            yield f"{name}:{part}", np.where(np.isnan(y), y, y == k), h[:, k]


def one_by_class(name: str, each: dict[str, Reliability], score: Score) -> dict[str, Any]:
    """The decompositions of a forecaster of classes, for JSON."""
    return {"classes": {part: each[f"{name}:{part}"].to_dict() for part in score.parts}}


def show_calibration(
    source: str, settings: str, each: dict[str, Reliability], tests: dict[str, CalibrationTest] | None, classes: bool
) -> None:
    """Print the decompositions, and the evidence against calibration below them."""
    from ..forecast.scores import waiting_words

    first = next(iter(each.values()))
    mean = "" if classes else f", {first.centre} {first.mean:.6g}"
    print_title(source, f"{first.rounds:,} rounds{mean}")
    print_lines([f"  {settings}", ""])
    columns = ("forecast", "mean loss", "= MCB", "− DSC", "+ UNC", "levels")
    names = ("score", "miscalibration", "discrimination", "uncertainty")
    parts = {name: [f"{getattr(one, part):.6g}" for part in names] for name, one in each.items()}
    print_table(columns, ([name, *parts[name], f"{one.pools.value.size:,}"] for name, one in each.items()))
    quantiles = first.loss == "pinball"
    lines = [line.replace("the mean outcome", "the outcomes' quantile") for line in PARTS] if quantiles else [*PARTS]
    if classes:
        lines.append("Each class is scored against the rest, and tested together with the others.")
    if first.waiting:
        lines.append(f"{waiting_words(first.waiting)} not scored.")
    if tests is None:
        lines.append("Not tested for calibration: that needs --bounds LOW,HIGH, between which all outcomes lie.")
    else:
        lines += ["", *(f"{name}: {test.words}" for name, test in tests.items())]
        lines += next(iter(tests.values())).lines()[1:]
    print_lines(["", *lines])


# ---------------------------------------------------------------- reading


def column_of(name: str, part: str) -> str:
    """The column of one component of a forecast: its name replaces the star, or follows a colon."""
    return name.replace("*", part) if "*" in name else f"{name}:{part}"


def shown_name(name: str) -> str:
    """The name of a forecaster: the name of its columns without the star and the separator before it."""
    return name.replace("*", "").strip(" :_.-") or name if "*" in name else name


def read_forecasts(
    how: CompareOptions | CalibrateOptions, row_id: str | None = None
) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray], np.ndarray | None, Any]:
    """Outcomes as numbers and as read, forecasts, weights and ids of a file, checked; an error names the file, line,
    column and value.
    """
    import numpy as np

    from ..forecast.scores import numbers, weights
    from ..sources import read_columns

    score, parts = how.score, how.score.parts
    columns = {name: [column_of(name, part) for part in parts] or [name] for name in how.forecasts}
    wanted = [how.outcome, *itertools.chain(*columns.values())]
    wanted += [name for name in (how.weight, row_id) if name is not None]
    found = read_columns(how.source, wanted, [how.outcome])
    with named_place(how.source, how):
        outcomes = emptied(found[how.outcome], score)
        y = score.outcomes(outcomes, how.outcome, missing=True)
        given = {}
        for name, each in columns.items():
            values = np.stack([numbers(found[column], column) for column in each], axis=1)
            given[shown_name(name)] = score.forecasts(values if parts else values[:, 0], shown_name(name))
        c = None if how.weight is None else weights(numbers(found[how.weight], how.weight), y.size)
    return y, outcomes, given, c, None if row_id is None else found[row_id]


def emptied(values: np.ndarray, score: Score) -> np.ndarray:
    """Outcomes in which all texts for a missing value are replaced by NaN, or by an empty label."""
    import numpy as np

    from ..sources.tables.plain_layout import MISSING_TEXTS

    if values.dtype.kind != "U":
        return values
    texts = [text for text in MISSING_TEXTS if text not in score.parts]
    return np.where(np.isin(values, texts), "" if score.classes is not None else "nan", values)


@contextmanager
def named_place(source: str, how: CompareOptions | CalibrateOptions) -> Iterator[None]:
    """Make errors of rows name the file, line and column, and options instead of arguments."""
    from ..errors import RowError

    try:
        yield
    except RowError as error:
        text = error.message.replace("loss='quadratic'", "--loss quadratic --bounds LOW,HIGH, as 0,1 for half points")
        for name in how.forecasts:
            for part in how.score.parts:
                text = text.replace(repr(f"{shown_name(name)}:{part}"), repr(column_of(name, part)))
        raise ValueError(f"{place_in_file(source, error.row)}{text}") from None
