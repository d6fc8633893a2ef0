"""Build the documentation site in build/site: ``make docs``, or ``python scripts/build_docs.py``.

Pages are assembled in build/docs, with the outputs of their code and with the parts that are written from the package,
and Zensical makes the site of them; formulas become pictures within the page. The site loads nothing from elsewhere.
With ``--pictures`` the pictures that pages draw are also written to docs/pictures, made small.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import formulas
import reference
from pages import DOCS, ROOT, has_code, with_outputs

BUILD = ROOT / "build" / "docs"
SITE = ROOT / "build" / "site"


def assemble(keep: Path | None = None) -> None:
    """All pages in build/docs; pictures that they draw in a folder too, where one is given."""
    shutil.rmtree(BUILD, ignore_errors=True)
    shutil.copytree(DOCS, BUILD)
    for page in sorted(DOCS.rglob("*.md")):
        if has_code(page):
            played(page, keep)
    for name in ("CHANGELOG.md", "CONTRIBUTING.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        (BUILD / name.lower()).write_text(text.replace("](docs/", "]("), encoding="utf-8")
        for page in BUILD.rglob("*.md"):
            text = page.read_text(encoding="utf-8")
            page.write_text(text.replace(f"](../{name})", f"]({name.lower()})"), encoding="utf-8")
    fill("commands.md", "commands", reference.commands())
    fill("api/index.md", "api", reference.api_index())
    for name, text in reference.api().items():
        (BUILD / "api" / f"{name}.md").write_text(text, encoding="utf-8")


def played(page: Path, keep: Path | None) -> None:
    """A page with the outputs of its code, and the pictures that it drew."""
    with tempfile.TemporaryDirectory() as folder:
        text = with_outputs(page, Path(folder))
        for picture in Path(folder).glob("*.png"):
            shutil.copy(picture, BUILD / "pictures")
            if keep is not None:
                shutil.copy(picture, keep)
    (BUILD / page.relative_to(DOCS)).write_text(text, encoding="utf-8")


def fill(page: str, mark: str, text: str) -> None:
    """Replace a mark on a page by what is written from the code."""
    whole = (BUILD / page).read_text(encoding="utf-8")
    wanted = f"<!-- generated: {mark} -->"
    if wanted not in whole:
        raise ValueError(f"docs/{page} has no line {wanted}")
    (BUILD / page).write_text(whole.replace(wanted, text), encoding="utf-8")


def build() -> None:
    """The site of what was assembled, with a search that works in a folder too; formulas are not drawn yet."""
    subprocess.run([sys.executable, "-m", "zensical", "build", "--clean", "--strict"], cwd=ROOT, check=True)
    index = (SITE / "search.json").read_text(encoding="utf-8")
    (SITE / "search.js").write_text(f"var __index = {index};\n", encoding="utf-8")  # pages in a folder cannot fetch


def main() -> None:
    """Assemble, build, and say where the site is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pictures", action="store_true", help="write the pictures that pages draw to docs/pictures")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        assemble(Path(folder) if asked.pictures else None)
        if asked.pictures:
            small = [sys.executable, "examples/pictures.py", folder, "docs/pictures"]
            subprocess.run(small, cwd=ROOT, check=True)
    build()
    for page in SITE.rglob("*.html"):
        formulas.draw(page)
    print(f"the site: {SITE / 'index.html'}")


if __name__ == "__main__":
    main()
