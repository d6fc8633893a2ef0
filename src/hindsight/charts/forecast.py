"""Charts of forecasters: differences along the stream with confidence sequences, and reliability diagrams."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from ..formatting import _plain
from .drawing import GREY, altair, diagonal, drawn, headed, records, rule
from .evidence import best, evidence, watched
from .runs import LONG, rounds_axis

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..forecast.calibrated import CalibrationTest
    from ..forecast.calibration import Band, Reliability
    from ..forecast.comparison import Comparison


LINE, AREA, WARM = "#0969da", "#54aeff", "#bc4c00"
SIZE, LOW = 230, 60  # of a diagram, and of the histogram below it
BINS = 20
PARTS = [
    "MCB: what recalibration would save",
    "DSC: what the recalibrated saves over the mean outcome",
    "UNC: the loss of the mean outcome",
]


def differences(comparison: Comparison) -> Any:
    """Draw the mean difference of each pair after each round, with its confidence sequence, one panel per pair.

    Parameters
    ----------
    comparison : Comparison
        The result of `hindsight.forecast.compare`. Pairs with identical forecasts are left out.

    Returns
    -------
    altair.ConcatChart
        The chart.
    """
    from ..forecast.comparison import Finding

    alt = altair()
    shown = [k for k, pair in enumerate(comparison.pairs) if pair.finding is not Finding.IDENTICAL]
    return alt.concat(*(difference(comparison, k) for k in shown or [0]), columns=2, spacing=30)


def difference(comparison: Comparison, pair: int = 0) -> Any:
    """Draw the mean difference of one pair after each round; below 0 the first forecaster is closer to the truth.

    Parameters
    ----------
    comparison : Comparison
        The result of `hindsight.forecast.compare`.
    pair : int, default 0
        Index of the pair in ``comparison.pairs``.

    Returns
    -------
    altair.LayerChart
        The chart.
    """
    from ..forecast.comparison import Finding

    alt = altair()
    two, path = comparison.pairs[pair], comparison.path(pair)
    promised = np.isfinite(path.low)
    late = path.rounds >= path.rounds[-1] / 10  # the first rounds are as wide as can be, and would hide the rest
    wide = (path.high - path.low)[promised & late].max(initial=0.0)
    top = max(1.5 * np.abs(path.difference[late]).max(), wide) or 1.0
    values = _plain(records(rounds=path.rounds, difference=path.difference, low=path.low, high=path.high))
    last = int(path.rounds[-1])
    x = rounds_axis(last >= LONG, 1.0, last)
    scale = alt.Scale(domain=[-top, top], nice=True)
    y_title = f"loss of {two.first} − loss of {two.second}"
    base, y = drawn(values), alt.Y("difference:Q", title=y_title, scale=scale, axis=alt.Axis(format="~g"))
    layers = [rule("y", GREY), base.mark_line(color=LINE, strokeWidth=2, clip=True).encode(x=x, y=y)]
    if promised.any():
        band = base.mark_area(color=AREA, opacity=0.3, clip=True)
        layers.insert(0, band.encode(x=x, y=alt.Y("low:Q", scale=scale), y2="high:Q"))
    level = f"{100 * (1 - comparison.alpha):g} % confidence sequence"
    many = f" (all {len(comparison.pairs)} pairs at once)" if len(comparison.pairs) > 1 else ""
    note = f"mean {comparison.loss} loss so far, with its {level}{many}" if promised.any() else two.words
    words = "VOID: nothing is promised" if two.finding is Finding.VOID else two.words.split(": ")[0]
    lines = textwrap.wrap(note.removeprefix("VOID: "), 85)
    return alt.layer(*layers).properties(width=360, height=220, title=headed(words, lines))


def diagrams(
    found: Mapping[str, Reliability],
    bands: Sequence[Band | None] = (),
    tests: Mapping[str, CalibrationTest] | None = None,
) -> Any:
    """Draw reliability diagrams, three per row, and below them the evidence against calibration.

    Parameters
    ----------
    found : mapping of str to Reliability
        The forecasters by name.
    bands : sequence of Band or None, default ()
        One per diagram, or empty for none.
    tests : mapping of str to CalibrationTest or None, default None
        The results of `hindsight.forecast.calibration_test` by forecaster; None draws no evidence.

    Returns
    -------
    altair.ConcatChart or altair.VConcatChart
        The chart.
    """
    alt = altair()
    each = list(bands) or [None] * len(found)
    parts = [diagram(name, one, band) for (name, one), band in zip(found.items(), each, strict=True)]
    quantiles = any(one.loss == "pinball" for one in found.values())
    lines = [line.replace("mean outcome", "outcomes' quantile") for line in PARTS] if quantiles else PARTS
    note = alt.Title(lines, orient="bottom", anchor="start", fontSize=11, fontWeight="normal", color=GREY)
    above = alt.concat(*parts, columns=3, spacing=30).properties(title=note)
    return above if tests is None else alt.vconcat(above, watched(tests), spacing=40)


def diagram(name: str, found: Reliability, band: Band | None = None) -> Any:
    """Draw one reliability diagram: forecasts against their recalibrated values, over a histogram of the forecasts.

    Parameters
    ----------
    name : str
        Title of the diagram.
    found : Reliability
        The result of `hindsight.forecast.reliability`.
    band : Band, default None
        A consistency or confidence band behind the curve.

    Returns
    -------
    altair.VConcatChart
        The chart.
    """
    from ..forecast.scores import NUMERIC

    alt = altair()
    if found.loss in NUMERIC:
        low, high = float(found.forecast.min()), float(found.forecast.max())
        low, high = min(low, float(found.pools.value[0])), max(high, float(found.pools.value[-1]))
    else:
        low, high = 0.0, 1.0
    unit = alt.Scale(domain=[low, high if high > low else low + 1.0], nice=False)
    x = alt.X("forecast:Q", title=None, scale=unit, axis=alt.Axis(labels=False, tickCount=5))
    y = alt.Y("should:Q", title="recalibrated", scale=unit, axis=alt.Axis(tickCount=5))
    at, level = found.pools.knots()
    line = records(forecast=at, should=level)
    layers = [diagonal(x, y, (low, high), color=GREY, strokeWidth=1)]
    note = f"MCB {found.miscalibration:.4f} · DSC {found.discrimination:.4f} · UNC {found.uncertainty:.4f}"
    lines = [f"mean {found.loss} loss {found.score:.4f} = MCB − DSC + UNC", note]
    if band is not None:
        values = records(forecast=band.at, should=band.low, high=band.high)
        area = drawn(values)
        wide = len(values) > 1
        area = area.mark_area(color=AREA, opacity=0.3) if wide else area.mark_rule(color=AREA, opacity=0.3, size=8)
        layers.insert(0, area.encode(x=x, y=y, y2="high:Q"))
        lines.append(f"{100 * band.level:g} % {band.kind} band, {band.resamples:,} resamples, seed {band.seed}")
    curve = drawn(line)
    layers.append(curve.mark_line(color=WARM, strokeWidth=2).encode(x=x, y=y))
    if len(line) <= 200:
        layers.append(curve.mark_point(color=WARM, filled=True, size=18, opacity=1).encode(x=x, y=y))
    top = alt.layer(*layers).properties(width=SIZE, height=SIZE, title=headed(name, lines))
    counts, edges = np.histogram(found.forecast, BINS, unit.domain, weights=found.weight)
    bars = drawn(records(left=edges[:-1], right=edges[1:], count=counts))
    few = alt.Axis(tickCount=2, labelExpr="format(datum.value, '~s')", grid=False)
    below = bars.mark_bar(color=GREY, opacity=0.5, binSpacing=1).encode(
        x=alt.X("left:Q", title="forecast", scale=unit, bin="binned", axis=alt.Axis(tickCount=5)),
        x2="right:Q",
        y=alt.Y("count:Q", title="rounds", axis=few),
    )
    below = below.properties(width=SIZE, height=LOW)
    return alt.vconcat(top, below, spacing=4)


def together(
    comparison: Comparison, found: Mapping[str, Reliability] | None = None, bands: Sequence[Band | None] = ()
) -> Any:
    """Draw the differences of pairs, the evidence, which forecasters may be the best, and reliability diagrams.

    Parameters
    ----------
    comparison : Comparison
        As for `differences`.
    found : mapping of str to Reliability or None, default None
        As for `diagrams`; None draws none.
    bands : sequence of Band or None, default ()
        As for `diagrams`.

    Returns
    -------
    altair.VConcatChart
        The chart.
    """
    parts = [differences(comparison), evidence(comparison)]
    parts.append(best(comparison) if len(comparison.names) > 2 else None)
    parts.append(None if found is None else diagrams(found, bands))
    shown = [part for part in parts if part is not None]
    return altair().vconcat(*shown, spacing=40).resolve_scale(color="independent")
