"""Reports of estimators: the rows of online ones are played again, the rounds of others are shown."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..charts.thinning import thinned
from ..estimators.mixins.rows import read_weights
from ..formatting import _plain
from ..online.run import play_rows
from ..report.page import write_page
from ..storage.model import versions
from .certify import combined
from .curves import Curves, Sample
from .outputs import check_destination
from .plan import Plan
from .reporting import (
    DOTS,
    LabelledRows,
    certificate_values,
    confusion_of,
    content,
    dots,
    label_data,
    largest_weights,
    rounded,
)
from .session import PlayedChunk, tally
from .state import TrainingState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..certificates.certificate import Certificate

BLOCK = 1 << 15  # rows that are played at once
LINES = 600  # points of a line over rounds
IN_SAMPLE = (
    "Errors and predictions are of rows that the model learnt from, all at once: on new rows it may err more. There is "
    "no course of predictions made before each row, and so no regret."
)

CALIBRATED = "The learnt link is an isotonic fit of these rows: on them it is calibrated by construction."


def report_estimator(model: Any, path: str, X: Any, y: Any, sample_weight: Any = None) -> None:
    """Certify an estimator over the rows it was trained on, and write its report.

    Parameters
    ----------
    model : estimator
        A fitted one, online or in rounds; its ``certificate_`` is replaced.
    path : str
        The file to write.
    X, y, sample_weight : array-like
        The rows it was trained on, in that order.

    Raises
    ------
    MismatchError
        If these are not the rows it was trained on.
    ValueError
        If the file cannot be written, or the model has met a single class.
    """
    check_destination(path, replaced=True)
    classes = getattr(model, "classes_", None)
    if classes is not None and len(classes) < 2:
        raise ValueError(f"a report needs two classes, and the model has met only {classes.tolist()[0]!r}")
    found = model.certify(X, y, sample_weight)
    model.certificate_ = found
    each = list(getattr(found, "each", [found]))
    if hasattr(model, "histories_"):
        out = rounds_content(model, X, y, sample_weight, each)
    else:
        out = played_content(model, X, y, sample_weight, each)
    write_page(path, out | {"data": described(model, X), "settings": settings_of(model)})


def described(model: Any, X: Any) -> str:
    """The model and its rows in a few words."""
    return f"{type(model).__name__} on rows in memory ({type(X).__name__})"


def settings_of(model: Any) -> dict[str, str]:
    """The parameters as text."""
    shown = {name: str(value) for name, value in model.get_params().items() if value is not None}
    return {name: text if len(text) <= 200 else text[:199] + "…" for name, text in shown.items()}


def names_of(model: Any, features: int) -> list[str]:
    """The names of the features, or x0, x1, ..."""
    known = getattr(model, "feature_names_in_", getattr(model, "_column", None))  # of a frame, or of dicts
    return [f"x{j}" for j in range(features)] if known is None else [str(name) for name in known]


# ---------------------------------------------------------------- online


def played_content(model: Any, X: Any, y: Any, sample_weight: Any, certificates: list[Certificate]) -> dict[str, Any]:
    """What is said of an online estimator: its rows are played again from its start."""
    rows = model._matrix(X, reset=False)
    labels, codes = labels_of(model, rows, y)
    targets = model._seen(rows, y)
    c = model._data(0, rows, y, read_weights(sample_weight, rows)).c
    passes = model.runs_[0].rounds // int(np.count_nonzero(c))  # certified above, so some row weighs something
    runs = [model._new_run(run.learner, rows.shape[1], getattr(run, "start", None)) for run in model.runs_]
    source: Any = SimpleNamespace(kind="dense", names=names_of(model, rows.shape[1]), preparation="")
    constant = np.zeros(3 if labels is None else len(labels))
    state = TrainingState(
        Plan(X, None, (), passes=passes), [runs], labels, None, None, [0], constant, source=source
    )  # fmt: skip
    curves = Curves(state)
    for _ in range(passes):
        for a in range(0, rows.shape[0], BLOCK):
            part = slice(a, a + BLOCK)
            z, own = np.empty((len(c[part]), len(runs))), None if codes is None else codes[part]
            play_rows(runs, rows[part], [each[part] for each in targets], c[part], z, model._feature_names)
            told = targets[0][part]
            tally(state, z, told, own, c[part])
            curves.add(PlayedChunk(z, told, own, c[part], [], True, np.zeros(len(z), bool)))
            state.rows_done += len(z)
        state.passes_done += 1
    return content(state, curves, [certificates], None, [])


def labels_of(model: Any, rows: Any, y: Any) -> tuple[list[str] | None, np.ndarray | None]:
    """The labels as text and the number of that of each row; None where targets are numbers."""
    if not hasattr(model, "classes_"):
        return None, None
    return [str(label) for label in model.classes_], np.asarray(model._codes(model._labels(rows, y)))


# ---------------------------------------------------------------- in rounds


def rounds_content(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    certificates: list[Certificate],
    names: Sequence[str] | None = None,
    target: str | None = None,
) -> dict[str, Any]:
    """What is said of an estimator that learns in rounds over all rows: its errors, its link, its predictions."""
    rows = model._matrix(X, reset=False)
    labels, codes = labels_of(model, rows, y)
    weight = read_weights(sample_weight, rows)
    c = np.ones(rows.shape[0]) if weight is None else np.asarray(weight, np.float64)
    names = names_of(model, rows.shape[1]) if names is None else list(names)
    datasets: dict[str, list[dict[str, Any]]] = {}
    each = fit_content(model, rows, y, codes, labels, c, datasets)
    each |= certified(certificates)
    w = model._weights()[:, : rows.shape[1]]
    datasets["weights0"] = largest_weights(w, names, labels, [None] * len(w), None)
    columns = [(name, "") for name in names] + ([] if target is None else [(target, "target")])
    shown = [{"name": n, "type": "number", "role": r, "why": "", "missing": None} for n, r in columns[:200]]
    out = {
        "data": "",
        "target": target,
        "rows": rows.shape[0],
        "features": rows.shape[1],
        "labels": labels,
        "how": f"all rows were read in each of {model.n_iter_:,} rounds",
        "preparation": "",
        "rejected": 0,
        "rejects": [],
        "warnings": [],
        "notes": [],
        "learners": [each],
        "columns": {"count": len(columns), "shown": shown},
        "settings": settings_of(model),
        "versions": versions(),
    }
    return dict(_plain(out | {"datasets": {name: rounded(rows) for name, rows in datasets.items()}}))


def certified(certificates: list[Certificate]) -> dict[str, Any]:
    """The verdict, and the certificates in full."""
    whole = combined(certificates)
    return {
        "verdict": whole.verdict.value,
        "worth": certificates[0].worth if len(certificates) == 1 else None,
        "best_shown": False,
        "certificates": [certificate_values(c) for c in certificates],
        "text": whole.lines(),
    }


def fit_content(
    model: Any,
    rows: Any,
    y: Any,
    codes: np.ndarray | None,
    labels: list[str] | None,
    c: np.ndarray,
    datasets: dict[str, list[dict[str, Any]]],
) -> dict[str, Any]:
    """The errors in every round, the link, and what the best round predicts."""
    histories, unit = model.histories_, float(getattr(model, "y_scale_", 1.0)) ** 2
    best = [h.best + 1 for h in histories]
    where = f"round {best[0]:,}" if len(set(best)) == 1 else "the best rounds of each label"
    mse = unit * sum(float(h.loss[h.best]) for h in histories)
    each: dict[str, Any] = {
        "key": 0,
        "name": f"{type(model).__name__} in {where} of {model.n_iter_:,}",
        "title": f"step η = {model.eta_:g}",
        "unit": "squared error",
        "means": {"loss": mse, "constant": None, "best": None, "guaranteed": None, "regret": None},
        "notes": [IN_SAMPLE],
        "window": 0,
        "intercept": [],
        "nonzero": int(np.count_nonzero(model._weights()[:, : rows.shape[1]])),
        "moves": False,
    }
    if histories[0].link is not None:
        each["notes"].append(CALIBRATED)
    if histories[0].held is not None:
        each["notes"].append("Some rows were held out to pick the round; charts of predictions show them too.")
    if unit != 1.0:
        each["notes"].append("The certificate is in units of the targets as they were scaled for learning.")
    means = model._means(rows)
    sample = Sample(means.shape[1] + 2)
    if codes is None:
        told = np.asarray(y, np.float64).ravel()
        each["means"]["constant"] = spread(told, c)
        sample.add(1, np.column_stack([model.predict(rows), told, c]))
        drawn = sample.drawn()
        datasets["predicted0"] = dots(drawn[:, 1], drawn[:, 0], DOTS)
        charted = [0]
    else:
        assert labels is not None
        kinds = range(len(labels)) if len(histories) > 1 else [1]
        each["means"]["constant"] = sum(spread((codes == k).astype(float), c) for k in kinds)
        counts = np.zeros((len(labels), len(labels)), np.int64)
        np.add.at(counts, (codes[c > 0.0], np.asarray(model.predict_proba(rows)).argmax(axis=1)[c > 0.0]), 1)
        each["confusion"] = confusion_of(counts, labels)
        sample.add(1, np.column_stack([means, codes, c])[c > 0.0])
        drawn = sample.drawn()
        told_rows = LabelledRows(drawn[:, :-2], drawn[:, -2], drawn[:, -1], labels, counts.sum(axis=1))
        each |= label_data(0, told_rows, True, 1, datasets)
        charted = [labels.index(label) for label in each["chosen"]] or [0]
        if len(histories) > 1:
            each["notes"].append(f"Each of the {len(labels)} labels has its own run; these figures are sums over all.")
    each |= {"sample": len(drawn), "of": sample.seen}
    round_data(histories, labels, charted, unit, datasets)
    link_data(model, charted, datasets)
    return each


def spread(y: np.ndarray, c: np.ndarray) -> float:
    """What the best constant loses per unit of weight, in squares."""
    total = float(c.sum()) or 1.0
    return float(c @ (y - float(c @ y) / total) ** 2) / total


def round_data(
    histories: Any, labels: list[str] | None, charted: list[int], unit: float, datasets: dict[str, list[dict[str, Any]]]
) -> None:
    """The mean squared error in every round, of the rows learnt from and of those held out."""
    rows: list[dict[str, Any]] = []
    for k in charted:
        name = labels[k] if labels is not None and len(histories) > 1 else "mean squared error"
        for line, values in ((name, histories[k].loss), (f"{name}, held out", histories[k].held)):
            if values is not None:
                rounds = np.arange(1.0, len(values) + 1.0)
                found = thinned(rounds, unit * np.asarray(values), LINES // len(charted))
                rows += [{"rounds": r, "value": v, "line": line} for r, v in found]
    datasets["rounds0"] = rows


def link_data(model: Any, charted: list[int], datasets: dict[str, list[dict[str, Any]]]) -> None:
    """The learnt links; nothing where the link was given."""
    if model.histories_[0].link is None:
        return
    links = model.link_ if isinstance(model.link_, list) else [model.link_]
    for j, k in enumerate(charted):
        place = f"link0/{j}" if len(links) > 1 else "link0"
        datasets[place] = [{"margin": z, "mean": m} for z, m in thinned(links[k].z, links[k].mean, LINES)]
