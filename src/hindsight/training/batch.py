"""Learners that read all rows before the first step, and so train outside of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .prepare import AllRows, read_all

if TYPE_CHECKING:
    from .plan import Plan


def fit_isotron(
    plan: Plan, rounds: int = 100, lipschitz: float | None = None, eta: float | None = None, verbose: bool = False
) -> tuple[Any, AllRows]:
    """Read all rows and fit an isotron: a classifier where a target is text, a regressor where all are numbers.

    Parameters
    ----------
    plan : Plan
        Which rows to read, with no learners.
    rounds : int, default 100
        Passes over all rows.
    lipschitz : float or None, default None
        The largest slope of the link; None leaves it free (isotonic regression).
    eta : float or None, default None
        The rate; None is the estimator's default.
    verbose : bool, default False
        Whether to show a progress bar.

    Returns
    -------
    model : IsotronClassifier or IsotronRegressor
    rows : AllRows
    """
    from ..estimators.isotron import IsotronClassifier, IsotronRegressor

    rows = read_all(plan)
    kind = IsotronClassifier if rows.y.dtype.kind == "U" else IsotronRegressor
    model = kind(lipschitz, rounds, eta, verbose=verbose)
    model.fit(rows.X, rows.y, rows.weight)
    return model, rows


BATCH_LEARNERS = {"isotron": fit_isotron}
