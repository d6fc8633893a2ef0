"""`hindsight.learn`: the command as a function."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from ..errors import AssumptionWarning
from .plan import Plan, choose_learners
from .session import Session

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .model import Model
    from .state import TrainingState


class NoProgress:
    """An observer that shows nothing."""

    def __init__(self, state: TrainingState) -> None:
        pass

    def next_stop(self, rows_done: int) -> int | None:
        """Any stop will do."""
        return None

    def advance(self, state: TrainingState) -> None:
        """Some rows were learnt."""

    def finish(self, state: TrainingState) -> None:
        """All rows were learnt."""

    def close(self) -> None:
        """No more rows will come."""


def learn(
    data: Any,
    target: str | None = None,
    *,
    learner: str = "auto",
    eta: float | None = None,
    weight: str | None = None,
    features: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    types: Mapping[str, str] | None = None,
    missing: str = "indicator",
    labels: Sequence[str] | None = None,
    intercept: bool = True,
    passes: int = 1,
    scale: str = "none",
    limit: int | None = None,
    sample: float | None = None,
    shuffle: bool = False,
    seed: int = 0,
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
    weight, features, ignore, types, missing
        Columns and what they hold, as for `hindsight.open_source`.
    labels : sequence of str or None, default None
        The labels; None takes those that are found.
    intercept : bool, default True
        Whether a constant coordinate 1 joins every row.
    passes : int, default 1
        How often the rows are read.
    scale : str, default "none"
        How rows are scaled: "none", "row-unit", "global-unit", "max-abs", "standard".
    limit, sample : default None
        The most rows to take; the probability with which each is taken.
    shuffle : bool, default False
        Whether to learn from the rows in a random order.
    seed : int, default 0
        Seed of `sample` and `shuffle`.
    certify : bool, default False
        Whether to read the rows again and certify the model.
    reading : mapping or None, default None
        Further parameters of `hindsight.open_source`, as ``{"encoding": "latin-1"}``.
    **options
        Options of the learner: ``loss``, ``update``, ``geometry``, ...

    Returns
    -------
    Model

    Raises
    ------
    ValueError
        If an option or a row is none.

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
    given: dict[str, Any] = {
        "weight": weight, "features": features, "ignore": list(ignore), "types": dict(types or {}), "missing": missing,
        "strict": False, "header": None, "format": None, "rejects": False, "hash_bits": None, "categorical": [],
    } | dict(reading or {})  # fmt: skip
    plan = Plan(
        data, target, choose_learners([learner], None if eta is None else [eta], options), given, intercept, passes,
        scale, None if labels is None else tuple(map(str, labels)), limit, sample, shuffle, seed,
    )  # fmt: skip
    session = Session(plan, certify=certify)
    state = session.run(NoProgress)
    if what := state.order_warning():
        warnings.warn(f"{what}: {IN_THIS_ORDER} shuffle=True learns in a random order", AssumptionWarning, stacklevel=2)
    certificate = None
    if certify:
        from .certify import certify_state, combined

        certificate = combined(certify_state(state, followed=session.followed)[0])
    return state.to_model(certificate)


IN_THIS_ORDER = "what was lost along the way says nothing about rows that come in another order;"
