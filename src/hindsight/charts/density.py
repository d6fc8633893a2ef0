"""Learning curves of densities and of classifiers built from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .drawing import COLOURS, FONT, altair, coloured, drawn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def learning_curves(curves: Mapping[str, Sequence[tuple[int, float]]], title: str, subtitle: str, y: str) -> Any:
    """Draw curves over the number of rows, on a logarithmic axis, each with its name at its end.

    Parameters
    ----------
    curves : mapping of str to sequence of (int, float)
        For each learner, pairs of the number of rows seen and the value after them.
    title, subtitle : str
        Title and subtitle of the chart.
    y : str
        Title of the vertical axis.

    Returns
    -------
    altair.LayerChart
        The chart; `styled` sets its fonts.
    """
    alt = altair()
    values: list[dict[str, Any]] = [
        {"rows": r, "value": v, "learner": name} for name, points in curves.items() for r, v in points
    ]
    ends: list[dict[str, Any]] = [
        {"rows": points[-1][0], "value": points[-1][1], "learner": name} for name, points in curves.items()
    ]
    spread_ends(ends, [v["value"] for v in values])
    colour = coloured("learner", dict(zip(curves, COLOURS, strict=False)), legend=None)
    first, last = (end(v["rows"] for v in values) for end in (min, max))
    ticks = [t * 10**k for k in range(10) for t in (1, 2, 5) if first <= t * 10**k <= last]
    rows = alt.X(
        "rows:Q",
        title="rows seen",
        scale=alt.Scale(type="log", domain=[first, last], nice=False),
        axis=alt.Axis(format=",~r", values=ticks if len(ticks) < 9 else [t for t in ticks if str(t)[0] == "1"]),
    )
    tip = ["learner:N", "rows:Q", "value:Q"]
    lines = (
        drawn(values).mark_line(strokeWidth=2).encode(x=rows, y=alt.Y("value:Q", title=y), color=colour, tooltip=tip)
    )
    names = drawn(ends).mark_text(align="left", dx=6, fontSize=12, font=FONT)
    names = names.encode(x=rows, y="place:Q", text="learner:N", color=colour)
    return (lines + names).properties(width=480, height=300, title=alt.TitleParams(title, subtitle=subtitle))


def spread_ends(ends: list[dict[str, Any]], values: Sequence[float]) -> None:
    """Set the height of each name, so that the names of lines that end close together do not overlap."""
    gap = 0.06 * (max(values) - min(values)) or 1.0
    last = None
    for end in sorted(ends, key=lambda e: e["value"]):
        end["place"] = end["value"] if last is None else max(end["value"], last + gap)
        last = end["place"]
