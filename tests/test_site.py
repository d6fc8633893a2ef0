"""The site: what is made of the built pages loads nothing, formulas are drawn, and a browser shows it from a folder."""

import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

import build_docs  # noqa: E402
import formulas  # noqa: E402
from browser import needs_browser, started  # noqa: E402
from conftest import nightly  # noqa: E402

OUTSIDE = re.compile(r"""<(?:link|script|img|iframe)[^>]*(?:href|src)=["']?(?:https?:)?//""")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, with the code on its pages left as it is: tests/test_docs.py runs it."""
    for name in ("zensical", "ziamath"):
        pytest.importorskip(name, reason=f"{name} is not installed: make docs installs it")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build_docs, "has_code", lambda page: False)
        build_docs.assemble()
    build_docs.build()
    formulas.draw(build_docs.SITE / "learners" / "perceptron.html")
    return build_docs.SITE


def test_pages_load_nothing_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        assert OUTSIDE.search(page.read_text(encoding="utf-8")) is None, page


def test_the_api_shows_signatures_and_docstrings(site):
    text = (site / "api" / "estimators.html").read_text(encoding="utf-8")
    assert "a panel of learners, aggregated" in text and "fit_intercept" in text


def test_references_are_marks_and_lists(site):
    raw = re.compile(r"\[\d+\](?:_|<em>)|\.\. \[\d")
    for page in (site / "api").glob("*.html"):
        assert raw.search(page.read_text(encoding="utf-8")) is None, page
    text = (site / "api" / "estimators.html").read_text(encoding="utf-8")
    assert '<li>&#91;1&#93; V. Vovk, "Aggregating strategies", COLT 1990.</li>' in text


def test_formulas_are_drawn_on_their_line(tmp_path):
    pytest.importorskip("ziamath", reason="ziamath is not installed: make docs installs it")
    page = tmp_path / "page.html"
    page.write_text('<body><span class="arithmatex">\\(x_t &lt; \\eta\\)</span></body>')
    formulas.draw(page)
    text = page.read_text(encoding="utf-8")
    assert 'aria-label="x_t &lt; \\eta"' in text and "vertical-align: -" in text and "arithmatex" not in text
    assert set(re.findall(r'href="#(\w+)"', text)) == set(re.findall(r'<symbol id="(\w+)"', text))


# ---------------------------------------------------------------- in a browser

SHOWN = ("index.html", "tour.html", "learners/perceptron.html", "theory.html", "commands.html", "api/learners.html")
BROKEN = "[...document.images].filter(image => !(image.complete && image.naturalWidth)).map(image => image.src).join()"
FOUND = "[...document.querySelectorAll('*')].map(e => e.shadowRoot?.querySelector('[role=listbox]')?.innerText).join()"


def faults(events, site):
    """Errors on the console, requests for anything outside of the site, and those that failed."""
    for event in events:
        method, params = event.get("method"), event.get("params", {})
        if method in ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled", "Network.loadingFailed"):
            yield params
        if method == "Network.requestWillBeSent" and not params["request"]["url"].startswith((site, "data:")):
            yield params["request"]["url"]


@nightly
@needs_browser
def test_a_browser_shows_the_site_from_a_folder(site, tmp_path):
    with started(tmp_path / "profile") as browser:
        for page in SHOWN:
            browser.show(f"{site.as_uri()}/{page}", "typeof __index === 'object'")  # the index of the search
            assert browser.value(BROKEN) == "", page
            assert browser.value("document.querySelector('h1').innerText.length") > 2
            assert list(faults(browser.events, site.as_uri())) == [], page
        grounds = {}
        for width, mode in ((390, "dark"), (1200, "light")):
            browser.look(width, mode, mobile=width < 500)
            browser.show(f"{site.as_uri()}/tour.html")
            assert browser.value("document.documentElement.scrollWidth") <= width
            grounds[mode] = browser.value("getComputedStyle(document.body).backgroundColor")
            assert list(faults(browser.events, site.as_uri())) == [], mode
        assert grounds["dark"] != grounds["light"]


@nightly
@needs_browser
def test_the_search_works_in_a_folder(site, tmp_path):
    with started(tmp_path / "profile") as browser:
        browser.show(f"{site.as_uri()}/index.html", "typeof __index === 'object'")
        browser.value("document.querySelector('.md-search__button').click()")
        typed = "[...document.querySelectorAll('*')].some(e => e.shadowRoot?.activeElement?.matches('input'))"
        browser.wait(typed)
        browser.ask("Input.insertText", text="Novikoff")
        browser.wait(f"({FOUND}).includes('erceptron')")
        assert list(faults(browser.events, site.as_uri())) == []


def test_what_is_searched_in_a_folder_is_what_is_searched_elsewhere(site):
    text = (site / "search.js").read_text(encoding="utf-8")
    kept = json.loads(text.removeprefix("var __index = ").removesuffix(";\n"))
    assert kept == json.loads((site / "search.json").read_text(encoding="utf-8")) and len(kept["items"]) > 300
