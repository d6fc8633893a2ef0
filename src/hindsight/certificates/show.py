"""HTML cards for notebooks, legible on light and on dark pages."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from .theorems import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

# In between, so that they can be read on white and on black; text takes the colour of the page.
TONES = {
    Verdict.HOLDS: "#2da44e",
    Verdict.VOID: "#c08a00",
    Verdict.UNCHECKABLE: "#808a94",
    Verdict.BROKEN: "#e5534b",
}
PLAIN = "#3b8eea"


def card(title: str, lines: Sequence[str], tone: str = PLAIN, more: str = "", rest: Sequence[str] = ()) -> str:
    """Return a card in HTML.

    Parameters
    ----------
    title : str
        The title, in the colour of the card.
    lines : sequence of str
        Lines above the title, such as the main figures.
    tone : str
        The colour of the card.
    more : str
        HTML below.
    rest : sequence of str
        Lines below the title.
    """
    above = "".join(f'<p style="margin:0 0 .3em"><b>{html.escape(line)}</b></p>' for line in lines)
    below = "".join(f'<li style="list-style:none">{html.escape(line)}</li>' for line in rest)
    below = f'<ul style="margin:.3em 0;padding:0">{below}</ul>' if below else ""
    return (
        f'<div style="border:1px solid #8888;border-left:5px solid {tone};border-radius:6px;padding:.6em 1em;'
        f'margin:.4em 0;max-width:60em;color:inherit;background:transparent;font-family:system-ui,sans-serif">'
        f'{above}<b style="color:{tone}">{html.escape(title)}</b>{below}{more}</div>'
    )


def folded(summary: str, inside: str) -> str:
    """Return HTML that unfolds on a click."""
    return f'<details><summary style="cursor:pointer">{html.escape(summary)}</summary>{inside}</details>'
