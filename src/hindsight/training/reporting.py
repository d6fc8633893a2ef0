"""What a report says of a run: its certificates, its course, its weights, its predictions, and how it was made.

Everything is gathered here as plain values; `hindsight.report` makes a page of them.
"""

from __future__ import annotations

import math
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..certificates.certificate import MISTAKES, WEIGHTED, RegretCurve, worth_of
from ..certificates.theorems import GLM_TRON, Verdict
from ..errors import MismatchError
from ..formatting import _plain
from ..online.margins import each_mean
from ..report.charts import PROMISE, best_name
from ..report.page import write_page
from ..sources import load_sample
from ..storage.model import versions
from .certify import certify_model, combined
from .comparing import figures
from .curves import Curves
from .plan import Plan, describe_learner, part_name, short_names
from .prepare import check_preparation
from .session import learn
from .state import TrainingState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..certificates.certificate import Best, Certificate
    from ..online.run import Run
    from .model import Model

DETAILED = 6  # learners that have charts of their own, those of the least loss
TOP = 20  # weights
LABELS = 15  # of a table of confusions
CHARTED = 6  # labels, of more than two, that have charts of their own: the most frequent ones
COLUMNS = 200
MEMBERS = 6  # of a panel
DOTS = 1000  # of predictions against targets


def write_report(
    path: str,
    state: TrainingState,
    curves: Curves,
    certificates: Sequence[Sequence[Certificate]],
    *,
    seconds: float | None = None,
    notes: Sequence[str] = (),
) -> None:
    """Write the report of a run as one HTML page that loads nothing.

    Parameters
    ----------
    path : str
        The file to write.
    state : TrainingState
        Where training ended.
    curves : Curves
        The course of the run.
    certificates : sequence of sequence of Certificate
        Those of each learner; empty where there are none.
    seconds : float or None, default None
        How long learning took.
    notes : sequence of str
        What else is to be said.

    Raises
    ------
    ValueError
        If the file cannot be written.
    """
    write_page(path, content(state, curves, certificates, seconds, notes))


def report_model(model: Model, path: str, data: Any) -> None:
    """Certify a model over the rows it was trained on, play them again for its course, and write its report.

    Parameters
    ----------
    model : Model
        A model that `hindsight.learn` or the command made; its certificate is replaced.
    path : str
        The file to write.
    data : object
        All rows that it learnt from, in that order.

    Raises
    ------
    ModelError
        If the model does not tell how its rows were read.
    MismatchError
        If these are not the rows it was trained on.
    ValueError
        If the file cannot be written.
    """
    from .outputs import check_destination, check_outputs

    check_outputs({"report": path}, data)
    check_destination(path, replaced=True)
    model.certificate = certify_model(model, data)
    each = list(getattr(model.certificate, "each", [model.certificate]))
    made, plan = check_preparation(model), Plan.from_settings(model.settings, data)
    runs: list[Run] = [run.learner.begin(model.features, model.intercept) for run in model.runs]
    sums = np.zeros(3 if model.labels is None else len(model.labels))
    state = TrainingState(plan, [runs], model.labels, made["scale"], made["state"], [0], sums)
    curves = Curves(state)
    for chunk in learn(state):
        curves.add(chunk)
    lost = [run.facts.loss for run in runs], [run.facts.loss for run in model.runs]
    if not np.allclose(*lost, rtol=1e-6):
        raise MismatchError(f"played again, the rows give a loss of {sum(lost[0]):.9g}; it was {sum(lost[1]):.9g}")
    write_report(path, state, curves, [each])


# ---------------------------------------------------------------- the whole


def content(
    state: TrainingState,
    curves: Curves,
    certificates: Sequence[Sequence[Certificate]],
    seconds: float | None,
    notes: Sequence[str],
) -> dict[str, Any]:
    """Everything that a report says, as plain values; `datasets` has what its charts draw."""
    learners = [runs[0].learner for runs in state.runs]
    names = short_names(learners)
    if len(names) == 1:
        names = [names[0].removeprefix("[1] ")]
    datasets: dict[str, list[dict[str, Any]]] = {}
    found = [
        learner_content(state, curves, k, list(certificates[k]) if certificates else [], datasets, len(learners))
        | {"name": names[k], "title": describe_learner(learners[k])}
        for k in detailed(state)
    ]
    out: dict[str, Any] = {
        "data": plain_name(state.plan.where),
        "target": target_of(state.plan),
        "rows": state.rows_done,
        "features": state.features,
        "labels": state.labels,
        "how": "each row was predicted before it was learnt",
        "preparation": "" if state.source is None else state.source.preparation,
        "rejected": state.rejected,
        "rejects": [{"line": r.line, "column": r.column, "reason": r.reason, "file": r.file} for r in curves.rejects],
        "warnings": [w for w in (state.order_warning(),) if w],
        "notes": [*course_notes(state, curves), *notes],
        "learners": found,
        "columns": columns_of(state),
        "settings": settings_of(state.plan, seconds),
        "versions": versions(),
    }
    if len(learners) > 1:
        out["comparison"] = compared(state, curves, names, datasets)
    return dict(_plain(out | {"datasets": {name: rounded(rows) for name, rows in datasets.items()}}))


def rounded(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What a chart draws, to seven digits: nobody sees more, and the page stays small."""
    return [{k: float(f"{v:.7g}") if isinstance(v, float) else v for k, v in row.items()} for row in rows]


def detailed(state: TrainingState) -> list[int]:
    """The learners that are shown by themselves: all, or those of the least loss, in the order of the command."""
    order = np.argsort(np.nan_to_num(state.compared_losses(), nan=math.inf), kind="stable")[:DETAILED]
    return sorted(order.tolist())


def plain_name(where: Any) -> str:
    """The data in a few words."""
    if where == "-":
        return "standard input"
    return ", ".join(map(str, where)) if isinstance(where, list) else str(where)


def target_of(plan: Plan) -> str | None:
    """The column that was predicted, if it has a name."""
    data = plan.data
    if plan.target is None and isinstance(data, str) and data.startswith("sample:"):
        return load_sample(data.removeprefix("sample:"), None).target
    return plan.target


def course_notes(state: TrainingState, curves: Curves) -> list[str]:
    """From where the curves begin, and what later passes are."""
    out = []
    if curves.first_row:
        out.append(
            f"The curves begin after row {curves.first_row:,}, from where the run was resumed: means count all rounds, "
            "but their course before, the table of confusions and the sample of predictions are of later rows alone."
        )
    if state.plan.passes > 1:
        out.append(f"{state.plan.passes} passes: from the second on, rows are predicted that were learnt before.")
    return out


def settings_of(plan: Plan, seconds: float | None) -> dict[str, str]:
    """The settings as text."""
    given = plan.settings()
    reading = {f"reading.{k}": v for k, v in given.pop("reading").items()}
    given.pop("learners")
    shown = {k: v for k, v in (given | reading).items() if v is not None and v != [] and v != {}}
    out = {k: v if isinstance(v, str) else f"{v:g}" if isinstance(v, float) else str(v) for k, v in shown.items()}
    out = {k: v if len(v) <= 200 else v[:199] + "…" for k, v in out.items()}
    return out | ({} if seconds is None else {"seconds": f"{seconds:.2f}"})


def columns_of(state: TrainingState) -> dict[str, Any]:
    """The columns and how they were typed: the first ones, and how many there are."""
    source: Any = state.source
    rows: list[dict[str, Any]] = []
    if getattr(source, "decisions", None) is not None:
        from ..sources.tables.describe import decisions_of

        decisions = decisions_of(source, state.source_state) or source.decisions
        roles = {source.asked.target: "target", source.asked.weight: "weight"}
        unused = set(source.asked.ignore)
        if source.asked.features is not None:
            unused |= set(decisions.columns) - set(source.asked.features) - set(roles)
        for decided in decisions.columns.values():
            seen = decisions.evidence.get(decided.name)
            missing = seen.missing / max(1, seen.rows) if seen is not None else None
            role = roles.get(decided.name, "left out, as asked" if decided.name in unused else "")
            rows.append({"name": decided.name, "type": decided.type, "role": role, "why": decided.why})
            rows[-1]["missing"] = missing
    if not rows:  # features alone are known, and hold numbers
        goal = target_of(state.plan)
        known = [(name, "") for name in state.names or []] + ([] if goal is None else [(goal, "target")])
        rows = [{"name": name, "type": "number", "role": role, "why": "", "missing": None} for name, role in known]
    return {"count": len(rows) if state.names else state.features, "shown": rows[:COLUMNS]}


# ---------------------------------------------------------------- one learner


def learner_content(
    state: TrainingState,
    curves: Curves,
    k: int,
    certificates: list[Certificate],
    datasets: dict[str, list[dict[str, Any]]],
    learners: int,
) -> dict[str, Any]:
    """What is said of one learner; what its charts draw joins the datasets."""
    runs, learner = state.runs[k], state.runs[k][0].learner
    series = series_of(curves, k, certificates)
    units = {"square": "squared error", "mistakes": "mistakes", "loss": f"{part_name(learner.loss)} loss"}
    means, told = figures_of(state, curves, k, series, certificates)
    out: dict[str, Any] = {"key": k, "unit": units[series], "means": means, "notes": told}
    whole = combined(certificates) if certificates else None
    out["verdict"] = None if whole is None else whole.verdict.value
    out["worth"] = None if whole is None else worth_in_all(whole.verdict, certificates, means)
    out["best_shown"] = all(c.best_is_shown for c in certificates)
    out["certificates"] = [certificate_values(c) for c in certificates]
    out["text"] = [] if whole is None else whole.lines()
    if state.labels:
        out["mistakes"] = state.mistakes[k]
        if len(runs) > 1:
            part = state.mistakes[k] / (runs[0].facts.rounds or 1)
            told.append(
                f"Each of the {len(runs)} labels was learnt against the rest, and these figures are sums over all of "
                f"them. The label of the largest margin was wrong on {100 * part:.3g} % of the rows."
            )
    out["window"] = loss_data(curves, out, series, certificates, datasets, max(300, 1800 // learners))
    regret_data(out, certificates, datasets)
    weights_data(state, k, certificates, datasets)
    shares_data(k, certificates, datasets)
    w = [run.weights for run in runs]
    out["intercept"] = [float(each[-1]) for each in w] if runs[0].intercept else []
    out["nonzero"] = int(sum(np.count_nonzero(each[: run.features]) for each, run in zip(w, runs, strict=True)))
    out["moves"] = largest_values(runs[0]) is not None
    if curves.confusion is not None and state.labels is not None:
        out["confusion"] = confusion_of(curves.confusion[k], state.labels)
    return out | prediction_data(state, curves, k, datasets)


def series_of(curves: Curves, k: int, certificates: list[Certificate]) -> str:
    """The series in which a learner is judged: that of its certificate, or of the command where there is none."""
    if certificates:
        about = certificates[0]
        if about.quantity in (MISTAKES, WEIGHTED):
            return "mistakes"
        square = about.quantity.startswith("squared error") or about.theorem is GLM_TRON
    else:
        square = curves.learners[k].score == "square"
    return "square" if square and "square" in curves.series else "loss"


def figures_of(
    state: TrainingState, curves: Curves, k: int, series: str, certificates: list[Certificate]
) -> tuple[dict[str, float], list[str]]:
    """The means of the run, the best constant, the best fixed predictor and the promise; and what to say of them."""
    mine = float(curves.course.sums[curves.index(k, series)]) / (curves.course.weight or 1.0)
    if not certificates or any(math.isnan(c.lost) for c in certificates):
        same = {"square": "squared error", "mistakes": "mistakes", "loss": "log loss"}[
            series
        ] == state.constant_quantity
        constant = state.mean_of_constant() if same else math.nan
        return {"loss": mine, "constant": constant, "best": math.nan, "guaranteed": math.nan, "regret": math.nan}, []
    each = [c.means for c in certificates]
    means = {name: math.fsum(m[name] for m in each) for name in each[0]}
    told = []
    if certificates[0].weight != curves.course.weight:
        told.append("The curves count every round; the certificate leaves out those that only set the start.")
    elif abs(mine - means["loss"]) > 1e-6 * abs(means["loss"]):
        told.append(f"The curves are in other units than the certificate: their mean is {mine:.6g} in the end.")
    return means, told


def worth_in_all(verdict: Verdict, certificates: list[Certificate], means: dict[str, float]) -> str | None:
    """What the promise is worth; of several labels that of their sum."""
    if len(certificates) == 1:
        return certificates[0].worth
    return worth_of(verdict, means["loss"], means["guaranteed"], means["constant"])


def certificate_values(certificate: Certificate) -> dict[str, Any]:
    """A certificate as plain values, without the weights of its predictors: there may be very many."""
    out = certificate.to_dict()
    for name in ("comparator", "best"):
        if out.get(name):
            out[name].pop("u")
    return out


def loss_data(
    curves: Curves,
    each: dict[str, Any],
    series: str,
    certificates: list[Certificate],
    datasets: dict[str, list[dict[str, Any]]],
    points: int,
) -> int:
    """The mean loss so far and over a window, and what it is compared with; the length of the window."""
    from ..charts.thinning import thinned

    k, means, best = each["key"], each["means"], best_name(each)
    course, at = curves.course, curves.index(k, series)
    lines: dict[str, list[tuple[float, float]]] = {}
    rounds, values = course.so_far(at)
    lines["so far"] = list(thinned(rounds, values, points))
    window, where, over = course.window(at)
    lines["window"] = list(thinned(where, over, points))
    last = int(course.rounds)
    for name in ("constant", "best"):
        if math.isfinite(means[name]):
            lines[name] = [(float(rounds[0]), means[name]), (float(last), means[name])]
    if math.isfinite(means["guaranteed"]):
        lines["guaranteed"] = promised(certificates)
    names = {
        "so far": "mean so far",
        "window": f"mean of the last {window:,} rounds",
        "constant": "best constant",
        "best": best,
        "guaranteed": "guaranteed at most",
    }
    datasets[f"loss{k}"] = [
        {"rounds": r, "value": v, "line": names[line]} for line, pairs in lines.items() for r, v in pairs
    ]
    datasets[f"hover{k}"] = hover_rows(lines)
    return window


def promised(certificates: list[Certificate]) -> list[tuple[float, float]]:
    """The mean loss that was promised along the run, of all runs together."""
    curve = summed(certificates)
    if curve is None:
        return []
    on = np.isfinite(curve.bound)
    return list(zip(curve.rounds[on].astype(float).tolist(), curve.bound[on].tolist(), strict=True))


def summed(certificates: list[Certificate]) -> RegretCurve | None:
    """The curve of all runs together, at the rounds that those of all have; None where one has none."""
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
    """The values of all lines at some rounds: what a page shows where the mouse is."""
    rounds = np.array([r for r, _ in lines["so far"]])
    logs = np.geomspace(1.0, rounds.size, count // 2)
    places = np.unique(np.concatenate([np.linspace(0, rounds.size - 1, count // 2), logs - 1.0]).astype(int))
    out = []
    for r in rounds[places].tolist():
        row: dict[str, Any] = {"rounds": r}
        for name, pairs in lines.items():
            before = [v for at, v in pairs if at <= r]
            if before:
                row[name] = before[-1]
        out.append(row)
    return out


def regret_data(
    each: dict[str, Any], certificates: list[Certificate], datasets: dict[str, list[dict[str, Any]]]
) -> None:
    """The regret per round against the best fixed predictor along the run, and the most that was promised."""
    curve = summed(certificates)
    if curve is None or curve.rounds.size < 2:
        return
    lines = {"regret": curve.regret}
    if math.isfinite(each["means"]["guaranteed"]):
        lines[PROMISE] = curve.bound - curve.best
    pairs = [
        (name, r, v) for name, line in lines.items() for r, v in zip(curve.rounds.tolist(), line.tolist(), strict=True)
    ]
    datasets[f"regret{each['key']}"] = [{"rounds": r, "value": v, "line": n} for n, r, v in pairs if math.isfinite(v)]


def weights_data(
    state: TrainingState, k: int, certificates: list[Certificate], datasets: dict[str, list[dict[str, Any]]]
) -> None:
    """The largest weights by name, and those of the best fixed predictor."""
    runs = state.runs[k]
    n = min(run.features for run in runs)
    w = np.array([run.weights[:n] for run in runs])
    best = [c.best for c in certificates] or [None] * len(runs)
    datasets[f"weights{k}"] = largest_weights(w, state.names, state.labels, best, largest_values(runs[0]))


def largest_weights(
    w: np.ndarray,
    names: Sequence[str] | None,
    labels: list[str] | None,
    best: Sequence[Best | None],
    sizes: np.ndarray | None,
) -> list[dict[str, Any]]:
    """The largest weights, one row of `w` per run, by what they can move where the sizes of features are known."""
    n = w.shape[1]
    order = np.argsort(-(np.abs(w) * (1.0 if sizes is None else sizes[:n])).ravel(), kind="stable")[:TOP]
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
        if sizes is not None:
            for move, value in (("move", "weight"), ("best_move", "best")):
                if value in row:
                    row[move] = row[value] * float(sizes[feature])
        rows.append(row)
    return rows


def largest_values(run: Any) -> np.ndarray | None:
    """The largest size of each feature, where the run keeps it: weights are then compared by what they can move."""
    return np.abs(run.largest_x) if hasattr(run, "largest_x") else None


def shares_data(k: int, certificates: list[Certificate], datasets: dict[str, list[dict[str, Any]]]) -> None:
    """The weights of the members of a panel along the run: those with the most, and the rest together."""
    for c in certificates[:1]:
        marks = [m.rounds for m in c.path]
        members = [m for m in c.members if len(m.course) == len(marks)]
        if len(marks) < 2 or not members:
            return
        named = sorted(members, key=lambda m: -math.fsum(m.course))[:MEMBERS]
        rest = [m for m in members if m not in named]
        rows = [{"rounds": r, "value": s, "line": m.name} for m in named for r, s in zip(marks, m.course, strict=True)]
        if rest:
            left = [math.fsum(each) for each in zip(*(m.course for m in rest), strict=True)]
            rows += [{"rounds": r, "value": s, "line": "all others"} for r, s in zip(marks, left, strict=True)]
        datasets[f"shares{k}"] = rows


# ---------------------------------------------------------------- predictions


def confusion_of(counts: np.ndarray, labels: list[str]) -> dict[str, Any]:
    """The table of confusions, of many labels those of the most frequent ones and the rest together."""
    if len(labels) <= LABELS:
        return {"labels": labels, "counts": counts.tolist()}
    common = np.sort(np.argsort(-counts.sum(axis=1), kind="stable")[: LABELS - 1])
    rest = np.setdiff1d(np.arange(len(labels)), common)
    groups = [[int(j)] for j in common] + [rest.tolist()]
    table = [[int(counts[np.ix_(a, b)].sum()) for b in groups] for a in groups]
    return {"labels": [*(labels[j] for j in common), f"({len(rest)} others)"], "counts": table}


def prediction_data(
    state: TrainingState, curves: Curves, k: int, datasets: dict[str, list[dict[str, Any]]]
) -> dict[str, Any]:
    """Predicted against true numbers; for labels the threshold curve and, of probabilities, the calibration."""
    drawn = curves.sample.drawn()
    if not len(drawn):
        return {}
    y, c, learner = drawn[:, -2], drawn[:, -1], curves.learners[k]
    z, share = drawn[:, k * curves.each : (k + 1) * curves.each], detailed_count(state)
    out: dict[str, Any] = {"sample": len(drawn), "of": curves.sample.seen}
    if state.labels is None:
        datasets[f"predicted{k}"] = dots(y, each_mean(learner.loss, z[:, 0]), DOTS // share)
        return out
    odds = learner.targets == "unit" and (getattr(learner.loss, "link", None) or "identity") != "identity"
    scores = np.column_stack([each_mean(learner.loss, column) for column in z.T]) if odds else z
    assert curves.confusion is not None
    rows = LabelledRows(scores, y, c, state.labels, curves.confusion[k].sum(axis=1))
    return out | label_data(k, rows, odds, share, datasets)


class LabelledRows(NamedTuple):
    """Rows with a label, as charts take them.

    Attributes
    ----------
    scores : ndarray
        One column for the second of two labels, or one per label.
    y, c : ndarray
        The label of each row, by its number, and its weight.
    labels : list of str
        All labels.
    counts : ndarray
        How many rows have each.
    """

    scores: np.ndarray
    y: np.ndarray
    c: np.ndarray
    labels: list[str]
    counts: np.ndarray


def label_data(
    k: int, rows: LabelledRows, odds: bool, learners: int, datasets: dict[str, list[dict[str, Any]]]
) -> dict[str, Any]:
    """The threshold curve and, where scores are probabilities, the calibration: of several labels of each."""
    many = rows.scores.shape[1] > 1
    order = np.argsort(-rows.counts, kind="stable")[:CHARTED]
    charted = sorted(order.tolist()) if many else [1]
    share, terms = learners * len(charted), []
    for j, label in enumerate(charted):
        scores = np.ascontiguousarray(rows.scores[:, label if many else 0])
        place, hit = f"{k}/{j}" if many else f"{k}", (rows.y == label).astype(np.float64)
        datasets[f"threshold{place}"] = threshold_rows(hit, scores, rows.c, points(150, 30, share))
        if odds:
            terms.append(calibration_data(hit, scores, rows.c, place, share, datasets))
            terms[-1]["frequency"] = float(rows.c @ hit) / float(rows.c.sum())
    chosen = [rows.labels[label] for label in charted] if many else []
    out: dict[str, Any] = {"scores": "probability" if odds else "margin", "labels": len(rows.labels), "chosen": chosen}
    out["positive"] = "that label" if many else rows.labels[1]
    return out | ({"calibration": terms} if odds else {})


def detailed_count(state: TrainingState) -> int:
    """How many learners are shown by themselves."""
    return min(DETAILED, len(state.runs))


def points(most: int, least: int, share: int) -> int:
    """How many points a curve may have where so many of its kind share the page."""
    return max(least, min(most, 6 * most // share))


def dots(y: np.ndarray, said: np.ndarray, count: int) -> list[dict[str, Any]]:
    """True and predicted numbers: some at random, and the lowest and highest."""
    ends = [y.argmin(), y.argmax(), said.argmin(), said.argmax()]
    show = np.unique(np.r_[np.arange(min(count, len(y))), ends].astype(int))
    return [{"true": t, "predicted": p} for t, p in np.c_[y, said][show].tolist()]


def threshold_rows(y: np.ndarray, scores: np.ndarray, c: np.ndarray, count: int) -> list[dict[str, Any]]:
    """Recall, precision and error rate where rows are called positive if their score is above a threshold."""
    order = np.argsort(-scores, kind="stable")
    s, ones, all_ = scores[order], np.cumsum((c * y)[order]), np.cumsum(c[order])
    last = np.flatnonzero(np.append(s[1:] < s[:-1], True))
    last = last[np.unique(np.linspace(0, last.size - 1, min(count, last.size)).astype(int))]
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
    y: np.ndarray, p: np.ndarray, c: np.ndarray, place: str, share: int, datasets: dict[str, list[dict[str, Any]]]
) -> dict[str, float]:
    """The isotonic fit of the outcomes on the probabilities, a band for it, and the terms of the Brier score."""
    from ..charts.thinning import thinned
    from ..forecast.calibration import reliability

    found = reliability(y, p, c)
    at, value = found.pools.knots()
    line = thinned(at, value, points(400, 60, share))
    datasets[f"calibration{place}"] = [{"probability": a, "observed": v} for a, v in line]
    band = found.band(resamples=200)
    keep = np.unique(np.linspace(0, band.at.size - 1, min(points(150, 40, share), band.at.size)).astype(int))
    rows = zip(band.at[keep].tolist(), band.low[keep].tolist(), band.high[keep].tolist(), strict=True)
    datasets[f"band{place}"] = [{"probability": a, "low": low, "high": high} for a, low, high in rows]
    counts, edges = np.histogram(p, bins=20, range=(0.0, 1.0), weights=c)
    bins = zip(edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), strict=True)
    datasets[f"histogram{place}"] = [{"from": a, "to": b, "rows": n} for a, b, n in bins]
    names = ("score", "miscalibration", "discrimination", "uncertainty")
    return {name: float(getattr(found, name)) for name in names}


# ---------------------------------------------------------------- several learners


def compared(
    state: TrainingState, curves: Curves, names: list[str], datasets: dict[str, list[dict[str, Any]]]
) -> dict[str, Any]:
    """All learners in the same units, and for every pair the interval that holds at every time."""
    from ..charts.thinning import thinned

    series = "square" if state.labels is None else "loss" if state.in_logs else "errors"
    unit = {"square": "squared error", "loss": "log loss", "errors": "error rate"}[series]
    rows = []
    points = max(60, 3000 // len(names))
    for k, name in enumerate(names):
        rounds, values = curves.course.so_far(curves.index(k, series))
        rows += [{"rounds": r, "value": v, "line": name} for r, v in thinned(rounds, values, points)]
    datasets["overlay"] = rows
    table = [{"name": n} | f for n, f in zip([*names, "the best constant"], figures(state), strict=True)]
    out: dict[str, Any] = {"unit": unit, "table": table}
    if curves.scores is not None:
        found = curves.scores.comparison()
        out |= {"words": found.lines(), "loss": found.loss, "alpha": found.alpha}
        pairs = []
        for pair in found.pairs:
            interval = None if pair.anytime is None else pair.anytime.mixture
            row: dict[str, Any] = {"pair": f"{pair.first} − {pair.second}", "difference": pair.difference}
            if interval is not None:
                row |= {"low": interval.low, "high": interval.high}
            pairs.append(row)
        datasets["pairs"] = pairs
    return out
