"""The result of a run, as text and as plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .progress import shares_of
from .text import CONTROL, as_options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..certificates.certificate import Certificate
    from ..forecast import Comparison
    from ..online.run import Run
    from ..training.state import TrainingState

SHOWN = 6  # weights of the summary


def about(state: TrainingState) -> str:
    """The size of the data, and how it was scaled."""
    scale = "" if state.scale is None else f", scaled by {state.scale['kind']}"
    made = "" if state.source is None else state.source.preparation
    more = f" ({made})" if made else ""
    return f"{state.rows_done:,} rows × {state.features:,} features{scale}{more}"


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

    learners, titles = [], state.titles
    for k, (runs, loss) in enumerate(zip(state.runs, state.losses(), strict=True)):
        mine: dict[str, Any] = {"learner": titles[k], "loss": loss, "mean_loss": loss / state.weight}
        mine["compared_loss"] = state.compared_losses()[k]
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


def summary(state: TrainingState, certificates: list[list[Certificate]], seconds: float) -> Iterator[str]:
    """The result as lines of text."""
    from ..online.run import assumption_warnings
    from ..training.plan import describe_cells, penalties_of
    from ..training.state import in_squares

    titles, rejected = state.titles, f" ({state.rejected:,} rejected)" if state.rejected else ""
    yield f"{about(state)}{rejected}"
    if what := state.order_warning():
        from ..training.learning import IN_THIS_ORDER

        yield f"warning: {what}: {IN_THIS_ORDER} --shuffle learns in a random order"
    for k, (runs, loss) in enumerate(zip(state.runs, state.losses(), strict=True)):
        facts = runs[0].facts
        for run in runs[1:]:
            facts = facts + run.facts
        what = "squared error" if in_squares(runs[0].learner) else "loss"
        wrong = f", {state.mistakes[k]:,} mistakes" if state.labels else ""
        if state.labels is None and what == "loss":  # beside the best constant stand squares
            what, wrong = f"{runs[0].learner.loss.name} loss", f"; squared error {facts.square:.6g}"
            wrong += f", mean {facts.square / state.weight:.6g}"
        if len(titles) > 1:
            yield titles[k]
        yield f"{what} {loss:.6g}, mean {loss / state.weight:.6g}{wrong}"
        sizes = f"max |x|₂ = {facts.x2:.6g}, " if runs[0].learner.geometry.linear else ""  # others measure otherwise
        yield f"{sizes}max |x|∞ = {facts.xinf:.6g}, Σ|g|² = {facts.gradient:.6g}"
        shares = {name: share for name, share in shares_of(runs).items() if share >= 0.005}
        if shares:
            yield "members: " + ", ".join(f"{name} {100 * shares[name]:.0f} %" for name in ranked(shares))
        first: Any = runs[0]
        if left := getattr(first, "left", []):
            yield f"{', '.join(left)} left: more than {first.learner.limit} coordinates (--second-order yes)"
        if penalties_of(runs[0].learner):
            counts, of = [nonzero(run) for run in runs], f" of {runs[0].features:,} weights are not 0"
            yield ", ".join(f"{count:,}" for count in counts[:SHOWN]) + (", …" if len(counts) > SHOWN else "") + of
        yield from weight_lines(state, k)
        if cells := describe_cells(runs, state.names):
            yield f"cells: {cells.translate(CONTROL)}"
        for warning in assumption_warnings(runs[0]):
            yield f"warning: {as_options(warning)}"
    if len(titles) > 1:
        yield from side_by_side(state)
    constant = state.best_constant()
    if state.coverage is not None:
        yield from state.coverage.lines()
    yield f"the best constant: {state.constant_quantity} {constant:.6g}, mean {state.mean_of_constant():.6g}"
    # In a shorter run, loading the kernel takes most of the time.
    speed = f", {state.rows_done / seconds:,.0f} rows/s" if seconds > 2.0 else ""
    yield f"{seconds:.2f} s{speed}"
    if certificates:
        from ..certificates.table import table
        from ..training.certify import combined

        yield ""
        if len(titles) == 1:
            yield from combined(certificates[0]).lines()
        else:
            yield from table([
                (titles[k] if c.label is None else f"{titles[k]}, {c.label}", c)
                for k, each in enumerate(certificates)
                for c in each
            ])  # fmt: skip


def side_by_side(state: TrainingState) -> Iterator[str]:
    """All learners in the same units, beside the best constant."""
    from ..training.comparing import figures
    from ..training.plan import short_names

    found = figures(state)
    names = [*short_names([runs[0].learner for runs in state.runs]), "the best constant"]
    wide = max(map(len, names))
    yield ""
    yield f"{'':<{wide}}" + "".join(f"  {column:>18}" for column in found[0])
    for name, each in zip(names, found, strict=True):
        yield f"{name:<{wide}}" + "".join(f"  {'–' if v is None else f'{v:.6g}':>18}" for v in each.values())
    yield ""


def nonzero(run: Run) -> int:
    """How many weights of features are not 0."""
    return int(np.count_nonzero(run.weights[: run.features]))


def ranked(values: dict[str, float]) -> list[str]:
    """The names, that of the largest value first."""
    return sorted(values, key=lambda name: -abs(values[name]))


def weight_lines(state: TrainingState, which: int) -> Iterator[str]:
    """The weights of a panel that move its predictions most: by their size times the largest value of the feature."""
    runs, names = state.runs[which], state.names
    if len(runs) > 1 or names is None or not shares_of(runs):
        return
    run: Any = runs[0]
    w, sizes = run.weights, run.largest_x
    count = min(len(names), run.features)
    order = np.argsort(-np.abs(w[:count] * sizes[:count]), kind="stable")[:SHOWN].tolist()
    shown = ", ".join(f"{names[j].translate(CONTROL)} {w[j]:.4g}" for j in order)
    more = f", … ({count:,} features)" if count > SHOWN else ""
    start = f", intercept {w[-1]:.4g}" if runs[0].intercept else ""
    yield f"weights: {shown}{more}{start}"
