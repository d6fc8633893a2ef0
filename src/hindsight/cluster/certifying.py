"""Certificates of fits over partitions: the theorems of one machine, with sums from workers.

The fit is run again, which shows that the rows are the same and gives every gradient that was met; the rival in
hindsight is sought by L-BFGS, with a gradient from one reduction per step.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..batch.gradient_descent import MeanLoss
from ..certificates.applied import closeness
from ..certificates.gradient_descent import AFTER, FoundRival, Marks, certificate_of
from ..certificates.isotron import certify_rounds
from ..errors import MismatchError
from ..estimators.gradient_descent_base import GradientDescent
from ..estimators.mixins.certifying import join_certificates
from ..estimators.rounds import RoundsMixin
from .blocks import Targets
from .fitting import problem_of, targets_of_model
from .rounds import check_weights_of
from .rows import RunTable

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..batch.gradient_descent import Descent
    from ..certificates.certificate import Certificate, Certificates
    from ..kernels.floats import Floats
    from ..rows.table import Table
    from .rows import ClusterRows

STEPS = 200  # of L-BFGS at most


def certify(model: Any, rows: ClusterRows, *, u: Any = None) -> Certificate | Certificates:
    """Return the certificate of a model that `fit` has fitted to these rows.

    Parameters
    ----------
    model : estimator
        Gradient descent, GLM-tron in batches, or Isotron.
    rows : ClusterRows
        The rows it was fitted to.
    u : array_like, default None
        A comparator to take instead of the best in hindsight, the intercept's weight last.

    Returns
    -------
    Certificate or Certificates
        One certificate; for one-vs-rest one per class.

    Raises
    ------
    MismatchError
        If these are not the rows of the model.
    """
    if isinstance(model, GradientDescent):
        return join_certificates(_descents(model, rows, u))
    if not isinstance(model, RoundsMixin):
        raise ValueError(f"{type(model).__name__} has no certificate over partitions")
    certificates = []
    for targets, history, label in zip(_targets(model, rows), model.histories_, model._run_labels(), strict=True):
        problem: Any = problem_of(model, rows, targets)
        certificates.append(certify_rounds(problem, history, u=u, label=label))
    return join_certificates(certificates)


def _targets(model: Any, rows: ClusterRows) -> list[Targets]:
    """Return the targets of each run as they were in the fit."""
    if hasattr(model, "classes_") and not np.array_equal(model.classes_, rows.labels()):
        raise MismatchError(f"the model has other classes than these rows: {model.classes_.tolist()}")
    if hasattr(model, "y_offset_"):
        return [Targets("real", None, 0, model.y_offset_, model.y_scale_)]
    kind = model._plain().targets if isinstance(model, GradientDescent) else "unit"
    return targets_of_model(model, rows, kind)


def _descents(model: GradientDescent, rows: ClusterRows, u: Any) -> list[Certificate]:
    out = []
    for targets, run, label in zip(_targets(model, rows), model.runs_, model._run_labels(), strict=True):
        table = RunTable(rows, targets, run.bias)
        again, marks = _played(run.restarted(), table, run.rounds)
        if again.checksum != run.checksum or not np.array_equal(again.weights, run.weights):
            raise MismatchError("the model was not trained on these rows in these partitions")
        if model.output == AFTER:
            first, _ = _played(run.restarted(), table, 1)
            again, marks = _played(first.begun_here(), table, run.rounds)
        if u is None:
            kappa = 1.0 / again.facts.rate
            curvature = run.l2 + kappa
            rival = best_in_hindsight(
                MeanLoss(table, run.learner.loss, table.weight).at, curvature, again.first * (kappa / curvature)
            )
        else:
            rival = FoundRival(check_weights_of(u, run.width), math.inf, "given")
        weights, output, f = run.output(model.output), model.output, partial(run.objective, table)
        out.append(certificate_of(again, weights, again.facts, marks.found, output, rival, f, (), label))
    return out


def _played(again: Descent, table: Table, rounds: int) -> tuple[Descent, Marks]:
    """Return a descent after so many rounds, and its marks."""
    marks = Marks(rounds)
    again.play(table, rounds, notify=lambda _: marks.add(again))
    return again, marks


def best_in_hindsight(loss: Callable[[Floats], tuple[float, Floats]], kappa: float, middle: Floats) -> FoundRival:
    """Return the u that minimises loss(u) + kappa |u - middle|^2 / 2, with a bound on its gap.

    The objective is kappa-strongly convex, so it is at most |gradient|^2 / (2 kappa) above its minimum.
    """
    from scipy.optimize import minimize

    def objective(v: Floats) -> tuple[float, Floats]:
        value, slope = loss(np.ascontiguousarray(v))
        off = v - middle
        return value + 0.5 * kappa * float(off @ off), slope + kappa * off

    found = minimize(objective, middle, jac=True, method="L-BFGS-B", options={"maxiter": STEPS, "gtol": 1e-10})
    value, slope = objective(found.x)
    gap = float(slope @ slope) / (2.0 * kappa)
    return FoundRival(found.x, gap, closeness(gap, value))
