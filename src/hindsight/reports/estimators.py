"""The public `report`, and reports of estimators.

For online estimators the run is replayed. For estimators that read all rows at once, or in each of many rounds, the
report shows their errors, predictions and rounds.
"""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from ..certificates.certificate import combined
from ..certificates.wording import MISTAKES, SQUARES, Scores, rooted, unit_of
from ..charts.drawing import line_rows, thinned
from ..charts.runs import per_row
from ..estimators.mixins.estimator import last_step
from ..online.margins import each_mean
from ..rows.labels import count_mistakes, encode_labels
from ..rows.order import FIELDS, add_labels, add_numbers, label_order, number_order
from ..training.evaluation import evaluate
from ..training.model import Model
from ..training.outputs import check_destination
from ..training.plan import describe_learner, part_name, short_names
from ..training.prepare import target_column
from ..training.recording import ColumnSpread, Recording, Sample
from .content import LINES, LearnerPart, Report, ScoredRows, Weights, add_online, means_of
from .page import write_page
from .writing import course_notes, plain_name, report_model, settings_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..certificates.certificate import Certificate
    from ..training.plan import Plan
    from ..training.prepare import AllRows

IN_SAMPLE = (
    "Errors and predictions are of rows that the model learnt from, all at once: on new rows it may err more. There is "
    "no course of predictions made before each row, and so no regret."
)
CALIBRATED = "The learnt link is an isotonic fit of these rows: on them it is calibrated by construction."
HELD_OUT = "Some rows were held out to pick the round; charts of predictions show them too."
SCALED = "The certificate is in units of the targets as they were scaled for learning."


ONLINE = ("intercept", "passes", "scale")  # settings of plans that learners in rounds have not


def report(model: Any, path: str | os.PathLike[str], X: Any, y: Any = None, sample_weight: Any = None) -> None:
    """Write a report of what a model learnt as one self-contained HTML page.

    For a model that learnt online, the run is replayed over the rows to compute its certificate, which the model keeps,
    and its curves.

    Parameters
    ----------
    model : Model or estimator
        The result of `hindsight.learn` or `hindsight.load`, a fitted classifier or regressor with scikit-learn's
        methods, or a scikit-learn Pipeline that ends in one.
    path : str or path-like
        The file; an existing one is overwritten.
    X : object
        The rows the model was trained on, in the same order; for a `Model` anything that `hindsight.open_source` reads.
    y : array-like of shape (n_rows,), default=None
        Targets as in training; None if the rows contain them.
    sample_weight : array-like of shape (n_rows,), default=None
        Weights as in training.

    Raises
    ------
    MismatchError
        If these are not the rows of the run.
    ModelError
        If the model does not contain how its rows were read.
    ValueError
        If the file cannot be written, or the model has seen only one class.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import hindsight
    >>> X, y = [[1.0], [-1.0], [2.0], [0.5]], ["yes", "no", "yes", "no"]
    >>> model = hindsight.PerceptronClassifier().fit(X, y)
    >>> page = pathlib.Path(tempfile.mkdtemp()) / "page.html"
    >>> hindsight.report(model, page, X, y)
    >>> "HOLDS" in page.read_text(encoding="utf-8")
    True
    """
    path = os.fspath(path)
    model, X = last_step(model, X)
    if isinstance(model, Model):
        report_model(model, path, X if y is None else (X, y, sample_weight))
    else:
        report_estimator(model, path, X, y, sample_weight)


def report_estimator(model: Any, path: str, X: Any, y: Any, sample_weight: Any = None) -> None:
    """Certify an estimator over its training rows, if possible, and write its report."""
    check_is_fitted(model)
    check_destination(path, replaced=True)
    classes = getattr(model, "classes_", None)
    if classes is not None and len(classes) < 2:
        raise ValueError(f"a report needs two classes, and the model has met only {classes.tolist()[0]!r}")
    each: list[Certificate] = []
    if hasattr(model, "certify"):
        model.certificate_ = model.certify(X, y, sample_weight)
        each = list(getattr(model.certificate_, "each", [model.certificate_]))
    known = getattr(model, "feature_names_in_", getattr(model, "_column", None))  # of a frame, or of dicts
    page = Report(
        f"{type(model).__name__} on rows in memory ({type(X).__name__})",
        len(y),
        model.n_features_in_,
        [f"x{j}" for j in range(model.n_features_in_)] if known is None else [str(name) for name in known],
        shown_parameters(model),
        labels=None if classes is None else [str(label) for label in classes],
    )
    add = add_replayed if hasattr(model, "_replayed") else add_fitted
    add(page, model, X, y, sample_weight, each)
    write_page(path, page.content())


def shown_parameters(model: Any) -> dict[str, str]:
    """The parameters of an estimator as text."""
    return {name: str(value) for name, value in model.get_params().items() if value is not None}


def add_replayed(page: Report, model: Any, X: Any, y: Any, weight: Any, certificates: Sequence[Certificate]) -> None:
    """Add an online estimator, whose run is replayed from its start."""
    runs, told, c, passes, blocks = model._replayed(X, y, weight)
    recording, wrong = Recording([runs], page.labels), 0
    for part, z in blocks:
        recording.add_rows(z, told[part], c[part])
        on = c[part] > 0.0
        wrong += 0 if page.labels is None else count_mistakes(z[on], told[part][on])
    page.warnings, page.notes = warnings_of_order(told[c > 0.0], page.labels), course_notes(passes, recording)
    page.rows *= passes
    name = short_names(recording.learners)[0].removeprefix("[1] ")
    recording.spread.add(model._matrix(X, reset=False))
    scores = run_scores(recording, told, c)
    constant = "", math.nan
    add_online(page, recording, 0, runs, certificates, mistakes=wrong, scores=scores, constant=constant, name=name)


def run_scores(recording: Recording, y: np.ndarray, c: np.ndarray) -> Scores:
    """The scores of a run and of the best constant, from the targets (or label indices) of its rows."""
    total = recording.course.weight or 1.0
    if recording.labels is None:
        square = float(recording.course.sums[recording.index(0, "square")]) / total
        on = np.flatnonzero(c > 0.0)[recording.opening :]
        return Scores(square=square, square_of_constant=mean_square_distance(y[on].astype(np.float64), c[on]))
    wrong = float(recording.course.sums[recording.index(0, "errors")]) / total
    mass = np.bincount(y, c, len(recording.labels))
    top = int(mass.argmax())
    of_constant = float(mass[top] / (mass.sum() or 1.0))
    return Scores(right=1.0 - wrong, right_of_constant=of_constant, label=recording.labels[top])


def warnings_of_order(y: np.ndarray, labels: list[str] | None) -> list[str]:
    """Warnings about the order of targets, or of label indices."""
    sums = np.zeros(FIELDS)
    if labels is None:
        add_numbers(sums, y)
        found = number_order(sums)
    else:
        add_labels(sums, y)
        found = label_order(sums, np.bincount(y, minlength=len(labels)))
    return [] if found is None else [found]


def write_fitted(path: str, plan: Plan, model: Any, read: AllRows, certificate: Any) -> None:
    """Write the report of a model that was fitted to all rows of a plan."""
    page = Report(
        plain_name(plan.where), read.X.shape[0], read.X.shape[1], list(read.names),
        {k: v for k, v in settings_of(plan).items() if k not in ONLINE} | shown_parameters(model),
        labels=[str(label) for label in model.classes_] if hasattr(model, "classes_") else None,
        target=target_column(vars(plan)),
    )  # fmt: skip
    add_fitted(page, model, read.X, read.y, read.weight, list(getattr(certificate, "each", [certificate])))
    write_page(path, page.content())


# ---------------------------------------------------------------- fitted to all rows at once


def add_fitted(page: Report, model: Any, X: Any, y: Any, weight: Any, certificates: Sequence[Certificate]) -> None:
    """Add a model that was fitted to all rows at once."""
    part, y, labels = LearnerPart(page, 0, certificates), np.asarray(column_or_1d(y)), page.labels
    c = np.ones(len(y)) if weight is None else np.asarray(weight, np.float64)
    figures = evaluate(model, X, y, weight=c, light=True).scores
    words, means = described(model, figures, y, c, certificates)
    notes, page.how = words["notes"], how_it_read(model)
    if labels is None:
        scores, odds, told, counts = np.asarray(model.predict(X))[:, None], False, y.astype(np.float64), None
    else:
        scores, odds = predictions_by_run(model, X)
        told = encode_labels(y, model.classes_)
        said = encode_labels(np.asarray(model.predict(X)), model.classes_)
        counts = np.zeros((len(labels), len(labels)), np.int64)
        np.add.at(counts, (told[c > 0.0], said[c > 0.0]), 1)
        if len(certificates) > 1:
            notes.append(f"Each of the {len(labels)} labels has its own run; these figures are sums over all.")
    part.judge(linear_weights(model, X), means, figures, **words)
    sample = Sample(scores.shape[1] + 2)
    sample.add(1, np.column_stack([scores, told, c])[c > 0.0])
    drawn = sample.drawn()
    part.show_predictions(ScoredRows(drawn[:, :-2], drawn[:, -2], drawn[:, -1], sample.seen), counts, odds, 1)
    if odds and not hasattr(model, "_means") and not hasattr(model, "runs_"):
        part.values["in_all"] = True  # probabilities are of all labels together
    chosen = part.values.get("chosen") or []
    charted = [labels.index(label) for label in chosen] if labels and chosen else [0]
    losses = losses_by_round(model)
    if losses:
        part.draw("rounds", round_rows(losses, labels, charted, words["unit"]))
    links: Any = getattr(model, "link_", None)
    for j, k in enumerate([] if links is None else charted):
        link, place = (links[k], f"/{j}") if isinstance(links, list) else (links, "")
        part.draw("link", [{"margin": z, "mean": m} for z, m in thinned(link.z, link.mean, LINES)], place)


def described(
    model: Any, figures: Scores, y: np.ndarray, c: np.ndarray, certificates: Sequence[Certificate]
) -> tuple[dict[str, Any], dict[str, float]]:
    """How a model was trained, in words, and its scores: its own, its certificate's, or those of an evaluation."""
    kind = type(model).__name__
    words: dict[str, Any] = {"name": kind, "title": "", "notes": [IN_SAMPLE], "unit": MISTAKES}
    if hasattr(model, "histories_"):
        best, unit = [h.best + 1 for h in model.histories_], y_unit(model)
        where = f"round {best[0]:,}" if len(set(best)) == 1 else "the best rounds of each label"
        words |= {"name": f"{kind} in {where} of {model.n_iter_:,}", "title": f"step η = {model.eta_:g}"}
        first = model.histories_[0]
        said = {CALIBRATED: first.link is not None, HELD_OUT: first.held is not None, SCALED: unit != 1.0}
        words["notes"] += [note for note, is_so in said.items() if is_so]
        words["unit"] = SQUARES
        mse = unit * sum(float(h.loss[h.best]) for h in model.histories_)
        return words, means_of(mse, square_loss_of_constant(model, y, c))
    if hasattr(model, "runs_"):
        learner, rounds = model.runs_[0].learner, model.rounds_
        words |= {"name": f"{kind} after {rounds:,} rounds", "title": describe_learner(learner)}
        words["unit"] = unit_of(f"{part_name(learner.loss)} loss{' with l2' if model.l2 else ''}")
    elif hasattr(model, "method_"):
        words["title"] = f"solved by {model.method_}"
    elif hasattr(model, "n_updates_"):
        words["title"] = f"{int(np.sum(model.n_updates_)):,} updates in {int(np.sum(model.n_visits_)):,} visits of rows"
    if certificates and not any(math.isnan(certificate.lost) for certificate in certificates):
        words["notes"] = [IN_SAMPLE.split(". There")[0] + "."]
        return words, combined(certificates).means
    if figures.of_labels:
        return words | {"unit": MISTAKES}, means_of(1.0 - figures.right, 1.0 - figures.right_of_constant)
    return words | {"unit": SQUARES}, means_of(figures.square, figures.square_of_constant)


def how_it_read(model: Any) -> str:
    """How a model read its rows."""
    if hasattr(model, "n_updates_"):
        return "rows were scanned in their order, over and over"
    rounds = getattr(model, "n_iter_" if hasattr(model, "histories_") else "rounds_", None)
    if rounds is None:
        return "all rows were read at once"
    drawn = getattr(model, "batch", "full")
    return f"{'all rows were read' if drawn == 'full' else f'{drawn:,} rows were drawn'} in each of {rounds:,} rounds"


def y_unit(model: Any) -> float:
    """The factor from squared errors of the targets as learnt to those of the given targets."""
    return float(getattr(model, "y_scale_", 1.0)) ** 2


def square_loss_of_constant(model: Any, y: np.ndarray, c: np.ndarray) -> float:
    """The square loss of the best constant per unit of weight, summed over the runs."""
    classes = getattr(model, "classes_", None)
    if classes is None:
        return mean_square_distance(y.astype(np.float64), c)
    return sum(mean_square_distance((y == label).astype(np.float64), c) for label in classes[-len(model.histories_) :])


def mean_square_distance(y: np.ndarray, c: np.ndarray) -> float:
    """The square loss of the best constant per unit of weight."""
    total = float(c.sum()) or 1.0
    return float(c @ (y - float(c @ y) / total) ** 2) / total


def predictions_by_run(model: Any, X: Any) -> tuple[np.ndarray, bool]:
    """The predictions of each run, one column per run, and whether these are probabilities."""
    if hasattr(model, "_means"):
        return model._means(X), True
    odds = hasattr(model, "predict_proba")
    if odds and not hasattr(model, "runs_"):  # of all labels, not of each against the rest
        p = np.asarray(model.predict_proba(X))
        return p[:, 1:] if p.shape[1] == 2 else p, True
    z = np.asarray(model.decision_function(X))
    z = z.reshape(len(z), -1)
    return np.column_stack([each_mean(model.runs_[0].learner.loss, column) for column in z.T]) if odds else z, odds


def linear_weights(model: Any, X: Any) -> Weights:
    """The weights of a model, with the spread of the columns of its rows; empty if it is not linear."""
    if not hasattr(model, "coef_"):
        return Weights(np.zeros((1, 0)), [])
    w = np.atleast_2d(np.asarray(model.coef_, np.float64))
    found = ColumnSpread()
    found.add(validate_data(model, X, accept_sparse="csr", reset=False))
    intercept = np.ravel(model.intercept_).tolist() if getattr(model, "fit_intercept", False) else []
    return Weights(w, intercept, found.deviations)


def losses_by_round(model: Any) -> list[dict[str, np.ndarray]]:
    """The losses of each run in every round, over the training rows ("") and the held-out rows."""
    if hasattr(model, "histories_"):
        unit, pairs = y_unit(model), [{"": h.loss, ", held out": h.held} for h in model.histories_]
        return [{name: unit * np.asarray(line) for name, line in of.items() if line is not None} for of in pairs]
    found = getattr(model, "objectives_", [])  # where rows are drawn, it is not known
    return [{"": values[1:]} for values in (found if isinstance(found, list) else [found])]


def round_rows(
    losses: list[dict[str, np.ndarray]], labels: list[str] | None, charted: list[int], unit: str
) -> list[dict[str, Any]]:
    """The losses of every round as lines, for the labels that have charts."""
    lines = {}
    for k in charted:
        name = labels[k] if labels is not None and len(losses) > 1 else per_row(unit)
        for more, values in losses[k].items():
            rounds = np.arange(1.0, len(values) + 1.0)
            lines[f"{name}{more}"] = thinned(rounds, rooted(unit, values), LINES // len(charted))
    return line_rows(lines)
