"""Saving an estimator to a file."""

from __future__ import annotations

from typing import Any


class SaveMixin:
    """Saving to one file."""

    def save(self, path: Any) -> None:
        """Write the estimator to one file.

        Parameters
        ----------
        path : str or os.PathLike
            Where to write it. `hindsight.load` reads it back as an equal estimator.
        """
        from ...storage.model import save_estimator

        save_estimator(self, path)
