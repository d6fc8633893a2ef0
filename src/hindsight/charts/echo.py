"""The chart of an echo that was cancelled: how much over time, and the spectra before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..formatting import _plain
from .drawing import COLOURS, altair
from .thinning import thinned

if TYPE_CHECKING:
    from ..echo.result import Cancelled

BEFORE, AFTER = "microphone", "echo cancelled"
PAIR = [COLOURS[1], COLOURS[0]]
WIDTH = 620


def echo(found: Cancelled, title: str = "Echo cancelled", near: tuple[float, float] | None = None) -> Any:
    """Draw the echo return loss enhancement over time, the levels before and after, and their spectra.

    Parameters
    ----------
    found : Cancelled
        What `hindsight.echo.cancel` returned.
    title : str, default "Echo cancelled"
        Above the chart.
    near : pair of float, default None
        From when to when, in seconds, somebody talked at the near end, where that is known: it is shaded.

    Returns
    -------
    altair.VConcatChart
        The chart.
    """
    alt = altair()
    enhancement = over_time(found, near)
    half = 0.5 * found.duration
    hz, before, after = found.spectra(half)
    spectrum = [
        {"hz": float(f), "level": level(p), "signal": name}
        for name, powers in ((BEFORE, before), (AFTER, after))
        for f, p in zip(hz[1:], powers[1:], strict=True)
    ]
    levels = [
        {"time": float(t), "level": level(p), "signal": name}
        for name, powers in ((BEFORE, found.mic_power), (AFTER, found.clean_power))
        for t, p in thinned(found.times, powers)
    ]
    colour = alt.Color(
        "signal:N", title=None, scale=alt.Scale(domain=[BEFORE, AFTER], range=PAIR),
        legend=alt.Legend(orient="top-right"),
    )  # fmt: skip
    low = alt.Scale(zero=False)
    loudness = (
        alt.Chart(alt.Data(values=levels))
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("time:Q", title="seconds", axis=alt.Axis(tickCount=8)),
            y=alt.Y("level:Q", title="dB of full scale", scale=low), color=colour,
            tooltip=["signal:N", "time:Q", "level:Q"],
        )
        .properties(width=WIDTH // 2 - 38, height=190, title="How loud")
    )  # fmt: skip
    spectra = (
        alt.Chart(alt.Data(values=spectrum))
        .mark_line(strokeWidth=1.5)
        .encode(
            x=alt.X("hz:Q", title="kHz", axis=alt.Axis(labelExpr="datum.value / 1000", tickCount=6)),
            y=alt.Y("level:Q", title="dB per Hz", scale=low),
            color=alt.Color("signal:N", scale=alt.Scale(domain=[BEFORE, AFTER], range=PAIR), legend=None),
            tooltip=["signal:N", "hz:Q", "level:Q"],
        )
        .properties(width=WIDTH // 2 - 38, height=190, title=f"Spectra from {half:.3g} s on")
    )  # fmt: skip
    taps, rate = found.canceller.taps, found.rate
    note = (
        f"{taps:,} taps ({1000 * taps / rate:.3g} ms at {rate / 1000:g} kHz), η = {found.canceller.eta:.3g}, "
        f"{found.real_time_factor:,.0f} times faster than real time"
    )
    top = enhancement.properties(width=WIDTH, height=200, title=alt.TitleParams(title, subtitle=note))
    return alt.vconcat(top, alt.hconcat(loudness, spectra, spacing=30), spacing=24).resolve_scale(color="shared")


def over_time(found: Cancelled, near: tuple[float, float] | None) -> Any:
    """The enhancement in dB, with near-end talk shaded."""
    alt = altair()
    values = [{"time": float(t), "erle": _plain(float(e))} for t, e in thinned(found.times, found.erle)]
    x = alt.X("time:Q", title="seconds", axis=alt.Axis(tickCount=10))
    y = alt.Y("erle:Q", title="echo return loss enhancement, dB")
    line = alt.Chart(alt.Data(values=values)).mark_line(color=COLOURS[0], strokeWidth=2.5)
    layers = [line.encode(x=x, y=y, tooltip=["time:Q", "erle:Q"])]
    if near is not None:
        shade = alt.Chart(alt.Data(values=[{"from": near[0], "to": near[1], "text": "near-end talk"}]))
        layers.insert(
            0, shade.mark_rect(color=COLOURS[1], opacity=0.12).encode(x=alt.X("from:Q", title="seconds"), x2="to:Q")
        )
        words = shade.mark_text(align="left", baseline="top", dx=6, dy=6, fontSize=12, color=COLOURS[1])
        layers.append(words.encode(x="from:Q", y=alt.value(0), text="text:N"))
    return alt.layer(*layers)


def level(power: float) -> float | None:
    """Decibels; None for silence."""
    return None if power <= 0.0 else float(10.0 * np.log10(power))
