"""Formulas of built pages as pictures within the page: they need neither a script nor a font to be read."""

from __future__ import annotations

import html
import re
from pathlib import Path

SIZE = 16.0  # pixels per em
FORMULA = re.compile(r'<(span|div) class="arithmatex">\s*(?:\\\(|\\\[)(.*?)(?:\\\)|\\\])\s*</\1>', re.DOTALL)
SYMBOL = re.compile(r'<symbol id="([^"]+)"([^>]*/>|.*?</symbol>)', re.DOTALL)
HEAD = re.compile(r'<svg [^>]*viewBox="(\S+) (\S+) (\S+) (\S+)">')


def draw(page: Path) -> None:
    """Replace the formulas of a page."""
    text = page.read_text(encoding="utf-8")
    if FORMULA.search(text) is None:
        return
    glyphs: dict[str, str] = {}  # names of shapes; each is on the page once
    text = FORMULA.sub(lambda match: picture(html.unescape(match[2]), match[1] == "div", glyphs), text)
    shapes = "".join(f'<symbol id="{name}"{shape}' for shape, name in glyphs.items())
    text = text.replace("</body>", f'<svg width="0" height="0" style="position: absolute">{shapes}</svg></body>')
    page.write_text(text, encoding="utf-8")


def picture(latex: str, block: bool, glyphs: dict[str, str]) -> str:
    """A formula as SVG that stands on the line of the text and has its colour."""
    import ziamath

    latex = " ".join(latex.split())
    drawn = ziamath.Latex(latex, size=SIZE, inline=not block).svg()
    names = {}
    for name, shape in SYMBOL.findall(drawn):
        names[name] = glyphs.setdefault(shape, f"glyph{len(glyphs)}")
    drawn = SYMBOL.sub("", drawn)
    drawn = re.sub(r'href="#([^"]+)"', lambda match: f'href="#{names[match[1]]}"', drawn).replace(
        '"black"', '"currentColor"'
    )
    left, top, width, height = map(float, HEAD.match(drawn).groups())
    style = (
        f"width: {width / SIZE:.3f}em; height: {height / SIZE:.3f}em; vertical-align: {-(top + height) / SIZE:.3f}em"
    )
    label = html.escape(latex, quote=True)
    head = f'<svg role="img" aria-label="{label}" style="{style}" viewBox="{left} {top} {width} {height}">'
    drawn = HEAD.sub(lambda _: head, drawn)
    return f'<div class="formula">{drawn}</div>' if block else f'<span class="formula">{drawn}</span>'
