"""Charts of evidence: e-values of pairs and against calibration along the stream, and against being the best."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .drawing import COLOURS, GREY, altair, coloured, drawn, headed, rule
from .runs import LONG, rounds_axis

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..forecast.calibrated import CalibrationTest
    from ..forecast.comparison import Comparison

FLOOR = -2.0  # of log10 e in a chart: less is no evidence, and how much less says little
WIDTH = 360


def evidence(comparison: Comparison) -> Any:
    """Draw the e-values of each pair after each round, in both directions, one panel per pair.

    Parameters
    ----------
    comparison : Comparison
        The result of `hindsight.forecast.compare`. Pairs with identical forecasts and VOID pairs are left out.

    Returns
    -------
    altair.ConcatChart or None
        The chart; None if there is no pair to draw.
    """
    from ..forecast.comparison import Finding

    left_out = (Finding.IDENTICAL, Finding.VOID)
    shown = [k for k, pair in enumerate(comparison.pairs) if pair.finding not in left_out]
    if not shown:
        return None
    panels = [pair_evidence(comparison, k) for k in shown]
    return altair().concat(*panels, columns=2, spacing=30).resolve_scale(color="independent")


def pair_evidence(comparison: Comparison, pair: int = 0) -> Any:
    """Draw the e-values of one pair after each round, in both directions.

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
    two, path = comparison.pairs[pair], comparison.path(pair)
    labels = [f"{two.first} is better", f"{two.second} is better"]
    paths = {label: (path.rounds, e) for label, e in zip(labels, (path.log_first, path.log_second), strict=True)}
    return e_values(paths, f"Evidence: {two.first} and {two.second}", comparison.alpha)


def watched(tests: Mapping[str, CalibrationTest]) -> Any:
    """Draw the e-values against "this forecaster is calibrated" after each round, one line per forecaster.

    Parameters
    ----------
    tests : mapping of str to CalibrationTest
        The tests by the names of the forecasters. At the dashed line calibration is rejected.

    Returns
    -------
    altair.LayerChart
        The chart.
    """
    from ..forecast.calibrated import ALPHA

    paths = {name: (test.rounds, test.log_e) for name, test in tests.items()}
    return e_values(paths, "Evidence against calibration", ALPHA)


def e_values(paths: Mapping[str, tuple[np.ndarray, np.ndarray]], title: str, alpha: float) -> Any:
    """Draw e-values along the stream.

    Parameters
    ----------
    paths : mapping of str to (ndarray of int, ndarray)
        Numbers of rounds, and ln of the e-values after them, by the label of the line.
    title : str
        The title.
    alpha : float
        The dashed line is at 1/alpha.

    Returns
    -------
    altair.LayerChart
        The chart.
    """
    alt = altair()
    finite = [float(e) / math.log(10.0) for _, each in paths.values() for e in each if e < math.inf]
    top = max(2.5, *finite) if finite else 2.5
    values: list[dict[str, Any]] = [
        {"rounds": int(m), "e": min(1.1 * top, max(FLOOR, float(e) / math.log(10.0))), "for": label}
        for label, (rounds, each) in paths.items()
        for m, e in zip(rounds, each, strict=True)
    ]
    top = max(top, *(v["e"] for v in values))
    last = max(2, *(int(rounds[-1]) for rounds, _ in paths.values()))
    x = rounds_axis(last >= LONG, 1.0, last)
    y = e_axis("Y", "e-value", top)
    inks = {label: COLOURS[k % len(COLOURS)] for k, label in enumerate(paths)}
    below = alt.Legend(orient="bottom", symbolStrokeWidth=3, labelLimit=300)
    colour = coloured("for", inks, title=None, legend=below)
    lines = drawn(values).mark_line(strokeWidth=2).encode(x=x, y=y, color=colour)
    note = f"dashed: {1.0 / alpha:,.4g}, ever reached by chance with probability {alpha:g} at most"
    layers = alt.layer(rule("y", GREY, -math.log10(alpha)), lines)
    return layers.properties(width=WIDTH, height=180, title=headed(title, note))


def e_axis(kind: str, title: str, top: float) -> Any:
    """A logarithmic axis of e-values: "X" or "Y"."""
    alt = altair()
    look = alt.Axis(labelExpr="'1e' + format(datum.value, '~g')", tickCount=6, tickMinStep=1)
    return getattr(alt, kind)("e:Q", title=title, scale=alt.Scale(domain=[FLOOR, top], nice=False), axis=look)


def best(comparison: Comparison) -> Any:
    """Draw, for each forecaster, the e-value against "it is among the best", after closure.

    Parameters
    ----------
    comparison : Comparison
        The result of `hindsight.forecast.compare`.

    Returns
    -------
    altair.LayerChart or None
        The chart; None if a difference has no known range.
    """
    if comparison.best is None:
        return None
    alt, inside = altair(), comparison.best.by_evidence
    labels = ["may be best", "left out"]
    values: list[dict[str, Any]] = [
        {"name": name, "e": max(FLOOR, float(np.divide(e, math.log(10.0)))), "is": labels[name not in inside]}
        for name, e in comparison.best.log_e.items()
    ]
    top = max(2.5, *(v["e"] for v in values))
    x = e_axis("X", "e-value against being among the best", top)
    y = alt.Y("name:N", title=None, sort=list(comparison.names), axis=alt.Axis(labelLimit=200, ticks=False))
    below = alt.Legend(orient="bottom", symbolType="circle", symbolStrokeWidth=0)
    colour = coloured("is", dict(zip(labels, (COLOURS[2], GREY), strict=True)), title=None, legend=below)
    dots = drawn(values).mark_circle(size=90, opacity=1).encode(x=x, y=y, color=colour)
    note = f"right of the dashed line at any time: left out (family-wise error {comparison.alpha:g}, at every time)"
    layers = alt.layer(rule("x", GREY, -math.log10(comparison.alpha)), dots)
    return layers.properties(width=WIDTH, height=28 * len(values), title=headed("Who may be the best", note))
