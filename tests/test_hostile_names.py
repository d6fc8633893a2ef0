"""Names from data that look like markup, HTML, scripts or formulas: shown as they are, and run nowhere.

Columns, files and labels have such names in every table, chart and page. HTML is read back by a parser, which finds our
own scripts and no others, and is opened in Chromium where there is one.
"""

import base64
import hashlib
import html
import json
import shutil
import subprocess
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest

from commands import run
from conftest import nightly
from hindsight import charts
from hindsight.estimators.progress import progress_bar
from hindsight.forecast import compare, reliability

MARKUP = ["p[x]", "[bold]b[/bold]", "[/]", "[link=https://x]l", "a:warning:b", "\\[x]", "[red", "{x}", "%s %d", "x\\"]
SCRIPTS = [
    "</script><script>document.title='RUN'</script>",
    "<!--<script>document.title='RUN'",
    "<img src=x onerror=\"document.title='RUN'\">",
    "\"><svg onload=document.title='RUN'>",
    "</title><script>document.title='RUN'</script>",
    "</style></pre><script>document.title='RUN'</script>",
    "');document.title='RUN';//",
    "${document.title='RUN'}",
    "\u2028document.title='RUN'",
    "]]>&lt;&#x27;javascript:document.title='RUN'",
    "datum.x; document.title='RUN'",
]
NAMES = MARKUP + SCRIPTS


# ---------------------------------------------------------------- on the terminal


def table(path, names, rows=60):
    """A CSV file with outcomes and a column of forecasts for each name."""
    rng = np.random.default_rng(1)
    cells = [[f'"{name}"' for name in ("y", *(name.replace('"', '""') for name in names))]]
    for _ in range(rows):
        p = rng.random(len(names)).round(3)
        cells.append([str(int(rng.random() < p[0])), *map(str, p)])
    path.write_text("\n".join(map(",".join, cells)) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("name", [name for name in NAMES if "," not in name])
@pytest.mark.parametrize("verb", ["compare", "calibrate"])
def test_tables_show_columns_as_they_are_named(tmp_path, name, verb):
    file = table(tmp_path / "rows.csv", [name, "plain"])
    option = "--forecasts" if verb == "compare" else "--forecast"
    code, out, err = run(verb, file, "--outcome", "y", option, f"{name},plain")
    assert code == 0, err
    assert name.strip() in out
    if verb == "compare":
        assert f"{name.strip()} − plain" in out


@pytest.mark.parametrize("name", ["rows[x]", "[bold]rows", "rows[/]", "a:warning:b", "[/bold]"])
def test_files_are_shown_as_they_are_named(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    name = name.replace("/", "")
    file = table(tmp_path / f"{name}.csv", ["p", "q"]).name
    assert file in run("compare", file, "--outcome", "y", "--forecasts", "p,q")[1]
    assert file in run("calibrate", file, "--outcome", "y", "--forecast", "p")[1]
    code, out, err = run("density", file, "--columns", "p:gaussian", "--score", f"{name}-scores.csv")
    assert code == 0, err
    assert file in out and f"scores: {name}-scores.csv" in out
    code, out, err = run("duel", file, "--target", "y", "--chart", f"{name}.svg")
    assert code == 0, err
    assert file in out and f"chart: {name}.svg" in out
    code, out, err = run("learn", file, "--target", "y", "--learner", "perceptron", "--certify")
    assert code == 0, err
    assert file in err


@pytest.mark.parametrize("name", MARKUP)
def test_errors_show_what_is_wrong_as_it_is(tmp_path, name):
    file = table(tmp_path / "rows.csv", ["p", "q"])
    code, _, err = run("compare", file, "--outcome", name, "--forecasts", "p,q")
    assert code == 2 and repr(name) in err and len(err.splitlines()) == 1
    code, _, err = run("compare", f"{name}.csv", "--outcome", "y", "--forecasts", "p,q")
    assert code == 2 and f"{name}.csv" in err and len(err.splitlines()) == 1


def test_control_characters_are_spelt_out(tmp_path):
    name = "a\x1b[31mb\x07"
    file = table(tmp_path / "rows.csv", [name, "q"])
    code, out, err = run("compare", file, "--outcome", "y", "--forecasts", f"{name},q")
    assert code == 0, err
    assert "\x1b" not in out and "\x07" not in out and r"a\x1b[31mb\x07" in out
    _, _, err = run("compare", "no\nsuch\x1b[2J.csv", "--outcome", "y", "--forecasts", "p,q")
    assert r"no\x0asuch\x1b[2J.csv" in err and len(err.splitlines()) == 1


@pytest.mark.parametrize("name", MARKUP)
def test_progress_bars_show_labels_as_they_are(name, capsys):
    with progress_bar(True, name, 2) as update:
        update(advance=1, description=f"{name}: 1 update")
    assert f"{name}: 1 update" in "".join(capsys.readouterr().err.split("\n"))


def test_learners_are_listed_with_their_formulas():
    from hindsight.online.learners import LEARNERS

    out = " ".join(run("learners")[1].split())
    for row in LEARNERS.values():
        assert row.name in out and row.task in out


# ---------------------------------------------------------------- pages and charts


class Page(HTMLParser):
    """What a browser would make of a page: scripts, attributes that run code, what is loaded, and the policy."""

    def __init__(self, text):
        super().__init__()
        self.scripts, self.styles, self.tags, self.outside, self.policy, self.words = [], [], [], [], None, []
        self.data = []  # JSON in scripts that do not run
        self.inside = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.inside = "data" if tag == "script" and given.get("type") == "application/json" else tag
        self.tags.append(tag)
        self.outside += [name for name in given if name.startswith("on") or name in ("src", "href", "srcdoc", "action")]
        if given.get("http-equiv") == "Content-Security-Policy":
            assert "script" not in self.tags and "style" not in self.tags  # before anything that it governs
            self.policy = given["content"]

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        kept = {"script": self.scripts, "style": self.styles, "data": self.data}
        kept.get(self.inside, self.words).append(data)


def digest(text):
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def check_page(path, scripts, names):
    """A page has so many scripts, all ours by the policy, loads nothing, and holds the names as text or data."""
    text = path.read_text(encoding="utf-8")
    page = Page(text)
    assert len(page.scripts) == scripts and page.outside == []
    rules = dict(rule.split(" ", 1) for rule in page.policy.split("; "))
    assert rules["default-src"] == "'none'" and rules["base-uri"] == rules["form-action"] == "'none'"
    allowed = [*map(digest, page.scripts)] or ["'none'"]
    assert rules["script-src"].split() == allowed
    assert rules["style-src-elem"].split() == [*map(digest, page.styles)]
    assert "unsafe-eval" not in page.policy and "http" not in page.policy
    assert not {"img", "iframe", "object", "embed", "base", "form", "link"} & set(page.tags)
    shown = " ".join("".join(page.words).split())
    for name in names:
        assert " ".join(name.split()) in shown or json.dumps(name)[1:-1].replace("<", "\\u003c") in page.scripts[-1], (
            name
        )


def forecasters():
    rng = np.random.default_rng(2)
    p = rng.random(80)
    y = (rng.random(80) < p).astype(float)
    return y, {name: np.clip(p + 0.1 * rng.normal(size=80), 0.0, 1.0).round(3) for name in SCRIPTS}


def draw_forecasts(path):
    y, given = forecasters()
    some = dict(list(given.items())[:3])
    each = {name: reliability(y, one) for name, one in given.items()}
    bands = [one.band(resamples=5) for one in each.values()]
    charts.save(charts.together(compare(y, some), each, bands), str(path), " ".join(NAMES))


def draw_curves(path):
    curves = {name: [(10, 1.0 + k), (1000, 0.5 + k)] for k, name in enumerate(NAMES)}
    charts.save(charts.styled(charts.learning_curves(curves, NAMES[10], NAMES[11], NAMES[12])), str(path), NAMES[13])


def draw_duel(path):
    file = table(path.parent / "<img src=x onerror=alert(1)>.csv", ["p", "q"])
    code, _, err = run("duel", file, "--target", "y", "--chart", path)
    assert code == 0, err


def write_report(path):
    """The report of a run with the names as features and as labels, from a file of such a name."""
    file = path.parent / "<img src=x onerror=alert(1)>.csv"
    rng = np.random.default_rng(3)
    quoted = ['"' + name.replace('"', '""') + '"' for name in NAMES]
    X = rng.normal(size=(6 * len(NAMES), len(NAMES))).round(3)
    lines = [",".join([*map(str, x), quoted[k % len(NAMES)]]) for k, x in enumerate(X.tolist())]
    file.write_text("\n".join([",".join([*quoted, "y"]), *lines]) + "\n", encoding="utf-8")
    code, _, err = run("learn", file, "--target", "y", "--learner", "perceptron", "--report", path)
    assert code == 0, err


PAGES = {  # what is drawn, how many scripts it has, and the names it shows
    "forecasts": (draw_forecasts, 2, SCRIPTS),
    "curves": (draw_curves, 2, NAMES),
    "duel": (draw_duel, 2, ["<img src=x onerror=alert(1)>"]),
    "report": (write_report, 2, NAMES),
}
each_page = pytest.mark.parametrize("what", PAGES)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    pytest.importorskip("altair")
    folder = tmp_path_factory.mktemp("pages")
    for what, (draw, _, _) in PAGES.items():
        draw(folder / f"{what}.html")
    return folder


@each_page
def test_pages_run_no_script_but_ours(pages, what):
    _, scripts, names = PAGES[what]
    check_page(pages / f"{what}.html", scripts, names)


@nightly(but=["draw_curves"])
@pytest.mark.parametrize("draw", [draw_forecasts, draw_curves, draw_duel])
def test_pictures_hold_names_as_text_alone(tmp_path, draw):
    pytest.importorskip("altair")
    path = tmp_path / "picture.svg"
    draw(path)
    picture = ElementTree.fromstring(path.read_text(encoding="utf-8"))
    tags = {element.tag.partition("}")[2] for element in picture.iter()}
    assert tags <= {"svg", "g", "path", "rect", "line", "text", "tspan", "defs", "clipPath"}
    assert not [name for element in picture.iter() for name in element.attrib if name.startswith("on")]


# ---------------------------------------------------------------- in a browser

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)


def browse(path, profile):
    """The document of a page after its scripts have run, and what it logged."""
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=8000", "--enable-logging=stderr"]
    command = [CHROMIUM, *flags, f"--user-data-dir={profile}", "--dump-dom", path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, encoding="utf-8")
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here: the pages are read by a parser above")
def test_a_browser_shows_the_pages_and_runs_no_name(pages, tmp_path):
    probe = tmp_path / "probe.html"  # that a script which runs would be seen at all
    probe.write_text(f"<!doctype html><title>x</title><p>{SCRIPTS[0]}</p>", encoding="utf-8")
    assert "<title>RUN</title>" in browse(probe, tmp_path / "profile")[0]
    for what, (_, scripts, names) in PAGES.items():
        text, log = browse(pages / f"{what}.html", tmp_path / "profile")
        page = Page(text)
        title = text.partition("<title>")[2].partition("</title>")[0]
        assert title.startswith("Hindsight"), (what, title)
        assert log == [], what
        assert len(page.scripts) == scripts and page.outside == []
        if scripts:
            assert page.tags.count("path") > 5, what  # it was drawn, under the policy
            drawn = text.partition("<svg")[2].partition("<script")[0]
            for name in names:
                start = " ".join(name.split())[:12]
                assert html.escape(start, quote=False) in " ".join(drawn.split()), (what, name)
