"""Every benchmark runs to its end, and prints as many rows as the page has; nothing is timed here."""

import importlib
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from conftest import nightly

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))
page = importlib.import_module("page")
PEERS = all(find_spec(name) for name in ("river", "padasip", "vowpalwabbit"))  # what `make bench` installs


def sections(text):
    """The number of rows of the tables of each section."""
    parts = re.split(r"(?m)^## (.*)\n", text)[1:]
    return {
        head: len(re.findall(r"(?m)^\|(?! ?---)", body)) for head, body in zip(parts[::2], parts[1::2], strict=True)
    }


@nightly(but=["halfspace"])
@pytest.mark.parametrize("name", page.SECTIONS)
def test_a_quick_benchmark_prints_all_its_rows(name):
    command = [sys.executable, str(ROOT / "benchmarks" / "page.py"), "--quick", name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr
    found, known = sections(done.stdout), sections(page.PAGE.read_text(encoding="utf-8"))
    head = page.SECTIONS[name]
    assert found[head] > 1 and (found[head] == known[head] or not PEERS)


def test_the_ratios_of_the_readme_are_those_that_were_measured_last():
    text, measured = (path.read_text(encoding="utf-8") for path in (page.README, page.PAGE))
    assert page.with_ratios(text, measured) == text
    assert all(line in text.splitlines() for line in page.ratios(measured))
    assert list(sections(measured)) == list(page.SECTIONS.values())
