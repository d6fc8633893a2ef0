"""Evaluation of a model on rows with targets, compared with the best constant and with its training."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SourceError
from ..online.margins import each_loss, each_mean
from ..rows.labels import chosen_codes, class_probabilities, encode_labels, numbers_of, targets_of_runs
from ..sources.extra_columns import extra_columns, row_numbers
from ..validation import check_weights, refuse_masked
from .figures import ClassFigures, Decomposition, Evaluation, Figure, SliceFigures
from .model import Model, has_probabilities, link_of
from .prepare import (
    format_of,
    has_feature_of,
    in_order_of,
    learnt_columns,
    margins_of,
    open_for_model,
    rows_of_model,
    targets_of,
)
from .tallies import BLOCK, CoverageTally, Kept, ScoredLabels, Slices, Tally

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..forecast.auc import Auc
    from ..forecast.calibration import Reliability
    from ..sources import Chunk, Source

MIRRORED = ("logistic", "tanh", "probit")  # links with u(-z) = 1 - u(z), which is exact where 1 - u(z) is rounded to 0
SHOWN = 50  # slices, the largest ones
REST, EMPTY = "(the rest)", "(empty)"


def evaluate(
    model: Any,
    data: Any,
    y: Any = None,
    *,
    target: str | None = None,
    weight: Any = None,
    by: Any = None,
    format: str | None = None,
    light: bool = False,
) -> Evaluation:
    """Score the predictions of a model on rows that have targets.

    The rows are read once, chunk by chunk, and prepared as they were for learning; the sizes of chunks change nothing.
    The AUC, the decomposition of the Brier score and the absolute error of the best constant need memory: 32 bytes per
    row (for more than two classes 12, and 8 per class), and about 160 per row while they are sorted.

    Parameters
    ----------
    model : Model or estimator
        What `hindsight.load` returned, or any fitted classifier or regressor with scikit-learn's methods.
    data : object
        The rows: anything that `hindsight.open_source` reads, or ``"sample:NAME"``. For an estimator what its
        `predict` takes.
    y : array-like of shape (n_rows,) or None, default None
        The targets of rows in memory; None takes the column `target`. An estimator needs them.
    target : str or None, default None
        The column with the targets; None takes the one that the model learnt.
    weight : str, array-like or False, default None
        The column with the importance of each row, or with `y` the values; None is the column that the model was
        learnt with, False counts every row as 1.
    by : str or array-like, default None
        A column, or values for rows in memory, whose groups are scored separately.
    format : str or None, default None
        The format of the files; None goes by their name.
    light : bool, default False
        Keep nothing per row, which leaves out AUC, decomposition, calibration and absolute error of the best constant.

    Returns
    -------
    Evaluation
        The figures.

    Raises
    ------
    SourceError
        If the rows cannot be read, or have no targets.
    ValueError
        If the parameters do not fit together, or no row has a weight above 0.

    Examples
    --------
    >>> import hindsight
    >>> X, y = [[1.0], [-1.0], [2.0], [0.5]], ["yes", "no", "yes", "no"]
    >>> model = hindsight.PerceptronClassifier().fit(X, y)
    >>> hindsight.evaluate(model, X, y)
    Evaluation(4 rows: accuracy 100 %, AUC 1.00)
    """
    if isinstance(model, Model):
        rows = ModelRows(model, data, y, target, weight, format, [by] if isinstance(by, str) else [])
        return _evaluation(rows, by, light, learnt(model))
    for given, name in ((target, "target"), (format, "format")):
        if given is not None:
            raise ValueError(f"{name} is for a model that `hindsight learn` saved; an estimator takes rows in memory")
    if y is None:
        raise ValueError("an estimator needs the targets y")
    return _evaluation(EstimatorRows(model, data, y, None if weight is False else weight), by, light, {})


def brief_score(model: Model, data: Any, form: str | None = None) -> list[str]:
    """The scores of a model on rows, in one or two lines; empty if they have no targets.

    Parameters
    ----------
    model : Model
        The model.
    data : object
        Rows that can be read; their targets, if any, are in the column that the model learnt.
    form : str or None, default None
        The format of the files; None goes by their name.
    """
    try:
        rows = ModelRows(model, data, form=form)
    except SourceError:
        return []
    try:
        found = _evaluation(rows, None, True, {})
    except ValueError as error:
        return [f"not scored: {error}"] if rows.seen else []
    if sum(found.unknown.values()) == found.rows:
        return [f"not scored: no row has a label that the model knows ({', '.join((model.labels or [])[:5])}, ...)"]
    return [f"score: {found.beside_constant()}", *found.warnings()]


# ---------------------------------------------------------------- rows, scored


class ModelRows:
    """Rows with targets, and the predictions of a `Model` for them."""

    def __init__(
        self,
        model: Model,
        data: Any,
        y: Any = None,
        target: str | None = None,
        weight: Any = None,
        form: str | None = None,
        beside: Sequence[str] = (),
    ) -> None:
        self.model, self.labels, self.tracker = model, model.labels, model.runs[0].coverage
        own, weighed = learnt_columns(model)
        column = weighed if weight is None else weight
        if y is not None:
            given = weight is not None and weight is not False and not isinstance(weight, str)
            refuse_masked(y, "y")
            refuse_masked(weight, "weight")
            data = (data, np.asarray(y), np.asarray(weight, np.float64) if given else None)
            column = "weight" if given else column
            target = target or own or "y"
        elif not isinstance(column, (str, bool)) and column is not None:
            raise ValueError("weights that are not a column of the data need the targets y beside them")
        sample = isinstance(data, str) and data.startswith("sample:")
        if target is None and not sample:
            target = own
        if target is None and not sample:
            if not has_place_for_targets(data, form):
                raise SourceError(f"{data}: the model does not say which column it learnt: --target COLUMN")
            target = "label"
        for role, name in (("target", target), ("weight", column)) if y is None and model.names is not None else ():
            if isinstance(name, str) and has_feature_of(model, name):
                raise SourceError(f"{data}: the model predicts from column {name!r}: it cannot be the {role}")
        labels = None if model.labels is not None else False
        roles = {} if column in (None, False) or sample else {"weight": column}
        self.source: Source = open_for_model(model, data, form, beside, target=target, labels=labels, **roles)
        self.data, self.seen = data, False

    def chunks(self) -> Iterator[tuple[Chunk, np.ndarray, np.ndarray, np.ndarray | None]]:
        """Chunks with the margins of their rows, the targets and the weights."""
        for X, chunk in rows_of_model(self.model, self.source, in_order_of(self.model, self.data)):
            self.seen = True
            if len(chunk):
                yield chunk, margins_of(self.model, X, chunk), targets_of(chunk), chunk.weight

    def said(self, z: np.ndarray) -> Any:
        """The predictions given by margins: labels, or numbers."""
        if self.labels is None:
            return self.model.predictions(z)
        return ScoredLabels(chosen_codes(z), z, probabilities(self.model, z))

    def codes(self, y: np.ndarray) -> np.ndarray:
        """The index of each label, -1 if the model does not know it."""
        labels = self.labels or []
        return encode_labels(y, numbers_of(labels) if y.dtype.kind == "f" else labels).astype(np.int64)

    def own_loss(self, z: np.ndarray, y: np.ndarray, weight: np.ndarray) -> float:
        """The weighted sum of the losses that the model's runs minimise; y holds targets or indices of labels."""
        loss, targets = self.model.learner.loss, [y]
        if self.labels is not None:
            z, y, weight = z[y >= 0], y[y >= 0], weight[y >= 0]
            targets = targets_of_runs(y, len(self.labels), self.model.learner.targets, z.shape[1])
        each = (each_loss(loss, np.ascontiguousarray(z[:, k]), t) for k, t in enumerate(targets))
        return float(sum(weight @ lost for lost in each))


class EstimatorRows:
    """Rows with targets in memory, and the predictions of an estimator with scikit-learn's methods."""

    source = None

    def __init__(self, estimator: Any, X: Any, y: Any, weight: Any) -> None:
        refuse_masked(y, "y")
        self.estimator, self.X, self.y = estimator, X, np.asarray(y)
        self.tracker = getattr(next(iter(getattr(estimator, "runs_", [])), None), "coverage", None)
        self.classes = getattr(estimator, "classes_", None)
        self.labels = None if self.classes is None else [str(label) for label in self.classes]
        if self.y.ndim != 1:
            raise ValueError(f"the targets must have one dimension, got shape {self.y.shape}")
        self.weight = None if weight is None else checked_weights(weight, len(self.y))
        if self.labels is None:
            self.y = self.y.astype(np.float64)
            if not np.isfinite(self.y).all():
                raise ValueError(f"row {int((~np.isfinite(self.y)).argmax())}: the target is not finite")

    def chunks(self) -> Iterator[tuple[None, np.ndarray, np.ndarray, np.ndarray | None]]:
        """All rows, with predictions in place of margins."""
        model, X = self.estimator, self.X
        if self.labels is None:
            z = np.asarray(model.predict(X), np.float64)
        elif hasattr(model, "predict_proba"):
            z = np.asarray(model.predict_proba(X), np.float64)
        else:
            z = np.asarray(model.decision_function(X), np.float64)
        z = z.reshape(len(z), -1)
        if len(z) != len(self.y):
            raise ValueError(f"{len(z)} rows, but {len(self.y)} targets")
        yield None, z, self.y, self.weight

    def said(self, z: np.ndarray) -> Any:
        """These values as predictions."""
        if self.labels is None:
            return z[:, 0]
        if not hasattr(self.estimator, "predict_proba"):
            return ScoredLabels(chosen_codes(z), z, None)
        return ScoredLabels(z.argmax(axis=1), z[:, 1:] if z.shape[1] == 2 else z, z)

    def codes(self, y: np.ndarray) -> np.ndarray:
        """The index of each label, which has the type of the classes; -1 if the model does not know it."""
        return encode_labels(y, [] if self.classes is None else self.classes).astype(np.int64)

    def own_loss(self, z: np.ndarray, y: np.ndarray, weight: np.ndarray) -> float:
        """NaN, because the loss of an estimator is not known."""
        return math.nan


def has_place_for_targets(data: Any, form: str | None) -> bool:
    """Whether the format of the rows has a fixed place for the target."""
    paths = data if isinstance(data, (list, tuple)) else [data]
    path = paths[0] if paths and isinstance(paths[0], (str, os.PathLike)) else ""
    return format_of(path, form) in ("svmlight", "vw")


def probabilities(model: Model, z: np.ndarray) -> np.ndarray | None:
    """The probability of each label, one column per label; None if margins give none."""
    if not has_probabilities(model):
        return None
    loss = model.learner.loss
    positive = np.column_stack([each_mean(loss, z[:, k]) for k in range(z.shape[1])])
    found = class_probabilities(positive)
    if z.shape[1] == 1 and link_of(model) in MIRRORED:
        found[:, 0] = each_mean(loss, -z[:, 0])
    return found


def checked_weights(values: Any, rows: int) -> np.ndarray:
    """The weights as float64, one per row and none of them negative."""
    refuse_masked(values, "weight")
    weight = np.asarray(values, np.float64)
    if weight.shape != (rows,):
        raise ValueError(f"there must be one weight per row: {rows} rows, weights of shape {weight.shape}")
    check_weights(weight, idle=True)
    return weight


# ---------------------------------------------------------------- one pass


def blocks(parts: Iterable[tuple[np.ndarray, ...]]) -> Iterator[list[np.ndarray]]:
    """The same rows in blocks of a fixed size, the last one smaller."""
    held: list[tuple[np.ndarray, ...]] = []
    size = 0
    for part in parts:
        held.append(part)
        size += len(part[0])
        if size >= BLOCK:
            whole = [np.concatenate(each) for each in zip(*held, strict=True)]
            end = size - size % BLOCK
            for a in range(0, end, BLOCK):
                yield [each[a : a + BLOCK] for each in whole]
            held, size = [tuple(each[end:].copy() for each in whole)], size - end
    if size:
        yield [np.concatenate(each) for each in zip(*held, strict=True)]


def _evaluation(rows: Any, by: Any, light: bool, learning: dict[str, float]) -> Evaluation:
    """Read all rows, accumulate their sums, and compute the figures."""
    slices = Slices()
    column = None if by is None else by if isinstance(by, str) else "value"
    return figures_from(tallied(rows, by, light, learning, slices), learning, column, slices)


def tallied(rows: Any, by: Any, light: bool, learning: dict[str, float], slices: Slices) -> Tally:
    """Read all rows and accumulate their sums."""
    tally = Tally(rows.labels, not light)
    if rows.tracker is not None:
        tally.covered = CoverageTally(rows.tracker.asked, rows.tracker.half, not light)
    for y, z, weight, codes in blocks(_scored(rows, tally, by, slices)):
        said = rows.said(z)
        tally.add(y, said, weight, codes, len(slices.known) + 1)
        if tally.covered is not None:
            tally.covered.add(y, said, weight)
        if "own_loss" in learning:
            tally.own_loss += rows.own_loss(z, y, weight)
    return tally


def figures_from(tally: Tally, learning: dict[str, float], column: str | None, slices: Slices) -> Evaluation:
    """The figures, from sums over rows."""
    if not tally.sums:
        raise ValueError("there is no row with a weight above 0")
    finish = number_figures if tally.labels is None else label_figures
    return finish(tally, learning, column, slices)


def _scored(rows: Any, tally: Tally, by: Any, slices: Slices) -> Iterator[tuple[np.ndarray, ...]]:
    """Targets (or the indices of labels), margins, weights and slices of the rows with a weight above 0."""
    beside = _beside(rows, by)
    for chunk, z, y, given in rows.chunks():
        weight = np.ones(len(y)) if given is None else given
        codes = np.zeros(len(y), np.int64) if beside is None else slices.codes(beside(chunk))
        if rows.labels is not None:
            found = rows.codes(y)
            tally.count_unknown(y[(found < 0) & (weight > 0.0)])
            y = found
        some = weight > 0.0
        yield (y, z, weight, codes) if some.all() else (y[some], z[some], weight[some], codes[some])


def _beside(rows: Any, by: Any) -> Any:
    """A function that gives the values to slice a chunk by, as text; None without slices."""
    if by is None:
        return None
    if isinstance(by, str):
        if rows.source is None:
            raise ValueError(f"by must have the value of each row, got the name {by!r}: an estimator has no table")
        read = extra_columns(rows.source, [by])
        return lambda chunk: texts(read(chunk)[0])
    values = np.array(texts(list(by)))
    if rows.source is None:
        if len(values) != len(rows.y):
            raise ValueError(f"by has {len(values)} values for {len(rows.y)} rows")
        return lambda _: values
    if rows.source.where != "data":
        raise ValueError("by must be the name of a column: these rows are not in memory")

    def of(chunk: Any) -> np.ndarray:
        numbers = row_numbers(chunk)
        if max(numbers, default=-1) >= len(values):
            raise ValueError(f"by has {len(values)} values, but there are more rows")
        return values[numbers]

    return of


def texts(values: Any) -> list[str]:
    """Values of a column as text; those that are missing as "(empty)"."""
    listed = values.to_pylist() if hasattr(values, "to_pylist") else values
    return [EMPTY if value is None or value == "" or value != value else str(value) for value in listed]


# ---------------------------------------------------------------- figures


def learnt(model: Model) -> dict[str, float]:
    """The model's scores during learning, each row predicted before it was learnt, by the name of the figure."""
    facts, loss = model.facts, model.learner.loss
    weight = facts[0].weight
    if not weight:
        return {}
    found: dict[str, float] = {}
    if model.coverage is not None:
        found |= {"coverage": model.coverage.covered}
        found |= model.coverage.means if model.labels is None else {}
    if model.labels is None:
        mean = facts[0].square / weight
        found |= {"mse": mean, "rmse": math.sqrt(mean) if mean >= 0.0 else math.nan}
        return found if getattr(loss, "quadratic", False) else found | {"own_loss": facts[0].loss / weight}
    if len(model.runs) == 1:
        found["accuracy"] = 1.0 - facts[0].mistake_weight / weight
        if has_probabilities(model):
            found["brier_score"] = facts[0].square / weight
        if getattr(loss, "name", "") == "logistic":
            return found | {"log_loss": facts[0].loss / loss.scale / weight}
    return found | {"own_loss": sum(each.loss for each in facts) / weight}


def figures_of(values: dict[str, tuple[float, float]], learning: dict[str, float], own: float) -> dict[str, Figure]:
    """Each value with that of the best constant and that of the training."""
    out = {name: Figure(*pair, learning.get(name, math.nan)) for name, pair in values.items()}
    return out | ({"own_loss": Figure(own, math.nan, learning["own_loss"])} if "own_loss" in learning else {})


def ratio(a: float, b: float) -> float:
    """a / b, NaN where b is 0."""
    return float(a / b) if b else math.nan


def ratios(a: np.ndarray, b: np.ndarray) -> list[float]:
    """Each a / b, NaN where b is 0."""
    return [ratio(*pair) for pair in zip(a, b, strict=True)]


def number_figures(tally: Tally, learning: dict[str, float], by: str | None, slices: Slices) -> Evaluation:
    """The figures of a regression."""
    weight, square, squares, absolute = (float(tally[name][0]) for name in ("weight", "square", "squares", "absolute"))
    mse, variance = square / weight, squares / weight
    values = {
        "r2": (1.0 - mse / variance if variance else math.nan, 0.0 if variance else math.nan),
        "mse": (mse, variance),
        "rmse": (math.sqrt(mse), math.sqrt(variance)),
        "mae": (absolute / weight, median_error(tally.kept)),
    }
    values |= {} if tally.covered is None else tally.covered.figures(False)
    parts = []
    for value, k in largest(slices, tally):
        c, square, within, absolute = (float(tally[n][k].sum()) for n in ("weight", "square", "squares", "absolute"))
        means = tally["mean"][k]
        mean = float(tally["weight"][k] @ means) / c
        spread = within + float(tally["weight"][k] @ np.square(means - mean)) * (len(k) > 1)
        own = {"r2": 1.0 - square / spread if spread else math.nan, "rmse": math.sqrt(square / c)}
        own |= {"rmse_of_constant": math.sqrt(spread / c), "mae": absolute / c}
        parts.append(SliceFigures(value, int(tally["rows"][k].sum()), c, own))
    found = {}
    if tally.kept is not None:
        from ..forecast.calibration import reliability

        y, weights, said = tally.kept.joined()
        found = {"predictions": reliability(y, said, weights, loss="quadratic")}
    figures, rows = figures_of(values, learning, tally.own_loss / weight), int(tally["rows"][0])
    return Evaluation("regress", rows, weight, figures, by=by, slices=tuple(parts), calibration=found)


def median_error(kept: Kept | None) -> float:
    """The mean absolute error of the best constant, a weighted median; NaN if rows were not kept."""
    if kept is None:
        return math.nan
    y, weight, _ = kept.joined()
    order = np.argsort(y)
    below = np.cumsum(weight[order])
    median = y[order][np.searchsorted(below, 0.5 * below[-1])]
    return float(weight @ np.abs(y - median) / below[-1])


def label_figures(tally: Tally, learning: dict[str, float], by: str | None, slices: Slices) -> Evaluation:
    """The figures of a classifier."""
    labels, weight, known = tally.labels or [], float(tally["weight"][0]), tally["support"][0, :-1]
    total = float(known.sum())
    values = {"accuracy": (float(tally["right"][0]) / weight, float(known.max()) / weight)}
    infinite, finite = 0, math.nan
    if "brier" in tally.sums:  # there are probabilities
        shares = known[known > 0.0] / total if total else known[:0]
        entropy = float(-shares @ np.log(shares)) if total else math.nan
        infinite, finite = int(tally["infinite"][0]), ratio(tally["log_loss"][0], tally["finite"][0])
        values["log_loss"] = (math.inf if infinite else finite, entropy)
        values["brier_score"] = (float(tally["brier"][0]) / weight, uncertainty(tally["support"][0]))
    values |= {} if tally.covered is None else tally.covered.figures(True)
    areas: list[Any] = [None] * len(labels)
    found: dict[str, Reliability] = {}
    area, parts = None, None
    if tally.kept is not None:
        areas, area = areas_of(tally.kept, len(labels))
        values["auc"] = (area.value, 0.5 if not math.isnan(area.value) else math.nan)
        if "brier" in tally.sums:
            found, parts = decomposition(tally.kept, labels)
    rights, chosen = np.diag(tally.confusion), tally.confusion.sum(axis=0)
    figures = zip(ratios(rights, chosen), ratios(rights, known), ratios(2.0 * rights, chosen + known), strict=True)
    each = zip(labels, figures, known.tolist(), areas, strict=True)
    return Evaluation(
        "classify",
        int(tally["rows"][0]),
        weight,
        figures_of(values, learning, ratio(tally.own_loss, total)),
        labels=tuple(labels),
        confusion=tally.confusion,
        classes=tuple(ClassFigures(label, *three, support, auc) for label, three, support, auc in each),
        auc=area,
        decomposition=parts,
        infinite=infinite,
        finite_log_loss=finite,
        unknown=dict(tally.unknown.most_common()),
        by=by,
        slices=tuple(label_slices(tally, slices)),
        calibration=found,
    )


def uncertainty(support: np.ndarray) -> float:
    """The Brier score of predicting the frequencies of the labels; with two labels, half the sum over them."""
    shares = support / support.sum()
    return float(shares @ (1.0 - shares)) * (0.5 if support.size == 3 else 1.0)


def label_slices(tally: Tally, slices: Slices) -> Iterator[SliceFigures]:
    """The figures of each slice."""
    for value, k in largest(slices, tally):
        found = {name: each[k].sum(axis=0) for name, each in tally.sums.items()}
        c = float(found["weight"])
        own = {"accuracy": float(found["right"]) / c, "accuracy_of_constant": float(found["support"][:-1].max()) / c}
        if "brier" in found:
            own["log_loss"] = math.inf if found["infinite"] else ratio(found["log_loss"], found["finite"])
            own["brier_score"] = float(found["brier"]) / c
        yield SliceFigures(value, int(found["rows"]), c, own)


def largest(slices: Slices, tally: Tally) -> Iterator[tuple[str, np.ndarray]]:
    """The slices of largest weight, then the others together, with the indices of their sums."""
    values, rows, weight = slices.values, tally["rows"], tally["weight"]
    order = [k for k in sorted(range(1, len(values) + 1), key=lambda k: (-weight[k], values[k - 1])) if rows[k]]
    for k in order[:SHOWN]:
        yield values[k - 1], np.array([k])
    if order[SHOWN:]:
        yield REST, np.array(order[SHOWN:])


def areas_of(kept: Kept, labels: int) -> tuple[list[Auc], Auc]:
    """The AUC of each label against the rest, over rows with a label that the model knows, and the overall AUC."""
    from ..forecast.auc import LEVEL, interval, mean_auc, placements

    codes, weight, scores, *_ = kept.joined()
    some = codes >= 0
    codes, weight, scores = codes[some], weight[some], scores[some]
    if labels == 2:
        both = interval(placements(codes == 1, scores[:, 0], weight), LEVEL)
        return [both, both], both
    found = [placements(codes == k, scores[:, k], weight) for k in range(labels)]
    return [interval(each) for each in found], mean_auc(found)


def decomposition(kept: Kept, labels: list[str]) -> tuple[dict[str, Reliability], Decomposition]:
    """The calibration of each label, and the decomposed Brier score summed over labels; of two labels, the second's."""
    from ..forecast.calibration import reliability

    codes, weight, scores, *more = kept.joined()
    two = len(labels) == 2
    p = np.column_stack([1.0 - more[0], more[0]]) if two else scores
    missed = codes < 0
    places = [1] if two and not missed.any() else list(range(len(labels)))
    each = [reliability((codes == k).astype(float), np.clip(p[:, k], 0.0, 1.0), weight) for k in places]
    shown = {labels[k]: one for k, one in zip(places, each, strict=True) if not two or k == 1}
    if missed.any():  # as an additional label with probability 0
        each.append(reliability(missed.astype(float), np.zeros(codes.size), weight))
    half = 0.5 if two and missed.any() else 1.0
    names = ("miscalibration", "discrimination", "uncertainty")
    return shown, Decomposition(*(half * math.fsum(getattr(one, name) for one in each) for name in names))
