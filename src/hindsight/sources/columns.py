"""What tables of all formats share: a layout, which turns their columns into rows and numbers the features."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from .base import Source

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

    from .tables.layout import TableLayout

TRANSPOSED = 1024  # rows that are filled from columns at a time


class TableSource(Source):
    """A source whose columns have fixed roles."""

    layout: TableLayout
    sums: Sequence[str] = ()  # statistics of the rows up to the last chunk

    def _use(self, layout: TableLayout) -> None:
        """Read the columns with a layout."""
        self.layout, self.kind, self.decided = layout, layout.kind, layout.decided

    @property
    def names(self) -> Sequence[str]:
        return self.layout.names(self.width)

    def state(self) -> dict[str, Any]:
        return self.layout.state(self.width, self.sums)

    def restore(self, state: dict[str, Any]) -> None:
        self.width = self.layout.restore(state)

    def resolved_options(self) -> dict[str, Any]:
        return self.layout.resolved_options()


def repeated_name(names: Sequence[Any]) -> Any:
    """The first name that appears twice."""
    counts = Counter(names)
    return next(name for name in names if counts[name] > 1)


def new_names(
    found: Iterable[tuple[Sequence[int] | np.ndarray, np.ndarray | None, Sequence[Any]]], known: Container[Any] = ()
) -> list[Any]:
    """Names that are not known yet, ordered by the row, then the column, in which they first appear.

    Each column has rows, ascending, the number of the name in each of them (None: all have the first), and its names;
    None is no name.
    """
    new = []
    for order, (rows, codes, names) in enumerate(found):
        if codes is None:
            met, first = [0][: len(rows)], [0]
        else:
            met, first = (each.tolist() for each in np.unique(codes, return_index=True))
        pairs = ((int(rows[at]), names[k]) for k, at in zip(met, first, strict=False))
        new += [(row, order, name) for row, name in pairs if name is not None and name not in known]
    return list(dict.fromkeys(name for *_, name in sorted(new)))


def fill_columns(X: np.ndarray, columns: Iterable[tuple[int, np.ndarray]]) -> None:
    """Fill columns of an array, given by their indices, a block of rows at a time so that it stays in the cache."""
    columns = list(columns)
    for a in range(0, len(X), TRANSPOSED):
        for j, values in columns:
            X[a : a + TRANSPOSED, j] = values[a : a + TRANSPOSED]
