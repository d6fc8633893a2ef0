"""The documentation: its code runs, links lead somewhere, and every work cited is in the bibliography."""

import importlib
import re
import shlex
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
import typer

import hindsight
from conftest import nightly, registered_meanwhile
from hindsight.certificates.theorems import Theorem
from hindsight.cli import app
from hindsight.online.learners import LEARNERS

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

import pages  # noqa: E402
import reference  # noqa: E402

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
THEORY = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")
ANCHORS = {re.sub(r"[^a-z0-9 -]", "", head.lower()).replace(" ", "-") for head in re.findall(r"(?m)^#+ (.+)$", THEORY)}
THEOREMS = (
    "widrow-hoff implicit-widrow-hoff widrow-hoff-rates exponentiated-gradient convex-descent convex-descent-rates "
    "perceptron winnow gradient-descent batch-perceptron online-to-batch scoring glm-tron isotonic-regression "
    "isotron density shards"
)


@pytest.mark.parametrize("anchor", THEOREMS.split())
def test_every_theorem_has_a_section(anchor):
    assert anchor in ANCHORS


def test_the_contents_of_the_theory_name_every_section():
    contents, *sections = re.split(r"(?m)^## ", THEORY)
    assert {section.split("\n")[0] for section in sections} == set(re.findall(r"\[([^]]+)\]\(#", contents))


def test_every_theorem_of_a_certificate_is_proved_in_its_section():
    folder = ROOT / "src" / "hindsight" / "certificates"
    names = [f"hindsight.certificates.{file.stem}" for file in folder.glob("*.py") if file.stem != "__init__"]
    values = [value for name in names for value in vars(importlib.import_module(name)).values()]
    theorems = {value for value in values if isinstance(value, Theorem) and value.anchor}
    assert len(theorems) > 30
    bodies = {part.split("\n")[0].lower().replace(" ", "-"): part for part in re.split(r"(?m)^## ", THEORY)[1:]}
    for theorem in theorems:
        assert re.search(r"\*Proof.*?(∎|\\square)", bodies[theorem.anchor], re.DOTALL), theorem.name
    assert "--l1" in bodies["penalties"]
    assert bodies["logistic-second-order"].count("*Proof.*") == 3 and "Massart" in bodies["thresholds"]


def test_the_rule_of_eg_on_its_page_is_the_one_played():
    page = (ROOT / "docs" / "learners" / "eg.md").read_text(encoding="utf-8")
    assert r"multiply $w_i$ by $e^{-\eta U (w \cdot x - y) x_i}$" in page.replace("Multiply", "multiply")
    eta, U, x, y = 0.1, 3.0, np.array([0.5, -1.0]), 0.7
    model = hindsight.EGRegressor(eta=eta, radius=U, fit_intercept=False).fit(x[None], [y])
    doubled = np.exp(-eta * U * (0.0 - y) * np.append(x, -x))
    up, down = np.split(U * doubled / doubled.sum(), 2)
    np.testing.assert_allclose(model.coef_, up - down, rtol=1e-12)


def test_links_within_the_theory_lead_to_a_heading():
    assert set(re.findall(r"\]\(#([^)]*)\)", THEORY)) <= ANCHORS


@pytest.mark.parametrize("folder", ["src", "docs", "examples"])
def test_links_to_the_theory_lead_to_a_heading(folder):
    for file in (ROOT / folder).rglob("*"):
        if file.suffix in (".py", ".md"):
            links = re.findall(r"theory\.md#([a-z0-9-]+)", file.read_text(encoding="utf-8"))
            assert set(links) <= ANCHORS, file


def test_files_that_pages_link_to_exist():
    for page in PAGES:
        for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert "://" in link or (page.parent / link).exists(), (page.name, link)


def test_pages_install_from_a_checkout_as_the_package_is_on_no_index():
    assert "not on a\npackage index" in (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    for page in PAGES:
        assert not re.search(r"pip install[^`\n]*hindsight-learn", page.read_text(encoding="utf-8")), page


def test_the_page_on_safety_names_the_open_scheduler_and_a_damaged_parquet_file():
    page = " ".join((ROOT / "docs" / "safety.md").read_text(encoding="utf-8").split())
    for words in ("`--workers N`", "127.0.0.1", "**no password**", "damaged Parquet file"):
        assert words in page


def test_works_cited_in_the_theory_are_in_the_bibliography():
    text = " ".join((ROOT / "docs" / "bibliography.md").read_text(encoding="utf-8").split())
    others = r"(?: et al\.|(?:, [A-Z][\w-]+)* & [A-Z][\w-]+)?"
    cited = re.findall(rf"([A-Z][\w-]+){others},? \(?((?:19|20)\d\d)\)?", " ".join(THEORY.split()))
    assert len(cited) > 20
    for author, year in cited:
        assert re.search(rf"- {author}, [^*]*\({year}\)", text), (author, year)


# ---------------------------------------------------------------- code


@nightly(but=["README", "auto", "certificates", "eg", "perceptron", "glm-tron"])
@pytest.mark.parametrize("page", [page for page in PAGES if pages.has_code(page)], ids=lambda page: page.stem)
def test_code_on_pages_runs_and_draws_their_pictures(page, tmp_path):
    with registered_meanwhile():
        text = pages.with_outputs(page, tmp_path)
    for picture in tmp_path.glob("*.png"):
        assert f"pictures/{picture.name})" in text
        assert (ROOT / "docs" / "pictures" / picture.name).exists(), "make docs PICTURES=--pictures draws it"


def test_what_code_prints_stands_below_it(tmp_path):
    page = ROOT / "docs" / "page.md"

    class Page:
        read_text = staticmethod(lambda encoding: "```python\nprint(1 + 1)\n```\n\n```console\n$ echo three\n```\n")
        relative_to = page.relative_to

    assert pages.with_outputs(Page, tmp_path) == (
        "```python\nprint(1 + 1)\n```\n\n```text\n2\n```\n\n```console\n$ echo three\nthree\n```\n"
    )


def test_code_that_fails_names_its_page_and_line(tmp_path):
    class Page:
        read_text = staticmethod(lambda encoding: "# Page\n\n```console\n$ hindsight learn nothing.csv\n```\n")
        relative_to = (ROOT / "docs" / "page.md").relative_to

    with pytest.raises(RuntimeError, match=r"nothing\.csv") as failed:
        pages.with_outputs(Page, tmp_path)
    assert failed.value.__notes__ == ["in the block of docs/page.md, line 3"]


def commands():
    """Lines of pages that call the command: in blocks, and in backticks."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        lines = re.findall(r"(?m)^    (hindsight .*)$", text) + re.findall(r"`(hindsight [a-z]+ [^`]*)`", text)
        for line in lines:
            words = shlex.split(line.replace("$ ", ""), comments=True)[1:]
            if not any(word.isupper() and word.isalpha() for word in words):
                yield pytest.param(words, id=" ".join(words)[:60])


@pytest.mark.parametrize("words", list(commands()))
def test_commands_on_pages_have_options_that_exist(words):
    group = typer.main.get_command(app)
    if words[0].startswith("--"):
        words = words[2:] if words[0] == "--extend" else ["learners"]
    command = group.commands[words[0]]
    command.make_context(words[0], words[1:], resilient_parsing=False)


# ---------------------------------------------------------------- pages


def test_every_learner_has_a_page_that_names_its_theorem():
    own = {name for name, entry in LEARNERS.items() if entry.source != "registered"}
    for name in {*own, "isotron"}:
        text = (ROOT / "docs" / "learners" / f"{name}.md").read_text(encoding="utf-8")
        assert "**Rule.**" in text and "**When.**" in text and "../pictures/" in text
        assert re.search(r"\*\*Theorem\.\*\* (None\.|.*?theory\.md#)", text, re.DOTALL)


def test_every_page_is_in_the_menu():
    def files(entries):
        for entry in entries:
            for value in entry.values() if isinstance(entry, dict) else [entry]:
                yield from [value] if isinstance(value, str) else files(value)

    menu = set(files(tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]))
    written = {str(page.relative_to(ROOT / "docs")) for page in PAGES[1:]}
    made = {f"api/{name}.md" for name in reference.api()} | {"changelog.md", "contributing.md"}
    assert menu == written | made


def test_the_reference_has_every_command_and_option():
    text = reference.commands()
    for name, command in typer.main.get_command(app).commands.items():
        assert f"\n## hindsight {name}\n" in text
        for parameter in command.params:
            assert all(f"`{option}`" in text for option in parameter.opts if option.startswith("-"))


def test_the_api_has_every_public_name_once():
    listed = re.findall(r"(?m)^::: hindsight\.(\S+)$", "".join(reference.api().values()))
    modules = [f"{module}.{name}" for module in hindsight._PACKAGES for name in getattr(hindsight, module).__all__]
    assert sorted(listed) == sorted([*hindsight.__all__, *modules])
