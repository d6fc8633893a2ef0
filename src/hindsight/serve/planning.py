"""What a service learns, from the options it is started with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import OptionError
from ..training.plan import Plan, choose_learners

if TYPE_CHECKING:
    from collections.abc import Sequence

MISSING = ("indicator", "zero", "error")


def service_plan(
    target: str,
    learner: str = "auto",
    *,
    eta: float | None = None,
    weight: str | None = None,
    ignore: Sequence[str] = (),
    missing: str = "indicator",
    labels: Sequence[str] | None = None,
    intercept: bool = True,
    **options: Any,
) -> Plan:
    """The plan of a service that begins without a model.

    Parameters
    ----------
    target : str
        The column to predict.
    learner : str, default "auto"
        A name that ``hindsight learners`` lists.
    eta : float or None, default None
        The rate; None is the learner's default.
    weight : str or None, default None
        The column with the importance of each row.
    ignore : sequence of str, default ()
        Columns to leave out.
    missing : {"indicator", "zero", "error"}, default "indicator"
        What to do where a value is null.
    labels : sequence of str or None, default None
        The labels; None takes those of the first rows.
    intercept : bool, default True
        Whether a constant coordinate 1 joins every row.
    **options
        Options of the learner: ``loss``, ``drift``, ...

    Returns
    -------
    Plan
    """
    if missing not in MISSING:
        raise OptionError("missing", f"must be one of {', '.join(MISSING)}; got {missing!r}")
    reading: dict[str, Any] = {
        "weight": weight, "features": None, "ignore": list(ignore), "types": {}, "missing": missing, "strict": False,
        "header": None, "format": None, "rejects": False, "hash_bits": None, "categorical": [],
    }  # fmt: skip
    learners = choose_learners([learner], None if eta is None else [eta], options)
    return Plan(None, target, learners, reading, intercept, labels=None if labels is None else tuple(map(str, labels)))
