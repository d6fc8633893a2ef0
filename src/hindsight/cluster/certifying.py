"""Certificates of fits over partitions: those of one machine, with sums from workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..certificates.gradient_descent import certify_descent
from ..certificates.isotron import certify_rounds
from ..errors import MismatchError
from ..estimators.gradient_descent_base import GradientDescent
from ..estimators.mixins.certifying import join_certificates
from ..estimators.rounds import RoundsMixin
from .blocks import Targets
from .fitting import problem_of, targets_of_model
from .rows import RunTable

if TYPE_CHECKING:
    from ..certificates.certificate import Certificate, Certificates
    from .rows import ClusterRows


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
    if not isinstance(model, (GradientDescent, RoundsMixin)):
        raise ValueError(f"{type(model).__name__} has no certificate over partitions")
    certificates, each = [], zip(_targets(model, rows), model._run_labels(), strict=True)
    for k, (targets, label) in enumerate(each):
        if isinstance(model, GradientDescent):
            table: Any = RunTable(rows, targets, model.runs_[k].bias)
            certificates.append(certify_descent(model.runs_[k], table, model.output, u=u, label=label))
        else:
            problem: Any = problem_of(model, rows, targets)
            certificates.append(certify_rounds(problem, model.histories_[k], u=u, label=label))
    return join_certificates(certificates)


def _targets(model: Any, rows: ClusterRows) -> list[Targets]:
    """Return the targets of each run as they were in the fit."""
    if hasattr(model, "classes_") and not np.array_equal(model.classes_, rows.labels()):
        raise MismatchError(f"the model has other classes than these rows: {model.classes_.tolist()}")
    if hasattr(model, "y_offset_"):
        return [Targets("real", None, 0, model.y_offset_, model.y_scale_)]
    kind = model._plain().targets if isinstance(model, GradientDescent) else "unit"
    return targets_of_model(model, rows, kind)
