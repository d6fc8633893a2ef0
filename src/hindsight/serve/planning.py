"""The plan of a service, from the options it is started with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import OptionError

if TYPE_CHECKING:
    from ..training.plan import Plan

ROWS = ("target", "weight", "ignore", "labels", "missing")  # the options of rows that a service takes
MISSING = ("indicator", "zero", "error")


def service_plan(target: str, learner: str = "auto", **options: Any) -> Plan:
    """The plan of a service that begins without a model.

    Parameters
    ----------
    target : str
        The column to predict.
    learner : str, default "auto"
        A name that ``hindsight learners`` lists.
    **options
        Options of `hindsight.learn`: of the rows ``weight``, ``ignore``, ``missing`` and ``labels``, and those of the
        learner: ``eta``, ``loss``, ``drift``, ...

    Returns
    -------
    Plan
    """
    from ..training.plan import Plan  # the command takes ROWS from here before it needs this

    missing = options.get("missing", "indicator")
    if missing not in MISSING:
        raise OptionError("missing", f"must be one of {', '.join(MISSING)}; got {missing!r}")
    return Plan.of_one_learner(options | {"target": target, "learner": learner}, ROWS)
