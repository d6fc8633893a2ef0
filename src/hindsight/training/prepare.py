"""Preparation of rows, shared by learning, certifying and predicting.

Rows are selected (`sampled`, `limited`), their columns are matched to those of the run, values are scaled, and targets
converted for each run (`Preparation.prepare`). All code that reads rows again uses this module.
"""

from __future__ import annotations

import dataclasses
import math
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypedDict

import numpy as np

from ..errors import DisprovedError, NewLabelError, RowError
from ..rows.labels import encode_labels, label_number, numbers_of, targets_of_runs
from ..rows.matrices import joined_weights, stacked
from ..rows.scaling import check_scale, scaled
from ..sources import SampleSource, SourceError, file_format, found_format, label_text, load_sample, open_source
from ..storage.fields import Count, annotations_of, check_types, check_value, conforms
from ..storage.registry import want
from .options import OF_READING, RowOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ..online.run import Run
    from ..rows.data import Data
    from ..sources import Chunk, Source
    from .model import Model
    from .plan import Plan

MANY = 100  # labels at most
SUM = re.compile(r"-?0x[01]\.?[0-9a-f]*p[+-]\d{1,4} \d{1,18}")  # a sum in hexadecimal, and a count
SMALL = 1 << 28  # bytes of rows that are held in memory rather than read again


# ---------------------------------------------------------------- as played


class PreparedChunk(NamedTuple):
    """Rows prepared for the runs.

    Attributes
    ----------
    X : ndarray or csr_matrix
        The rows, scaled.
    y : ndarray
        The targets as they were read.
    codes : ndarray or None
        The index of each row's label; None if targets are numbers.
    targets : list of ndarray
        The targets for each run.
    weight : ndarray or None
        The importance of each row; None is 1.
    """

    X: Any
    y: np.ndarray
    codes: np.ndarray | None
    targets: list[np.ndarray]
    weight: np.ndarray | None


@dataclass(frozen=True)
class Preparation:
    """How the rows of a source are prepared for the runs.

    Parameters
    ----------
    plan : Plan
        Which rows are read, and how.
    labels : list of str or None
        The labels in the order of their numbers; None where targets are numbers.
    scale : dict or None
        The parameters of `hindsight.rows.scaling.scaled`; None does not scale.
    source_state : dict or None
        The mapping of features to columns; None uses the order of first appearance.
    follows : bool, default False
        Whether the rows continue the stream that `source_state` describes.
    """

    plan: Plan
    labels: list[str] | None
    scale: dict[str, Any] | None
    source_state: dict[str, Any] | None
    follows: bool = False

    def open(self) -> Source:
        """Open the source, with each feature at its column."""
        source = self.plan.open()
        if self.source_state is not None:
            try:
                (source.follow if self.follows else source.restore)(self.source_state)
            except KeyError as error:
                raise SourceError(f"{self.plan.data}: its features were numbered in another way: no {error}") from None
        return source

    def prepare(self, chunk: Chunk, runs: Sequence[Sequence[Run]]) -> PreparedChunk:
        """Prepare the rows of a chunk, with targets for all runs of each learner."""
        y = targets_of(chunk)
        if self.labels is None and y.dtype.kind == "U":
            raise DisprovedError(f"{self.plan.data}: a target is not a number")
        codes = None if self.labels is None else coded(self.labels, chunk, y)
        if codes is None and np.isnan(y).any():  # rows of weight 0
            y = np.nan_to_num(y)
        targets = [each for mine in runs for each in self._targets_for(mine[0], y, codes)]
        return PreparedChunk(scaled(chunk.X, self.scale), y, codes, targets, chunk.weight)

    def _targets_for(self, run: Run, y: np.ndarray, codes: np.ndarray | None) -> list[np.ndarray]:
        """The targets for each run of a learner: numbers, or labels encoded for the loss."""
        if self.labels is None or codes is None:
            return [y]
        return targets_of_runs(codes, len(self.labels), run.learner.targets)

    def replay(self, runs: Sequence[Run]) -> Iterator[PreparedChunk]:
        """One pass over the rows as played by the runs of one learner."""
        source, width = self.open(), runs[0].features
        for chunk in self.plan.chunks(source):
            if not len(chunk):
                continue
            rows = self.prepare(chunk, [runs])
            if rows.X.shape[1] < width and source.kind == "sparse":
                rows.X.resize((rows.X.shape[0], width))
            yield rows

    def data(self, runs: Sequence[Run]) -> list[Data]:
        """The rows as played, for each run of a learner; in memory if they are few, otherwise read again each time."""
        from ..rows.data import Data

        chunks, size = [], 0
        for rows in self.replay(runs):
            chunks.append(rows)
            size += bytes_of(rows.X)
            if size > SMALL:
                break
        else:
            if not chunks:
                raise SourceError(f"{self.plan.data}: there is no row")
            X = stacked([rows.X for rows in chunks])
            weight = joined_weights([rows.weight for rows in chunks], [rows.X.shape[0] for rows in chunks])
            targets = [np.concatenate([rows.targets[k] for rows in chunks]) for k in range(len(runs))]
            return [Data(X, y, weight, run.bias) for y, run in zip(targets, runs, strict=True)]

        def again(k: int) -> Callable[[], Iterator[Any]]:
            return lambda: ((rows.X, rows.targets[k], rows.weight) for rows in self.replay(runs))

        return [Data.from_chunks(again(k), run.bias) for k, run in enumerate(runs)]


def bytes_of(X: Any) -> int:
    """The memory used by rows and their targets, in bytes."""
    return int((X.nbytes if hasattr(X, "nbytes") else X.data.nbytes + X.indices.nbytes) + X.shape[0] * 8)


def alike(targets: list[np.ndarray]) -> list[np.ndarray]:
    """The targets of chunks, all as text if some are text."""
    if any(y.dtype.kind == "U" for y in targets):
        return [label_text(y) if y.dtype.kind == "f" else y for y in targets]
    return targets


# ---------------------------------------------------------------- all rows at once


class AllRows(NamedTuple):
    """All rows of a source.

    Attributes
    ----------
    X : ndarray or csr_matrix
        The rows.
    y : ndarray
        The targets as read: numbers, or text if one of them is not a number.
    weight : ndarray or None
        The importance of each row; None is 1.
    names : list of str
        The names of the features.
    place : callable
        Gives the place of a row by its index, such as "rows.csv, line 3".
    """

    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    names: list[str]
    place: Callable[[int], str]


def read_all(plan: Plan) -> AllRows:
    """Read all rows that a plan selects into memory, without scaling.

    Parameters
    ----------
    plan : Plan
        Which rows to read, and how. Without `learners`, targets are returned as read.

    Returns
    -------
    AllRows

    Raises
    ------
    SourceError
        If there is no row.

    Examples
    --------
    >>> from hindsight.training.plan import Plan
    >>> rows = read_all(Plan("sample:diabetes", None, (), limit=5))
    >>> rows.X.shape, rows.y.shape
    ((5, 10), (5,))
    """
    source = plan.open()
    chunks = [chunk for chunk in plan.chunks(source) if len(chunk)]
    if not chunks:
        raise SourceError(f"{plan.data}: there is no row to learn from")
    targets = alike([targets_of(chunk) for chunk in chunks])
    firsts = np.cumsum([0, *map(len, chunks)])

    def place(row: int) -> str:
        k = int(np.searchsorted(firsts, row, "right")) - 1
        return chunks[k].place(row - int(firsts[k]))

    for chunk, y in zip(chunks, targets, strict=True):
        if not (known := labelled(y)).all():
            select(chunk, known)
    targets = [y[labelled(y)] for y in targets]
    X = stacked([chunk.X for chunk in chunks])
    weight = joined_weights([chunk.weight for chunk in chunks], [len(chunk) for chunk in chunks])
    return AllRows(X, np.concatenate(targets), weight, list(source.names), place)


# ---------------------------------------------------------------- for a saved model

# The options of reading that belong to one file; those that hold for other files too, of which `features` are then the
# columns that were read; and those that results do not depend on: a file does not choose them.
OWN_READING = ("weight", "format", "labels", "rejects")
READING = ("zero_based", *(name for name in OF_READING if name not in OWN_READING))
PACE = ("chunk", "ahead", "digest")


def check_reading(options: Any) -> dict[str, Any]:
    """The reading options stored in a file, without those that only affect speed; a ModelError if one is invalid."""
    want(isinstance(options, dict), "the options of reading must be a mapping")
    kinds: dict[str, Any] = annotations_of(RowOptions) | {"missing": str, "zero_based": bool}
    kinds |= {"labels": bool | None, "rejects": bool}
    out = {}
    for name, value in options.items():
        if name in PACE:
            continue
        value = list(value) if isinstance(value, tuple) else value
        plain = type(value) in (bool, int, str, list, dict, type(None))
        known = name in (*READING, *OWN_READING) and conforms(value, kinds[name])
        want(plain and known, f"`reading.{name!s:.40}` is not such an option")
        out[name] = value
    return out


class TableDecisions(TypedDict):
    """The decisions about the columns of a table."""

    columns: list[dict[str, Any]]
    decimal: Literal[".", ","]
    complete: bool


class SourceState(TypedDict, total=False):
    """How a source numbers its features: by name, by index, or by hash."""

    names: list[str]
    spaces: list[str]
    space: list[Count]
    columns: Count
    bits: Count
    used: Annotated[list[Count], lambda used: len(used) == 3]
    prints: str
    table: TableDecisions
    sums: list[Annotated[str, SUM.fullmatch]]


def check_source_state(state: Any, features: int) -> None:
    """Raise a ModelError unless this is a valid numbering of `features` features."""
    check_value("how the features are numbered", state, SourceState | None)
    if state is None:
        return
    names, spaces, space = state.get("names", []), state.get("spaces", []), state.get("space")
    want(len(names) <= features, f"{len(names)} names for {features} features")
    fits = space is None or (len(space) == len(names) and all(k <= len(spaces) for k in space))
    want(fits, "every feature must have a namespace")
    want(state.get("columns", 0) <= features, f"the columns must be at most {features} features")
    if "table" in state:
        check_table(state["table"])
        want("sums" in state, "the sums of columns are missing")


def check_table(table: TableDecisions) -> None:
    """Raise a ModelError unless these are decisions about the columns of a table."""
    from ..sources.tables.decisions import TYPES, ColumnDecision

    fields = {field.name for field in dataclasses.fields(ColumnDecision)}
    for each in table["columns"]:
        want(set(each) | {"decimal"} == fields, "a decision must say what a column holds")
        check_value("the words for a missing value", each["words"], list[str])
        check_types(ColumnDecision, {"decimal": "."} | each | {"words": tuple(each["words"])})
        want(each.get("decimal", ".") in (".", ","), "the decimal sign must be . or ,")
        want(each["type"] in TYPES, f"there is no type {each['type']!r:.40}")
        want(each["type"] != "text" or each["form"] in ("", "1", "2", "3"), "text is of 1 to 3 neighbouring words")


def check_preparation(model: Model) -> dict[str, Any]:
    """The validated preparation of a loaded model's rows; a ModelError if it is invalid."""
    made = model.preparation
    if made:
        want(made.get("kind") in ("dense", "sparse"), "the kind of rows must be dense or sparse")
        check_scale(made.get("scale"), model.features)
        check_source_state(made.get("state"), model.features)
    return {
        "source": check_reading(made.get("source", {})),
        "kind": made.get("kind"),
        "scale": made.get("scale"),
        "state": made.get("state"),
    }


def open_for_model(
    model: Model, data: Any, form: str | None = None, beside: Sequence[str] = (), **roles: Any
) -> Source:
    """Open rows that a model will predict, reading them as for learning.

    Parameters
    ----------
    model : Model
        The model.
    data : object
        Anything that `hindsight.open_source` reads, or ``"sample:NAME"``. If an array has as many columns as the model
        has features, they are used in order, otherwise by name.
    form : str or None, default None
        Its format; None goes by the name of the file.
    beside : sequence of str, default ()
        Columns that are read separately; they need not be numbers, unless they are features of the model.
    **roles
        ``target``, ``weight`` and ``labels`` of `hindsight.open_source`. With a target, rows with missing values are
        skipped if they were skipped in learning.
    """
    made = check_preparation(model)
    target = roles.pop("target", None)
    if isinstance(data, str) and data.startswith("sample:"):
        return SampleSource(data, target, roles.get("labels"))
    options = {name: made["source"][name] for name in READING if name in made["source"]}
    if options.get("missing") == "skip" and target is None:
        options["missing"] = "error"  # a row left out would shift all predictions after it
    if in_order_of(model, data):
        options = {"missing": options.get("missing", "error")}
    elif not options.get("categorical") and options.get("features") is None and made["kind"] != "sparse":
        options["features"] = model.names
    if rows_are_mappings(data, form):
        apart = [*beside, *filter(None, learnt_columns(model))]
        options["ignore"] = [*options.get("ignore", ()), *(name for name in apart if not has_feature_of(model, name))]
    if set(made["state"] or {}) <= {"names"}:  # it learnt from an array
        options["strict"] = True
    if options.get("strict", True) and options.get("missing") in ("indicator", "mean"):
        options["missing"] = "error"
    source = open_source(data, target, format=form, **options | roles)
    if options.get("strict") is False and hasattr(source, "decisions"):
        source.restore(made["state"])
        source.freeze()
    return source


def rows_are_mappings(data: Any, form: str | None) -> bool:
    """Whether each row carries its own names, as JSON lines and dicts in memory do."""
    first = data[0] if isinstance(data, (list, tuple)) and data else data
    if isinstance(first, (str, os.PathLike)):
        return format_of(first, form) == "jsonl"
    rows = first if isinstance(data, tuple) else data
    return isinstance(rows, list) and bool(rows) and isinstance(rows[0], dict)


def format_of(path: str | os.PathLike[str], form: str | None) -> str | None:
    """The format of a file: the given one, or the one inferred from its name or content."""
    path = os.fspath(path)
    return form or file_format(path) or (found_format(path) if os.path.isfile(path) else None)


def learnt_columns(model: Model) -> tuple[str | None, str | None]:
    """The columns of targets and weights used for learning, if the model records them."""
    reading = model.settings.get("reading")
    found = target_column(model.settings), reading.get("weight") if isinstance(reading, dict) else None
    target, weight = (name if isinstance(name, str) else None for name in found)
    return target, weight


def target_column(settings: Mapping[str, Any]) -> Any:
    """The target column in the settings of a run, or of its sample data; None if not named."""
    found, data = settings.get("target"), settings.get("data")
    if found is None and isinstance(data, str) and data.startswith("sample:"):
        with suppress(SourceError):
            return load_sample(data.removeprefix("sample:"), None).target
    return found


def has_feature_of(model: Model, column: str) -> bool:
    """Whether a column, or one of its categories, is a feature of the model; True if features have no names."""
    return model.names is None or any(name == column or name.startswith(f"{column}=") for name in model.names)


def in_order_of(model: Model, data: Any) -> bool:
    """Whether the data is an array in memory with one column per feature of the model."""
    X = data[0] if isinstance(data, tuple) else data
    array = isinstance(X, np.ndarray) or hasattr(X, "tocsr")
    return array and X.ndim == 2 and bool(X.shape[1] == model.features)


def rows_of_model(model: Model, source: Source, ordered: bool = False) -> Iterator[tuple[Any, Chunk]]:
    """Yield rows with the features of a model, scaled as for learning, each with its chunk.

    Columns of sparse rows are matched by name, unless they are `ordered` like those of the model.
    """
    scale = check_preparation(model)["scale"]
    column = None if ordered or model.names is None else {name: j for j, name in enumerate(model.names)}
    for chunk in source.chunks():
        X = chunk.X
        if source.kind == "sparse" and column is not None:
            X = columns_by_name(X, source.names, column, model.features)
        yield scaled(X, scale), chunk


def margins_of(model: Model, X: Any, chunk: Chunk) -> np.ndarray:
    """The margins that a model gives the rows of a chunk; an error names the place of the row."""
    try:
        return model.margins(X)
    except RowError as error:
        raise ValueError(f"{chunk.place(error.row)}{error.message}") from None


def columns_by_name(X: Any, names: Sequence[str], column: dict[str, int], features: int) -> Any:
    """Sparse rows with every feature moved to its column; features without a column are dropped."""
    from scipy.sparse import csr_matrix

    met, where = np.unique(X.indices, return_inverse=True)
    columns = np.array([column.get(names[k], -1) for k in met.tolist()], np.int32)[where]
    known = columns >= 0
    ends = np.concatenate([[0], np.cumsum(known)])[X.indptr]
    out = csr_matrix((X.data[known], columns[known], ends), shape=(X.shape[0], features))
    out.sort_indices()  # as for learning, so that sums are taken in the same order
    return out


# ---------------------------------------------------------------- which rows


def sampled(chunks: Iterator[Chunk], part: float, seed: int) -> Iterator[Chunk]:
    """Select each row with probability `part`, depending only on the seed and the row's number.

    The selection therefore does not depend on the sizes of chunks, the pass, or resuming from a checkpoint.
    """
    for chunk in chunks:
        taken = np.flatnonzero(drawn(chunk.first, len(chunk), part, seed))
        select(chunk, taken)
        chunk.place, chunk.raw = reindexed(chunk.place, taken), reindexed(chunk.raw, taken)
        yield chunk


def drawn(first: int, rows: int, part: float, seed: int) -> np.ndarray:
    """A mask of the rows selected among `rows` rows from number `first` on, each with probability `part`."""
    skip = first % 4  # the generator makes four numbers at a time
    draws = np.random.Generator(np.random.Philox(key=seed).advance(first // 4)).random(skip + rows)
    return np.asarray(draws[skip:] < part)


def limited(source: Source, chunks: Iterator[Chunk], limit: int | None, row: int = 0) -> Iterator[Chunk]:
    """Chunks of a source up to `limit` rows in all, `row` of which were taken before; no more chunks are read."""
    if limit is None:
        yield from chunks
        return
    known = source.width
    while row < limit:
        chunk = next(chunks, None)
        if chunk is None:
            return
        if row + len(chunk) >= limit:
            cut(source, chunk, limit - row, known)
        row, known = row + len(chunk), source.width
        yield chunk


def cut(source: Source, chunk: Chunk, count: int, known: int) -> None:
    """Truncate a chunk to its first rows, and its source to the state after the last of them.

    Bad rows and names of features after that row are dropped, so the result does not depend on where chunks end.
    `known` is the number of columns before the chunk.
    """
    if rejects := chunk.rejects:
        last = line_of(chunk.place(count - 1))
        chunk.rejects = [reject for reject in rejects if reject.line < last]
        source.rejected -= len(rejects) - len(chunk.rejects)
    select(chunk, slice(count))
    if source.kind == "sparse" and chunk.position.get("width") == chunk.X.shape[1]:
        width = max(known, int(chunk.X.indices.max(initial=-1)) + 1)
        chunk.X.resize((count, width))
        source.width = chunk.position["width"] = width


def line_of(place: str) -> int:
    """The number at the end of a row's place."""
    return int(place.rpartition(" ")[2])


def select(chunk: Chunk, rows: Any) -> None:
    """Keep these rows of a chunk."""
    chunk.X = chunk.X[rows]
    chunk.y = None if chunk.y is None else chunk.y[rows]
    chunk.weight = None if chunk.weight is None else chunk.weight[rows]


def reindexed(text: Callable[[int], str], rows: np.ndarray) -> Callable[[int], str]:
    """A function that gives for i the text of row ``rows[i]``."""
    return lambda i: text(int(rows[i]))


# ---------------------------------------------------------------- targets and labels


def targets_of(chunk: Chunk) -> np.ndarray:
    """The targets of a chunk of a source that was opened with a target."""
    assert chunk.y is not None
    return chunk.y


def labelled(y: np.ndarray) -> np.ndarray:
    """A mask of the rows with a target; the targets of the others, which have weight 0, are NaN or ""."""
    return np.asarray(~np.isnan(y) if y.dtype.kind == "f" else y != "")


def labels_in(y: np.ndarray) -> set[str]:
    """The labels as text."""
    found = np.unique(y[labelled(y)])
    return set((label_text(found) if found.dtype.kind == "f" else found).tolist())


def in_order(labels: set[str]) -> list[str]:
    """Sort labels that are numbers by value, then the others by name."""
    return sorted(labels, key=lambda v: (not number(v), float(v) if number(v) else 0.0, v))


def number(text: str) -> bool:
    """Whether the label is a number."""
    return math.isfinite(label_number(text))


def check_labels(labels: list[str]) -> None:
    """Raise an error for fewer than two labels, or for so many that the targets must be numbers."""
    if len(labels) < 2:
        raise ValueError(f"the target has one value only: {labels[0]!r}" if labels else "there is no row to learn from")
    if len(labels) > MANY:
        raise ValueError(f"the target has more than {MANY} values: for numbers take another learner, as widrow-hoff")


def coded(labels: list[str], chunk: Chunk, raw: np.ndarray) -> np.ndarray:
    """The index of each row's label."""
    codes = encode_labels(raw, numbers_of(labels) if raw.dtype.kind == "f" else labels).astype(np.int64)
    codes[~labelled(raw)] = 0  # rows of weight 0
    if len(codes) and codes.min() < 0:
        row = int(codes.argmin())
        text = next(iter(labels_in(raw[row : row + 1])))
        raise NewLabelError(f"{chunk.place(row)}: label {text!r} is not one of {', '.join(labels)}", text)
    return codes
