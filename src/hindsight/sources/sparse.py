"""What sources of sparse rows share: mapping names to columns, selecting features, canonical rows."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SourceError
from .base import ReadOptions, Source
from .names import HashedNames, IndexNames, NameDictionary
from .parsers.sorting import sort_and_sum

if TYPE_CHECKING:
    from collections.abc import Sequence

Features = NameDictionary | HashedNames | IndexNames
MAX_MARKED = 1 << 20  # the most columns that are sorted by marking them
MEMORY_PER_COLUMN = 64  # bytes: the weights of a column, their averages, and room to grow


def max_columns() -> int:
    """The largest number of columns that a file may ask for, given the available memory."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return int(min(2**31 - 1, memory // MEMORY_PER_COLUMN))


class SparseSource(Source):
    """A source of sparse rows: `features` maps names to columns, `selection` keeps some of them (None: all)."""

    kind = "sparse"
    features: Features
    selection: FeatureSelection | None

    @property
    def names(self) -> Sequence[str]:
        return (self.selection or self.features).names(self.width)

    @property
    def collisions(self) -> int | None:
        """Columns that several names are mapped to; None without a hash."""
        return self.features.collisions if isinstance(self.features, HashedNames) else None

    def state(self) -> dict[str, Any]:
        return self.features.state(self.width)

    def restore(self, state: dict[str, Any]) -> None:
        self.features.restore(state)
        self.width = len(self.features)


class FeatureSelection:
    """A selection of features: the given ones in their order, or all but the ignored ones in order of appearance."""

    def __init__(self, features: Features, options: ReadOptions) -> None:
        if isinstance(features, HashedNames):
            raise SourceError("features and ignore need names, which a hash does not keep")
        self.features, self.ignored = features, frozenset(options.ignore)
        self.wanted = None
        if options.features is not None:
            self.wanted = [name for name in options.features if name not in self.ignored]
            self.place = {name: j for j, name in enumerate(self.wanted)}
        self.map = np.zeros(0, np.int64)

    def _update(self, width: int) -> None:
        """Map every column so far to its position among the selected ones, or to -1."""
        known = len(self.map)
        if width <= known:
            return
        names = self.features.names(width)
        if self.wanted is not None:
            more = [self.place.get(names[k], -1) for k in range(known, width)]
        else:
            next_one, more = int(self.map.max(initial=-1)) + 1, []
            for k in range(known, width):
                more.append(-1 if names[k] in self.ignored else next_one)
                next_one += more[-1] >= 0
        self.map = np.concatenate([self.map, np.array(more, np.int64)])

    def names(self, width: int) -> Sequence[str]:
        """The names kept among the first `width` columns."""
        if self.wanted is not None:
            return self.wanted
        self._update(width)
        names = self.features.names(width)
        return [names[k] for k in range(width) if self.map[k] >= 0]

    def take(self, X: Any, width: int) -> Any:
        """The columns kept."""
        from scipy.sparse import csr_matrix

        self._update(width)
        columns = self.map[X.indices]
        keep = columns >= 0
        indptr = np.concatenate([[0], np.cumsum(keep)])[X.indptr].astype(np.int32)
        data, indices = X.data[keep], columns[keep].astype(np.int32)
        count = len(self.wanted) if self.wanted is not None else int(self.map[:width].max(initial=-1)) + 1
        n = make_canonical(data, indices, indptr, count)
        return csr_matrix((data[:n], indices[:n], indptr), shape=(X.shape[0], count))


def select_features(features: Features, options: ReadOptions) -> FeatureSelection | None:
    """The selection according to the options; None if all features are used."""
    return FeatureSelection(features, options) if options.features is not None or options.ignore else None


def make_canonical(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, width: int) -> int:
    """Sort the columns of each row and add up repeated ones, in place; returns the new number of values."""
    n = data.size
    few = width <= MAX_MARKED
    words = -(-width // 64) if few else 0
    bits, sums = np.zeros(words - (-words // 64), np.uint64), np.empty(width if few else 0)
    value, key = np.empty(n), np.empty((2, n), np.int64)
    return int(sort_and_sum(data, indices, indptr, len(indptr) - 1, value, key, bits, sums))
