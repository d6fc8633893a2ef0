"""The page of figures that `quality` writes."""

from __future__ import annotations

import math
import statistics
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

from common import processor, versions

# isort: split
import numpy as np
from scipy.stats import rankdata

from peers import FIRST, SLOW, TUNED
from streams import COLUMNS, ROWS, SPARSE

OURS = "auto"
INTRODUCTION = f"""# Quality

What `AutoRegressor` and `AutoClassifier` lose on streams when nothing is tuned or scaled, beside peers as they are
shipped, and beside one that was tuned with the whole stream at hand. `make bench-quality` measures all of it and writes
this page.

Each learner goes through a stream once and predicts every row before it learns it. A figure is the sum of its losses,
square for numbers and logistic for labels, divided by that of the best constant prediction in hindsight: 1 is what a
constant can do, and smaller is better. Of numbers the first row is not counted, for any learner: `auto` starts from it.

- `auto` is the panel with its defaults; the rows are given to it as they are.
- `VW` is Vowpal Wabbit's program with its defaults, and `VW --coin` with its learner that needs no rate; for labels
  with `--loss_function logistic`.
- `VW tuned` is the best of {len(TUNED)} settings of it on each stream, chosen in hindsight, which nobody can do: five
  rates from 0.02 to 12.5, constant or falling (`--power_t` 0 and 0.5), with its default update and with
  `--normalized --invariant`, and `--coin`, `--ftrl`, `--pistol` and `--sgd`.
- `SGD` is scikit-learn's `SGDRegressor` or `SGDClassifier(loss="log_loss")` by `partial_fit`, one row at a time. Its
  columns are standardised beforehand with the whole stream, which no other learner sees; sparse ones are only scaled.
- `River` is its `StandardScaler` before `LinearRegression` or `LogisticRegression`; a dash is for a stream of more than
  {SLOW // 10**6} million values, which is too much for it.
- `LightGBM` is boosted trees with their defaults, no online learner: they are fitted to all rows so far after {FIRST}
  rows, and again whenever these have doubled. Before that the mean so far predicts.
- `best linear` is the best linear predictor found with the whole stream at hand: least squares, or logistic regression
  almost without a penalty. A learner can beat it where the best weights change on the way.
- `promise` is what the theorems promise of `auto` beside every fixed linear predictor, `account` what they say beside
  the best fixed combination of its members, both divided by its loss ([which is which](certificates.md)).

`breast`, `digits_odd` (odd against even) and `diabetes` (columns as measured) are those of scikit-learn in the order of
their files; `wine_0`, `wine_1` and `wine_2` are a class of its wine against the others, shuffled, since the file is
sorted. Generated streams have {ROWS:,} rows, each kind with numbers and with labels:

- `dense`: {COLUMNS} Gaussian columns.
- `sparse`: {COLUMNS} of {SPARSE:,} columns in a row, some often and most seldom, as words are.
- `drifting`: the weights turn once around a circle.
- `scales`: columns from 1e-6 to 1e6.
- `heavy_tails`: columns and noise of Student's t with two degrees of freedom.

Other streams come from a folder that the environment variable HINDSIGHT_STREAMS names, each in its own order: one
`.npz` file per stream, with the rows as the arrays `data`, `indices`, `indptr` and `shape` of a CSR matrix, the targets
`y`, and `kind`, "c" for labels -1 and 1 or "r" for numbers."""


@dataclass(frozen=True)
class Figures:
    """What was measured on one stream; losses are divided by that of the best constant."""

    name: str
    labels: bool
    shape: tuple[int, int]
    hindsight: float
    learners: dict[str, float | None]  # ours first, then the peers
    members: dict[str, float]
    promise: float
    account: float | None
    verdict: str

    @property
    def to_best(self) -> float:
        """Our loss divided by that of the best member."""
        return ratio(self.learners[OURS], min(self.members.values()))

    def ranks(self) -> dict[str, float]:
        """The place of each learner that ran; equal losses share theirs."""
        ran = {name: loss for name, loss in self.learners.items() if loss is not None}
        return dict(zip(ran, rankdata(list(ran.values())).tolist(), strict=True))


def ratio(loss: float | None, other: float) -> float:
    """One loss divided by another; 1 where both are 0."""
    assert loss is not None
    return 1.0 if loss == other else loss / other if other > 0.0 else math.inf


def short(value: float | None) -> str:
    """Three digits; a dash where there is no value."""
    if value is None:
        return "—"
    if not math.isfinite(value):
        return "∞"
    if 0.0 < value < 1e-4 or value >= 1000.0:
        return f"{value:.0e}"
    return f"{value:.2f}" if value >= 10.0 else f"{value:.3f}" if value >= 0.1 else f"{value:.4f}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *rows])


def streams_table(figures: Sequence[Figures]) -> str:
    """All learners on all streams; the smallest loss of a row is bold."""
    names = list(figures[0].learners)
    rows = []
    for f in figures:
        least = min(loss for loss in f.learners.values() if loss is not None)
        cells = [f"**{short(loss)}**" if loss == least else short(loss) for loss in f.learners.values()]
        kind = "labels" if f.labels else "numbers"
        size = [f"{f.shape[0]:,}", f"{f.shape[1]:,}"]
        rows.append([f.name, kind, *size, short(f.hindsight), *cells, f"{f.promise:.2f} {f.verdict}", short(f.account)])
    return table(["stream", "targets", "rows", "columns", "best linear", *names, "promise", "account"], rows)


def summary_table(figures: Sequence[Figures]) -> str:
    """One row per learner: its mean rank, and on how many streams ours loses less."""
    ranks = [f.ranks() for f in figures]
    rows = []
    for name in figures[0].learners:
        ran = [f for f in figures if f.learners[name] is not None]
        beaten = sum(f.ranks()[OURS] < f.ranks()[name] for f in ran)
        mean = np.mean([r[name] for r in ranks if name in r])
        times = statistics.median(ratio(f.learners[name], f.learners[OURS] or 0.0) for f in ran)
        rows.append([name, f"{mean:.2f}", "—" if name == OURS else f"{beaten} of {len(ran)}", f"{times:.2f}"])
    return table(["learner", "mean rank", "auto loses less on", "median of its loss / auto's"], rows)


def members_table(figures: Sequence[Figures]) -> str:
    """The members of the panel, where they take part; the smallest loss of a row is bold."""
    names = list(dict.fromkeys(name for f in figures for name in f.members))
    rows = []
    for f in figures:
        least = min(f.members.values())
        cells = [short(f.members.get(name)) for name in names]
        cells = [f"**{c}**" if f.members.get(n) == least else c for n, c in zip(names, cells, strict=True)]
        rows.append([f.name, short(f.learners[OURS]), *cells, f"{f.to_best:.3f}"])
    return table(["stream", OURS, *names, "auto / best"], rows)


def page(figures: Sequence[Figures], checks: Sequence[str]) -> str:
    """The whole page."""
    worst = max(figures, key=lambda f: f.to_best)
    tight = statistics.median(f.promise for f in figures)
    beyond = [f.promise for f in figures if (f.learners[OURS] or 0.0) >= f.hindsight]
    accounts = [f.account for f in figures if f.account is not None]
    parts = [
        INTRODUCTION,
        f"Measured on {date.today()}, {processor()}, {versions()}.",
        f"## Summary of {len(figures)} streams",
        summary_table(figures),
        "Ranks are among the learners that ran; 1 is the smallest loss. The median of promise / loss is "
        f"{tight:.2f}, and {statistics.median(beyond):.2f} where `auto` does not beat the best linear predictor; that "
        f"of account / loss is {statistics.median(accounts):.3f}, and {max(accounts):.2f} at most.",
        "Beyond its best member the panel pays a price, once: for labels at most the logarithm of how many members it "
        f"has, which counts where all losses are small. At most `auto` loses {worst.to_best:.3f} times what its best "
        f"member does: on `{worst.name}`, with {worst.shape[0]:,} rows.",
        "\n".join(f"- {line}" for line in checks),
        "## Streams",
        streams_table(figures),
        "## Members of the panel",
        "What each member lost as the panel used it: for numbers, its predictions clipped to the range of those seen.",
        members_table(figures),
    ]
    return "\n\n".join(part if "\n" in part else textwrap.fill(part, 120) for part in parts) + "\n"
