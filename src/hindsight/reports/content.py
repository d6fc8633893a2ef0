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
from ..charts.drawing import line_rows, records, thinned
from ..charts.runs import PROMISE, first_shown, largest_weights, loss_lines
from ..formatting import _plain
from ..online.margins import each_mean
from ..storage.model import versions
from ..training.plan import describe_cells, describe_learner, part_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..certificates.certificate import Certificate
    from ..certificates.wording import Scores
    from ..online.run import Run
    from ..training.recording import CoverageRecording, Recording

SHOWN = 6  # learners that have charts of their own, those of the least loss
LABELS = 15  # of a table of confusions
CHARTED = 6  # labels, of more than two, that have charts of their own: the most frequent ones
COLUMNS = 200
MEMBERS = 6  # of a panel
DOTS = 1000  # of predictions against targets
LINES = 600  # points of a line over rounds
UNITS = {"square": SQUARES, "mistakes": MISTAKES}


@dataclass
class Report:
    """The data and settings that a report is about, and what it shows of each learner.

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
    learners : list of dict
        The values shown of each learner.
    datasets : dict of str to list of dict
        The data of the charts, by the name of the chart and the key of the learner.
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
    learners: list[dict[str, Any]] = field(default_factory=list)
    datasets: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def content(self, **more: Any) -> dict[str, Any]:
        """The content of the page, as plain values."""
        rows = self.columns
        if not rows:
            known = [(name, "") for name in self.names or []] + (
                [] if self.target is None else [(self.target, "target")]
            )
            rows = [{"name": name, "type": "number", "role": role, "why": "", "missing": None} for name, role in known]
        columns = {"count": len(rows) if self.names else self.features, "shown": rows[:COLUMNS]}
        settings = {k: v if len(v) <= 200 else v[:199] + "…" for k, v in self.settings.items()}
        own = {name: value for name, value in vars(self).items() if name not in ("names", "learners", "datasets")}
        own |= {"columns": columns, "settings": settings, "versions": versions(), "learners": self.learners}
        drawn = {name: rounded(rows) for name, rows in self.datasets.items()}
        return dict(_plain(own | {"datasets": drawn} | more))


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


class LearnerPart:
    """What a report shows of one learner: its values, and the data of its charts, which it adds to the report.

    Parameters
    ----------
    report : Report
        The report.
    key : int
        The number of the learner, which the names of its charts end in.
    certificates : sequence of Certificate
        One per run; empty if there are none.
    """

    def __init__(self, report: Report, key: int, certificates: Sequence[Certificate]) -> None:
        self.report, self.key, self.labels, self.certificates = report, key, report.labels, certificates
        self.values: dict[str, Any] = {"key": key}
        report.learners.append(self.values)

    def draw(self, chart: str, rows: list[dict[str, Any]], place: str = "") -> None:
        """Add the data of a chart; `place` is for those of the labels."""
        self.report.datasets[f"{chart}{self.key}{place}"] = rows

    def judge(self, weights: Weights, means: dict[str, float], scores: Scores, **words: Any) -> None:
        """Add the losses, the certificates and the weights; `words` has at least the unit of the losses."""
        certificates, unit, several = self.certificates, words["unit"], len(weights.w) > 1
        shown = all(c.best_is_shown for c in certificates)
        out = self.values
        out |= {"means": means, "window": 0, "verdict": None, "worth": None, "text": [], **words}
        if certificates:
            whole, first = combined(certificates), certificates[0]
            worth, meaning = first.worth, first.meaning
            if len(certificates) > 1:
                worth = worth_of(whole.verdict, means["loss"], means["guaranteed"], means["constant"])
                meaning = worth_in_words(worth, unit) if worth else MEANINGS[whole.verdict]
            out |= {"verdict": whole.verdict.value, "worth": worth, "text": whole.lines(), "meaning": meaning}
        out |= {"best_shown": shown, "figures": scores.to_dict()}
        said = f"{unit} (summed over the labels)" if several and unit != MISTAKES else unit
        known = means | ({"best": math.nan, "guaranteed": math.nan} if several and said == MISTAKES else {})
        out |= {"words": in_words(said, known, shown, scores), "tiles": tiles(said, known, shown, scores)}
        out["certificates"] = [certificate_values(c) for c in certificates]
        best = [None if c.best is None else c.best.u for c in certificates] or [None] * len(weights.w)
        rows = largest_weights(weights.w, best, self.report.names, labels=self.labels, spread=weights.spread)
        self.draw("weights", rows)
        out |= {"intercept": weights.intercept, "nonzero": int(np.count_nonzero(weights.w))}
        out["moves"] = weights.spread is not None

    def trace_loss(self, recording: Recording, series: str, points: int) -> None:
        """Add the mean loss so far and over a window, and its comparators."""
        means, unit = self.values["means"], self.values["unit"]
        course, at = recording.course, recording.index(self.key, series)
        if not course.rounds:
            return
        rounds, values = course.so_far(at)
        window, where, over = course.window(at)
        lines = {"so far": list(thinned(rounds, values, points)), "window": list(thinned(where, over, points))}
        for name in ("constant", "best"):
            if math.isfinite(means[name]):
                first = max(float(rounds[0]), float(first_shown(course.rounds)))
                lines[name] = [(first, means[name]), (float(course.rounds), means[name])]
        curve = sum_of_curves(self.certificates)
        if math.isfinite(means["guaranteed"]) and curve is not None:
            on = np.isfinite(curve.bound)
            lines["guaranteed"] = pairs_of(curve.rounds[on].astype(float), curve.bound[on])
        lines = {name: rooted_pairs(unit, pairs) for name, pairs in lines.items()}
        self.values["window"] = window
        names = loss_lines(self.values)
        self.draw("loss", line_rows({names[line]: pairs for line, pairs in lines.items()}))
        self.draw("hover", hover_rows(lines))

    def trace_regret(self) -> None:
        """Add the regret per round against the best fixed predictor along the run, and its bound."""
        curve = sum_of_curves(self.certificates)
        if curve is None or curve.rounds.size < 2:
            return
        lines = {"regret": curve.regret}
        if math.isfinite(self.values["means"]["guaranteed"]):
            lines[PROMISE] = curve.bound - curve.best
        rows = line_rows({name: pairs_of(curve.rounds, line) for name, line in lines.items()})
        self.draw("regret", [row for row in rows if math.isfinite(row["value"])])

    def trace_coverage(self, found: CoverageRecording) -> None:
        """Add the coverage of intervals (or label sets) along the run, and the last rows with their intervals."""
        from ..certificates.coverage import certify_coverage

        certificate = certify_coverage(found.tracker, self.labels is not None)
        self.values["coverage"] = certificate.to_dict() | {"lines": certificate.lines()}
        self.draw("coverage", line_rows({"covered": thinned(*found.course.so_far(0), LINES)}))
        if len(found.last):
            t, y, said, half = found.last.T
            inside = (np.abs(said - y) <= half).astype(np.float64)
            self.draw("ranges", records(rounds=t, target=y, low=said - half, high=said + half, covered=inside))

    def trace_shares(self) -> None:
        """Add the weights of the members of a panel along the run: the largest ones, and the others combined."""
        for c in self.certificates[:1]:
            marks = [m.rounds for m in c.path]
            members = [m for m in c.members if len(m.course) == len(marks)]
            if len(marks) < 2 or not members:
                return
            named = sorted(members, key=lambda m: -math.fsum(m.course))[:MEMBERS]
            lines = {m.name: m.course for m in named}
            rest = [m.course for m in members if m not in named]
            if rest:
                lines["all others"] = tuple(math.fsum(each) for each in zip(*rest, strict=True))
            self.draw("shares", line_rows({n: zip(marks, line, strict=True) for n, line in lines.items()}))

    def show_predictions(self, rows: ScoredRows, counts: np.ndarray | None, odds: bool, learners: int) -> None:
        """Add predicted against true numbers; for labels the confusion table, threshold curves and, for probabilities,
        calibration.

        With more than two labels, each has a one-vs-rest curve. `learners` share the page.
        """
        out, labels = self.values, self.labels
        out |= {"sample": len(rows.y), "of": rows.seen}
        if labels is None or counts is None:
            self.draw("predicted", dots(rows.y, rows.scores[:, 0], DOTS // learners))
            return
        out["confusion"] = confusion_of(counts, labels)
        many = rows.scores.shape[1] > 1
        order = np.argsort(-counts.sum(axis=1), kind="stable")[:CHARTED]
        charted = sorted(order.tolist()) if many else [1]
        share, terms = learners * len(charted), []
        for j, label in enumerate(charted):
            scores = np.ascontiguousarray(rows.scores[:, label if many else 0])
            place, hit = f"/{j}" if many else "", (rows.y == label).astype(np.float64)
            self.draw("threshold", threshold_rows(hit, scores, rows.c, point_count(150, 30, share)), place)
            if odds:
                terms.append(self.calibrate(hit, scores, rows.c, place, share))
                terms[-1]["frequency"] = float(rows.c @ hit) / float(rows.c.sum())
        out |= {"scores": "probability" if odds else "margin", "labels": len(labels)}
        out["chosen"] = [labels[label] for label in charted] if many else []
        out["positive"] = "that label" if many else labels[1]
        if odds:
            out["calibration"] = terms

    def calibrate(self, y: np.ndarray, p: np.ndarray, c: np.ndarray, place: str, share: int) -> dict[str, float]:
        """Add the isotonic fit of outcomes on probabilities, with a band, and return the terms of the Brier score."""
        from ..forecast.calibration import reliability

        found = reliability(y, p, c)
        line = thinned(*found.pools.knots(), point_count(400, 60, share))
        self.draw("calibration", [{"probability": a, "observed": v} for a, v in line], place)
        band = found.band(resamples=200)
        keep = spaced(band.at.size, point_count(150, 40, share))
        self.draw("band", records(probability=band.at[keep], low=band.low[keep], high=band.high[keep]), place)
        counts, edges = np.histogram(p, bins=20, range=(0.0, 1.0), weights=c)
        self.draw("histogram", records(**{"from": edges[:-1], "to": edges[1:], "rows": counts}), place)
        names = ("score", "miscalibration", "discrimination", "uncertainty")
        return {name: float(getattr(found, name)) for name in names}


def certificate_values(certificate: Certificate) -> dict[str, Any]:
    """A certificate as plain values, without the weights of its predictors, which may be very many."""
    out = certificate.to_dict()
    for name in ("comparator", "best"):
        if out.get(name):
            out[name].pop("u")
    return out


# ---------------------------------------------------------------- online


def add_online(
    report: Report, recording: Recording, k: int, runs: Sequence[Run], certificates: Sequence[Certificate], *,
    mistakes: int, scores: Scores, constant: tuple[str, float], name: str,
) -> None:  # fmt: skip
    """Add a learner with progressive predictions.

    `constant` is the loss of the best constant per row, with the name of its unit first; it is for runs without a
    certificate.
    """
    part, learners = LearnerPart(report, k, certificates), len(recording.learners)
    learner, labels = runs[0].learner, report.labels
    series = series_of(recording, k, certificates)
    unit = UNITS.get(series) or unit_of(f"{part_name(learner.loss)} loss")
    means, notes = mean_losses(recording, k, series, certificates, constant)
    if cells := describe_cells(runs, report.names):
        notes.append(f"Cells that move predictions most, and how far on average: {cells}.")
    weights = weights_of_runs(runs, recording.spread.deviations)
    part.judge(weights, means, scores, name=name, unit=unit, notes=notes, title=describe_learner(learner))
    if labels:
        part.values["mistakes"] = mistakes
        if len(runs) > 1:
            wrong = mistakes / (runs[0].facts.rounds or 1)
            notes.append(
                f"Each of the {len(runs)} labels was learnt against the rest, and these figures are sums over all of "
                f"them. The label of the largest margin was wrong on {100 * wrong:.3g} % of the rows."
            )
    part.trace_loss(recording, series, max(300, 1800 // learners))
    part.trace_regret()
    part.trace_shares()
    if recording.coverage is not None:
        part.trace_coverage(recording.coverage)
    drawn = recording.sample.drawn()
    if not len(drawn):
        return
    z, loss = drawn[:, k * len(runs) : (k + 1) * len(runs)], learner.loss
    odds = learner.targets == "unit" and (getattr(loss, "link", None) or "identity") != "identity"
    said = np.column_stack([each_mean(loss, column) for column in z.T]) if odds or labels is None else z
    rows = ScoredRows(said, drawn[:, -2], drawn[:, -1], recording.sample.seen)
    counts = None if recording.confusion is None else recording.confusion[k]
    part.show_predictions(rows, counts, odds, min(SHOWN, learners))


def weights_of_runs(runs: Sequence[Run], spread: np.ndarray) -> Weights:
    """The weights of the runs of one learner."""
    n = min(run.features for run in runs)
    each = [run.weights for run in runs]
    intercept = [float(w[-1]) for w in each] if runs[0].intercept else []
    return Weights(np.array([w[:n] for w in each]), intercept, spread if spread.size >= n else None)


def series_of(recording: Recording, k: int, certificates: Sequence[Certificate]) -> str:
    """The loss in which a learner is judged: that of its certificate, or that of the command if there is none."""
    if certificates:
        if certificates[0].unit == MISTAKES:
            return "mistakes"
        square = certificates[0].unit == SQUARES
    else:
        square = recording.learners[k].score == "square"
    return "square" if square and "square" in recording.series else "loss"


def means_of(loss: float, constant: float) -> dict[str, float]:
    """The mean losses if the only comparator is a constant."""
    return {"loss": loss, "constant": constant, "best": math.nan, "guaranteed": math.nan, "regret": math.nan}


def mean_losses(
    recording: Recording, k: int, series: str, certificates: Sequence[Certificate], constant: tuple[str, float]
) -> tuple[dict[str, float], list[str]]:
    """The mean losses of the run, the best constant, the best fixed predictor and the bound, with remarks."""
    mine = float(recording.course.sums[recording.index(k, series)]) / (recording.course.weight or 1.0)
    if not certificates or any(math.isnan(c.lost) for c in certificates):
        other = constant[1] if UNITS.get(series, "log loss") == constant[0] else math.nan
        return means_of(mine, other), []
    means = combined(certificates).means
    notes = []
    if certificates[0].weight != recording.course.weight:
        notes.append("The curves leave out the first row, from which other learners take their start.")
    elif abs(mine - means["loss"]) > 1e-6 * abs(means["loss"]):
        notes.append(f"The curves are in other units than the certificate: their mean is {mine:.6g} in the end.")
    return means, notes


def rooted_pairs(unit: str, pairs: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points of a line, with the square roots of squared errors."""
    if not pairs:
        return []
    x, y = np.array(pairs).T
    return pairs_of(x, rooted(unit, y))


def pairs_of(x: np.ndarray, y: np.ndarray) -> list[tuple[float, float]]:
    """Points of a line as plain numbers."""
    return list(zip(x.tolist(), y.tolist(), strict=True))


def sum_of_curves(certificates: Sequence[Certificate]) -> RegretCurve | None:
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


def confusion_of(counts: np.ndarray, labels: list[str]) -> dict[str, Any]:
    """The confusion table; if there are many labels, the most frequent ones and the others combined."""
    if len(labels) <= LABELS:
        return {"labels": labels, "counts": counts.tolist()}
    common = np.sort(np.argsort(-counts.sum(axis=1), kind="stable")[: LABELS - 1])
    rest = np.setdiff1d(np.arange(len(labels)), common)
    groups = [[int(j)] for j in common] + [rest.tolist()]
    table = [[int(counts[np.ix_(a, b)].sum()) for b in groups] for a in groups]
    return {"labels": [*(labels[j] for j in common), f"({len(rest)} others)"], "counts": table}


def point_count(most: int, least: int, share: int) -> int:
    """The number of points of a curve, given the number of curves of its kind on the page."""
    return max(least, min(most, 6 * most // share))


def spaced(size: int, count: int) -> np.ndarray:
    """Evenly spaced indices from the first to the last, or all indices if there are few."""
    return np.unique(np.linspace(0, size - 1, min(count, size)).astype(int))


def dots(y: np.ndarray, said: np.ndarray, count: int) -> list[dict[str, Any]]:
    """True and predicted numbers: a random sample, with the lowest and the highest."""
    ends = [y.argmin(), y.argmax(), said.argmin(), said.argmax()]
    show = np.unique(np.r_[np.arange(min(count, len(y))), ends].astype(int))
    return records(true=y[show], predicted=said[show])


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
