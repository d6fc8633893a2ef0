"""Online learners on shards: in each epoch every partition is a separate run, and the next epoch starts at their mean.

What the theorems give for K shards and one comparator u:

- Each run is sequential, so its learner's theorem holds for it, from where it started; the bounds add up over shards
  and epochs.
- For descent on a convex loss by explicit Euclidean steps at a constant rate, a round changes |u - w|^2 / (2 eta) by at
  most loss(u) - loss(w) + (eta/2) |g|^2. Mixing replaces w_1, ..., w_K by their mean w, and
  K |u - w|^2 <= Sigma_k |u - w_k|^2 by convexity. So over all shards and epochs the changes telescope:
  Sigma loss(w_t) <= Sigma loss(u) + K |u - w_1|^2 / (2 eta) + (eta/2) Sigma |g_t|^2.
- Of the mixed weights convexity says that their loss is at most the mean of the losses of the weights that were mixed.
  The sequential theorem for one run over all rows does not apply, because there is no such run.
"""

from __future__ import annotations

import math
import re
from dataclasses import astuple, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..batch.gradient_descent import mean_loss
from ..certificates import theorems
from ..certificates.applied import measured_unit
from ..certificates.best import best_fixed, comparator
from ..certificates.best.constant import best_constant, fewest_of_constant
from ..certificates.best.fixed import WIDTH
from ..certificates.best.spaces import SPACES
from ..certificates.certificate import (
    MISTAKES,
    WEIGHTED,
    WORST_FIRST,
    Assumption,
    Best,
    Certificate,
    Comparator,
    Member,
    combined,
)
from ..certificates.certify import certify_run
from ..certificates.outcome import SAME, SPREAD, of_loss, spread
from ..certificates.theorems import Verdict
from ..errors import MismatchError
from ..estimators.online import OnlineEstimator
from ..kernels.euclidean import Euclidean
from ..kernels.losses import Square
from ..online.facts import Facts
from ..online.margins import each_loss
from ..online.parts import LOSSES
from ..online.run import Run, play
from ..validation import whole
from .engine import root
from .fitting import begun, views_of
from .rows import RunTable

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..certificates.best.comparator import LossComparator
    from ..certificates.certificate import Certificates
    from ..kernels.floats import Floats
    from ..online.learners import Learner
    from .blocks import Block, View
    from .rows import ClusterRows

MIXED = ("euclidean",)  # geometries whose weights may be averaged under the theorem
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")  # in the sentence of an assumption
TOL = 0.01  # relative gap to which the best fixed predictor is computed
DESCENTS = ("convex-descent", "glm-tron")  # theorems of explicit steps on a convex loss


@dataclass(frozen=True)
class Epochs:
    """One run on every shard, epoch by epoch.

    Attributes
    ----------
    learner : Learner
        The learner.
    view : View
        The rows as seen by the run.
    starts : list of ndarray
        The weights at the start of each epoch: w_1, then the means.
    mixed : ndarray
        The mean of the final weights of all shards.
    averaged : ndarray or None
        The mean over the shards of the means of their iterates in the last epoch, if they were kept.
    facts : list of Facts
        The facts of each shard over all epochs.
    epochs : list of Facts
        The facts of each epoch over all shards.
    """

    learner: Learner
    view: View
    starts: list[Floats]
    mixed: Floats
    averaged: Floats | None
    facts: list[Facts]
    epochs: list[Facts]

    @property
    def total(self) -> Facts:
        """The facts of all shards together."""
        return sum(self.facts, Facts())

    def at_mixed(self) -> Run:
        """Return a run without rounds that starts at the mixed weights."""
        intercept = bool(self.view.bias)
        return Run(self.learner, self.mixed.size - intercept, intercept=intercept, start=self.mixed)


def shard_run(block: Block, learner: Learner, view: View, start: Floats | None, average: bool = False) -> Run:
    """Return the run of a learner over a block."""
    run = Run(learner, len(block.names), intercept=bool(view.bias), average=average, start=start)
    block.over(lambda X, y, weight: play([run], X, [y], weight, names=block.names, idle=True), block.data(view).y)
    return run


def play_epochs(
    learner: Learner, rows: ClusterRows, view: View, epochs: int, start: Floats | None = None,
    average: str | None = None, notify: Callable[[int, float], None] | None = None,
) -> Epochs:  # fmt: skip
    """Play `epochs` epochs of a learner on all shards."""
    RunTable(rows, view)  # which checks them
    w, starts, played, runs = start, list[Any](), list[list[Facts]](), list[Run]()
    for epoch in range(1, epochs + 1):
        runs = rows.engine.each(shard_run, learner, view, w, average is not None)
        starts.append(runs[0].first)
        w = _mean([run.weights for run in runs])
        played.append([run.facts for run in runs])
        if notify is not None:
            notify(epoch, sum(played[-1], Facts()).mean_loss)
    assert w is not None
    averaged = None if average is None else _mean([run.mean(average) for run in runs])
    by_shard, by_epoch = ([sum(some, Facts()) for some in each] for each in (zip(*played, strict=True), played))
    return Epochs(learner, view, starts, w, averaged, by_shard, by_epoch)


def _mean(values: Any) -> Floats:
    """Return the mean of weights, added in the fixed order of `engine`."""
    total = root({(0, k): value for k, value in enumerate(values)}, len(values), np.add)
    return np.asarray(total / len(values))


def mix(
    model: Any, rows: ClusterRows, *, epochs: int = 1, notify: Callable[[int, float], None] | None = None
) -> tuple[Any, list[Epochs]]:
    """Learn online on shards, with the weights of all shards averaged after each epoch.

    Parameters
    ----------
    model : estimator
        An online estimator with a constant rate. The first epoch starts at its `start`. With `average`, predictions use
        the mean over the shards of their mean iterates in the last epoch.
    rows : ClusterRows
        The rows; every partition is a shard, whatever the number of workers.
    epochs : int, default 1
        The number of epochs.
    notify : callable, default None
        Called after each epoch with its number, from 1, and its mean loss.

    Returns
    -------
    model : estimator
        The same object, with the mixed weights. It has played no rounds itself, so it has no sequential certificate.
    runs : list of Epochs
        What `certify_shards` needs: one, or for one-vs-rest one per class.
    """
    if not isinstance(model, OnlineEstimator):
        raise ValueError(f"{type(model).__name__} does not learn row by row: use cluster.fit")
    whole("epochs", epochs)
    learner = model._learner()
    if getattr(model, "rates", None) is not None or not learner.rate.is_constant():
        raise ValueError("every shard plays at the same constant rate: give neither rates nor power")
    if learner.geometry.name == "panel":
        raise ValueError("a panel has no weights to be averaged: choose one learner")
    with begun(model, rows):
        views, runs, played = views_of(model, rows, learner.targets), list[Run](), list[Epochs]()
        starts = [None] * len(views) if model.start is None else list(np.atleast_2d(np.asarray(model.start, float)))
        for view, start in zip(views, starts, strict=True):
            done = play_epochs(learner, rows, view, epochs, start, model.average, notify)
            played.append(done)
            final = done.mixed if done.averaged is None else done.averaged
            runs.append(model._new_run(learner, rows.features, final))
        model.runs_ = runs
    return model, played


def certify_shards(model: Any, rows: ClusterRows, runs: list[Epochs], *, u: Any = None) -> Certificate | Certificates:
    """Return the certificate of a run of `mix`, which is about all shards together, not about the mixed weights.

    Parameters
    ----------
    model : estimator
        The estimator that `mix` returned.
    rows : ClusterRows
        The rows it was fitted to.
    runs : list of Epochs
        The runs that `mix` returned.
    u : array_like, default None
        The comparator; None uses the one with the smallest bound on the shards' losses.

    Returns
    -------
    Certificate or Certificates
        Its members are the shards.

    Raises
    ------
    MismatchError
        If these are not the same rows in the same partitions and order.
    """
    views_of(model, rows, runs[0].learner.targets, fresh=False)  # refuses other classes
    return combined([certify_epochs(run, rows, u, label) for run, label in zip(runs, model._run_labels(), strict=True)])


def certify_epochs(run: Epochs, rows: ClusterRows, u: Any = None, label: str | None = None) -> Certificate:
    """Return the certificate of one run on all shards, which is replayed and must give the same result."""
    learner, epochs, shards = run.learner, len(run.starts), len(run.facts)
    width = rows.features + bool(run.view.bias)
    if (shards, run.mixed.size) != (len(rows.shapes), width):
        trained_on = f"{shards:,} shards of {run.mixed.size:,} coordinates, these are {len(rows.shapes):,} of {width:,}"
        raise MismatchError(f"the model was trained on {trained_on}")
    table: Any = RunTable(rows, run.view)
    loss = LOSSES["hinge"] if learner.loss.name == "perceptron" else learner.loss  # the latter is least at u = 0
    factors = table.c / table.weight
    kappa = shards / (learner.rate.eta * epochs * table.weight)
    if u is None:
        rival = comparator.best(table, loss, Euclidean(1.0), kappa, factors, run.starts[0])
    else:
        rival = comparator.given(table.check(u))

    def mean(w: Floats) -> float:
        return float(factors @ each_loss(loss, table.margins(w), table.y))

    notes = (
        f"{shards:,} shards, {epochs:,} epoch{'s' * (epochs > 1)}: in each, every shard is a run of its own, which "
        "starts at the mean of all",
        f"mixed weights: mean loss {mean(run.mixed):.6g} on all rows, that of the comparator "
        f"{mean(rival.u):.6g}; of the mixed weights no theorem speaks",
    )
    played: list[list[PlayedAgain]] = rows.engine.each(certify_shard, learner, run.view, run.starts, rival.u)
    check_played(run, played)
    certificate = _added_up(played, rival, notes, label)
    if learner.theorem in DESCENTS and learner.geometry.name in MIXED and certificate.verdict is Verdict.HOLDS:
        certificate = _telescoped(certificate, run, table, rival)
    return with_outcome(certificate, run, table)


def check_played(run: Epochs, played: list[list[PlayedAgain]]) -> None:
    """Raise an error if the rows give other facts of a shard, or other weights at the end of an epoch."""
    for k, (known, shard) in enumerate(zip(run.facts, played, strict=True)):
        met = sum((again.facts for again in shard), Facts())
        if not np.allclose(astuple(met), astuple(known), rtol=1e-9, atol=1e-12):
            raise MismatchError(
                f"the model was not trained on these rows in these partitions: on shard {k} it lost {known.loss:.9g} "
                f"in {known.rounds:,} rounds, here {met.loss:.9g} in {met.rounds:,}"
            )
    for e, (ended, epoch) in enumerate(zip([*run.starts[1:], run.mixed], zip(*played, strict=True), strict=True)):
        each = [again.weights for again in epoch]
        far, size = np.abs(_mean(each) - ended).max(), np.abs(each).max()
        if not far <= 1e-9 * size:
            raise MismatchError(
                "the model was not trained on these rows in these partitions and this order: after epoch "
                f"{e + 1} weights differ by {far:.3g}"
            )


def with_outcome(certificate: Certificate, run: Epochs, table: Any) -> Certificate:
    """Return the certificate with the best fixed predictor and the best constant in hindsight, over all epochs."""
    learner, factors = run.learner, len(run.starts) * table.c
    tried = {"the comparator": certificate.comparator.u, "the mixed weights": run.mixed}
    if certificate.quantity in (MISTAKES, WEIGHTED):
        if learner.geometry.name not in SPACES and table.width <= WIDTH:
            tried["least squares"] = best_fixed(table, Square(2.0), factors).u
        wrong = {name: float(factors[table.y * table.margins(u) <= 0.0].sum()) for name, u in tried.items()}
        name = min(wrong, key=wrong.__getitem__)
        known = Best(tried[name], wrong[name], wrong[name], "the fewest of a few predictors: none was sought")
        constant, lost = fewest_of_constant(table.y, factors), certificate.measured
    else:
        squares = certificate.quantity.startswith("squared error")
        loss = Square(2.0) if squares else learner.loss
        known = of_loss(table, loss, factors, learner.geometry, TOL, tried)
        constant = best_constant(loss, table.y, factors)
        lost = math.fsum(f.square if squares else f.loss for f in run.facts)
        lost = certificate.measured if abs(lost - certificate.measured) <= SAME * abs(lost) else lost
    advice = ""
    if lost > constant * (1.0 + SAME):
        eta, smaller = learner.rate.eta, certificate.best_eta
        advices = list[str]()
        if learner.geometry.linear and spread(table) >= SPREAD:
            advices.append("scale the features (--scale max-abs)")
        if 0.0 < smaller < 0.5 * eta:
            advices.append(f"take a smaller rate (--eta {smaller:.2g})")
        advice = "; ".join(advices) or "take more epochs (--passes), or larger partitions: every shard learns by itself"
    weight = math.fsum(f.weight for f in run.facts)
    return replace(certificate, best=known, constant=constant, lost=lost, weight=weight, advice=advice)


def _telescoped(added: Certificate, run: Epochs, table: Any, rival: LossComparator) -> Certificate:
    """Apply the theorem of descent on shards to runs whose own bounds hold; `added` has the sum of these bounds."""
    u, eta, shards, epochs = rival.u, run.learner.rate.eta, len(run.facts), len(run.starts)
    unit = 1.0 if run.learner.theorem == "glm-tron" else measured_unit(run.learner.loss)
    paid, met = unit * math.fsum(f.loss for f in run.facts), math.fsum(f.gradient for f in run.facts)
    distance = float((u - run.starts[0]) @ (u - run.starts[0]))
    lost, began = (unit * epochs * float(table.sum(mean_loss, run.learner.loss, w, 1.0)) for w in (u, run.starts[0]))
    bound = float(theorems.convex(eta, lost, unit * shards * distance / 2.0, unit * met))
    verdict, equality = theorems.verdict(paid, bound, abs(began))
    gap = unit * rival.gap * epochs * table.weight
    return replace(
        added, verdict=verdict, theorem=theorems.SHARDS, measured=paid,
        bound=bound, comparator=replace(added.comparator, loss=lost, gap=gap), equality=equality,
        best_eta=math.sqrt(shards * distance / met) if met > 0.0 else math.nan,
        notes=(*added.notes[:-1], "each shard's bound counts |u − w|² in every epoch, that of all once per shard"),
    )  # fmt: skip


def _added_up(
    played: list[list[PlayedAgain]], rival: LossComparator, notes: tuple[str, ...], label: str | None
) -> Certificate:
    """Add up the bounds of the learner's own theorem over all shards and epochs."""
    each = [[again.certificate for again in shard if again.certificate is not None] for shard in played]
    flat = [certificate for shard in each for certificate in shard]
    if not flat:
        raise ValueError("no shard has a row to learn from")
    verdict = next(v for v in WORST_FIRST if any(c.verdict is v for c in flat))
    paid, bound = math.fsum(c.measured for c in flat), math.fsum(c.bound for c in flat)
    lost = math.fsum(c.comparator.loss for c in flat)
    members = tuple(
        Member(f"shard {k}", 1.0 / len(each), math.fsum(c.measured for c in shard), math.fsum(c.bound for c in shard))
        for k, shard in enumerate(each)
    )
    worst = next(c for c in flat if c.verdict is verdict)
    opponent = Comparator(rival.u, lost, float(np.linalg.norm(rival.u)), math.inf, rival.how)
    notes += ("the bounds of all shards and epochs, each of a run of its own, added up for this one u",)
    return Certificate(
        verdict, worst.theorem, worst.quantity, paid, bound, opponent, joined_assumptions(each, worst),
        sum(c.rounds for c in flat), math.nan, False, (), notes, label, members,
    )  # fmt: skip


def joined_assumptions(each: list[list[Certificate]], worst: Certificate) -> tuple[Assumption, ...]:
    """The assumptions of the theorem over all shards: each sentence once, with its smallest and largest numbers.

    If an assumption is not met, only those of the run at fault are listed.
    """
    out: list[Assumption] = []
    for place, own in enumerate(worst.assumptions):
        seen = [
            ([float(number) for number in NUMBER.findall(c.assumptions[place].text)], k, e, c.assumptions[place])
            for k, shard in enumerate(each)
            for e, c in enumerate(shard)
            if (c is worst or all(need.met for need in worst.assumptions)) and place < len(c.assumptions)
        ]
        ends = dict.fromkeys((min(seen)[1:], max(seen)[1:]))
        same = len({need.text for _, _, need in ends}) == 1 and own.met
        named = [replace(need, text=f"shard {k}, epoch {e + 1}: {need.text}") for k, e, need in ends]
        out += [own] if same else named
    return tuple(out)


class PlayedAgain(NamedTuple):
    """A replayed epoch of a shard: its facts, final weights, and its certificate if it has a round."""

    facts: Facts
    weights: Floats
    certificate: Certificate | None


def certify_shard(block: Block, learner: Learner, view: View, starts: list[Floats], u: Floats) -> list[PlayedAgain]:
    """Replay every epoch on a block, and certify its run against one comparator."""
    out, data = list[PlayedAgain](), block.data(view)
    for start in starts:
        run = shard_run(block, learner, view, start)
        certificate = certify_run(run, data, u=u, seek_best=False) if run.rounds else None
        out.append(PlayedAgain(run.facts, run.weights, certificate))
    return out
