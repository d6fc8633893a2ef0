"""`hindsight.learn`, the command as a function, and learners that read all rows before the first step."""

from __future__ import annotations

import inspect
import warnings
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import AssumptionWarning
from .options import LearnerOptions, ResultOptions, RowOptions
from .plan import Plan
from .prepare import AllRows, read_all
from .session import Session

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .model import Model

IN_THIS_ORDER = "what was lost along the way says nothing about rows that come in another order;"


def learn(
    data: Any,
    target: str | None = None,
    *,
    certify: bool = False,
    reading: Mapping[str, Any] | None = None,
    **options: Any,
) -> Model:
    """Learn from rows in one pass, as the command ``hindsight learn`` does.

    Parameters
    ----------
    data : object
        A path or several, a data frame (with categories, text, dates and missing values), dicts, or a tuple of arrays
        (rows, targets): anything that `hindsight.open_source` reads.
    target : str or None, default None
        The column to predict; None where targets come with the rows.
    learner : str, default "auto"
        A name that ``hindsight learners`` lists.
    eta : float or None, default None
        The rate; None is the learner's default.
    weight, features, ignore, types, categorical, missing, na, cross
        Roles and types of columns, as for `hindsight.open_source`.
    format, header, separator, encoding, decimal, strict, hash_bits
        How a file is read, as for `hindsight.open_source`.
    labels : sequence of str or None, default None
        The labels; None takes those found in the data.
    intercept : bool, default True
        Whether to append a constant 1 to every row.
    passes : int, default 1
        The number of passes over the rows.
    scale : str, default "none"
        How rows are scaled: "none", "row-unit", "global-unit", "max-abs", "standard".
    limit, sample : default None
        The maximum number of rows; the probability with which each row is taken.
    shuffle : bool, default False
        Whether to learn from the rows in a random order.
    seed : int, default 0
        Seed of `sample` and `shuffle`.
    certify : bool, default False
        Whether to certify the model, from sums of the run and, if needed, by reading the rows again.
    reading : mapping or None, default None
        Further parameters of `hindsight.open_source`, such as ``{"zero_based": True}``.
    **options
        Options of the learner: ``loss``, ``update``, ``geometry``, ...

    Returns
    -------
    Model

    Raises
    ------
    ValueError
        If an option is unknown or a row cannot be learnt from.

    Warns
    -----
    AssumptionWarning
        If the targets come sorted or in blocks.

    Examples
    --------
    >>> import hindsight
    >>> rows = [{"sky": s, "rain": r} for s, r in [("grey", "yes"), ("blue", "no")] * 10]
    >>> model = hindsight.learn(rows, "rain")
    >>> model.predict([{"sky": "blue"}, {"sky": "grey"}]).tolist()
    ['no', 'yes']
    """
    if target is not None and np.ndim(target) > 0:
        raise ValueError("target is the name of a column: give rows and their targets as a pair, learn((X, y))")
    plan = Plan.of_one_learner(options | {"data": data, "target": target})
    session = Session(replace(plan, reading=plan.reading | dict(reading or {})), ResultOptions(certify=certify))
    state = session.run()
    if what := state.order_warning():
        warnings.warn(f"{what}: {IN_THIS_ORDER} shuffle=True learns in a random order", AssumptionWarning, stacklevel=2)
    certificate = None
    if certify:
        from ..certificates.certificate import combined
        from .certify import certify_state

        certificate = combined(certify_state(state, followed=session.followed)[0])
    return state.to_model(certificate)


def signature() -> inspect.Signature:
    """The signature of `learn`, including the options that it shares with the command."""
    own = list(inspect.signature(learn).parameters.values())
    only = inspect.Parameter.KEYWORD_ONLY
    shared = [
        inspect.Parameter(f.name, only, default=f.default, annotation=f.type)
        for kind in (RowOptions, LearnerOptions)
        for f in fields(kind)
        if f.name not in ("data", "target", "rounds", "lipschitz", "more")
    ]
    return inspect.Signature([*own[:2], *shared, *own[2:]], return_annotation="Model")


learn.__signature__ = signature()  # type: ignore[attr-defined]


def fit_isotron(
    plan: Plan, rounds: int = 100, lipschitz: float | None = None, eta: float | None = None, verbose: bool = False
) -> tuple[Any, AllRows]:
    """Read all rows and fit an isotron: a classifier if a target is text, otherwise a regressor.

    Parameters
    ----------
    plan : Plan
        The rows to read; it has no learners.
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
