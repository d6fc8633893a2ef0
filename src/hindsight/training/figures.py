"""The figures of an evaluation, as text and as plain values."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..certificates.wording import Scores, shown_figure
from ..formatting import _n, _plain, aligned, brief, percent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..forecast.auc import Auc
    from ..forecast.calibration import Reliability

WIDE = 12  # labels up to which all cells of a confusion table are shown
NAMED = 5  # unknown labels that are named
TITLES = {
    "log_loss": "log loss",
    "brier_score": "Brier score",
    "auc": "AUC",
    "r2": "R²",
    "mse": "MSE",
    "rmse": "RMSE",
    "mae": "MAE",
    "own_loss": "own loss",
    "interval_score": "interval score",
    "set_size": "labels in a set",
    "accuracy_of_constant": "best constant's",
    "rmse_of_constant": "best constant's",
}


class Figure(NamedTuple):
    """A figure over the evaluated rows; values are NaN if undefined or unknown.

    Attributes
    ----------
    value : float
        The model's value.
    constant : float
        The value of the best constant prediction in hindsight over the same rows.
    learning : float
        The model's value during learning, over the rows it learnt from, each predicted before it was learnt.
    """

    value: float
    constant: float
    learning: float


class Decomposition(NamedTuple):
    """The parts of the Brier score: miscalibration - discrimination + uncertainty."""

    miscalibration: float
    discrimination: float
    uncertainty: float


class ClassFigures(NamedTuple):
    """The figures of one label; NaN if undefined, like the precision of a label that is never predicted."""

    label: str
    precision: float
    recall: float
    f1: float
    support: float
    auc: Auc | None


class SliceFigures(NamedTuple):
    """The figures of the rows with one value of a column."""

    value: str
    rows: int
    weight: float
    figures: dict[str, float]


@dataclass(frozen=True, repr=False)
class Evaluation:
    """How well a model predicts some rows. ``found["accuracy"]`` is the value of a figure.

    Attributes
    ----------
    task : {"classify", "regress"}
        Whether targets are labels or numbers.
    rows : int
        Rows with a weight above 0.
    weight : float
        The sum of their weights.
    figures : dict of str to Figure
        "accuracy", "log_loss", "brier_score" and "auc"; or "r2", "mse", "rmse" and "mae"; and "own_loss", the mean of
        the loss that the model's learner minimises, if it is none of these. For a model with intervals also "coverage",
        "width" and "interval_score" (the width, plus 2/(1 - asked) times the distance outside), compared with the best
        constant interval, or "coverage" and "set_size", compared with the smallest constant set.
    labels : tuple of str
        The labels that the model knows.
    confusion : ndarray of shape (n_labels + 1, n_labels) or None
        The weight of rows by their label (in the last row, labels that the model does not know) and the predicted one.
    classes : tuple of ClassFigures
        The figures of each label.
    auc : Auc or None
        The AUC with its interval; for more than two labels, the mean of the AUCs of each label against the rest.
    decomposition : Decomposition or None
        The parts of the Brier score.
    infinite : int
        The number of rows with infinite log loss, because their label has probability 0 or is not known to the model.
    finite_log_loss : float
        The mean log loss of the other rows.
    unknown : dict of str to int
        The number of rows of each label that the model does not know; their prediction counts as wrong.
    by : str or None
        The column that defines the slices.
    slices : tuple of SliceFigures
        The figures of each value of that column.
    calibration : dict of str to Reliability
        The data of the calibration chart, by label, or of the predicted numbers.
    """

    task: str
    rows: int
    weight: float
    figures: dict[str, Figure]
    labels: tuple[str, ...] = ()
    confusion: np.ndarray | None = None
    classes: tuple[ClassFigures, ...] = ()
    auc: Auc | None = None
    decomposition: Decomposition | None = None
    infinite: int = 0
    finite_log_loss: float = math.nan
    unknown: dict[str, int] = field(default_factory=dict)
    by: str | None = None
    slices: tuple[SliceFigures, ...] = ()
    calibration: dict[str, Reliability] = field(default_factory=dict)

    def __getitem__(self, name: str) -> float:
        return self.figures[name].value

    def __repr__(self) -> str:
        return f"Evaluation({self.rows:,} rows: {self.brief()})"

    def __str__(self) -> str:
        return "\n".join(self.lines())

    @property
    def scores(self) -> Scores:
        """The main figures for the type of target, and those of the best constant."""
        if self.confusion is None:
            square, constant, _ = self.figures["mse"]
            return Scores(square=square, square_of_constant=constant)
        right, constant, _ = self.figures["accuracy"]
        top = self.labels[int(self.confusion[:-1].sum(axis=1).argmax())]
        return Scores(right=right, right_of_constant=constant, label=top)

    def brief(self) -> str:
        """The figures in one line."""
        return ", ".join(
            f"{title(name)} {shown_figure(name, f.value)}" for name, f in self.figures.items() if name != "own_loss"
        )

    def beside_constant(self) -> str:
        """The figures in one line, each with that of the best constant."""
        parts = [
            f"{title(name)} {shown_figure(name, f.value)}"
            + ("" if math.isnan(f.constant) else f" ({shown_figure(name, f.constant)})")
            for name, f in self.figures.items()
        ]
        return f"{', '.join(parts)} over {plural(self.rows)} (in brackets: the best constant)"

    def lines(self) -> list[str]:
        """All figures as lines of text."""
        out = [*self._figure_lines(), *self._remarks()]
        if self.task == "classify":
            out += ["", *self._confusion_lines(), "", *self._class_lines()]
        return out + (["", *self._slice_lines()] if self.by is not None else [])

    def to_dict(self) -> dict[str, Any]:
        """All figures as plain values for JSON, with None for undefined or infinite ones."""
        out: dict[str, Any] = {"task": self.task, "rows": self.rows, "weight": self.weight}
        out["figures"] = {name: figure._asdict() for name, figure in self.figures.items()}
        if self.task == "classify":
            assert self.confusion is not None
            out["labels"] = list(self.labels)
            out |= {"auc": None if self.auc is None else self.auc._asdict()}
            out["decomposition"] = None if self.decomposition is None else self.decomposition._asdict()
            out |= {"infinite": self.infinite, "finite_log_loss": self.finite_log_loss, "unknown": self.unknown}
            out |= {"confusion": self.confusion[:-1], "confusion_of_unknown": self.confusion[-1]}
            out["classes"] = [
                each._asdict() | {"auc": None if each.auc is None else each.auc._asdict()} for each in self.classes
            ]
        if self.by is not None:
            out |= {"by": self.by, "slices": [each._asdict() for each in self.slices]}
        return dict(_plain(out))

    # ------------------------------------------------------------ as text

    def _figure_lines(self) -> list[str]:
        head = ["", "these rows", "best constant", "while learning"]
        table = [
            [title(name), *(shown_figure(name, value) for value in figure)] for name, figure in self.figures.items()
        ]
        if all(math.isnan(figure.learning) for figure in self.figures.values()):
            head, table = head[:3], [row[:3] for row in table]
        return aligned([head, *table])

    def _remarks(self) -> Iterator[str]:
        if self.decomposition is not None:
            parts = [brief(part) for part in self.decomposition]
            yield f"Brier score = miscalibration {parts[0]} − discrimination {parts[1]} + uncertainty {parts[2]}"
        if self.auc is not None and not math.isnan(self.auc.value):
            many = "mean of each label against the rest, " if len(self.labels) > 2 else ""
            yield f"AUC: {many}{100 * self.auc.level:g} % interval {brief(self.auc.low)} to {brief(self.auc.high)}"
        elif self.auc is not None:
            yield "AUC: not defined: fewer than two of the labels occur"
        if self.task == "classify" and "log_loss" not in self.figures:
            yield "log loss, Brier score: this learner gives margins and no probabilities"
        yield from self.warnings()

    def warnings(self) -> Iterator[str]:
        """Warnings about labels that the model does not know and about infinite losses."""
        strange = sum(self.unknown.values())
        if strange:
            named = ", ".join(f"{label!r} ({_n(count)})" for label, count in list(self.unknown.items())[:NAMED])
            more = ", ..." if len(self.unknown) > NAMED else ""
            yield f"{plural(strange)} with a label that the model does not know, scored as wrong: {named}{more}"
        if self.infinite:
            rest = self.rows - self.infinite
            over = f"; {brief(self.finite_log_loss)} over the other {plural(rest)}" if rest else ""
            yield f"log loss: infinite in {plural(self.infinite)}, whose label was given probability 0{over}"

    def _confusion_lines(self) -> list[str]:
        assert self.confusion is not None
        titles = [*self.labels, "unknown labels"] if self.unknown else list(self.labels)
        cells = self.confusion[: len(titles)]
        if len(self.labels) <= WIDE:
            rows = [[title, *map(_n, row)] for title, row in zip(titles, cells.tolist(), strict=True)]
            return aligned([["label \\ predicted", *self.labels], *rows])
        wrong = cells.copy()
        np.fill_diagonal(wrong, 0.0)
        worst = [divmod(k, len(self.labels)) for k in np.argsort(-wrong, axis=None, kind="stable")[:10].tolist()]
        rows = [[titles[i], self.labels[j], _n(wrong[i, j])] for i, j in worst if wrong[i, j]]
        return aligned([["label", "predicted", "the most frequent mistakes"], *rows], 2)

    def _class_lines(self) -> list[str]:
        many = len(self.labels) > 2 and self.auc is not None
        head = ["label", "precision", "recall", "F1", "support", *(["AUC", "interval"] if many else [])]
        rows = []
        for each in self.classes:
            row = [each.label, percent(each.precision), percent(each.recall), brief(each.f1), _n(each.support)]
            if many and each.auc is not None:
                ends = "–" if math.isnan(each.auc.low) else f"{brief(each.auc.low)} to {brief(each.auc.high)}"
                row += [brief(each.auc.value), ends]
            rows.append(row)
        return aligned([head, *rows])

    def _slice_lines(self) -> list[str]:
        names = list(map(title, self.slices[0].figures)) if self.slices else []
        weighted = any(each.weight != each.rows for each in self.slices)
        head = [self.by or "", "rows", *(["weight"] if weighted else []), *names]
        rows = []
        for each in self.slices:
            sizes = [f"{each.rows:,}", *([_n(each.weight)] if weighted else [])]
            rows.append([each.value, *sizes, *(shown_figure(*item) for item in each.figures.items())])
        return aligned([head, *rows])


def title(name: str) -> str:
    """The display name of a figure."""
    return TITLES.get(name, name)


def plural(count: int) -> str:
    """The number of rows in words, as "1 row" or "2 rows"."""
    return "1 row" if count == 1 else f"{count:,} rows"
