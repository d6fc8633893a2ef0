"""The words of certificates: the main figures as sentences, in the unit of the targets, cards, and tables of several.

The terminal, the report, the web page of the service and notebooks all use these sentences and figures.
"""

from __future__ import annotations

import html
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..formatting import brief, percent
from .theorems import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .certificate import Certificate

SQUARES, MISTAKES, TRAINING_ERRORS = "squared error", "mistakes", "training errors"  # units with words of their own
PARTS_RIGHT = (MISTAKES, TRAINING_ERRORS)  # units that are shown as the part of the rows that is right
PARTS = ("accuracy", "accuracy_of_constant", "coverage")  # figures that are parts of all rows
CONSTANTS = {  # what the best constant is, by the unit
    SQUARES: "always predicting the mean",
    MISTAKES: "always predicting one label",
    TRAINING_ERRORS: "always predicting one label",
}


def unit_of(quantity: str) -> str:
    """The name of the loss whose mean is shown for a quantity that a certificate measured.

    Examples
    --------
    >>> unit_of("squared error times its rate"), unit_of("weighted mistakes"), unit_of("logistic loss")
    ('squared error', 'mistakes', 'log loss')
    >>> unit_of("f, the mean absolute loss with l2, of the mean iterate")
    'absolute loss with l2'
    """
    if quantity == "updates":
        return TRAINING_ERRORS
    quantity = quantity.removeprefix("weighted ").removesuffix(" times its rate")
    for start in ("f, the mean ", "mean "):
        quantity = quantity.removeprefix(start)
    quantity = quantity.partition(",")[0]
    return "squared error" if quantity == "square loss" else quantity.replace("logistic loss", "log loss")


def constant_of(unit: str) -> str:
    """The name of the best constant prediction."""
    return CONSTANTS.get(unit, "the best constant")


def title_of(unit: str) -> str:
    """The name of a figure in a table."""
    names = {SQUARES: "RMSE", MISTAKES: "right", TRAINING_ERRORS: "right"}
    return names.get(unit, f"mean {unit}")


def figure_of(unit: str, mean: float) -> str:
    """The mean of a loss as it is displayed: squared errors by their root, mistakes by the percentage that is right.

    Examples
    --------
    >>> figure_of("squared error", 3304.57), figure_of("mistakes", 0.295), figure_of("log loss", 0.0912)
    ('57.5', '70.5 %', '0.0912')
    """
    if math.isnan(mean):
        return "–"
    if unit == SQUARES:
        return brief(math.sqrt(max(0.0, mean)))
    if unit in PARTS_RIGHT:
        return percent(1.0 - mean)
    return brief(mean)


def rooted(unit: str, values: np.ndarray) -> np.ndarray:
    """The means of a loss as they are plotted: for squared errors, their square roots."""
    return np.sqrt(np.maximum(values, 0.0)) if unit == SQUARES else values


def shown_figure(name: str, value: float) -> str:
    """A named figure as it is displayed; fractions of all rows in per cent."""
    return percent(value) if name in PARTS else brief(value)


class Scores(NamedTuple):
    """The figures of a run in terms of its targets, independent of its loss; NaN where one is not known.

    Attributes
    ----------
    square, square_of_constant : float
        For numeric targets, the mean squared errors of the run and of the constant.
    right, right_of_constant : float
        For labels, the accuracy of the run, and the frequency of the most frequent label.
    label : str or None
        The most frequent label.
    """

    square: float = math.nan
    square_of_constant: float = math.nan
    right: float = math.nan
    right_of_constant: float = math.nan
    label: str | None = None

    @property
    def r2(self) -> float:
        """R²: 1 minus the ratio of the squared error of the run to that of always predicting the mean."""
        beside = self.square_of_constant
        return 1.0 - self.square / beside if beside > 0.0 else math.nan

    def to_dict(self) -> dict[str, float]:
        """The figures by name."""
        if self.of_labels:
            found = {"accuracy": self.right, "accuracy_of_constant": self.right_of_constant}
        else:
            squares = {"rmse": self.square, "rmse_of_constant": self.square_of_constant}
            found = {"r2": self.r2} | {name: math.sqrt(value) for name, value in squares.items()}
        return found

    @property
    def of_labels(self) -> bool:
        """Whether targets are labels."""
        return not math.isnan(self.right)

    @property
    def constant(self) -> str:
        """The name of the constant prediction."""
        if not self.of_labels:
            return CONSTANTS[SQUARES]
        return CONSTANTS[MISTAKES] if self.label is None else f"always predicting {self.label}"

    def sentence(self) -> str:
        """The figures next to those of the constant, as a sentence; empty if they are not known."""
        if self.of_labels:
            other = self.right_of_constant
            rest = "" if math.isnan(other) else f"; {self.constant} would be right on {percent(other)}"
            return f"right on {percent(self.right)} of the rows{rest}"
        if math.isnan(self.square):
            return ""
        r2 = "" if math.isnan(self.r2) else f"; R² {brief(self.r2)}"
        out = f"off by {figure_of(SQUARES, self.square)} on average (root mean square{r2})"
        if math.isnan(self.square_of_constant):
            return out
        return f"{out}; {self.constant} would be off by {figure_of(SQUARES, self.square_of_constant)}"


def in_words(unit: str, means: Mapping[str, float], best_is_shown: bool, scores: Scores | None = None) -> list[str]:
    """The figures of a run as sentences.

    Parameters
    ----------
    unit : str
        As `unit_of` gives it.
    means : mapping of str to float
        The losses per row of the run ("loss"), the best constant ("constant") and the best fixed predictor ("best"),
        and the bound per row ("guaranteed"); NaN where one is not known.
    best_is_shown : bool
        Whether the best fixed predictor is shown to be the best.
    scores : Scores or None, default None
        The figures in terms of the targets, if known.

    Returns
    -------
    list of str
        One or two sentences without a full stop.

    Examples
    --------
    >>> means = {"loss": 3304.6, "constant": 5943.3, "best": 2859.2, "guaranteed": 3340.4}
    >>> for line in in_words("squared error", means, True, Scores(3304.6, 5943.3)):
    ...     print(line)
    off by 57.5 on average (root mean square; R² 0.444); always predicting the mean would be off by 77.1
    the best fixed weights, known only now, would be off by 53.5; the theorem guarantees at most 57.8
    """
    known = "" if scores is None else scores.sentence()
    parts = []
    if not known or unit not in of_targets(scores):
        parts = [lost(unit, means["loss"]), beside(unit, means["constant"], constant_of(unit))]
    best = "the best fixed weights" if best_is_shown else "the best fixed weights found"
    parts += [beside(unit, means["best"], f"{best}, known only now,"), promise(unit, means["guaranteed"])]
    second = "; ".join(part for part in parts if part)
    return [text for text in (known, second) if text]


def tiles(unit: str, means: Mapping[str, float], best_is_shown: bool, scores: Scores) -> list[tuple[str, str]]:
    """The same figures as pairs of name and text; unknown ones are left out."""
    if scores.of_labels:
        out = [("accuracy", percent(scores.right)), (scores.constant, percent(scores.right_of_constant))]
    else:
        squares = [figure_of(SQUARES, value) for value in (scores.square, scores.square_of_constant)]
        out = [("RMSE", squares[0]), ("R²", brief(scores.r2)), (scores.constant, squares[1])]
    names = {"loss": title_of(unit), "constant": constant_of(unit)}
    names |= {"best": "best fixed weights" if best_is_shown else "best weights found"}
    names |= {"guaranteed": "guaranteed at least" if unit in PARTS_RIGHT else "guaranteed at most"}
    skip = ("loss", "constant") if unit in of_targets(scores) else ()
    for key, name in names.items():
        if key == "guaranteed" and not promise(unit, means[key]):
            continue
        if key not in skip:
            out.append((name, figure_of(unit, means[key])))
    return [(name, text) for name, text in out if text != "–"]


def of_targets(scores: Scores | None) -> tuple[str, ...]:
    """The units whose figures `scores` already gives."""
    return PARTS_RIGHT if scores is not None and scores.of_labels else (SQUARES,)


def lost(unit: str, mean: float) -> str:
    """The loss of the run, as a phrase."""
    if math.isnan(mean):
        return ""
    if unit == SQUARES:
        return f"off by {figure_of(unit, mean)} on average (root mean square)"
    if unit in PARTS_RIGHT:
        return f"right on {figure_of(unit, mean)} of the rows"
    return f"{unit} {figure_of(unit, mean)} per row"


def beside(unit: str, mean: float, who: str) -> str:
    """The loss of another predictor, as a phrase."""
    if math.isnan(mean):
        return ""
    verb = {SQUARES: " would be off by", MISTAKES: " would be right on", TRAINING_ERRORS: " would be right on"}
    return f"{who}{verb.get(unit, '')} {figure_of(unit, mean)}"


def promise(unit: str, mean: float) -> str:
    """The guarantee, as a phrase; empty if it says nothing, such as more mistakes than rows."""
    if math.isnan(mean) or (unit == MISTAKES and mean >= 1.0):
        return ""
    return f"the theorem guarantees at {'least' if unit in PARTS_RIGHT else 'most'} {figure_of(unit, mean)}"


WORTH = {  # half a sentence for each word
    "tight": "it is at most twice what the run lost",
    "loose": "it is more than twice what the run lost, and still less than {} would lose",
    "vacuous": "it says nothing here: {} loses less than it allows",
}


def worth_in_words(worth: str, unit: str) -> str:
    """What a bound is worth ("tight", "loose" or "vacuous"), as a sentence; `unit` is as `unit_of` gives it."""
    return f"the promise is {worth}: {WORTH[worth].format(constant_of(unit))}"


# ---------------------------------------------------------------- cards for notebooks, legible on light and dark pages


# In between, so that they can be read on white and on black; text takes the colour of the page.
TONES = {
    Verdict.HOLDS: "#2da44e",
    Verdict.VOID: "#c08a00",
    Verdict.UNCHECKABLE: "#808a94",
    Verdict.BROKEN: "#e5534b",
}
PLAIN = "#3b8eea"


def card(title: str, lines: Sequence[str], tone: str = PLAIN, more: str = "", rest: Sequence[str] = ()) -> str:
    """Return a card in HTML.

    Parameters
    ----------
    title : str
        The title, in the colour of the card.
    lines : sequence of str
        Lines above the title, such as the main figures.
    tone : str
        The colour of the card.
    more : str
        HTML below.
    rest : sequence of str
        Lines below the title.
    """
    above = "".join(f'<p style="margin:0 0 .3em"><b>{html.escape(line)}</b></p>' for line in lines)
    below = "".join(f'<li style="list-style:none">{html.escape(line)}</li>' for line in rest)
    below = f'<ul style="margin:.3em 0;padding:0">{below}</ul>' if below else ""
    return (
        f'<div style="border:1px solid #8888;border-left:5px solid {tone};border-radius:6px;padding:.6em 1em;'
        f'margin:.4em 0;max-width:60em;color:inherit;background:transparent;font-family:system-ui,sans-serif">'
        f'{above}<b style="color:{tone}">{html.escape(title)}</b>{below}{more}</div>'
    )


def folded(summary: str, inside: str) -> str:
    """Return HTML that unfolds on a click."""
    return f'<details><summary style="cursor:pointer">{html.escape(summary)}</summary>{inside}</details>'


# ---------------------------------------------------------------- several certificates in one table


HEADS = ("", "verdict", "best constant", "best fixed", "guaranteed")


def table(named: Sequence[tuple[str, Certificate]]) -> list[str]:
    """The certificates as lines of text, followed by an explanation for each bound that does not hold.

    A best fixed predictor that is not shown to be the best has ≤ before its loss, or ≥ before its accuracy.

    Parameters
    ----------
    named : sequence of (str, Certificate)
        The certificates with their names.
    """
    units = {certificate.unit for _, certificate in named}
    rows = [(name, *cells(certificate, len(units) > 1)) for name, certificate in named]
    heads = [*HEADS[:2], title_of(units.pop()) if len(units) == 1 else "this run", *HEADS[2:]]
    wide = [max(len(row[k]) for row in (heads, *rows)) for k in range(len(heads))]

    def line(row: Sequence[str]) -> str:
        left = f"{row[0]:<{wide[0]}}  {row[1]:<{wide[1]}}"
        return f"{left}  " + "  ".join(f"{cell:>{width}}" for cell, width in zip(row[2:], wide[2:], strict=True))

    return [line(heads).rstrip(), *map(line, rows), *faults(named)]


def cells(certificate: Certificate, titled: bool) -> tuple[str, ...]:
    """The cells of one certificate; with the name of its figure if `titled`."""
    worth = f", {certificate.worth}" if certificate.worth else ""
    shown = {k: figure_of(certificate.unit, v) for k, v in certificate.means.items()}
    sign = "≥" if certificate.unit in PARTS_RIGHT else "≤"
    best = shown["best"] if certificate.best_is_shown or shown["best"] == "–" else f"{sign}{shown['best']}"
    own = f"{title_of(certificate.unit)} {shown['loss']}" if titled else shown["loss"]
    return f"{certificate.verdict.value}{worth}", own, shown["constant"], best, shown["guaranteed"]


def faults(named: Sequence[tuple[str, Certificate]]) -> list[str]:
    """Lines about runs that a constant would have beaten, with advice, and about bounds that do not hold."""
    out = []
    for name, certificate in named:
        if certificate.advice:
            out.append(f"{name} lost more than {constant_of(certificate.unit)} would have: {certificate.advice}")
        if certificate.verdict is not Verdict.HOLDS:
            why = [need.text for need in certificate.assumptions if need.met is not True] + list(certificate.notes)
            out.append(f"{name}: {certificate.verdict.value}: {certificate.theorem.name}; {'; '.join(why[:2])}")
    return out
