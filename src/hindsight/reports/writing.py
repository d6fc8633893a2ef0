"""Reports of training that just ended, and of models whose runs are replayed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..certificates.wording import SQUARES
from ..charts.drawing import line_rows, thinned
from ..charts.runs import per_row
from ..errors import MismatchError
from ..training.certify import certify_model, preparation_of
from ..training.model import Model
from ..training.outputs import check_outputs
from ..training.plan import Plan, short_names
from ..training.prepare import target_column
from ..training.recording import Recording, figures, scores_of
from ..training.session import learn_chunks
from ..training.state import TrainingState
from .content import SHOWN, Report, add_online, rooted_pairs
from .page import write_page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..certificates.certificate import Certificate


def write_report(
    path: str,
    state: TrainingState,
    recording: Recording,
    certificates: Sequence[Sequence[Certificate]],
    *,
    seconds: float | None = None,
    notes: Sequence[str] = (),
) -> None:
    """Write the report of a completed training.

    Parameters
    ----------
    path : str
        The file to write.
    state : TrainingState
        The state at the end of the training.
    recording : Recording
        The course of the run.
    certificates : sequence of sequence of Certificate
        The certificates of each learner; empty if there are none.
    seconds : float or None, default None
        Duration of the training.
    notes : sequence of str
        Warnings and further remarks.

    Raises
    ------
    ValueError
        If the file cannot be written.
    """
    plan, names = state.plan, short_names(recording.learners)
    report = Report(
        plain_name(plan.where),
        state.rows_done,
        state.features,
        state.names,
        settings_of(plan) | ({} if seconds is None else {"seconds": f"{seconds:.2f}"}),
        labels=state.labels,
        target=target_column(vars(plan)),
        preparation="" if state.source is None else state.source.preparation,
        rejected=state.rejected,
        rejects=[{"line": r.line, "column": r.column, "reason": r.reason, "file": r.file} for r in recording.rejects],
        warnings=[w for w in (state.order_warning(),) if w],
        notes=[*course_notes(plan.passes, recording), *notes],
        columns=described_columns(state),
    )
    if len(names) == 1:
        names = [names[0].removeprefix("[1] ")]
    order = np.argsort(np.nan_to_num(state.compared_losses(), nan=math.inf), kind="stable")[:SHOWN]
    constant = state.constant_quantity, state.mean_of_constant()
    for k in sorted(order.tolist()):
        add_online(
            report, recording, k, state.runs[k], certificates[k] if certificates else [],
            mistakes=state.mistakes[k], scores=scores_of(state, k), constant=constant, name=names[k],
        )  # fmt: skip
    more = {"comparison": compared(state, recording, names, report)} if len(names) > 1 else {}
    write_page(path, report.content(**more))


def plain_name(where: Any) -> str:
    """A short name of the data."""
    if where == "-":
        return "standard input"
    return ", ".join(map(str, where)) if isinstance(where, list) else str(where)


def course_notes(passes: int, recording: Recording) -> list[str]:
    """Notes on where the curves begin, and on later passes."""
    out = []
    if recording.first_row:
        out.append(
            f"The curves begin after row {recording.first_row:,}, from where the run was resumed: means count all "
            "rounds, but their course before, the table of confusions and the sample of predictions are of later rows "
            "alone."
        )
    if passes > 1:
        out.append(f"{passes} passes: from the second on, rows are predicted that were learnt before.")
    return out


def settings_of(plan: Plan) -> dict[str, str]:
    """The settings as text."""
    given = plan.settings()
    given |= {f"reading.{k}": v for k, v in given.pop("reading").items()}
    given.pop("learners")
    shown = {k: v for k, v in given.items() if v is not None and v != [] and v != {}}
    return {k: v if isinstance(v, str) else f"{v:g}" if isinstance(v, float) else str(v) for k, v in shown.items()}


def described_columns(state: TrainingState) -> list[dict[str, Any]]:
    """The columns and their types; empty if all are numeric."""
    source: Any = state.source
    rows: list[dict[str, Any]] = []
    if getattr(source, "decisions", None) is None:
        return rows
    from ..sources.tables.describe import decisions_of, used_columns

    decisions = decisions_of(source, state.source_state) or source.decisions
    roles = {each.name: "" for each in used_columns(source, decisions)}
    roles |= {source.asked.target: "target", source.asked.weight: "weight"}
    for decided in decisions.columns.values():
        seen = decisions.evidence.get(decided.name)
        missing = seen.missing / max(1, seen.rows) if seen is not None else None
        role = roles.get(decided.name, "left out, as asked")
        row = {"name": decided.name, "type": decided.type, "role": role, "why": decided.why, "missing": missing}
        rows.append(row)
    return rows


def compared(state: TrainingState, recording: Recording, names: list[str], report: Report) -> dict[str, Any]:
    """All learners in the same units, and the anytime-valid interval of every pair."""
    series = "square" if state.labels is None else "loss" if state.in_logs else "errors"
    unit = {"square": SQUARES, "loss": "log loss", "errors": "error rate"}[series]
    points = max(60, 3000 // len(names))
    courses = [recording.course.so_far(recording.index(k, series)) for k in range(len(names))]
    each = [rooted_pairs(unit, list(thinned(*course, points))) for course in courses]
    report.datasets["overlay"] = line_rows(dict(zip(names, each, strict=True)))
    table = [{"name": n} | f for n, f in zip([*names, "the best constant"], figures(state), strict=True)]
    out: dict[str, Any] = {"unit": per_row(unit), "table": table}
    if recording.scores is not None:
        found = recording.scores.comparison()
        out |= {"words": found.lines(), "loss": found.loss, "alpha": found.alpha}
        pairs = report.datasets["pairs"] = []
        for pair in found.pairs:
            interval = None if pair.anytime is None else pair.anytime.mixture
            ends = {} if interval is None else {"low": interval.low, "high": interval.high}
            pairs.append({"pair": f"{pair.first} − {pair.second}", "difference": pair.difference} | ends)
    return out


def report_model(model: Model, path: str, data: Any) -> None:
    """Certify a model over its training rows, replay them for its curves, and write its report."""
    check_outputs({"report": path}, data)
    model.certificate = certify_model(model, data)
    each = list(getattr(model.certificate, "each", [model.certificate]))
    made = preparation_of(model, data)
    runs = made.plan.begin(model.features, len(model.runs))
    sums = np.zeros(3 if model.labels is None else len(model.labels))
    state = TrainingState(made.plan, runs, model.labels, made.scale, made.source_state, [0], sums)
    recording = Recording.of(state)
    for chunk in learn_chunks(state):
        recording.add(chunk)
    lost = [run.facts.loss for run in runs[0]], [run.facts.loss for run in model.runs]
    if not np.allclose(*lost, rtol=1e-6):
        raise MismatchError(f"played again, the rows give a loss of {sum(lost[0]):.9g}; it was {sum(lost[1]):.9g}")
    write_report(path, state, recording, [each])
