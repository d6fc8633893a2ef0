"""Charts, in files: the suffix says which kind."""

from __future__ import annotations

import html
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


SUFFIXES = (".png", ".svg", ".html")
COLOURS = ("#0969da", "#bc4c00", "#1a7f37", "#8250df", "#cf222e")
FONT = "Helvetica, Arial, sans-serif"


def check(path: str) -> None:
    """Refuse a suffix that names no kind of chart, before any work is done."""
    if not path.endswith(SUFFIXES):
        raise ValueError(f"{path}: a chart is written to a file that ends with {', '.join(SUFFIXES)}")
    altair()


def altair() -> Any:
    """The library that draws."""
    try:
        import altair
        import vl_convert  # noqa: F401
    except ImportError:
        raise ValueError("charts need altair and vl-convert: pip install hindsight-learn[charts]") from None
    return altair


def write(chart: Any, path: str, words: str = "") -> None:
    """Write it; a page has the words above the chart, and needs nothing from outside."""
    check(path)
    chart = chart.configure(padding={"left": 10, "right": 20, "top": 10, "bottom": 10}, background="white")
    chart = chart.configure_view(stroke=None).configure_axis(
        labelFont=FONT,
        titleFont=FONT,
        labelFontSize=12,
        titleFontSize=13,
        gridColor="#eaeef2",
        titleFontWeight="normal",
    )
    chart = chart.configure_title(font=FONT, fontSize=16, anchor="start", subtitleFont=FONT, subtitleFontSize=12)
    chart = chart.configure_legend(labelFont=FONT, titleFont=FONT, labelFontSize=12, symbolStrokeWidth=3)
    options: dict[str, Any] = {"inline": True} if path.endswith(".html") else {}
    if path.endswith(".png"):
        options["scale_factor"] = 2
    try:
        chart.save(path, **options)
        if words and path.endswith(".html"):
            page = Path(path).read_text(encoding="utf-8")
            style = f"font: 15px/1.5 {FONT}; max-width: 60em; margin: 2em 1em; white-space: pre-wrap"
            told = f'<body>\n<pre style="{style}">{html.escape(words)}</pre>'
            before, _, after = page.rpartition("<body>")  # the script in the head has one too
            Path(path).write_text(before + told + after, encoding="utf-8")
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None


def learning_curves(curves: Mapping[str, Sequence[tuple[int, float]]], title: str, subtitle: str, y: str) -> Any:
    """Lines over the number of rows (a logarithmic axis), each with its name beside its end."""
    alt = altair()
    values: list[dict[str, Any]] = [
        {"rows": r, "value": v, "learner": name} for name, points in curves.items() for r, v in points
    ]
    ends: list[dict[str, Any]] = [
        {"rows": points[-1][0], "value": points[-1][1], "learner": name} for name, points in curves.items()
    ]
    spread(ends, [v["value"] for v in values])
    colour = alt.Color("learner:N", legend=None, scale=alt.Scale(domain=list(curves), range=COLOURS[: len(curves)]))
    first, last = (end(v["rows"] for v in values) for end in (min, max))
    ticks = [t * 10**k for k in range(10) for t in (1, 2, 5) if first <= t * 10**k <= last]
    rows = alt.X(
        "rows:Q",
        title="rows seen",
        scale=alt.Scale(type="log", domain=[first, last], nice=False),
        axis=alt.Axis(format=",~r", values=ticks if len(ticks) < 9 else [t for t in ticks if str(t)[0] == "1"]),
    )
    lines = (
        alt.Chart(alt.Data(values=values))
        .mark_line(strokeWidth=2)
        .encode(x=rows, y=alt.Y("value:Q", title=y), color=colour, tooltip=["learner:N", "rows:Q", "value:Q"])
    )
    names = (
        alt.Chart(alt.Data(values=ends))
        .mark_text(align="left", dx=6, fontSize=12, font=FONT)
        .encode(x=rows, y="place:Q", text="learner:N", color=colour)
    )
    return (lines + names).properties(width=480, height=300, title=alt.TitleParams(title, subtitle=subtitle))


def spread(ends: list[dict[str, Any]], values: Sequence[float]) -> None:
    """Places for the names, apart from each other where the lines end close together."""
    gap = 0.06 * (max(values) - min(values)) or 1.0
    last = None
    for end in sorted(ends, key=lambda e: e["value"]):
        end["place"] = end["value"] if last is None else max(end["value"], last + gap)
        last = end["place"]
