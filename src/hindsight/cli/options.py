"""The options of `hindsight learn`, grouped: which rows, which learner, which results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from typer.core import TyperCommand

from ..errors import OptionError
from .text import split

if TYPE_CHECKING:
    from collections.abc import Collection

    from ..training.outputs import Destinations
    from ..training.plan import Plan
    from ..training.session import Compare


@dataclass(frozen=True)
class RowOptions:
    """Which rows to read, and how."""

    data: str
    target: str | None
    weight: str | None
    features: str | None
    ignore: str | None
    categorical: str
    missing: str | None
    labels: str | None
    format: str | None
    header: bool | None
    hash_bits: int | None
    scale: str
    limit: int | None
    sample: float | None
    seed: int
    passes: int
    strict: bool = False
    types: str | None = None
    separator: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    na: str | None = None
    shuffle: bool = False
    cross: tuple[str, ...] = ()

    def reading(self, rejects: bool) -> dict[str, Any]:
        """The parameters of `open_source`."""
        return {
            "weight": self.weight,
            "features": None if self.features is None else split(self.features),
            "ignore": split(self.ignore or ""),
            "categorical": "auto" if self.categorical == "auto" else split(self.categorical),
            "missing": self.missing or ("error" if self.strict else "indicator"),
            "format": self.format,
            "header": True if self.strict and self.header is None else self.header,
            "hash_bits": self.hash_bits,
            "rejects": rejects,
            "strict": self.strict,
            "types": types_of(self.types),
            "separator": separator_of(self.separator),
            "encoding": self.encoding,
            "decimal": self.decimal,
            "cross": [split(pair) for pair in self.cross],
            "na": [] if self.na is None else [word.strip() for word in self.na.split(",")],
        }


def types_of(text: str | None) -> dict[str, str]:
    """The types in ``age:number,when:date(%d/%m/%Y)``."""
    out = {}
    for part in split(text or ""):
        name, colon, kind = part.rpartition(":") if "(" not in part else part.partition(":")
        if not colon or not name:
            raise OptionError("types", f"must be as age:number,zip:category; got {part!r}")
        out[name.strip()] = kind.strip()
    return out


def separator_of(text: str | None) -> str | None:
    """The separator, which may be spelt out."""
    return {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}.get(text or "", text)


@dataclass(frozen=True)
class LearnerOptions:
    """Which learners, with which settings; `options` are those that only some learners take."""

    names: str
    eta: str | None
    options: dict[str, Any]
    intercept: bool
    rounds: int | None
    lipschitz: float | None

    def etas(self) -> list[float] | None:
        """The rates."""
        if self.eta is None:
            return None
        try:
            return [float(part) for part in split(self.eta)]
        except ValueError:
            raise OptionError("eta", f"must be a number above 0, or several: 0.01,0.1; got {self.eta!r}") from None


@dataclass(frozen=True)
class ResultOptions:
    """What to print and to write."""

    certify: bool
    report: str | None
    save: str | None
    predictions: str | None
    rejects: str | None
    checkpoint: str | None
    every: int
    resume: bool
    progress: str
    as_json: bool
    compare: bool = False
    bounds: str | None = None

    def comparing(self) -> Compare | None:
        """How learners are to be compared, if at all."""
        from ..training.session import Compare

        if not self.compare:
            if self.bounds is not None:
                raise OptionError("bounds", "is for --compare")
            return None
        from .forecasts import pair_of_numbers

        return Compare(None if self.bounds is None else pair_of_numbers(self.bounds))

    def destinations(self) -> Destinations:
        """The files to write."""
        from ..training.outputs import Destinations

        if self.resume and self.checkpoint is None:
            raise OptionError("resume", "needs the folder of the checkpoints: --checkpoint DIR")
        return Destinations(
            self.save, self.report, self.predictions, self.rejects, self.checkpoint, self.every, self.resume
        )


def plan_of(rows: RowOptions, learner: LearnerOptions, results: ResultOptions) -> Plan:
    """What was asked for."""
    from ..training.plan import Plan, choose_learners

    return Plan(
        rows.data,
        rows.target,
        choose_learners(split(learner.names), learner.etas(), learner.options),
        rows.reading(results.rejects is not None),
        learner.intercept,
        rows.passes,
        rows.scale,
        None if rows.labels is None else tuple(split(rows.labels)),
        rows.limit,
        rows.sample,
        rows.shuffle,
        rows.seed,
        digest=results.save is not None or results.checkpoint is not None,
    )


class LearnHelp(TyperCommand):
    """A command whose help names what is registered when it is printed.

    In the help of a parameter, {learners}, {losses} and so on stand for the names in these tables, and {takers} for the
    learners that take the parameter as an option.
    """

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Fill in the names, and print."""
        from ..online import learners, parts
        from ..rows.scaling import SCALES
        from ..sources.base import MISSING_RULES
        from ..sources.opening import FORMATS
        from ..training.batch import BATCH_LEARNERS
        from ..training.plan import options_of
        from .progress import SHOWS

        tables: dict[str, Collection[str]]
        tables = {"learners": learners.LEARNERS, "losses": parts.LOSSES, "updates": parts.UPDATES}
        tables |= {"geometries": parts.GEOMETRIES, "links": parts.LINKS, "batch": BATCH_LEARNERS}
        tables |= {"scales": SCALES, "formats": FORMATS, "missing": MISSING_RULES, "shows": SHOWS}
        names = {table: ", ".join(entries) for table, entries in tables.items()}
        for parameter in self.params:
            names["takers"] = ", ".join(name for name in learners.LEARNERS if parameter.name in options_of(name))
            text = getattr(parameter, "help", None)
            if text:
                parameter.help = text.format(**names)  # type: ignore[attr-defined]
        super().format_help(ctx, formatter)
