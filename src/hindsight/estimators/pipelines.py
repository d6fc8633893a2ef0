"""Pipelines of scikit-learn that end in an estimator."""

from __future__ import annotations

from typing import Any


def last_step(model: Any, X: Any) -> tuple[Any, Any]:
    """The last step of a pipeline, and the rows as it saw them; another model and its rows as they are."""
    steps = getattr(model, "steps", None)
    if steps is None or hasattr(model, "certify"):
        return model, X
    return steps[-1][1], model[:-1].transform(X) if len(steps) > 1 else X
