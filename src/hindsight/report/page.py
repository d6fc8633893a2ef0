"""A page in HTML: each certificate, with the loss of its run drawn against the comparator's and the bound."""

from __future__ import annotations

import html
import math
from typing import TYPE_CHECKING

from ..content_policy import policy_tag
from ..storage.container import write_text
from .shares import shares_chart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..certificates.certificate import Certificate


STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 52em; padding: 0 1em; color: #1f2328 }
h1 { font-size: 1.4em } table { border-collapse: collapse; font-variant-numeric: tabular-nums }
td, th { text-align: right; padding: .1em 1em .1em 0 } li { list-style: none } ul { padding: 0 }
svg text { font: 12px system-ui, sans-serif; fill: #57606a }
"""
WIDTH, HEIGHT, LEFT, BOTTOM = 720, 320, 70, 30
SERIES = (("bound", "#9a6700", "6 4"), ("measured", "#0969da", ""), ("comparator", "#1a7f37", "2 3"))


def write_page(path: str, source: str, about: str, certificates: Sequence[Certificate]) -> None:
    """Write certificates as one HTML page that loads nothing from elsewhere.

    Parameters
    ----------
    path : str
        The file to write.
    source : str
        The name of the data.
    about : str
        The data in a few words.
    certificates : sequence of Certificate
        What to show.

    Raises
    ------
    ValueError
        If the file cannot be written.
    """
    title = f"Hindsight: {source}"
    body = "".join(chart(c) + shares_chart(c) + c._repr_html_() for c in certificates)
    text = (
        f'<!doctype html><html lang="en"><meta charset="utf-8">{policy_tag(styles=[STYLE])}'
        f"<title>{html.escape(title)}</title><style>{STYLE}</style><h1>{html.escape(title)}</h1><p>{html.escape(about)}</p>{body}</html>\n"
    )
    write_text(path, [text])


def chart(certificate: Certificate) -> str:
    """The losses of the run and the comparator, and the bound, after 1, 2, 4, ... rounds, with logarithmic axes."""
    points = {name: [(c.rounds, getattr(c, name)) for c in certificate.path] for name, _, _ in SERIES}
    values = [v for pairs in points.values() for _, v in pairs if math.isfinite(v) and v > 0.0]
    if len(certificate.path) < 2 or not values:
        return ""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    high = max(high, low + 1)
    last = math.log10(certificate.path[-1].rounds)

    def x(rounds: int) -> float:
        return LEFT + (WIDTH - LEFT - 90) * math.log10(rounds) / last

    def y(value: float) -> float:
        return 10 + (HEIGHT - BOTTOM - 10) * (high - math.log10(value)) / (high - low)

    parts = []
    for k in range(low, high + 1):
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - 90}" y1="{y(10**k):.1f}" y2="{y(10**k):.1f}" stroke="#d0d7de"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y(10**k) + 4:.1f}" text-anchor="end">{10.0**k:g}</text>')
    for k in range(int(last) + 1):
        parts.append(f'<text x="{x(10**k):.1f}" y="{HEIGHT - 8}" text-anchor="middle">{10**k:,}</text>')
    parts.append(f'<text x="{WIDTH - 84}" y="{HEIGHT - 8}">rounds</text>')
    ends: list[float] = []
    for name, colour, dash in SERIES:
        drawn = [(x(r), y(v)) for r, v in points[name] if math.isfinite(v) and v > 0.0]
        if not drawn:
            continue
        line = " ".join(f"{a:.1f},{b:.1f}" for a, b in drawn)
        parts.append(
            f'<polyline fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}" points="{line}"/>'
        )
        end = drawn[-1][1]
        while any(abs(end - other) < 14 for other in ends):
            end += 14
        ends.append(end)
        parts.append(f'<text x="{WIDTH - 84}" y="{end + 4:.1f}" style="fill:{colour}">{name}</text>')
    label = html.escape(f"{certificate.quantity} so far, of the run and the comparator, and the bound")
    picture = f'<svg role="img" aria-label="{label}" viewBox="0 0 {WIDTH} {HEIGHT}" width="100%">{"".join(parts)}</svg>'
    return f"<figure><figcaption>{label}</figcaption>{picture}</figure>"
