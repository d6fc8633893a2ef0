"""What all charts share: the library that draws them, their style, and saving to files."""

from __future__ import annotations

import functools
import html
import json
import re
import zlib
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..content_policy import policy_tag
from ..errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ..kernels.floats import Floats

POINTS = 2000  # of a curve, at most
SUFFIXES = (".png", ".svg", ".html")
COLOURS = ("#0969da", "#bc4c00", "#1a7f37", "#8250df", "#cf222e")
GREY = "#57606a"
FONT = "Helvetica, Arial, sans-serif"
STYLE = f"""
pre {{ font: 15px/1.5 {FONT}; max-width: 60em; margin: 2em 1em; white-space: pre-wrap }}
#vg-tooltip-element {{ visibility: hidden; position: fixed; padding: 8px; font: 12px {FONT}; background: white;
  border: 1px solid #d0d7de }}
#vg-tooltip-element.visible {{ visibility: visible }}
"""
# Expressions are interpreted and no style is added, so that a page needs no right to run text or style itself. The menu
# is left out: it shows the specification as a page of its own, and sends it to a web site.
EMBEDDING = {"mode": "vega-lite", "ast": True, "actions": False, "defaultStyle": False}
EMBEDDING["tooltip"] = {"disableDefaultStyle": True}


def altair() -> Any:
    """Import altair, with a clear error if it is not installed.

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


@contextmanager
def unvalidated() -> Iterator[None]:
    """Build charts without validating each part against the Vega-Lite schema, which the tests do."""
    altair()
    from altair.utils import schemapi

    with schemapi.debug_mode(False):
        yield


def drawn(data: Any) -> Any:
    """A chart without marks: of the given rows, or of a named dataset of a page."""
    alt = altair()
    return alt.Chart(alt.NamedData(name=data) if isinstance(data, str) else alt.Data(values=data))


def records(**columns: Any) -> list[dict[str, Any]]:
    """Columns of numbers as the rows that a chart takes.

    Examples
    --------
    >>> records(x=np.arange(2), y=[0.5, 1.0])
    [{'x': 0, 'y': 0.5}, {'x': 1, 'y': 1.0}]
    """
    plain = [column.tolist() if isinstance(column, np.ndarray) else column for column in columns.values()]
    return [dict(zip(columns, values, strict=True)) for values in zip(*plain, strict=True)]


def line_rows(lines: Mapping[str, Iterable[tuple[float, float]]], x: str = "rounds") -> list[dict[str, Any]]:
    """The points of lines by the name of the line, as the rows that a chart takes."""
    return [{x: at, "value": value, "line": name} for name, points in lines.items() for at, value in points]


def diagonal(x: Any, y: Any, ends: Iterable[float], **look: Any) -> Any:
    """The dashed line on which both axes have the same value."""
    fields = [axis.shorthand.removesuffix(":Q") for axis in (x, y)]
    mark = drawn([dict.fromkeys(fields, end) for end in ends]).mark_line(strokeDash=[4, 3], **look)
    return mark.encode(x=x, y=y)


def rule(channel: str, colour: str, at: float = 0, *, dashed: bool = True) -> Any:
    """A line across a chart at a value of "x" or "y"."""
    dash = {"strokeDash": [4, 3]} if dashed else {}
    return drawn([{"at": at}]).mark_rule(color=colour, **dash).encode(**{channel: "at:Q"})


def coloured(field: str, inks: dict[str, str], **more: Any) -> Any:
    """The colour of each value of a field."""
    alt = altair()
    return alt.Color(f"{field}:N", scale=alt.Scale(domain=list(inks), range=list(inks.values())), **more)


def tips(**fields: str | tuple[str, str]) -> list[Any]:
    """Tooltips: fields of names ("N") or of numbers, given by their format or by title and format."""
    alt, out = altair(), []
    for field, look in fields.items():
        title, form = look if isinstance(look, tuple) else (None, look)
        kind = "N" if form == "N" else "Q"
        more = {"title": title, "format": None if form in ("N", "") else form}
        out.append(alt.Tooltip(f"{field}:{kind}", **{name: value for name, value in more.items() if value is not None}))
    return out


def headed(text: str, subtitle: Any) -> Any:
    """The title of one of several charts, with smaller lines below it."""
    look = {"anchor": "start", "fontSize": 13, "subtitleColor": GREY, "subtitleFontSize": 11}
    return altair().Title(text, subtitle=subtitle, **look)


def check(path: str) -> str:
    """Check in advance that a chart can be saved to a path.

    Parameters
    ----------
    path : str
        The path of the file.

    Returns
    -------
    str
        The suffix of the path: ".png", ".svg" or ".html".

    Raises
    ------
    ValueError
        If the suffix is not one of these, or the drawing library is missing.
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
    """Save a chart as PNG, SVG or a self-contained HTML page, depending on the suffix of the path.

    Parameters
    ----------
    chart : altair.TopLevelMixin
        The chart.
    path : str
        A file that ends in .png, .svg or .html.
    text : str, default ""
        Text above the chart; only for HTML pages.

    Raises
    ------
    ValueError
        If the suffix is not one of these, the drawing library is missing, or the file cannot be written.
    """
    suffix = check(path)
    try:
        if suffix == ".html":
            Path(path).write_text(page(chart, text), encoding="utf-8", errors="backslashreplace")
        else:
            chart.save(path, format=suffix[1:], **({"scale_factor": 2} if suffix == ".png" else {}))
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None


def page(chart: Any, text: str = "") -> str:
    """Return a self-contained HTML page that draws a chart; it does not execute anything contained in the chart.

    Parameters
    ----------
    chart : altair.TopLevelMixin
        The chart.
    text : str, default ""
        Text above the chart.
    """
    code = library()
    # In JSON a "<" stands inside strings alone, where it can be written in another way: no tag begins.
    given = ", ".join(json.dumps(value).replace("<", "\\u003c") for value in (chart.to_dict(validate=False), EMBEDDING))
    draw = f"vegaEmbed('#chart', {given});"
    above = f"<pre>{html.escape(text)}</pre>" if text else ""
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8">{policy_tag([code, draw], [STYLE])}'
        f"<title>Hindsight</title><style>{STYLE}</style>{above}"
        f'<div id="chart"></div><script>{code}</script><script>{draw}</script></html>\n'
    )


@functools.cache
def library() -> str:
    """Return the script that defines `vegaEmbed`, which draws charts in a page.

    vl-convert takes more than a second to bundle it, so it is cached in a file per version; if no file can be written,
    every process bundles it anew.
    """
    from importlib.metadata import version

    vega_lite = ".".join(altair().SCHEMA_VERSION.split(".")[:2])
    folder = cache_folder()
    path = None if folder is None else folder / f"vega-embed-{version('vl-convert-python')}-{vega_lite}.js"
    code = None if path is None else stored_script(path)
    if code is None:
        import vl_convert

        code = within_script(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vega_lite))
        if path is not None:
            store_script(path, code)
    return code


def cache_folder() -> Path | None:
    """The folder in which numba caches the compiled kernels; None if it does not cache them."""
    from ..kernels import play

    path = play.stats.cache_path if hasattr(play, "stats") else None  # not where NUMBA_DISABLE_JIT is set
    return None if path is None else Path(path)


def stored_script(path: Path) -> str | None:
    """The script in a file; None if there is no file, or its first line is not the checksum of the rest."""
    try:
        first, _, rest = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    return rest.decode() if first == script_checksum(rest) else None


def store_script(path: Path, code: str) -> None:
    """Write a script with its checksum atomically; do nothing if that is not possible."""
    from ..storage.container import write_text

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(str(path), [script_checksum(code.encode()).decode(), "\n", code])
    except (OSError, ModelError):
        pass


def script_checksum(code: bytes) -> bytes:
    """The first line of a script file: its checksum as a JavaScript comment."""
    return b"// %08x" % zlib.crc32(code)


def within_script(code: str) -> str:
    """Return JavaScript without text that a page could take for the end of the script or for an HTML comment."""
    return re.sub(r"<(/script|!--)", r"<\\\1", code, flags=re.IGNORECASE)


def thinned(x: Floats, y: Floats, points: int = POINTS) -> Iterator[tuple[float, float]]:
    """The points of a curve; for a long curve the first, lowest, highest and last point of each of many pieces, in
    order.

    Examples
    --------
    >>> x = np.arange(10_000.0)
    >>> y = np.where(x == 777, 5.0, 0.0)
    >>> kept = list(thinned(x, y, 100))
    >>> len(kept) <= 100, (777.0, 5.0) in kept
    (True, True)
    """
    if len(x) <= points:
        return zip(x.tolist(), y.tolist(), strict=True)
    edges = np.linspace(0, len(x), points // 4 + 1).astype(int)
    keep = set()
    for a, b in pairwise(edges):
        piece = y[a:b]
        known = np.flatnonzero(np.isfinite(piece))
        keep |= {int(a), int(b) - 1}
        if known.size:
            keep |= {int(a + known[piece[known].argmin()]), int(a + known[piece[known].argmax()])}
    order = np.array(sorted(keep))
    return zip(x[order].tolist(), y[order].tolist(), strict=True)
