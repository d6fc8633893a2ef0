"""The content of a report: certificates, the course of the run, weights, predictions, and settings.

Everything is collected as plain values; `page` turns them into a page, and `datasets` has the data of its charts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..certificates.certificate import MEANINGS, RegretCurve, combined, worth_of
from ..certificates.wording import MISTAKES, SQUARES, in_words, rooted, tiles, unit_of, worth_in_words
from ..charts.drawing import thinned
from ..charts.runs import PROMISE, best_name, first_shown
from ..formatting import _plain
from ..online.margins import each_mean
from ..storage.model import versions
from ..training.plan import describe_cells, describe_learner, part_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..certificates.certificate import Best, Certificate
    from ..certificates.wording import Scores
    from ..online.run import Run
    from ..training.recording import CoverageRecording, Recording

    Datasets = dict[str, list[dict[str, Any]]]

SHOWN = 6  # learners that have charts of their own, those of the least loss
TOP = 20  # weights
LABELS = 15  # of a table of confusions
CHARTED = 6  # labels, of more than two, that have charts of their own: the most frequent ones
COLUMNS = 200
MEMBERS = 6  # of a panel
DOTS = 1000  # of predictions against targets
LINES = 600  # points of a line over rounds
UNITS = {"square": SQUARES, "mistakes": MISTAKES}


@dataclass
class Subject:
    """The data and settings that a report is about.

    Attributes
    ----------
    data : str
        A short description of the rows.
    rows, features : int
        The numbers of rows and features.
    names : sequence of str or None
        The names of the features; None if they have none.
    settings : dict of str to str
        The settings of the training, by name.
    labels : list of str or None
        The labels; None if targets are numbers.
    target : str or None
        The name of the target column, if it has one.
    how : str
        How the rows were read.
    preparation : str
        A short description of how they were prepared.
    rejected : int
        Number of bad rows; `rejects` has the first ones.
    warnings, notes : list of str
        Warnings and further remarks.
    columns : list of dict or None
        The columns and their types; None if all are numeric.
    """

    data: str
    rows: int
    features: int
    names: Sequence[str] | None
    settings: dict[str, str]
    labels: list[str] | None = None
    target: str | None = None
    how: str = "each row was predicted before it was learnt"
    preparation: str = ""
    rejected: int = 0
    rejects: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    columns: list[dict[str, Any]] | None = None

    def values(self) -> dict[str, Any]:
        """The subject as plain values for the page."""
        rows = self.columns
        if not rows:
            known = [(name, "") for name in self.names or []] + (
                [] if self.target is None else [(self.target, "target")]
            )
            rows = [{"name": name, "type": "number", "role": role, "why": "", "missing": None} for name, role in known]
        columns = {"count": len(rows) if self.names else self.features, "shown": rows[:COLUMNS]}
        settings = {k: v if len(v) <= 200 else v[:199] + "…" for k, v in self.settings.items()}
        own = {name: value for name, value in vars(self).items() if name != "names"}
        return own | {"columns": columns, "settings": settings, "versions": versions()}


def content(subject: Subject, learners: list[dict[str, Any]], datasets: Datasets, **more: Any) -> dict[str, Any]:
    """The content of a report, as plain values."""
    drawn = {name: rounded(rows) for name, rows in datasets.items()}
    return dict(_plain(subject.values() | {"learners": learners, "datasets": drawn} | more))


def rounded(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The data of a chart rounded to seven digits, which keeps the page small without a visible difference."""
    return [{k: float(f"{v:.7g}") if isinstance(v, float) else v for k, v in row.items()} for row in rows]


# ---------------------------------------------------------------- one learner


class Weights(NamedTuple):
    """The weights of several runs, one row per run, with the intercepts and the spread of the features.

    Attributes
    ----------
    w : ndarray of shape (n_runs, n_features)
        The weights of the features.
    intercept : list of float
        The weights of the constant coordinate; empty without one.
    spread : ndarray or None
        The spread of each feature, if known: weights are then compared by their effect on predictions.
    """

    w: np.ndarray
    intercept: list[float]
    spread: np.ndarray | None = None


def weights_of(runs: Sequence[Run], spread: np.ndarray) -> Weights:
    """The weights of the runs of one learner."""
    n = min(run.features for run in runs)
    each = [run.weights for run in runs]
    intercept = [float(w[-1]) for w in each] if runs[0].intercept else []
    return Weights(np.array([w[:n] for w in each]), intercept, spread if spread.size >= n else None)


def learner_values(
    subject: Subject,
    key: int,
    certificates: Sequence[Certificate],
    weights: Weights,
    means: dict[str, float],
    scores: Scores,
    datasets: Datasets,
    **words: Any,
) -> dict[str, Any]:
    """The values shown for every learner: its losses, certificates and weights."""
    whole = combined(certificates) if certificates else None
    out: dict[str, Any] = {"key": key, "means": means, "window": 0, "verdict": None, "worth": None, "text": [], **words}
    if whole is not None:
        worth = certificates[0].worth
        if len(certificates) > 1:
            worth = worth_of(whole.verdict, means["loss"], means["guaranteed"], means["constant"])
        out |= {
            "verdict": whole.verdict.value,
            "worth": worth,
            "text": whole.lines(),
            "meaning": MEANINGS[whole.verdict],
        }
        if len(certificates) == 1:
            out["meaning"] = certificates[0].meaning
        elif worth:
            out["meaning"] = worth_in_words(worth, out["unit"])
    out["best_shown"] = all(c.best_is_shown for c in certificates)
    out["figures"] = scores.to_dict()
    said = f"{out['unit']} (summed over the labels)" if len(weights.w) > 1 and out["unit"] != MISTAKES else out["unit"]
    shown = means | ({"best": math.nan, "guaranteed": math.nan} if len(weights.w) > 1 and said == MISTAKES else {})
    out["words"] = in_words(said, shown, out["best_shown"], scores)
    out["tiles"] = tiles(said, shown, out["best_shown"], scores)
    out["certificates"] = [certificate_values(c) for c in certificates]
    best = [c.best for c in certificates] or [None] * len(weights.w)
    datasets[f"weights{key}"] = largest_weights(weights, subject.names, subject.labels, best)
    out |= {"intercept": weights.intercept, "nonzero": int(np.count_nonzero(weights.w))}
    return out | {"moves": weights.spread is not None}


def certificate_values(certificate: Certificate) -> dict[str, Any]:
    """A certificate as plain values, without the weights of its predictors, which may be very many."""
    out = certificate.to_dict()
    for name in ("comparator", "best"):
        if out.get(name):
            out[name].pop("u")
    return out


def largest_weights(
    weights: Weights, names: Sequence[str] | None, labels: list[str] | None, best: Sequence[Best | None]
) -> list[dict[str, Any]]:
    """The weights with the largest effect (or size, if no spread is known), with those of the best u."""
    w, _, spread = weights
    n = w.shape[1]
    order = np.argsort(-(np.abs(w) * (1.0 if spread is None else spread[:n])).ravel(), kind="stable")[:TOP]
    rows = []
    for rank, j in enumerate(order.tolist()):
        run, feature = divmod(j, n)
        name = names[feature] if names is not None and feature < len(names) else f"column {feature}"
        rival = best[run]
        row: dict[str, Any] = {"feature": name, "rank": rank, "weight": float(w[run, feature])}
        if labels is not None and len(w) > 1:
            row["label"] = labels[run]
        if rival is not None and feature < rival.u.size:
            row["best"] = float(rival.u[feature])
        if spread is not None:
            for move, value in (("move", "weight"), ("best_move", "best")):
                if value in row:
                    row[move] = row[value] * float(spread[feature])
        rows.append(row)
    return rows


def lines_of(lines: dict[str, Any]) -> list[dict[str, Any]]:
    """Pairs of rounds and values by the name of the line, in the form that a chart takes."""
    return [{"rounds": r, "value": v, "line": name} for name, pairs in lines.items() for r, v in pairs]


# ---------------------------------------------------------------- online


def online_values(
    subject: Subject,
    recording: Recording,
    k: int,
    runs: Sequence[Run],
    certificates: list[Certificate],
    datasets: Datasets,
    *,
    mistakes: int,
    scores: Scores,
    constant: tuple[str, float],
    **words: Any,
) -> dict[str, Any]:
    """The values shown for a learner with progressive predictions.

    `constant` is the loss of the best constant per row, with the name of its unit first; it is for runs without a
    certificate.
    """
    learner, labels = runs[0].learner, subject.labels
    series = series_of(recording, k, certificates)
    unit = UNITS.get(series) or unit_of(f"{part_name(learner.loss)} loss")
    means, notes = figures_of(recording, k, series, certificates, constant)
    words |= {"unit": unit, "notes": notes, "title": describe_learner(learner)}
    if cells := describe_cells(runs, subject.names):
        notes.append(f"Cells that move predictions most, and how far on average: {cells}.")
    held = weights_of(runs, recording.spread.deviations)
    out = learner_values(subject, k, certificates, held, means, scores, datasets, **words)
    if labels:
        out["mistakes"] = mistakes
        if len(runs) > 1:
            part = mistakes / (runs[0].facts.rounds or 1)
            notes.append(
                f"Each of the {len(runs)} labels was learnt against the rest, and these figures are sums over all of "
                f"them. The label of the largest margin was wrong on {100 * part:.3g} % of the rows."
            )
    learners = len(recording.learners)
    out["window"] = loss_data(recording, out, series, certificates, datasets, max(300, 1800 // learners))
    regret_data(out, certificates, datasets)
    shares_data(k, certificates, datasets)
    if recording.coverage is not None:
        coverage_data(recording.coverage, out, datasets, labels is not None)
    drawn = recording.sample.drawn()
    if not len(drawn):
        return out
    z, loss = drawn[:, k * len(runs) : (k + 1) * len(runs)], learner.loss
    odds = learner.targets == "unit" and (getattr(loss, "link", None) or "identity") != "identity"
    said = np.column_stack([each_mean(loss, column) for column in z.T]) if odds or labels is None else z
    rows = ScoredRows(said, drawn[:, -2], drawn[:, -1], recording.sample.seen)
    counts = None if recording.confusion is None else recording.confusion[k]
    return out | prediction_values(subject, k, rows, counts, odds, min(SHOWN, learners), datasets)


def series_of(recording: Recording, k: int, certificates: list[Certificate]) -> str:
    """The loss in which a learner is judged: that of its certificate, or that of the command if there is none."""
    if certificates:
        if certificates[0].unit == MISTAKES:
            return "mistakes"
        square = certificates[0].unit == SQUARES
    else:
        square = recording.learners[k].score == "square"
    return "square" if square and "square" in recording.series else "loss"


def figures_of(
    recording: Recording, k: int, series: str, certificates: list[Certificate], constant: tuple[str, float]
) -> tuple[dict[str, float], list[str]]:
    """The mean losses of the run, the best constant, the best fixed predictor and the bound, with remarks."""
    mine = float(recording.course.sums[recording.index(k, series)]) / (recording.course.weight or 1.0)
    if not certificates or any(math.isnan(c.lost) for c in certificates):
        other = constant[1] if UNITS.get(series, "log loss") == constant[0] else math.nan
        return {"loss": mine, "constant": other, "best": math.nan, "guaranteed": math.nan, "regret": math.nan}, []
    means = combined(certificates).means
    notes = []
    if certificates[0].weight != recording.course.weight:
        notes.append("The curves leave out the first row, from which other learners take their start.")
    elif abs(mine - means["loss"]) > 1e-6 * abs(means["loss"]):
        notes.append(f"The curves are in other units than the certificate: their mean is {mine:.6g} in the end.")
    return means, notes


def loss_data(
    recording: Recording,
    each: dict[str, Any],
    series: str,
    certificates: list[Certificate],
    datasets: Datasets,
    points: int,
) -> int:
    """The mean loss so far and over a window, its comparators, and the length of the window."""
    k, means = each["key"], each["means"]
    course, at = recording.course, recording.index(k, series)
    if not course.rounds:
        return 0
    lines: dict[str, list[tuple[float, float]]] = {}
    rounds, values = course.so_far(at)
    lines["so far"] = list(thinned(rounds, values, points))
    window, where, over = course.window(at)
    lines["window"] = list(thinned(where, over, points))
    for name in ("constant", "best"):
        if math.isfinite(means[name]):
            first = max(float(rounds[0]), float(first_shown(course.rounds)))
            lines[name] = [(first, means[name]), (float(course.rounds), means[name])]
    if math.isfinite(means["guaranteed"]):
        curve = summed(certificates)
        on = [] if curve is None else np.isfinite(curve.bound)
        lines["guaranteed"] = [] if curve is None else pairs_of(curve.rounds[on].astype(float), curve.bound[on])
    lines = {name: rooted_pairs(each["unit"], pairs) for name, pairs in lines.items()}
    names = {
        "so far": "this run so far",
        "window": f"its last {window:,} rounds",
        "constant": "best constant",
        "best": best_name(each),
        "guaranteed": "guaranteed at most",
    }
    datasets[f"loss{k}"] = lines_of({names[line]: pairs for line, pairs in lines.items()})
    datasets[f"hover{k}"] = hover_rows(lines)
    return window


def rooted_pairs(unit: str, pairs: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points of a line, with the square roots of squared errors."""
    if not pairs:
        return []
    x, y = np.array(pairs).T
    return pairs_of(x, rooted(unit, y))


def pairs_of(x: np.ndarray, y: np.ndarray) -> list[tuple[float, float]]:
    """Points of a line as plain numbers."""
    return list(zip(x.tolist(), y.tolist(), strict=True))


def summed(certificates: list[Certificate]) -> RegretCurve | None:
    """The sum of the curves of all runs at the rounds that they have in common; None if a run has no curve."""
    curves = [c.curve for c in certificates]
    known = [curve for curve in curves if curve is not None]
    if not known or len(known) < len(curves):
        return None
    rounds = reduce(np.intersect1d, [curve.rounds for curve in known])
    places = [np.searchsorted(curve.rounds, rounds) for curve in known]
    sums = [
        np.sum([getattr(curve, name)[at] for curve, at in zip(known, places, strict=True)], axis=0)
        for name in ("lost", "best", "bound")
    ]
    return RegretCurve(rounds, *sums)


def hover_rows(lines: dict[str, list[tuple[float, float]]], count: int = 150) -> list[dict[str, Any]]:
    """The values of all lines at some rounds, for the tooltips of a page."""
    rounds = np.array([r for r, _ in lines["so far"]])
    logs = np.geomspace(1.0, rounds.size, count // 2)
    places = np.unique(np.concatenate([np.linspace(0, rounds.size - 1, count // 2), logs - 1.0]).astype(int))
    out = []
    for r in rounds[places].tolist():
        before = {name: [v for at, v in pairs if at <= r] for name, pairs in lines.items()}
        out.append({"rounds": r} | {name: values[-1] for name, values in before.items() if values})
    return out


def regret_data(each: dict[str, Any], certificates: list[Certificate], datasets: Datasets) -> None:
    """The regret per round against the best fixed predictor along the run, and its bound."""
    curve = summed(certificates)
    if curve is None or curve.rounds.size < 2:
        return
    lines = {"regret": curve.regret}
    if math.isfinite(each["means"]["guaranteed"]):
        lines[PROMISE] = curve.bound - curve.best
    rows = lines_of({name: pairs_of(curve.rounds, line) for name, line in lines.items()})
    datasets[f"regret{each['key']}"] = [row for row in rows if math.isfinite(row["value"])]


def coverage_data(found: CoverageRecording, each: dict[str, Any], datasets: Datasets, sets: bool) -> None:
    """The coverage of intervals (or label sets) along the run, and the last rows with their intervals."""
    from ..certificates.coverage import certify_coverage

    k, certificate = each["key"], certify_coverage(found.tracker, sets)
    each["coverage"] = certificate.to_dict() | {"lines": certificate.lines()}
    datasets[f"coverage{k}"] = lines_of({"covered": thinned(*found.course.so_far(0), LINES)})
    if len(found.last):
        names = ("rounds", "target", "low", "high", "covered")
        t, y, said, half = found.last.T
        rows = np.column_stack([t, y, said - half, said + half, np.abs(said - y) <= half]).tolist()
        datasets[f"ranges{k}"] = [dict(zip(names, row, strict=True)) for row in rows]


def shares_data(k: int, certificates: list[Certificate], datasets: Datasets) -> None:
    """The weights of the members of a panel along the run: the largest ones, and the others combined."""
    for c in certificates[:1]:
        marks = [m.rounds for m in c.path]
        members = [m for m in c.members if len(m.course) == len(marks)]
        if len(marks) < 2 or not members:
            return
        named = sorted(members, key=lambda m: -math.fsum(m.course))[:MEMBERS]
        lines = {m.name: m.course for m in named}
        rest = [m.course for m in members if m not in named]
        if rest:
            lines["all others"] = tuple(math.fsum(each) for each in zip(*rest, strict=True))
        datasets[f"shares{k}"] = lines_of({n: list(zip(marks, line, strict=True)) for n, line in lines.items()})


# ---------------------------------------------------------------- predictions


class ScoredRows(NamedTuple):
    """A sample of the rows with their predictions.

    Attributes
    ----------
    scores : ndarray
        The predicted numbers, or for labels one column for the second of two labels, otherwise one per label.
    y, c : ndarray
        The target of each row (or the index of its label), and its weight.
    seen : int
        The number of rows from which the sample was drawn.
    """

    scores: np.ndarray
    y: np.ndarray
    c: np.ndarray
    seen: int


def prediction_values(
    subject: Subject,
    k: int,
    rows: ScoredRows,
    counts: np.ndarray | None,
    odds: bool,
    learners: int,
    datasets: Datasets,
) -> dict[str, Any]:
    """Predicted against true numbers; for labels the confusion table, threshold curves and, for probabilities,
    calibration.

    With more than two labels, each has a one-vs-rest curve.
    """
    out: dict[str, Any] = {"sample": len(rows.y), "of": rows.seen}
    labels = subject.labels
    if labels is None or counts is None:
        datasets[f"predicted{k}"] = dots(rows.y, rows.scores[:, 0], DOTS // learners)
        return out
    out["confusion"] = confusion_of(counts, labels)
    many = rows.scores.shape[1] > 1
    order = np.argsort(-counts.sum(axis=1), kind="stable")[:CHARTED]
    charted = sorted(order.tolist()) if many else [1]
    share, terms = learners * len(charted), []
    for j, label in enumerate(charted):
        scores = np.ascontiguousarray(rows.scores[:, label if many else 0])
        place, hit = f"{k}/{j}" if many else f"{k}", (rows.y == label).astype(np.float64)
        datasets[f"threshold{place}"] = threshold_rows(hit, scores, rows.c, points(150, 30, share))
        if odds:
            terms.append(calibration_data(hit, scores, rows.c, place, share, datasets))
            terms[-1]["frequency"] = float(rows.c @ hit) / float(rows.c.sum())
    out |= {"scores": "probability" if odds else "margin", "labels": len(labels)}
    out["chosen"] = [labels[label] for label in charted] if many else []
    out["positive"] = "that label" if many else labels[1]
    return out | ({"calibration": terms} if odds else {})


def confusion_of(counts: np.ndarray, labels: list[str]) -> dict[str, Any]:
    """The confusion table; if there are many labels, the most frequent ones and the others combined."""
    if len(labels) <= LABELS:
        return {"labels": labels, "counts": counts.tolist()}
    common = np.sort(np.argsort(-counts.sum(axis=1), kind="stable")[: LABELS - 1])
    rest = np.setdiff1d(np.arange(len(labels)), common)
    groups = [[int(j)] for j in common] + [rest.tolist()]
    table = [[int(counts[np.ix_(a, b)].sum()) for b in groups] for a in groups]
    return {"labels": [*(labels[j] for j in common), f"({len(rest)} others)"], "counts": table}


def points(most: int, least: int, share: int) -> int:
    """The number of points of a curve, given the number of curves of its kind on the page."""
    return max(least, min(most, 6 * most // share))


def spaced(size: int, count: int) -> np.ndarray:
    """Evenly spaced indices from the first to the last, or all indices if there are few."""
    return np.unique(np.linspace(0, size - 1, min(count, size)).astype(int))


def dots(y: np.ndarray, said: np.ndarray, count: int) -> list[dict[str, Any]]:
    """True and predicted numbers: a random sample, with the lowest and the highest."""
    ends = [y.argmin(), y.argmax(), said.argmin(), said.argmax()]
    show = np.unique(np.r_[np.arange(min(count, len(y))), ends].astype(int))
    return [{"true": t, "predicted": p} for t, p in np.c_[y, said][show].tolist()]


def threshold_rows(y: np.ndarray, scores: np.ndarray, c: np.ndarray, count: int) -> list[dict[str, Any]]:
    """Recall, precision and error rate of predicting the positive class if the score is above a threshold."""
    order = np.argsort(-scores, kind="stable")
    s, ones, all_ = scores[order], np.cumsum((c * y)[order]), np.cumsum(c[order])
    last = np.flatnonzero(np.append(s[1:] < s[:-1], True))
    last = last[spaced(last.size, count)]
    positive, total = float(ones[-1]), float(all_[-1])
    rows = []
    for i in last.tolist():
        hit, called = float(ones[i]), float(all_[i])
        values = {
            "recall": hit / positive if positive else math.nan,
            "precision": hit / called,
            "error rate": (called - hit + positive - hit) / total,
        }
        rows += [{"threshold": float(s[i]), "value": v, "line": name} for name, v in values.items()]
    return rows


def calibration_data(
    y: np.ndarray, p: np.ndarray, c: np.ndarray, place: str, share: int, datasets: Datasets
) -> dict[str, float]:
    """The isotonic fit of the outcomes on the probabilities, a band for it, and the terms of the Brier score."""
    from ..forecast.calibration import reliability

    found = reliability(y, p, c)
    line = thinned(*found.pools.knots(), points(400, 60, share))
    datasets[f"calibration{place}"] = [{"probability": a, "observed": v} for a, v in line]
    band = found.band(resamples=200)
    keep = spaced(band.at.size, points(150, 40, share))
    rows = np.column_stack([band.at, band.low, band.high])[keep].tolist()
    datasets[f"band{place}"] = [{"probability": a, "low": low, "high": high} for a, low, high in rows]
    counts, edges = np.histogram(p, bins=20, range=(0.0, 1.0), weights=c)
    bins = zip(edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), strict=True)
    datasets[f"histogram{place}"] = [{"from": a, "to": b, "rows": n} for a, b, n in bins]
    names = ("score", "miscalibration", "discrimination", "uncertainty")
    return {name: float(getattr(found, name)) for name in names}
