"""What tables of all formats share: a layout, which turns their columns into rows and numbers the features."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SourceError
from .base import Source

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

    from .base import EncodedRows, Position
    from .csv import Records
    from .names import NameDictionary

TRANSPOSED = 1024  # rows that are filled from columns at a time


class Layout:
    """Turns the columns of a table into rows, and numbers its features.

    The fixed features come first, then new ones in order of first appearance.

    Attributes
    ----------
    decided : bool
        Whether the types of the columns were inferred; otherwise they hold plain numbers and given categories.
    where : str
        The table, for messages.
    used : list of str
        The columns that are read.
    roles, dest : ndarray of int
        What the compiled parser does with each column of a text table (see `parsers.csv.parse_table`).
    kind : {"dense", "sparse"}
        The form of the rows.
    fixed, spaces : list of str
        The names of the fixed features, and the namespaces of the others in `dictionary`.
    frozen : bool
        Whether the statistics of the rows stay as they are.
    """

    decided = False
    frozen = False
    where: str
    used: list[str]
    roles: np.ndarray
    dest: np.ndarray
    kind: str
    fixed: list[str]
    spaces: list[str]
    dictionary: NameDictionary

    def encode_records(self, buf: np.ndarray, found: Records, at: Position, where: str) -> EncodedRows:
        """Build the rows of records of text; counts are added to `at`."""
        raise NotImplementedError

    def encode_batch(self, batch: Any, at: Position, where: str) -> EncodedRows:
        """Build the rows of a batch of typed columns; counts are added to `at`."""
        raise NotImplementedError

    def check_schema(self, schema: Any, where: str) -> None:
        """Raise an error for a table of typed columns that cannot be read so."""
        known = frozenset(schema.names)
        for name in self.used:
            if name not in known:
                raise SourceError(f"{where}: there is no column {name!r}, but {self.where} has it")

    @property
    def width(self) -> int:
        """The number of features so far."""
        return max(len(self.dictionary), len(self.fixed))

    def names(self, width: int) -> Sequence[str]:
        """The features up to a width."""
        return self.dictionary.names(max(width, len(self.fixed)))

    def state(self, width: int, sums: Sequence[str]) -> dict[str, Any]:
        """How the features are numbered, for `restore`; `sums` are those of `read_sums`."""
        return self.dictionary.state(max(width, len(self.fixed)))

    def restore(self, state: dict[str, Any]) -> int:
        """Number the features as in a saved state; returns their number."""
        if state["names"][: len(self.fixed)] != list(self.names(0)) or state["spaces"] != self.spaces:
            raise SourceError(f"{self.where}: its features are not those that were read before")
        self.dictionary.restore(state)
        return len(state["names"])

    def read_sums(self, texts: Sequence[str]) -> None:
        """Restore statistics of the rows, or reset them if there are no texts."""

    def resolved_options(self) -> dict[str, Any]:
        """Parameters of `open_source` to read other files in the same way."""
        raise NotImplementedError


class TableSource(Source):
    """A source whose columns have fixed roles."""

    layout: Layout
    sums: Sequence[str] = ()  # statistics of the rows up to the last chunk

    def _use(self, layout: Layout) -> None:
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
