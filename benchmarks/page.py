"""Run the benchmarks and write docs/benchmarks.md, and from it the table of ratios in the README.

    python benchmarks/page.py [--quick] [--write] [NAME ...]

Without --write the page is printed. Every figure on it comes from this run: a row that a benchmark did not print is not
there. --quick does ten times less, to see that all of them run.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

from common import about

ROOT = Path(__file__).resolve().parents[1]
PAGE, README = ROOT / "docs" / "benchmarks.md", ROOT / "README.md"
SECTIONS = {
    "online": "Online learners",
    "auto": "The default learner",
    "certificates": "Certificates",
    "batch": "In batches",
    "halfspace": "Half-spaces",
    "isotonic": "Isotonic regression and Isotron",
    "sources": "Files to chunks (processor time)",
    "command": "From file to model (cold processes, both cores for all)",
    "forecast": "Forecasts",
    "density": "Densities",
    "echo": "Echo",
    "cluster": "Clusters",
    "serve": "The service",
}
# What does less where there is no --quick.
QUICK = {"cluster": ["--rows", "20000", "--repetitions", "1", "--rounds", "8"], "serve": ["--seconds", "0.5"]}
INTRODUCTION = """\
# Benchmarks

`make bench` measures all of this and writes this page: ratios to named peers in the same run, medians with minima in
brackets, one thread unless another number is given. "asked" is the goal; a NO is work to do. `make bench-quality`
measures what the default learners lose instead of how long they take: [Quality](quality.md).
"""
SHOWN = (  # rows of the page that the README shows: the beginning of their first and of their third cell
    ("Widrow-Hoff 1,000,000×100 float64", "scikit-learn"),
    ("learn csv", "Vowpal Wabbit"),
    ("least squares 1,000,000×100, no intercept", "numpy"),
    ("predict_one + learn_one, dicts of 20", "river"),
    ("Parquet to chunks", "polars"),
)


def main() -> int:
    """Run those that are named, or all; 1 where one failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of: {', '.join(SECTIONS)}")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks.md and the README's table")
    options = parser.parse_args()
    parts, failed = [INTRODUCTION, f"{about()}, commit {commit()}.\n"], []
    for name in options.names or SECTIONS:
        quick = QUICK.get(name, ["--quick"]) if options.quick else []
        done = subprocess.run(
            [sys.executable, str(ROOT / "benchmarks" / f"{name}.py"), "--markdown", *quick],
            capture_output=True,
            text=True,
        )
        if done.returncode or "|" not in done.stdout:
            failed.append(name)
            print(f"{name} failed: {done.stderr[-2000:]}", file=sys.stderr)
            continue
        print(f"{name} done", file=sys.stderr, flush=True)
        parts.append(f"## {SECTIONS[name]}\n\n{without_head(done.stdout)}")
    page = "\n".join(parts)
    if options.write and not failed:
        PAGE.write_text(page, encoding="utf-8")
        README.write_text(with_ratios(README.read_text(encoding="utf-8"), page), encoding="utf-8")
    else:
        print(page)
    return int(bool(failed))


def commit() -> str:
    """The commit of the working tree."""
    done = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def without_head(text: str) -> str:
    """A table as a benchmark prints it, without the line on date, processor and versions, which the page has once."""
    return "\n".join(line for line in text.strip().splitlines() if not re.match(r"\d{4}-\d\d-\d\d, ", line)) + "\n"


def ratios(page: str) -> list[str]:
    """The lines of the README's table, from those of the page."""
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in page.splitlines() if line[:2] == "| "]
    lines = []
    for work, peer in SHOWN:
        row = next(row for row in cells if row[0].startswith(work) and row[2].startswith(peer))
        lines.append(f"| {row[0]}: time of {row[2].split(':')[0]} / ours | {row[3].split('×')[0]} |")
    return lines


def with_ratios(text: str, page: str) -> str:
    """The README with the ratios of the page in its second table of measurements."""
    table = "\n".join(["| speed | ratio |", "|---|---|", *ratios(page)])
    return re.sub(r"\| speed \| ratio \|\n\|---\|---\|\n(\| .*\n?)*", lambda _: table + "\n", text)


if __name__ == "__main__":
    sys.exit(main())
