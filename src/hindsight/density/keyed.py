"""One density per key (a customer, a device), created when the key is first seen, in bounded memory."""

from __future__ import annotations

import math
import sqlite3
from collections import OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..errors import RowError
from ..kernels import densities as kernels
from ..storage.fields import is_count
from ..storage.registry import storable, want
from .base import Density
from .certificate import DensityCertificate, judge, note_of_shards, of_columns
from .online import OnlineDensity, total_shards
from .product import Product, columns_of

if TYPE_CHECKING:
    from collections.abc import Iterator

CAPACITY = 1 << 20
ROWS = 1 << 14  # a block of rows that stays in cache while each column's statistics are visited


class Keyed(OnlineDensity):
    """One density per key, all with the same prior.

    New keys start from the prior of `density`, which also predicts keys that were never seen; use `as_prior` to make
    the behaviour of a population the prior. At most `capacity` keys are kept in memory. Another key is an error, unless
    `spill` is given: then the least recently seen key is moved to that SQLite file until it is seen again. Rows have
    the same forms as for `Product`, with the key as one of the columns. `save` writes all keys, including those in the
    SQLite file; after loading, all are in memory.

    Parameters
    ----------
    density : Density or Product
        A density over columns (not a full Gaussian or an n-gram), or a product of such densities; rows that it has
        learnt are ignored.
    key : str or int
        The name of the key's column, or its index if rows are a 2-D array.
    capacity : int, default 2**20
        Largest number of keys in memory.
    spill : str or None, default None
        A file for the keys that do not fit in memory. The keys of an earlier run in it are overwritten.

    Attributes
    ----------
    keys : list
        The keys seen.
    rows : int
        Number of rows learnt.
    loss : float
        Cumulative log loss in nats of the rows given their keys.

    Examples
    --------
    >>> from hindsight.density import Poisson
    >>> calls = Keyed(Product({"calls": Poisson()}), key="customer")
    >>> calls.update({"customer": ["ann", "bob", "ann"], "calls": [3, 0, 5]}).keys
    ['ann', 'bob']
    """

    name = "keyed"

    def __init__(self, density: Any, key: Any, *, capacity: int = CAPACITY, spill: str | None = None) -> None:
        self.inner = density.fresh()
        for part in parts_of(self.inner):
            if not can_be_keyed(part):
                raise ValueError(f"a keyed density cannot be made of {part!r}: take columns with declared symbols")
        if capacity < 1:
            raise ValueError(f"capacity must be at least 1 key, got {capacity!r}")
        self.key, self.capacity, self.spill = key, int(capacity), spill
        self.rows, self.shards = 0, 1
        self._slot: OrderedDict[Any, int] = OrderedDict()  # the key least recently seen first
        # slot 0 is never written: the prior, for keys never seen
        self._parts: list[Density] = [part.copy() for part in parts_of(self.inner)]
        self._paid = 0.0
        self._store: sqlite3.Connection | None = None
        self._away: dict[Any, str] = {}  # the keys in the file, as they are spelt there
        self._resize(64)

    # ---- files

    def __getstate__(self) -> dict[str, Any]:
        """All keys and their statistics in the order of the keys, including those in the file."""
        each = list(self._everywhere())
        kept = []
        for k, part in enumerate(self._parts):
            new = part.slot(0)
            new.n = np.concatenate([new.n, *(some[k].n for some in each)])
            new.state = np.concatenate([new.state, *(some[k].state for some in each)])
            kept.append(new)
        plain = {name: getattr(self, name) for name in ("inner", "key", "spill", "rows", "shards", "_paid")}
        keys = [*self._slot, *self._spilt()]
        return plain | {"capacity": max(self.capacity, len(keys)), "_keys": keys, "_parts": kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        keys = state.pop("_keys")
        self.__dict__.update({"spill": None} | state)
        self._slot, self._store, self._away = OrderedDict(zip(keys, range(1, len(keys) + 1), strict=True)), None, {}

    @staticmethod
    def _check_saved(fields: dict[str, Any]) -> None:
        inner, key, keys, parts = (fields[name] for name in ("inner", "key", "_keys", "_parts"))
        want(isinstance(inner, (Density, Product)), "`inner` must be a density over columns, or a product of such")
        own = parts_of(inner)
        want(
            all(can_be_keyed(part) and part.n.size == 1 for part in own), "`inner` must be of columns that can be keyed"
        )
        want(isinstance(parts, list) and len(parts) == len(own), f"`_parts` must be {len(own)} densities")
        alike = all(
            type(a) is type(b) and a.columns == b.columns and a._alike(b) for a, b in zip(own, parts, strict=True)
        )
        want(alike, "`_parts` must be densities like those of `inner`")
        want(isinstance(keys, list) and len(set(keys)) == len(keys), "`_keys` must be keys that differ")
        for part in parts:
            want(part.n.size == len(keys) + 1, f"`_parts` must have statistics of {len(keys)} keys")
            want(part.n[0] == 0.0 and not part.state[0].any(), "`_parts` must have no rows of unknown keys")
        want(isinstance(key, (str, int, np.integer)), "`key` must be the name or the index of a column")
        want(is_count(fields["capacity"]) and fields["capacity"] >= max(1, len(keys)), "`capacity` is too small")
        want(is_count(fields["rows"]) and is_count(fields["shards"]), "`rows` and `shards` must be counts")
        want(isinstance(fields["_paid"], float), "`_paid` must be a number")

    @property
    def keys(self) -> list[Any]:
        """The keys seen, those in memory first; with `spill` these are ordered from the least recently seen."""
        return [*self._slot, *self._away]

    @property
    def columns(self) -> int:
        """Number of columns of a row, the key included."""
        return 1 + int(self.inner.columns)

    @property
    def names(self) -> list[str]:
        """Names of the columns without the key."""
        return self.inner.names if isinstance(self.inner, Product) else [self.inner.name]

    @property
    def fades(self) -> bool:
        """Whether old rows of a key are forgotten."""
        return any(part.forget < 1.0 for part in self._parts)

    def _resize(self, slots: int) -> None:
        slots = min(slots, self.capacity + 1)
        for part in self._parts:
            n, state = np.zeros(slots), np.zeros((slots, *part.state.shape[1:]))
            n[: part.n.size], state[: part.n.size] = part.n[:slots], part.state[:slots]
            part.n, part.state = n, state

    # ---- reading

    def _split(self, x: Any) -> tuple[np.ndarray, list[np.ndarray]]:
        """The keys, and the encoded values for each density."""
        frame = columns_of(x)
        if frame is not None:
            if self.key not in frame:
                raise ValueError(f"there is no column {self.key!r} (columns: {', '.join(map(str, frame))})")
            keys = np.asarray(frame[self.key])
            rest = {name: values for name, values in frame.items() if name != self.key}
            if not isinstance(self.inner, Product) and len(rest) != 1:
                raise ValueError(f"{self.inner.name} takes one column beside the key, got {', '.join(map(str, rest))}")
            x = rest if isinstance(self.inner, Product) else next(iter(rest.values()))
        else:
            X = np.asarray(x)
            if X.ndim != 2 or X.shape[1] != self.columns:
                raise ValueError(f"keyed rows of {self.columns} columns got an array of shape {X.shape}")
            if self.key not in range(-self.columns, self.columns):
                raise ValueError(
                    f"rows as an array of {self.columns} columns: the key is {self.key!r}, which is not an index"
                )
            keys, x = X[:, self.key], np.delete(X, self.key, axis=1)
        absent = (
            ~np.isfinite(keys) if keys.dtype.kind == "f" else [key is None or key != key for key in objects_in(keys)]
        )
        if np.any(absent):
            row = int(np.argmax(absent))
            raise RowError(row, f", column {self.key!r}: value {keys[row]} is not a key")
        values = self.inner.split(x) if isinstance(self.inner, Product) else [x]
        blocks = []
        for part, name, column in zip(self._parts, self.names, values, strict=True):
            try:
                block = part._numbers(column, grow=True)
                part._refuse(block)
            except RowError as error:
                raise RowError(error.row, f", column {name!r}{error.message}") from None
            if len(block) != len(keys):
                raise ValueError(f"there are {len(keys)} keys, but column {name!r} has {len(block)} rows")
            blocks.append(block)
        return keys, blocks

    def check(self, x: Any) -> None:
        """Raise the error that `update` would raise, without learning."""
        keys, _ = self._split(x)
        if self.spill is None:
            self._room(keys, *encode(keys))

    def _room(self, keys: np.ndarray, codes: np.ndarray, kinds: list[Any]) -> list[Any]:
        """The new keys, if there is room for them; otherwise raise an error."""
        new = [key for key in kinds if key not in self._slot]
        free = self.capacity - len(self._slot)
        if len(new) > free:
            row = int(np.flatnonzero(codes == kinds.index(new[free]))[0])
            raise RowError(
                row,
                f": key {new[free]!r} would be one more than capacity = {self.capacity:,} keys; "
                "raise the capacity or give a file to spill to",
            )
        return new

    def _segments(self, keys: np.ndarray, create: bool) -> Iterator[tuple[int, int, np.ndarray]]:
        """Runs of rows with the slot of each row; within a run no slot changes its key."""
        if self.spill is not None:
            yield from self._runs_with_spill(keys.tolist(), create)
            return
        codes, kinds = encode(keys)
        if create:
            new = self._room(keys, codes, kinds)
            self._slot.update(zip(new, range(len(self._slot) + 1, len(self._slot) + 1 + len(new)), strict=True))
            if len(self._slot) >= self._parts[0].n.size:
                self._resize(2 * len(self._slot))
        yield 0, len(keys), np.array([self._slot.get(key, 0) for key in kinds], np.int32)[codes]

    def _runs_with_spill(self, keys: list[Any], create: bool) -> Iterator[tuple[int, int, np.ndarray]]:
        """The same with `spill`: the least recently seen key is moved to make room."""
        slot, start = self._slot, 0
        out: list[int] = []
        touched: set[int] = set()
        for t, key in enumerate(keys):
            s = slot.get(key, 0)
            if s:
                slot.move_to_end(key)
            elif create or key in self._away:
                if len(slot) < self.capacity:
                    s = len(slot) + 1
                    if s >= self._parts[0].n.size:
                        self._resize(2 * s)
                else:
                    if next(iter(slot.values())) in touched:
                        yield start, t, np.array(out, np.int32)
                        out, start = [], t
                        touched.clear()
                    s = self._evict()
                slot[key] = s
                if key in self._away:
                    self._load(key, s)
            touched.add(s)
            out.append(s)
        yield start, len(keys), np.array(out, np.int32)

    def _file(self) -> sqlite3.Connection:
        if self._store is None:
            try:
                self._store = sqlite3.connect(str(self.spill))
                self._store.execute("DROP TABLE IF EXISTS states")
                self._store.execute("CREATE TABLE states (key TEXT PRIMARY KEY, state BLOB)")
            except sqlite3.Error as error:
                self._store = None
                raise ValueError(f"{self.spill}: {error}") from None
        return self._store

    def close(self) -> None:
        """Close the file of spilled keys; the keys in it are lost."""
        if self._store is not None:
            self._store.close()

    def _evict(self) -> int:
        """Move the least recently seen key to the file and return its slot, emptied."""
        store = self._file()
        key, s = self._slot.popitem(last=False)
        state = np.concatenate([np.append(part.state[s].ravel(), part.n[s]) for part in self._parts])
        self._away[key] = repr(key)
        store.execute("INSERT OR REPLACE INTO states VALUES (?, ?)", (self._away[key], state.tobytes()))
        for part in self._parts:
            part.n[s], part.state[s] = 0.0, 0.0
        return s

    def _load(self, key: Any, s: int) -> None:
        self._fill(self._parts, key, s)
        del self._away[key]

    def _fill(self, parts: list[Density], key: Any, s: int) -> None:
        """Read the statistics of a key from the file into slot s of these densities."""
        (blob,) = self._file().execute("SELECT state FROM states WHERE key = ?", (self._away[key],)).fetchone()
        numbers, a = np.frombuffer(blob), 0
        for part in parts:
            size = part.state[s].size
            part.state[s] = numbers[a : a + size].reshape(part.state[s].shape)
            part.n[s] = numbers[a + size]
            a += size + 1

    # ---- learning and predicting

    def update(self, x: Any) -> Self:
        if self.fades:
            return super().update(x)
        for a, b, slots, blocks in self._blocks(x, create=True):
            for part, block in zip(self._parts, blocks, strict=True):
                kernels.absorb(part.part, slots, block[a:b], part.n, part.state)
        return self

    def progressive(self, x: Any) -> np.ndarray:
        out: list[np.ndarray] = []
        for a, b, slots, blocks in self._blocks(x, create=True):
            p = np.zeros(b - a)
            for part, block in zip(self._parts, blocks, strict=True):
                kernels.play(part.part, slots, block[a:b], part.n, part.state, part.forget, p)
            out.append(p)
        paid = np.concatenate([np.zeros(0), *out])
        self._paid -= float(paid.sum())
        return paid

    def _blocks(self, x: Any, create: bool) -> Iterator[tuple[int, int, np.ndarray, list[np.ndarray]]]:
        keys, blocks = self._split(x)
        for start, stop, slots in self._segments(keys, create):
            for a in range(start, stop, ROWS):
                b = min(stop, a + ROWS)
                yield a, b, slots[a - start : b - start], blocks
        if self._store is not None:
            self._store.commit()
        self.rows += len(keys) if create else 0

    def terms(self, x: Any) -> np.ndarray:
        """The log density of each row by density, given its key; unseen keys are predicted by the prior."""
        out = []
        for a, b, slots, blocks in self._blocks(x, create=False):
            columns = []
            for part, block in zip(self._parts, blocks, strict=True):
                p = np.empty((b - a, block.shape[1]))
                kernels.terms(part.part, slots, block[a:b], part.n, part.state, p)
                columns.append(p.sum(axis=1))
            out.append(np.stack(columns, axis=1))
        return np.concatenate([np.zeros((0, len(self._parts))), *out])

    def logp(self, x: Any) -> np.ndarray:
        return np.asarray(self.terms(x).sum(axis=1))

    logpdf = logp

    def of(self, key: Any) -> Any:
        """A copy of the density of one key.

        Parameters
        ----------
        key : hashable
            The key; for a key that was never seen, the copy has the prior and no rows.

        Returns
        -------
        Density or Product
            A copy that learns independently.
        """
        s = next(iter(self._segments(objects([key]), create=False)))[2][0]
        each = [part.slot(s) for part in self._parts]
        if not isinstance(self.inner, Product):
            return each[0]
        product = Product(dict(zip(self.inner.densities, each, strict=True)))
        product.rows = each[0].rows
        return product

    def __add__(self, other: Self) -> Self:
        """Merge two keyed densities, key by key, as if the rows of other had come after the rows of this one."""
        if self.spill is not None or other.spill is not None or self.fades:
            raise ValueError("keyed densities add up only where none spills to a file and nothing fades")
        alike = self.key == other.key and self.names == other.names
        if not alike or not all(a._alike(b) for a, b in zip(self._parts, other._parts, strict=True)):
            raise ValueError(f"only densities of one family and prior add up: {self!r} and {other!r} do not")
        both = self.copy()
        slots = next(iter(both._segments(objects(list(other._slot)), create=True)))[2]
        for mine, theirs in zip(both._parts, other._parts, strict=True):
            moved = mine.copy()
            moved.n[:], moved.state[:] = 0.0, 0.0
            places = list(other._slot.values())
            moved.n[slots], moved.state[slots] = theirs.n[places], theirs.state[places]
            mine._merged(moved, 1.0)
            mine.n += moved.n
        both.shards = total_shards(self, other)
        both.rows += other.rows
        both._paid += other._paid
        return both

    def copy(self) -> Self:
        """A copy that learns independently, in memory only."""
        if self.spill is not None:
            raise ValueError("a keyed density that spills to a file cannot be copied")
        new = type(self)(self.inner, self.key, capacity=self.capacity)
        new._slot, new._parts = self._slot.copy(), [part.copy() for part in self._parts]
        new.rows, new._paid, new.shards = self.rows, self._paid, self.shards
        return new

    def fresh(self) -> Self:
        """A keyed density with the same prior and no keys."""
        return type(self)(self.inner, self.key, capacity=self.capacity, spill=self.spill)

    # ---- what it cost

    def _everywhere(self) -> Iterator[list[Density]]:
        """Iterate over the statistics of all keys: those in memory at once, then those in the file one by one."""
        places = list(self._slot.values())
        each = [part.slot(0) for part in self._parts]
        for new, part in zip(each, self._parts, strict=True):
            new.n, new.state = part.n[places], part.state[places]
        yield each
        for key in self._spilt():
            each = [part.fresh() for part in parts_of(self.inner)]
            self._fill(each, key, 0)
            yield each

    def _spilt(self) -> list[Any]:
        """The keys in the file, in a fixed order."""
        return sorted(self._away, key=repr)

    @property
    def loss(self) -> float:
        """Cumulative log loss in nats, each row given its key: the sum over keys and columns."""
        if self.fades:
            return self._paid
        return math.fsum(part._marginal() for each in self._everywhere() for part in each)

    def certificate(self) -> DensityCertificate:
        """Certify the regret against the best fixed distribution of each key; bounds of keys and columns add."""
        if self.fades:
            raise ValueError("where old rows fade, a keyed density keeps no rival: only its loss is known")
        sums = np.zeros((3, len(self._parts)))
        for each in self._everywhere():
            sums += np.array([[p._marginal(), p._best(), p._theorem()[1]] for p in each]).T
        parts = {}
        for k, (part, name) in enumerate(zip(self._parts, self.names, strict=True)):
            theorem, _, needs = part._theorem()
            note = (f"one distribution for each of {len(self.keys):,} keys, the rival's too",)
            measured, rival, bound = sums[:, k].tolist()
            parts[name] = judge(
                theorem, measured, rival, bound, self.rows, needs, note + note_of_shards(self.shards, True)
            )
        return of_columns("product of independent columns, one density per key", self.rows, parts)

    def describe(self) -> str:
        return f"{len(self.keys):,} keys of {self.inner!r}"

    def __repr__(self) -> str:
        return f"<keyed by {self.key!r}, {len(self.keys):,} keys, {self.rows:,} rows>"


def parts_of(density: Any) -> list[Any]:
    """The densities of the columns."""
    return list(density.densities.values()) if isinstance(density, Product) else [density]


def can_be_keyed(part: Any) -> bool:
    """Whether a density can have one slot per key."""
    return isinstance(part, Density) and not getattr(part, "grows", False)


def objects_in(keys: np.ndarray) -> list[Any]:
    """The keys of an object array; empty for other arrays, in which no key can be missing."""
    return keys.tolist() if keys.dtype.kind == "O" else []


def objects(keys: list[Any]) -> np.ndarray:
    """Keys of any kind as an array."""
    out = np.empty(len(keys), object)
    out[:] = keys
    return out


def encode(keys: np.ndarray) -> tuple[np.ndarray, list[Any]]:
    """The index of each key among the distinct ones, and the distinct keys in order of appearance."""
    import pyarrow as pa

    with suppress(pa.ArrowException):  # of keys of several kinds
        found = pa.array(keys).dictionary_encode()
        distinct = found.dictionary.to_pylist()
        if len(set(distinct)) == len(distinct):  # 0.0 and -0.0 are equal, but not to Arrow
            return found.indices.to_numpy(), distinct
    kinds: dict[Any, int] = {}
    codes = [kinds.setdefault(key, len(kinds)) for key in keys.tolist()]
    return np.array(codes, np.int32), list(kinds)


storable(Keyed, omit=("spill",), file="density")  # no path of a file is ever opened
