"""The certificate of a service: its loss against the best in hindsight so far, over the rows that are in its folder."""

from __future__ import annotations

import asyncio
import copy
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import MismatchError, SourceError
from ..training.certify import combined
from .live import frozen
from .replay import certify_log
from .rivals import begins_anywhere, best_of_sums, over_window
from .service import ServiceError

if TYPE_CHECKING:
    from ..certificates.certificate import Certificate, Certificates
    from ..online.run import Run
    from ..training.plan import Plan
    from .gram import Gram
    from .service import Service

MOST, SHOWN = 500_000, 20_000  # rows that are certified when asked to, and by itself for the page
FEW = 50


@dataclass(frozen=True)
class Material:
    """What a certificate is about, as it stood after a commit: runs that nobody changes, or why there is none."""

    commit: int
    sequence: int
    runs: list[Run]
    labels: list[str] | None
    plan: Plan
    measured: dict[str, Any]
    why: str | None
    gram: Gram | None = None
    stretches: bool = False
    but: str = ""


class Certifier:
    """Certificates of a service, computed in a thread of their own and kept until there are new rows."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.pool = ThreadPoolExecutor(1, "certify")
        self.found: tuple[int, dict[str, Any]] | None = None
        self.shown: dict[str, Any] | None = None
        self.busy = False

    def close(self) -> None:
        """Compute no more."""
        self.pool.shutdown(wait=False, cancel_futures=True)

    def material(self) -> Material:
        """What there is to certify now; called by the thread that learns."""
        service = self.service
        state = service.live.state
        if state is None:
            raise ServiceError(409, "nothing was learnt yet")
        why = None
        first = service.store.first_commit()
        if service.began:
            why = "the rows that the model had learnt before the service began are not in its folder"
        elif first != 1:
            why = "the first rows are gone, since a snapshot covers them: --keep-log keeps them"
        elif service.sequence > MOST:
            why = f"there are more than {MOST:,} rows"
        measured = {
            "loss": state.compared_losses()[0], "constant": state.best_constant(), "of": state.constant_quantity,
            "weight": state.weight,
        }  # fmt: skip
        runs = [] if why else [frozen(run) for run in state.runs[0]]
        gram = copy.deepcopy(service.live.gram) if why else None
        stretches = all(begins_anywhere(run.learner) for run in state.runs[0])
        at, first_run = (service.commit_done, service.sequence), state.runs[0][0]
        opened = first_run.rounds > first_run.facts.rounds
        but = " but the first, which only set the start," if opened else ""
        return Material(*at, runs, state.labels, state.plan, measured, why, gram, stretches, but)

    async def certify(self, material: Material) -> dict[str, Any]:
        """The certificate, as plain values."""
        if self.found is None or self.found[0] != material.commit:
            loop = asyncio.get_running_loop()
            found = await loop.run_in_executor(self.pool, self.compute, material)
            self.found = material.commit, found
        return self.found[1]

    def compute(self, material: Material) -> dict[str, Any]:
        """The certificate over all rows up to a commit."""
        measured, why = material.measured, material.why
        gain = measured["constant"] - measured["loss"]
        claim = (
            f"on all {material.sequence:,} rows so far{material.but} the progressive {measured['of']} is "
            f"{measured['loss']:.6g}, that of the best constant in hindsight {measured['constant']:.6g} "
            f"({abs(gain):.6g} {'less' if gain < 0 else 'more'})"
        )
        told: dict[str, Any] = {"sequence": material.sequence, "measured": measured, "claims": [claim]}
        if why is None:
            try:
                certificate = self.over_log(material)
            except (MismatchError, SourceError) as error:
                why = f"the rows that are there are not all that was learnt from: {error}"
            else:
                about = (
                    f"over all {material.sequence:,} rows in the order of learning, which were read again and replayed"
                )
                told |= {"verdict": certificate.verdict.value, "certificate": certificate.to_dict()}
                told["claims"].append(
                    f"{certificate.verdict.value}, {about}, against the best fixed predictor in hindsight"
                )
                told["text"] = f"{claim}\n{certificate}"
                return told
        told |= {"verdict": "UNCHECKABLE", "certificate": None}
        told["claims"] += self.without_bound(material, told)
        told["claims"].append(f"no bound is claimed for all rows: {why}")
        told["text"] = "\n".join(told["claims"])
        return told

    def without_bound(self, material: Material, told: dict[str, Any]) -> list[str]:
        """What can be said where the rows are not all there; numbers are added to `told`."""
        said = []
        if material.gram is not None:
            best, gap = best_of_sums(material.gram, material.sequence)
            told["best"] = {"rows": material.sequence, "loss": material.measured["loss"], "best": best, "gap": gap}
            regret = material.measured["loss"] - best
            said.append(
                "the best fixed linear predictor in hindsight for these rows has squared error "
                f"{best:.6g} ± {gap:.2g}, from sums over all rows that each snapshot has: "
                f"the regret is {regret:.6g} ± {gap:.2g}"
            )
        if material.gram is not None and not material.stretches:
            return said
        found = over_window(self.service.store.path, material.plan, material.commit)
        if found is None:
            return said
        certificate = found.pop("certificate", None)
        told["window"] = found
        rows = f"rows {found['from']:,} to {found['from'] + found['rows'] - 1:,}"
        if "best" in found:
            said.append(
                f"on {rows}, which were learnt again from a snapshot, the progressive {material.measured['of']} is "
                f"{found['loss']:.6g}, that of the best fixed linear predictor for these rows {found['best']:.6g}"
            )
        if certificate is not None:
            told |= {"verdict": certificate.verdict.value, "certificate": certificate.to_dict()}
            said.append(
                f"{certificate.verdict.value} for {rows} by themselves, begun at the weights of the snapshot: at a "
                "constant rate the bound is one for every stretch of rows"
            )
        return said

    def over_log(self, material: Material) -> Certificate | Certificates:
        """Read the rows again, and certify the runs over them."""
        path = self.service.store.path
        return combined(certify_log(path, material.commit, material.runs, material.labels, material.plan))

    # ------------------------------------------------------------ for the page

    def due(self, sequence: int) -> bool:
        """Whether the page should have a new one: rows have doubled since the last, and are not too many."""
        last = 0 if self.shown is None else self.shown["sequence"]
        return not self.busy and FEW <= sequence <= SHOWN and sequence >= 2 * last

    async def refresh(self, material: Material) -> None:
        """Compute the one that the page shows."""
        self.busy = True
        try:
            found = await self.certify(material)
            self.shown = briefly(found)
        finally:
            self.busy = False


def briefly(found: dict[str, Any]) -> dict[str, Any]:
    """A certificate in a few numbers."""
    told = {"sequence": found["sequence"], "verdict": found["verdict"], "claims": found["claims"], "path": []}
    certificate = found["certificate"]
    if certificate is not None and "each" not in certificate:
        told |= {name: certificate[name] for name in ("measured", "bound", "regret", "quantity")}
        told["theorem"] = certificate["theorem"]["name"]
        told["best"] = (certificate["best"] or certificate["comparator"])["loss"]
        told["path"] = [[at["rounds"], at["measured"], at["comparator"], at["bound"]] for at in certificate["path"]]
    return told
