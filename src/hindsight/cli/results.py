"""The result of a run, as text and as plain values."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import numpy as np

from ..formatting import aligned, brief
from ..online.panel import shares_of
from .text import CONTROL, as_options, norms_of, status_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..certificates.certificate import Certificate, Certificates
    from ..forecast import Comparison
    from ..online.run import Run
    from ..training.options import ResultOptions
    from ..training.state import TrainingState

SHOWN = 6  # weights of the summary


def about(state: TrainingState) -> str:
    """The size of the data and its scaling."""
    scale = "" if state.scale is None else f", scaled by {state.scale['kind']}"
    made = "" if state.source is None else state.source.preparation
    more = f" ({made})" if made else ""
    return f"{state.rows_done:,} rows × {state.features:,} features{scale}{more}"


def model_certificate(certificates: list[list[Certificate]]) -> Certificate | Certificates | None:
    """The certificate of the first learner's model; None if there are none."""
    from ..certificates.certificate import combined

    return combined(certificates[0]) if certificates else None


def print_result(
    results: ResultOptions,
    state: TrainingState,
    certificates: list[list[Certificate]],
    seconds: float,
    compared: Comparison | None = None,
    **more: Any,
) -> int:
    """Print the result of a run, as JSON or as text; `more` are keywords of `summary`. Returns the exit status."""
    if results.as_json:
        print(json.dumps(result(state, certificates, seconds, compared)))
    else:
        for line in summary(state, certificates, seconds, details=results.details, **more):
            print(line)
        if compared is not None:
            from .forecasts import show_comparison

            print()
            show_comparison("comparison", "of predictions before each row, valid at every time", compared)
    return status_of(*itertools.chain(*certificates))


def result(
    state: TrainingState,
    certificates: list[list[Certificate]],
    seconds: float,
    compared: Comparison | None = None,
) -> dict[str, Any]:
    """The result as plain values."""
    from dataclasses import asdict

    from ..formatting import _plain
    from ..training.plan import penalties_of
    from ..training.recording import scores_of

    learners, titles = [], state.titles
    for k, (runs, loss) in enumerate(zip(state.runs, state.losses(), strict=True)):
        mine: dict[str, Any] = {"learner": titles[k], "loss": loss, "mean_loss": loss / state.weight}
        mine["compared_loss"] = state.compared_losses()[k]
        mine["figures"] = scores_of(state, k).to_dict()
        mine |= {"mistakes": state.mistakes[k]} if state.labels else {}
        if penalties_of(runs[0].learner):
            mine["nonzero"] = [nonzero(run) for run in runs]
        mine["facts"] = [asdict(run.facts) for run in runs]
        if certificates:
            mine["certificates"] = [c.to_dict() for c in certificates[k]]
        learners.append(mine)
    out = {"data": str(state.plan.data), "rows": state.rows_done, "rejected": state.rejected, "labels": state.labels}
    out |= {"order": state.order_warning()}
    out |= {"best_constant": state.best_constant(), "compared_by": state.constant_quantity}
    out |= {"seconds": seconds, "settings": state.plan.settings()}
    out |= {} if compared is None else {"comparison": compared.to_dict()}
    out |= {} if state.coverage is None else {"coverage": state.coverage.to_dict()}
    return dict(_plain(out | {"learners": learners}))


def summary(
    state: TrainingState,
    certificates: list[list[Certificate]],
    seconds: float,
    *,
    details: bool = False,
    compiled: bool = False,
    spread: np.ndarray | None = None,
    files: Sequence[str] = (),
) -> Iterator[str]:
    """The result as lines of text.

    Parameters
    ----------
    state : TrainingState
        Where training ended.
    certificates : list of list of Certificate
        The certificates of each learner; empty if there are none.
    seconds : float
        How long learning took.
    details : bool, default False
        Whether to print everything instead of what fits on a screen.
    compiled : bool, default False
        Whether compilation took place.
    spread : ndarray or None, default None
        The spread of each column, if known.
    files : sequence of str, default=()
        Descriptions of the files written.
    """
    from ..online.run import assumption_warnings
    from ..training.plan import describe_cells

    titles = state.titles
    if len(titles) == 1:
        yield from headline(state, certificates, details)
        yield from weight_lines(state, spread)
        if cells := describe_cells(state.runs[0], state.names):
            yield f"cells: {cells.translate(CONTROL)}"
    else:
        yield from side_by_side(state)
        yield from beside(state, certificates)
    yield from nonzero_lines(state)
    if what := state.order_warning():
        from ..training.session import IN_THIS_ORDER

        yield f"warning: {what}: {IN_THIS_ORDER} --shuffle learns in a random order"
    for runs in state.runs:
        yield from (f"warning: {as_options(text)}" for text in assumption_warnings(runs[0]))
    if state.coverage is not None:
        yield from state.coverage.lines() if details else state.coverage.brief()
    if details:
        yield from details_of(state)
    rejected = f" ({state.rejected:,} rejected)" if state.rejected else ""
    why = ", most of it to compile the learners, once for this machine" if compiled else ""
    yield f"{about(state)}{rejected}; {seconds:.2f} s{why}"
    yield from files


def headline(state: TrainingState, certificates: list[list[Certificate]], details: bool) -> Iterator[str]:
    """The main result of one learner, and the verdict."""
    from ..certificates.wording import in_words
    from ..training.recording import losses_of, scores_of

    scores = scores_of(state, 0)
    if certificates:
        from ..certificates.certificate import combined

        whole = combined(certificates[0])
        yield from whole.lines(scores) if details else whole.brief(scores)
        return
    if state.compared_losses()[0] > state.best_constant() * (1.0 + 1e-9):
        yield f"this run lost more than {scores.constant} would have: {first_aid(state)}"
    yield from in_words(*losses_of(state, 0), True, scores)


def first_aid(state: TrainingState) -> str:
    """Suggestions if a run lost more than a constant would have, from what is known without its rows."""
    if state.order_warning():
        return "learn in a random order (--shuffle)"
    if state.runs[0][0].learner.name == "auto":
        return "it may need more rows, or other columns"
    return "scale the rows (--scale standard), take a smaller --eta, or --learner auto; --certify says more"


def details_of(state: TrainingState) -> Iterator[str]:
    """Sums, norms and members of every learner."""
    from ..online.panel import member_name
    from ..training.state import in_squares

    titles = state.titles
    for k, (runs, loss) in enumerate(zip(state.runs, state.losses(), strict=True)):
        facts = runs[0].facts
        for run in runs[1:]:
            facts = facts + run.facts
        what = "squared error" if in_squares(runs[0].learner) else f"{runs[0].learner.loss.name} loss"
        wrong = f", {state.mistakes[k]:,} mistakes" if state.labels else ""
        if state.labels is None and what != "squared error":
            wrong = f"; squared error {facts.square:.6g}, mean {facts.square / state.weight:.6g}"
        if len(titles) > 1:
            yield titles[k]
        yield f"{what} {loss:.6g}, mean {loss / state.weight:.6g}{wrong}"
        yield norms_of(runs[0].learner, facts)
        shares = {name: share for name, share in shares_of(runs).items() if share >= 0.005}
        if shares:
            yield "members: " + ", ".join(f"{name} {100 * shares[name]:.0f} %" for name in ranked(shares))
        first: Any = runs[0]
        if narrow := getattr(first, "narrow", []):
            names = ", ".join(member_name(run.learner) for run in narrow)
            yield f"{names}: the first {narrow[0].features} of {first.features:,} features (--second-order yes: all)"
    constant = state.best_constant()
    yield f"the best constant: {state.constant_quantity} {constant:.6g}, mean {state.mean_of_constant():.6g}"


def side_by_side(state: TrainingState) -> Iterator[str]:
    """All learners in the same units, with the best constant."""
    from ..certificates.wording import shown_figure
    from ..training.plan import short_names
    from ..training.recording import figures

    found = figures(state)
    names = [*short_names([runs[0].learner for runs in state.runs]), "the best constant"]
    rows = [[name, *(shown_figure(*item) for item in each.items())] for name, each in zip(names, found, strict=True)]
    yield from aligned([["", *found[0]], *rows])


def beside(state: TrainingState, certificates: list[list[Certificate]]) -> Iterator[str]:
    """The certificates of several learners in one table."""
    from ..certificates.wording import table
    from ..training.plan import short_names

    if not certificates:
        return
    names = short_names([runs[0].learner for runs in state.runs])
    yield ""
    found = zip(names, certificates, strict=True)
    yield from table([(name if c.label is None else f"{name}, {c.label}", c) for name, each in found for c in each])


def nonzero_lines(state: TrainingState) -> Iterator[str]:
    """The number of weights that penalties have left nonzero."""
    from ..training.plan import penalties_of

    for runs in state.runs:
        if penalties_of(runs[0].learner):
            counts, of = [nonzero(run) for run in runs], f" of {runs[0].features:,} weights are not 0"
            yield ", ".join(f"{count:,}" for count in counts[:SHOWN]) + (", …" if len(counts) > SHOWN else "") + of


def nonzero(run: Run) -> int:
    """The number of nonzero weights of features."""
    return int(np.count_nonzero(run.weights[: run.features]))


def ranked(values: dict[str, float]) -> list[str]:
    """The names in order of decreasing values."""
    return sorted(values, key=lambda name: -abs(values[name]))


def weight_lines(state: TrainingState, spread: np.ndarray | None) -> Iterator[str]:
    """The weights with the largest effect on predictions: their size times the spread of their column."""
    runs, names = state.runs[0], state.names
    if names is None or spread is None:
        return
    count = min(len(names), spread.size, *(run.features for run in runs))
    w = np.array([run.weights[:count] for run in runs])
    moves = np.abs(w).sum(axis=0) * spread[:count]
    order = [j for j in np.argsort(-moves, kind="stable")[:SHOWN].tolist() if moves[j] > 0.0]
    shown = [names[j].translate(CONTROL) for j in order]
    if not order:
        return
    if len(runs) > 1:
        yield f"what moves predictions most: {', '.join(shown)}{', …' if count > len(order) else ''}"
        return
    rows = [[f"  {name}", brief(w[0, j]), brief(moves[j])] for name, j in zip(shown, order, strict=True)]
    start = [["  (intercept)", brief(float(runs[0].weights[-1])), ""]] if runs[0].intercept else []
    of = f" ({len(order)} of {count:,})" if count > len(order) else ""
    yield from aligned([[f"what moves predictions most{of}", "weight", "× spread of the column"], *rows, *start])
