"""The site: what is made of the built pages loads nothing, and formulas are drawn."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

import build_docs  # noqa: E402
import formulas  # noqa: E402

OUTSIDE = re.compile(r"""<(?:link|script|img|iframe)[^>]*(?:href|src)=["']?(?:https?:)?//""")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, with the code on its pages left as it is: tests/test_docs.py runs it."""
    pytest.importorskip("zensical", reason="zensical is not installed: make docs installs it")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build_docs, "has_code", lambda page: False)
        build_docs.assemble()
    zensical = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    done = subprocess.run(zensical, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return build_docs.SITE


def test_pages_load_nothing_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        assert OUTSIDE.search(page.read_text(encoding="utf-8")) is None, page


def test_the_api_shows_signatures_and_docstrings(site):
    text = (site / "api" / "estimators.html").read_text(encoding="utf-8")
    assert "a panel of learners, aggregated" in text and "fit_intercept" in text


def test_formulas_are_drawn_on_their_line(tmp_path):
    pytest.importorskip("ziamath", reason="ziamath is not installed: make docs installs it")
    page = tmp_path / "page.html"
    page.write_text('<body><span class="arithmatex">\\(x_t &lt; \\eta\\)</span></body>')
    formulas.draw(page)
    text = page.read_text(encoding="utf-8")
    assert 'aria-label="x_t &lt; \\eta"' in text and "vertical-align: -" in text and "arithmatex" not in text
    assert set(re.findall(r'href="#(\w+)"', text)) == set(re.findall(r'<symbol id="(\w+)"', text))
