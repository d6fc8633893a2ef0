"""The plan of a run: the data, the learners, and how rows are read and selected."""

from __future__ import annotations

import copy
import difflib
import inspect
import itertools
import math
import os
import tempfile
from collections import Counter
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DisprovedError, OptionError, SourceError
from ..formatting import brief
from ..kernels.penalised import Penalised
from ..online.learners import LEARNERS, Learner
from ..online.panel import Panel
from ..rows.labels import label_number
from ..sources import Chunk, SampleSource, Source, file_format, found_format, open_source
from ..sources.streams import standard_input
from ..storage.fields import check_types
from ..storage.registry import want
from .options import BATCH_LEARNERS, LearnerOptions, RowOptions, as_lists, split
from .prepare import alike, check_reading, labelled, limited, sampled, targets_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from ..online.run import Run

ROW_OPTIONS = tuple(f.name for f in fields(RowOptions))
MOVING = 6  # columns and pairs that are named
ONCE = "rows from standard input can be read only once"


@dataclass(frozen=True)
class Plan:
    """What to learn from which rows, in plain values, so that a resumed run can be compared with the original.

    Parameters
    ----------
    data : object
        A path, ``"-"`` for standard input, ``"sample:NAME"``, or anything else that `hindsight.open_source` reads.
    target : str or None
        The column to predict; None if the format has a fixed place for it (svmlight, Vowpal Wabbit).
    learners : tuple of (str, dict)
        Names in the table of learners, each with its options; see `choose_learners`. An empty tuple reads targets as
        they are: numbers, or labels.
    reading : dict, default {}
        Parameters of `hindsight.open_source`.
    intercept : bool, default True
        Whether to append a constant 1 to every row.
    passes : int, default 1
        The number of passes over the rows.
    scale : str, default "none"
        How rows are scaled before they are played: a key of `hindsight.rows.scaling.SCALES`.
    labels : tuple of str or None, default None
        The labels; None takes those found in the data.
    limit : int or None, default None
        The number of rows to take in each pass; None takes all.
    sample : float or None, default None
        The probability in (0, 1] with which each row is taken; None takes all.
    shuffle : bool, default False
        Whether the rows that are taken come in a random order, the same in every pass.
    seed : int, default 0
        Seed in [0, 2^64) of `sample` and `shuffle`.
    digest : bool, default False
        Whether to compute the SHA-256 of the data read.
    interval : float or None, default None
        The fraction of rows that prediction intervals, or sets of labels, should cover; None makes none.

    Examples
    --------
    >>> plan = Plan("rows.csv", "y", choose_learners(["widrow-hoff"], [0.1, 0.5]))
    >>> [describe_learner(learner) for learner in plan.make()][1]
    'widrow-hoff, implicit step, η = 0.5, loss square(1), geometry euclidean'
    """

    data: Any
    target: str | None
    learners: tuple[tuple[str, dict[str, Any]], ...]
    reading: dict[str, Any] = field(default_factory=dict)
    intercept: bool = True
    passes: int = 1
    scale: str = "none"
    labels: tuple[str, ...] | None = None
    limit: int | None = None
    sample: float | None = None
    shuffle: bool = False
    seed: int = 0
    digest: bool = False
    interval: float | None = None

    def __post_init__(self) -> None:
        if self.sample is not None and not 0.0 < self.sample <= 1.0:
            raise ValueError(f"sample, the part of the rows to take, must be above 0 and at most 1; got {self.sample}")
        if not 0 <= self.seed < 1 << 64:
            raise ValueError(f"seed must be a whole number from 0 to 2^64 - 1; got {self.seed}")

    @classmethod
    def from_options(
        cls, rows: RowOptions, learner: LearnerOptions, *, rejects: bool = False, digest: bool = False
    ) -> Plan:
        """The plan according to the options of the command."""
        for name in ("rounds", "lipschitz"):
            if getattr(learner, name) is not None:
                raise OptionError(name, f"is an option of {', '.join(BATCH_LEARNERS)}")
        learners = choose_learners(split(learner.learner), learner.etas, learner.options)
        labels = None if rows.labels is None else tuple(map(str, rows.labels))
        return cls(
            rows.data, rows.target, learners, rows.reading(rejects), learner.intercept, rows.passes, rows.scale, labels,
            rows.limit, rows.sample, rows.shuffle, rows.seed, digest,
            learner.interval,
        )  # fmt: skip

    @classmethod
    def of_one_learner(cls, options: Mapping[str, Any], of_rows: Collection[str] = ROW_OPTIONS) -> Plan:
        """The plan of one learner at one rate, from options by name; unknown ones are passed to the learner.

        `of_rows` are the options of rows that may be given.
        """
        rows = {name: value for name, value in options.items() if name in of_rows}
        own = {name: value for name, value in options.items() if name in LearnerOptions.own}
        more = {name: value for name, value in options.items() if name not in {*rows, *own}}
        learner = LearnerOptions(**own, more=more)
        check_choice("learner", learner.learner, LEARNERS)
        learner.one_eta()
        return cls.from_options(RowOptions(**rows), learner)

    @classmethod
    def from_settings(cls, settings: dict[str, Any], data: Any) -> Plan:
        """The plan with these `settings` over other data; a ModelError if they are invalid."""
        given: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in settings.items()}
        given.setdefault("interval", None)
        known = {f.name for f in fields(cls)} - {"digest"}
        want(set(given) == known, f"the settings must be {', '.join(sorted(known))}")
        want(isinstance(given["learners"], tuple), "the learners must be a list")
        given["learners"] = tuple(tuple(each) if isinstance(each, list) else each for each in given["learners"])
        check_types(cls, given)
        given["reading"] = check_reading(given["reading"])
        for name, options in given["learners"]:
            want(
                name in LEARNERS and set(options) <= set(options_of(name)), f"there is no learner {name!r:.40} like it"
            )
        return cls(**given | {"data": data})

    def settings(self) -> dict[str, Any]:
        """Every field that affects the result, as plain values; the interval only if one was asked for."""
        apart = ("digest",) if self.interval is not None else ("digest", "interval")
        given = vars(self) | {"data": self.where}
        return copy.deepcopy({f.name: as_lists(given[f.name]) for f in fields(self) if f.name not in apart})

    @property
    def where(self) -> Any:
        """The data as plain values: paths, or the kind of object."""
        if isinstance(self.data, os.PathLike):
            return os.fspath(self.data)
        if isinstance(self.data, (list, tuple)) and all(isinstance(path, (str, os.PathLike)) for path in self.data):
            return [os.fspath(path) for path in self.data]
        return self.data if isinstance(self.data, (str, type(None))) else f"rows in memory ({type(self.data).__name__})"

    def make(self) -> list[Learner]:
        """The learners."""
        return [LEARNERS[name].make(**options) for name, options in self.learners]

    def begin(self, features: int, count: int) -> list[list[Run]]:
        """Return `count` new runs for each learner."""
        runs = [[each.begin(features, self.intercept) for _ in range(count)] for each in self.make()]
        if self.interval is not None:
            from ..online.coverage import cover

            if len(runs) > 1:
                raise OptionError("interval", "takes one learner at one rate")
            cover(runs[0], self.interval)
        return runs

    def classify(self) -> bool:
        """Whether targets are labels; a ValueError if some learners need labels and others numbers."""
        kinds = {
            LEARNERS[name].task == "classify" or learner.targets in ("sign", "unit")
            for (name, _), learner in zip(self.learners, self.make(), strict=True)
        }
        if len(kinds) > 1:
            raise ValueError("some of these learners predict labels and others numbers: run them separately")
        return kinds == {True}

    @property
    def reread(self) -> bool:
        """Whether the rows can be read more than once."""
        return not (isinstance(self.data, str) and self.data == "-")

    def open(self, look_at_all: bool = False, **more: Any) -> Source:
        """Open the source; with `look_at_all`, the types of a table's columns are inferred from all rows.

        `more` are parameters of `open_source` that override those of the plan.
        """
        labels = None if not self.learners or self.classify() else False
        if isinstance(self.data, str) and self.data.startswith("sample:"):
            return SampleSource(self.data, self.target, labels)
        target = self.target
        if target is None and isinstance(self.data, tuple) and len(self.data) > 1:
            target = "y"  # they come with the rows
        if target is None:
            paths = self.data if isinstance(self.data, (list, tuple)) else [self.data]
            if not isinstance(paths[0], (str, os.PathLike)) or self._format(str(paths[0])) not in ("svmlight", "vw"):
                raise SourceError(f"{self.data}: say which column to predict: --target COLUMN")
            target = "label"  # such formats have a fixed place for it
        if look_at_all:
            more["scan"] = 0
        return open_source(self.data, target, labels=labels, digest=self.digest, **self.reading | more)

    def _format(self, path: str) -> str | None:
        form = self.reading.get("format") or file_format(path)
        if form is None and self.reading.get("strict") is False and (path == "-" or os.path.isfile(path)):
            form = found_format(path)
        return form

    def chunks(self, source: Source, start: dict[str, Any] | None = None, done: int = 0) -> Iterator[Chunk]:
        """The chunks of the source with the selected rows, after the position `start` and `done` rows before it."""
        if not self.shuffle:
            return limited(source, self._taken(source, start), self.limit, done)
        from .shuffle import shuffled

        return limited(source, shuffled(lambda: self._taken(source, None), self.seed, start), self.limit, done)

    def _taken(self, source: Source, start: dict[str, Any] | None) -> Iterator[Chunk]:
        return source.chunks(start) if self.sample is None else sampled(source.chunks(start), self.sample, self.seed)


def choose_learners(
    names: Sequence[str], etas: Sequence[float] | None = None, options: dict[str, Any] | None = None
) -> tuple[tuple[str, dict[str, Any]], ...]:
    """Combine every named learner with every rate, and with those of the options that it takes.

    Parameters
    ----------
    names : sequence of str
        Names in the table of learners.
    etas : sequence of float or None, default None
        The rates; None uses each learner's default.
    options : dict or None, default None
        Further options by name, as ``{"loss": "hinge"}``.

    Returns
    -------
    tuple of (str, dict)
        The `learners` of a `Plan`.

    Raises
    ------
    OptionError
        If a name is not in the table, or no learner takes one of the options.

    Examples
    --------
    >>> choose_learners(["perceptron", "eg"], [0.1], {"radius": 2.0})
    (('perceptron', {}), ('eg', {'radius': 2.0, 'eta': 0.1}))
    """
    options = options or {}
    if not names:
        raise OptionError("learner", f"must be one of {', '.join(LEARNERS)}")
    out: list[tuple[str, dict[str, Any]]] = []
    taken: set[str] = set()
    for name in names:
        check_choice("learner", name, LEARNERS)
        takes = options_of(name)
        rates = etas if etas is not None and "eta" in takes else [None]
        for rate in rates:
            mine = {k: v for k, v in options.items() if k in takes} | ({} if rate is None else {"eta": rate})
            taken |= set(mine)
            learner = LEARNERS[name].make(**mine)  # says what is wrong with a value
            if learner.loss.name == "perceptron" and learner.update.name == "implicit":
                raise OptionError(
                    "update",
                    "implicit never leaves w = 0 with the perceptron's loss: take --update explicit, or --loss hinge",
                )
            out.append((name, mine))
    for option in [*options, *(["eta"] if etas is not None else [])]:
        if option in taken:
            continue
        if len(out) > 1:
            raise OptionError(option, "is not an option of any of these learners")
        takes = options_of(out[0][0])
        known = ", ".join(name.replace("_", "-") for name in takes) or "none"
        raise OptionError(option, f"is not an option of {out[0][0]} (it takes: {known})")
    return tuple(out)


def options_of(name: str) -> list[str]:
    """The options that a learner of the table takes.

    Examples
    --------
    >>> options_of("widrow-hoff")
    ['eta', 'update', 'power', 'geometry']
    """
    return list(inspect.signature(LEARNERS[name].make).parameters)


def check_choice(option: str, value: str, choices: Collection[str]) -> None:
    """Raise an `OptionError`, with the nearest choice as a hint, if the value is not one of the choices."""
    if value not in choices:
        near = difflib.get_close_matches(value, choices, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise OptionError(option, f"must be one of {', '.join(choices)}; got {value!r}{hint}")


class Opened:
    """A source and its chunks; the first chunk with rows can be inspected before it is learnt.

    Parameters
    ----------
    plan : Plan
        Which rows are taken.
    source : Source
        The source, at its beginning.

    Attributes
    ----------
    chunks : iterator of Chunk
        The selected rows, from the first on; in the order of the source if it can be read again.
    """

    def __init__(self, plan: Plan, source: Source) -> None:
        self.source = source
        self.chunks = (replace(plan, shuffle=False) if source.reread else plan).chunks(source)

    def first(self) -> Chunk | None:
        """The first chunk with rows, which remains in `chunks`; None if there is none."""
        head: list[Chunk] = []
        while not (head and len(head[-1])) and (chunk := next(self.chunks, None)) is not None:
            head.append(chunk)
        self.chunks = itertools.chain(head, self.chunks)
        return head[-1] if head else None


def choose_loss(plan: Plan) -> tuple[Plan, list[str], Opened | None]:
    """Choose the loss, by the first targets, of learners that leave it open; returns the plan, notes, and the source.

    Targets that are text or have two values are labels and get the log loss; other targets get the square loss. The
    source was opened to inspect the targets; its rows can still be learnt, and it accepts labels too.
    """
    if not any(itertools.starmap(leaves_loss, plan.learners)):
        return plan, [], None
    loss, why, opened = "logistic", "labels were given", None
    if plan.labels is None:
        found, opened = first_targets(plan)
        numbers = found.dtype.kind == "f" or all(not math.isnan(label_number(str(v))) for v in found[:1000])
        why = f"the targets are {'text' if not numbers else 'two values' if found.size == 2 else 'numbers'}"
        if numbers and found.size != 2:
            loss, opened = "square", opened if found.dtype.kind == "f" else None  # whose targets are text
    return with_loss(plan, loss), [f"loss {loss}: {why} (--loss says otherwise)"], opened


def leaves_loss(name: str, options: dict[str, Any]) -> bool:
    """Whether the loss of a learner depends on the targets, because it has the option and no loss was given."""
    option = inspect.signature(LEARNERS[name].make).parameters.get("loss")
    given = options.get("loss", None if option is None else option.default)
    return given == "auto" or ("loss" not in options and given == "square")


def with_loss(plan: Plan, loss: str) -> Plan:
    """The plan with this loss for each learner whose loss depends on the targets."""
    learners = ((n, o | {"loss": loss} if leaves_loss(n, o) else o) for n, o in plan.learners)
    return replace(plan, learners=tuple(learners))


def first_targets(plan: Plan) -> tuple[np.ndarray, Opened | None]:
    """The distinct targets of the first rows, read until there are two; of standard input, of the rows available.

    The source is returned with them, unless more than its first chunk was read.
    """
    peek = replace(plan, learners=(), shuffle=False)
    if plan.reread:
        opened = Opened(peek, peek.open())
        try:
            chunk = opened.first()
            found = different_targets([] if chunk is None else [targets_of(chunk)])
            return (found, opened) if len(found) > 1 else (values_until_two(peek, opened.source), None)
        except DisprovedError:  # later rows contradict the inferred column types
            return values_until_two(peek, peek.open(look_at_all=True)), None
    with tempfile.TemporaryDirectory() as folder:
        lines = standard_input().peek(1 << 16, lines=20).rpartition(b"\n")[0]
        path = Path(folder) / f"rows.{plan.reading.get('format') or 'csv'}"
        path.write_bytes(lines + b"\n")
        return first_targets(replace(peek, data=str(path), digest=False))[0], None


def values_until_two(plan: Plan, source: Source) -> np.ndarray:
    """The distinct targets up to the chunk in which a second one appears."""
    found = different_targets([])
    for chunk in plan.chunks(source):
        found = different_targets([found, targets_of(chunk)])
        if len(found) > 1:
            return found
    if not len(found):
        raise SourceError(f"{plan.data}: there is no row to learn from")
    return found


def different_targets(targets: list[np.ndarray]) -> np.ndarray:
    """The distinct targets that are not missing; all as text if some are text."""
    return np.unique(np.concatenate(alike([y[labelled(y)] for y in targets if len(y)] or [np.zeros(0)])))


def describe_learner(learner: Learner) -> str:
    """A learner and its settings, in one line.

    Examples
    --------
    >>> from hindsight.online.learners import eg
    >>> describe_learner(eg(eta=0.2, radius=3.0))
    'eg, explicit step, η = 0.2, loss square(1), geometry balanced of radius 3'
    """
    if isinstance(learner, Panel):
        names = Counter(member.name for member in learner.members)
        each = ", ".join(f"{count} {name}" if count > 1 else name for name, count in names.items())
        limit = f" (those with a matrix up to {learner.limit} coordinates)" if learner.limit else ""
        drift = f", drift {learner.drift:g}" if learner.drift else ""
        return f"{learner.name}: {each}{limit}, loss {part_name(learner.loss)}{drift}"
    step, geometry = learner.rate, learner.geometry
    rate = f"η = {step.eta:g}" + (f"·t^−{step.power:g}" if step.power else "")
    if step.rates.size:
        rate = f"{step.rates.size:,} given rates"
    values = ", ".join(f"{float(value):g}" for value in learner.loss if isinstance(value, float))
    parts = [learner.name, f"{part_name(learner.update)} step", rate, f"loss {part_name(learner.loss)}({values})"]
    radius = f" of radius {geometry.radius:g}" if geometry.multiplicative else ""
    parts.append(f"geometry {part_name(geometry)}{radius}")
    parts += [f"{name} = {value:g}" for name, value in zip(("l1", "l2"), penalties_of(learner), strict=False) if value]
    return ", ".join(parts)


def describe_cells(runs: Sequence[Any], names: Sequence[Any] | None) -> str:
    """The columns and pairs whose cells affect predictions most, with their mean effect; empty without cells.

    The effects of several runs are averaged.
    """
    if getattr(runs[0], "cells", None) is None:
        return ""
    effects: Counter[str] = Counter()
    for run in runs:
        for table in run.cell_tables(names):
            effects[" × ".join(map(str, table.columns))] += table.effect / len(runs)
    shown = ", ".join(f"{name} {brief(effect)}" for name, effect in effects.most_common(MOVING))
    return shown + (f", … ({len(effects)} columns and pairs)" if len(effects) > MOVING else "")


def short_names(learners: Sequence[Learner]) -> list[str]:
    """Short, numbered names of several learners.

    Examples
    --------
    >>> from hindsight.online.learners import eg, perceptron
    >>> short_names([perceptron(), eg(eta=0.2)])
    ['[1] perceptron', '[2] eg η = 0.2']
    """
    out = []
    for k, learner in enumerate(learners, 1):
        rate = "" if isinstance(learner, Panel) or learner.rate.eta == 1.0 else f" η = {learner.rate.eta:g}"
        out.append(f"[{k}] {learner.name}{rate}")
    return out


def penalties_of(learner: Learner) -> tuple[float, ...]:
    """The penalties l1 and l2 of a learner; empty if it has none."""
    geometry = learner.geometry
    return (geometry.l1, geometry.l2) if isinstance(geometry, Penalised) else ()


def part_name(part: Any) -> str:
    """The name of a loss, an update or a geometry, or of its class if it has none."""
    return str(getattr(part, "name", type(part).__name__.lower()))
