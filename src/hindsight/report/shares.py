"""How the weight of a panel moved between its members, as a picture."""

from __future__ import annotations

import html
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..certificates.certificate import Certificate

WIDTH, HEIGHT, LEFT, RIGHT, BOTTOM = 720, 240, 70, 290, 30
FAMILIES = {"running": "#0969da", "diagonal-newton": "#bf8700", "ridge": "#1a7f37", "newton": "#1a7f37"}
OTHER = "#8250df"


def shares_chart(certificate: Certificate) -> str:
    """The weights of the members after 1, 2, 4, ... rounds, stacked, as SVG; members of one kind share a colour."""
    rounds = [mark.rounds for mark in certificate.path]
    members = [member for member in certificate.members if len(member.course) == len(rounds)]
    if len(rounds) < 2 or not members:
        return ""
    last = math.log10(rounds[-1])

    def x(count: int) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * math.log10(count) / last

    def y(share: float) -> float:
        return 10 + (HEIGHT - BOTTOM - 10) * (1.0 - share)

    parts, below, named = [], [0.0] * len(rounds), 0
    kinds = [member.name.partition("(")[0] for member in members]
    for k, member in enumerate(members):
        above = [low + share for low, share in zip(below, member.course, strict=True)]
        line = [(x(r), y(v)) for r, v in zip(rounds, above, strict=True)]
        line += [(x(r), y(v)) for r, v in reversed(list(zip(rounds, below, strict=True)))]
        colour, among = FAMILIES.get(kinds[k], OTHER), kinds[:k].count(kinds[k])
        light = 1.0 - 0.16 * among
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in line)
        title = html.escape(f"{member.name}: {100 * member.share:.1f} % at the end")
        style = f'fill="{colour}" fill-opacity="{light:.2f}" stroke="#ffffff" stroke-width="0.5"'
        parts.append(f'<polygon {style} points="{points}"><title>{title}</title></polygon>')
        if max(member.course) >= 0.05:
            at = 22 + 16 * named
            named += 1
            parts.append(
                f'<rect x="{WIDTH - RIGHT + 14}" y="{at - 9}" width="10" height="10" fill="{colour}" '
                f'fill-opacity="{light:.2f}"/>'
            )
            text = html.escape(f"{member.name} {100 * member.share:.0f} %")
            parts.append(f'<text x="{WIDTH - RIGHT + 30}" y="{at}">{text}</text>')
        below = above
    for share in (0.0, 0.5, 1.0):
        parts.append(f'<text x="{LEFT - 8}" y="{y(share) + 4:.1f}" text-anchor="end">{100 * share:g} %</text>')
    for k in range(int(last) + 1):
        parts.append(f'<text x="{x(10**k):.1f}" y="{HEIGHT - 8}" text-anchor="middle">{10**k:,}</text>')
    parts.append(f'<text x="{WIDTH - RIGHT + 14}" y="{HEIGHT - 8}">rounds</text>')
    label = "the weight of each member along the run (those that reached 5 %, with their weight at the end)"
    picture = f'<svg role="img" aria-label="{label}" viewBox="0 0 {WIDTH} {HEIGHT}" width="100%">{"".join(parts)}</svg>'
    return f"<figure><figcaption>{label}</figcaption>{picture}</figure>"
