"""What scikit-learn's common checks may expect of a score."""

from __future__ import annotations

from typing import Any


class BoundNotScoreMixin:
    """For estimators whose theorems promise a bound, not a good score on any data at the default parameters."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        (tags.regressor_tags or tags.classifier_tags).poor_score = True
        return tags
