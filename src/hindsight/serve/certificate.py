"""The certificate of a service: its loss against the best in hindsight so far, over the rows that are in its folder.

When the first rows have been deleted, the sums of c x x', c x y and c y^2 over all rows still give the squared loss of
every fixed u. The newest rows are learnt again from the older snapshot, which gives the loss of the service on them,
and the best u for these rows is found in hindsight. Steps at a constant rate depend only on the weights and the row.
Their theorem therefore holds for these rows alone, starting at the weights of the snapshot, and gives a certificate.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..certificates.best import best_fixed
from ..certificates.certificate import combined
from ..certificates.wording import in_words
from ..errors import MismatchError, SourceError
from ..kernels.floats import EPS
from ..kernels.losses import Square
from ..online.run import Run, of_width, play
from ..rows.data import Data
from ..training.certify import certify_runs
from ..training.recording import losses_of, scores_of
from .replay import Replay, StoredRows
from .requests import ServiceError
from .store import Store

if TYPE_CHECKING:
    from ..certificates.certificate import Certificate, Certificates
    from ..training.state import TrainingState
    from .service import Service
    from .workers import Learning

MOST, SHOWN = 500_000, 20_000  # rows that are certified when asked to, and by itself for the page
FEW = 50
STRETCHES = ("widrow-hoff", "implicit-widrow-hoff", "convex-descent", "implicit-descent")  # theorems
WINDOW = 200_000  # rows at most that are learnt again


@dataclass(frozen=True)
class Material:
    """The material of a certificate after a commit: an immutable state, and sums over all rows.

    Attributes
    ----------
    why : str or None
        Why no bound can be claimed for all rows.
    """

    commit: int
    sequence: int
    state: TrainingState
    sums: np.ndarray | None
    why: str | None


class Certifier:
    """Certificates of a service, computed in a separate thread and cached until there are new rows."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.pool = ThreadPoolExecutor(1, "certify")
        self.found: tuple[int, dict[str, Any]] | None = None
        self.shown: dict[str, Any] | None = None
        self.task: asyncio.Task[None] | None = None

    def close(self) -> None:
        """Stop computing."""
        self.pool.shutdown(wait=False, cancel_futures=True)

    def material(self) -> Material:
        """The current material for a certificate; called by the learning thread."""
        service, why = self.service, None
        live, _ = service.live.settled()
        state = replace(live, runs=[[run.frozen() for run in live.runs[0]]], source=None)
        state.constant, state.mistakes = live.constant.copy(), list(live.mistakes)
        if service.began:
            why = "the rows that the model had learnt before the service began are not in its folder"
        elif service.store.first_commit() != 1:
            why = "the first rows are gone, since a snapshot covers them: --keep-log keeps them"
        elif service.sequence > MOST:
            why = f"there are more than {MOST:,} rows"
        return Material(service.commit_done, service.sequence, state, service.live.sums, why)

    async def certify(self, material: Material) -> dict[str, Any]:
        """The certificate, as plain values."""
        if self.found is None or self.found[0] != material.commit:
            loop = asyncio.get_running_loop()
            found = await loop.run_in_executor(self.pool, self.compute, material)
            self.found = material.commit, found
        return self.found[1]

    def compute(self, material: Material) -> dict[str, Any]:
        """The certificate over all rows up to a commit."""
        state, why, path = material.state, material.why, self.service.store.path
        loss, constant, run = state.compared_losses()[0], state.best_constant(), state.runs[0][0]
        opened = " but the first, which only set the start" if run.rounds > run.facts.rounds else ""
        said = "; ".join(in_words(*losses_of(state, 0), True, scores_of(state, 0)))
        claim = f"over all {material.sequence:,} rows so far{opened}: {said}"
        answer: dict[str, Any] = {
            "sequence": material.sequence,
            "measured": {"loss": loss, "constant": constant, "of": state.constant_quantity, "weight": state.weight},
            "claims": [claim],
        }
        if why is None:
            rows = StoredRows(state.plan, state.labels, None, None, path=path, last=material.commit)
            try:
                certificate = combined(certify_runs(rows, state.runs[0]))
            except (MismatchError, SourceError) as error:
                why = f"the rows that are there are not all that was learnt from: {error}"
            else:
                about = (
                    f"over all {material.sequence:,} rows in the order of learning, which were read again and replayed"
                )
                answer |= {"verdict": certificate.verdict.value, "certificate": certificate.to_dict()}
                answer["claims"].append(
                    f"{certificate.verdict.value}, {about}, against the best fixed predictor in hindsight"
                )
                answer["text"] = f"{claim}\n{certificate}"
                return answer
        answer |= {"verdict": "UNCHECKABLE", "certificate": None}
        if material.sums is not None:
            answer["claims"].append(from_sums(material, answer))
        if material.sums is None or all(begins_anywhere(run.learner) for run in state.runs[0]):
            answer["claims"] += over_window(path, material, answer)
        answer["claims"].append(f"no bound is claimed for all rows: {why}")
        answer["text"] = "\n".join(answer["claims"])
        return answer

    # ------------------------------------------------------------ for the page

    def refresh(self, learning: Learning, sequence: int) -> None:
        """Begin to compute a new certificate if the rows have doubled since the last and are not too many."""
        last = 0 if self.shown is None else self.shown["sequence"]
        idle = self.task is None or self.task.done()
        if idle and FEW <= sequence <= SHOWN and sequence >= 2 * last:
            self.task = asyncio.create_task(self._show(learning))

    async def _show(self, learning: Learning) -> None:
        with suppress(ServiceError):  # too many requests wait: it is tried again
            self.shown = briefly(await self.certify(await learning.do(self.material)))


def briefly(found: dict[str, Any]) -> dict[str, Any]:
    """A certificate in a few numbers."""
    answer = {"sequence": found["sequence"], "verdict": found["verdict"], "claims": found["claims"], "path": []}
    certificate = found["certificate"]
    if certificate is not None and "each" not in certificate:
        answer |= {name: certificate[name] for name in ("measured", "bound", "regret", "quantity")}
        answer["theorem"] = certificate["theorem"]["name"]
        answer["best"] = (certificate["best"] or certificate["comparator"])["loss"]
        answer["path"] = [[at["rounds"], at["measured"], at["comparator"], at["bound"]] for at in certificate["path"]]
    return answer


# ---------------------------------------------------------------- where the first rows are gone


def from_sums(material: Material, answer: dict[str, Any]) -> str:
    """Compare with the best fixed predictor, from sums over all rows; results are added to `answer`."""
    assert material.sums is not None
    loss = material.state.compared_losses()[0]
    best, gap = best_of_sums(material.sums, material.sequence)
    answer["best"] = {"rows": material.sequence, "loss": loss, "best": best, "gap": gap}
    return (
        f"the best fixed linear predictor in hindsight for these rows has squared error {best:.6g} ± {gap:.2g}, from "
        f"sums over all rows that each snapshot has: the regret is {loss - best:.6g} ± {gap:.2g}"
    )


def best_of_sums(sums: np.ndarray, rows: int) -> tuple[float, float]:
    """The least squared error of a fixed predictor, from sums over `rows` rows, and a bound on its rounding error.

    Each sum accumulates one rounding error per row, and the minimum is a difference of sums that may be far larger.
    """
    values, vectors = np.linalg.eigh(sums)
    few = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T  # as many rows as sums that lose what all rows lose
    data = Data(np.ascontiguousarray(few[:, :-1]), np.ascontiguousarray(few[:, -1]), None, 0.0)
    found = best_fixed(data, Square(2.0), np.ones(len(few)))
    sizes = np.abs(np.append(found.u, 1.0))
    rounding = (rows + len(few)) * EPS * float(sizes @ np.abs(sums) @ sizes)
    return found.loss, found.gap + rounding


def over_window(path: str, material: Material, answer: dict[str, Any]) -> list[str]:
    """Compare the service with the best fixed predictor on the newest rows; results are added to `answer`."""
    with closing(Store(path)) as store:
        first = store.first_commit()
        starts = [k for k, _ in store.snapshots() if first is not None and first - 1 <= k < material.commit]
        again = Replay.begin(store, starts[0]) if starts else None
        if again is None or again.live.state is None:
            return []
        state, read = again.live.settled()
        after, row, before, runs = again.commit, again.row, state.compared_losses()[0], state.runs[0]
        numbered, weights = read.state(), [run.weights.copy() for run in runs]
        for _ in again.commits(material.commit):
            if again.row - row >= WINDOW:
                break
    end = again.row
    if end == row:
        return []
    rows = StoredRows(state.plan, state.labels, None, numbered, path=path, after=after, last=again.commit)
    loss, of, where = state.compared_losses()[0] - before, state.constant_quantity, f"rows {row + 1:,} to {end:,}"
    answer["window"] = {"rows": end - row, "from": row + 1, "loss": loss}
    said = []
    # A fixed predictor can be compared if the loss of the service is a function of the margins of its runs.
    if state.in_logs if state.labels is not None else runs[0].learner.loss.quadratic:
        answer["window"]["best"] = best = best_over(state, rows)
        said.append(
            f"on {where}, which were learnt again from a snapshot, the progressive {of} is {loss:.6g}, that of the "
            f"best fixed linear predictor for these rows {best:.6g}"
        )
    certificate = certify_stretch(rows, runs, weights) if all(begins_anywhere(run.learner) for run in runs) else None
    if certificate is not None:
        answer |= {"verdict": certificate.verdict.value, "certificate": certificate.to_dict()}
        said.append(
            f"{certificate.verdict.value} for {where} by themselves, begun at the weights of the snapshot: at a "
            "constant rate the bound is one for every stretch of rows"
        )
    return said


def best_over(state: TrainingState, rows: StoredRows) -> float:
    """The total loss of the best fixed predictors for the rows, one per run."""
    each = rows.data(state.runs[0])
    best = [best_fixed(data, run.learner.loss, data.c) for data, run in zip(each, state.runs[0], strict=True)]
    if state.labels is not None:
        return sum(found.loss for found in best)
    return float(each[0].c @ (each[0].margins(best[0].u) - each[0].y) ** 2)


def begins_anywhere(learner: Any) -> bool:
    """Whether steps depend only on the weights and the row, so that the theorem holds for every stretch of rows."""
    if learner.theorem not in STRETCHES or learner.geometry.multiplicative:
        return False
    return bool(learner.rate.is_constant())


def certify_stretch(rows: StoredRows, runs: list[Run], begun: list[np.ndarray]) -> Certificate | Certificates | None:
    """The certificates of a stretch of rows, for runs that start at given weights; None if their ends differ."""
    again = []
    for run, weights in zip(runs, begun, strict=True):
        start = of_width(weights, run.width, run.intercept)  # features added since then had weight 0
        again.append(Run(run.learner, run.features, intercept=run.intercept, start=start))
    for chunk in rows.replay(again):
        play(again, chunk.X, chunk.targets, chunk.weight)
    if not all(np.allclose(a.weights, b.weights, rtol=1e-9, atol=1e-12) for a, b in zip(again, runs, strict=True)):
        return None
    return combined(certify_runs(rows, again))
