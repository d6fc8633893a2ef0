"""The documentation: links lead somewhere, and every work cited is in the bibliography."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
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


def test_links_within_the_theory_lead_to_a_heading():
    assert set(re.findall(r"\]\(#([^)]*)\)", THEORY)) <= ANCHORS


@pytest.mark.parametrize("folder", ["src", "docs", "examples"])
def test_links_to_the_theory_lead_to_a_heading(folder):
    for file in (ROOT / folder).rglob("*"):
        if file.suffix in (".py", ".md"):
            links = re.findall(r"theory\.md#([a-z0-9-]+)", file.read_text(encoding="utf-8"))
            assert set(links) <= ANCHORS, file


def test_files_that_pages_link_to_exist():
    for page in (ROOT / "docs").glob("*.md"):
        for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert "://" in link or (page.parent / link).exists(), (page.name, link)


def test_works_cited_in_the_theory_are_in_the_bibliography():
    text = " ".join((ROOT / "docs" / "bibliography.md").read_text(encoding="utf-8").split())
    others = r"(?: et al\.|(?:, [A-Z][\w-]+)* & [A-Z][\w-]+)?"
    cited = re.findall(rf"([A-Z][\w-]+){others},? \(?((?:19|20)\d\d)\)?", " ".join(THEORY.split()))
    assert len(cited) > 20
    for author, year in cited:
        assert re.search(rf"- {author}, [^*]*\({year}\)", text), (author, year)
