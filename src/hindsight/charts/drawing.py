"""What all charts share: the library that draws them, their style, and the file they are saved to."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

SUFFIXES = (".png", ".svg", ".html")
COLOURS = ("#0969da", "#bc4c00", "#1a7f37", "#8250df", "#cf222e")
FONT = "Helvetica, Arial, sans-serif"


def altair() -> Any:
    """Import altair, with a clear error where it is not installed.

    Returns
    -------
    module
        The `altair` module.

    Raises
    ------
    ValueError
        If altair or vl-convert is missing.
    """
    try:
        import altair
        import vl_convert  # noqa: F401
    except ImportError:
        raise ValueError("charts need altair and vl-convert: pip install hindsight-learn[charts]") from None
    return altair


def check(path: str) -> str:
    """Check that a chart can be saved to a path, before any work is done.

    Parameters
    ----------
    path : str
        Where the chart is to be saved.

    Returns
    -------
    str
        The suffix of the path: ".png", ".svg" or ".html".

    Raises
    ------
    ValueError
        If the suffix is none of these, or if the library that draws is missing.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"{path}: a chart must end in {', '.join(SUFFIXES)}; got {suffix or 'no suffix'}")
    altair()
    return suffix


def styled(chart: Any) -> Any:
    """A chart with the fonts, margins and colours of learning curves.

    Parameters
    ----------
    chart : altair.TopLevelMixin
        The whole chart: altair allows this configuration only at the top level.

    Returns
    -------
    altair.TopLevelMixin
        A copy with the configuration.
    """
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
    return chart.configure_legend(labelFont=FONT, titleFont=FONT, labelFontSize=12, symbolStrokeWidth=3)


def save(chart: Any, path: str, text: str = "") -> None:
    """Save a chart as PNG, SVG or a self-contained HTML page, by the suffix of the path.

    Parameters
    ----------
    chart : altair.TopLevelMixin
        The chart.
    path : str
        A file that ends in .png, .svg or .html.
    text : str, default ""
        Text above the chart, in an HTML page only.

    Raises
    ------
    ValueError
        If the suffix is none of these, if the library that draws is missing, or if the file cannot be written.
    """
    suffix = check(path)
    by_suffix: dict[str, dict[str, Any]] = {".png": {"scale_factor": 2}, ".html": {"inline": True}}
    try:
        chart.save(path, format=suffix[1:], **by_suffix.get(suffix, {}))
        if text and suffix == ".html":
            page = Path(path).read_text(encoding="utf-8")
            style = f"font: 15px/1.5 {FONT}; max-width: 60em; margin: 2em 1em; white-space: pre-wrap"
            shown = f'<body>\n<pre style="{style}">{html.escape(text)}</pre>'
            before, _, after = page.rpartition("<body>")  # the script in the head contains the tag too
            Path(path).write_text(before + shown + after, encoding="utf-8")
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
