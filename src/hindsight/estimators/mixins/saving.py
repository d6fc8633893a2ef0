"""Saving an estimator to a file."""

from __future__ import annotations

from typing import Any

from ..registration import register_estimator


class SaveMixin:
    """Saving to one file; every class that has it is known to files by its public name."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        register_estimator(cls)

    def save(self, path: Any) -> None:
        """Write the estimator to one file.

        Parameters
        ----------
        path : str or os.PathLike
            Where to write it. `hindsight.load` reads it back as an equal estimator.
        """
        from ...storage.model import save_estimator

        save_estimator(self, path)
