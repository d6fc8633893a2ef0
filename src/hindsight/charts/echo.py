"""The chart of echo cancellation: the attenuation over time, and the spectra before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..formatting import _plain
from .drawing import COLOURS, altair, coloured, drawn, thinned

if TYPE_CHECKING:
    from ..echo.result import Cancelled

BEFORE, AFTER = "microphone", "echo cancelled"
PAIR = {BEFORE: COLOURS[1], AFTER: COLOURS[0]}
WIDTH, HALF = 640, 274
SETTLED = 2.0  # seconds after which a filter has learnt its room


def echo(
    found: Cancelled,
    title: str = "Echo cancelled",
    *,
    near: tuple[float, float] | None = None,
    between: tuple[float, float] | None = None,
) -> Any:
    """Draw the echo return loss enhancement over time, the levels before and after, and their spectra.

    Parameters
    ----------
    found : Cancelled
        The result of `hindsight.echo.cancel`.
    title : str, default "Echo cancelled"
        Title and subtitle of the chart.
    near : pair of float, default None
        Start and end, in seconds, of near-end talk, if known; this range is shaded.
    between : pair of float, default None
        Start and end, in seconds, of the range used for the spectra; None is from second 2, or the middle of a shorter
        signal, to the end.

    Returns
    -------
    altair.VConcatChart
        The chart; `styled` sets its fonts.
    """
    alt = altair()
    taps, rate, duration = found.canceller.taps, found.rate, found.duration
    start, end = (min(SETTLED, 0.5 * duration), duration) if between is None else between
    note = (
        f"{taps:,} taps ({1000 * taps / rate:.3g} ms at {rate / 1000:g} kHz), {found.canceller.setting}, "
        f"{found.real_time_factor:,.0f} times faster than real time"
    )
    top = over_time(found, near).properties(width=WIDTH, height=190, title=alt.TitleParams(title, subtitle=note))
    levels = curves(
        "time", {BEFORE: thinned(found.times, found.mic_power), AFTER: thinned(found.times, found.clean_power)}
    )
    hz, before, after = found.spectra(start, end)
    spectra = curves("hz", {BEFORE: thinned(hz[1:], before[1:]), AFTER: thinned(hz[1:], after[1:])})
    seconds = alt.X("time:Q", title="seconds", axis=alt.Axis(tickCount=6))
    pitch = alt.X("hz:Q", title="kHz", axis=alt.Axis(labelExpr="datum.value / 1000", tickCount=6))
    left = pair(levels, seconds, "dB of full scale").properties(title="How loud")
    right = pair(spectra, pitch, "dB per Hz").properties(title=f"Spectra, seconds {start:.3g} to {end:.3g}")
    below = alt.hconcat(left, right, spacing=32).resolve_scale(color="shared")
    return alt.vconcat(top, below, spacing=24)


def over_time(found: Cancelled, near: tuple[float, float] | None) -> Any:
    """The enhancement in dB, with near-end talk shaded."""
    alt = altair()
    values = [{"time": t, "erle": _plain(e)} for t, e in thinned(found.times, found.erle)]
    x = alt.X("time:Q", title="seconds", axis=alt.Axis(tickCount=10))
    line = drawn(values).mark_line(color=COLOURS[0], strokeWidth=2.5)
    layers = [line.encode(x=x, y=alt.Y("erle:Q", title="echo cancelled, dB"), tooltip=["time:Q", "erle:Q"])]
    if near is not None:
        shade = drawn([{"from": near[0], "to": near[1], "text": "near-end talk"}])
        area = shade.mark_rect(color=COLOURS[1], opacity=0.12)
        layers.insert(0, area.encode(x=alt.X("from:Q", title="seconds"), x2="to:Q"))
        words = shade.mark_text(align="left", baseline="top", dx=6, dy=6, fontSize=12, color=COLOURS[1])
        layers.append(words.encode(x="from:Q", y=alt.value(0), text="text:N"))
    return alt.layer(*layers)


def curves(across: str, powers: dict[str, Any]) -> list[dict[str, Any]]:
    """Powers along an axis, in dB, by signal; None for silence."""
    return [
        {across: x, "level": float(10.0 * np.log10(p)) if p > 0.0 else None, "signal": name}
        for name, points in powers.items()
        for x, p in points
    ]


def pair(values: list[dict[str, Any]], x: Any, y: str) -> Any:
    """Both signals along an axis."""
    alt = altair()
    colour = coloured("signal", PAIR, legend=alt.Legend(orient="bottom", title=None))
    height = alt.Y("level:Q", title=y, scale=alt.Scale(zero=False))
    line = drawn(values).mark_line(strokeWidth=1.6)
    tip = ["signal:N", x.shorthand, "level:Q"]
    return line.encode(x=x, y=height, color=colour, tooltip=tip).properties(width=HALF, height=190)
