"""The options of learning, each declared once: rows, learners and results.

The command ``hindsight learn`` derives its options from these records, `hindsight.learn` takes the same names as
keywords, and services use some of them. This module imports nothing that is slow to import.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from typing import Any, ClassVar, NamedTuple

from ..errors import OptionError

# The options of rows that `hindsight.open_source` takes too, in the order in which they are saved.
OF_READING = (
    *("weight", "features", "ignore", "categorical", "missing", "format", "header", "hash_bits", "rejects", "strict"),
    *("types", "separator", "encoding", "decimal", "cross", "na"),
)
BATCH_LEARNERS = ("isotron",)  # learners that read all rows before the first step


class Spelling(NamedTuple):
    """How an option is given on the command line.

    Parameters
    ----------
    help : str
        The help text; a name in braces stands for the entries of a table, filled in when the help is printed.
    names : tuple of str
        Names on the command line; if empty, the name follows from the field.
    read : callable or None
        Converts the text to a value; None leaves that to the type of the field.
    several : bool
        Whether it may be given several times.
    argument : bool
        Whether it is a required argument rather than an option.
    more : dict
        Further parameters of `typer.Option`, such as `metavar` and `min`.
    """

    help: str
    names: tuple[str, ...]
    read: Callable[[Any], Any] | None
    several: bool
    argument: bool
    more: dict[str, Any]


def option(
    text: str,
    *names: str,
    default: Any = None,
    read: Callable[[Any], Any] | None = None,
    several: bool = False,
    argument: bool = False,
    **more: Any,
) -> Any:
    """A field of a record of options; see `Spelling`."""
    return field(default=default, metadata={"spelling": Spelling(text, names, read, several, argument, more)})


def spelling(of: Field[Any]) -> Spelling:
    """The spelling of the option that a field declares."""
    found: Spelling = of.metadata["spelling"]
    return found


# ---------------------------------------------------------------- text of the command line


def split(text: str) -> list[str]:
    """The parts of ``A,B,C``, without spaces around them."""
    return [part.strip() for part in text.split(",") if part.strip()]


def types_of(text: str) -> dict[str, str]:
    """The types in ``age:number,when:date(%d/%m/%Y)``."""
    out = {}
    for part in split(text):
        name, colon, kind = part.rpartition(":") if "(" not in part else part.partition(":")
        if not colon or not name:
            raise OptionError("types", f"must be as age:number,zip:category; got {part!r}")
        out[name.strip()] = kind.strip()
    return out


def separator_of(text: str) -> str:
    """The separator, which may be spelt out."""
    return {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}.get(text, text)


def words_of(text: str) -> list[str]:
    """The parts of ``A,B,C``, which may include an empty one."""
    return [word.strip() for word in text.split(",")]


def categories_of(text: str) -> list[str] | str:
    """Columns, or "auto"."""
    return text if text == "auto" else split(text)


def rates_of(text: str) -> list[float]:
    """The rates in ``0.01,0.1``."""
    try:
        return [float(part) for part in split(text)]
    except ValueError:
        raise OptionError("eta", f"must be a number above 0, or several: 0.01,0.1; got {text!r}") from None


def part_of(text: str) -> float:
    """A percentage as a fraction."""
    try:
        part = float(text) / 100.0
    except ValueError:
        part = 0.0
    if not 0.01 <= part < 1.0:
        raise OptionError("interval", f"must be in per cent, from 1 to below 100, as 90; got {text!r}")
    return part


def pair_of_numbers(text: str) -> tuple[float, float]:
    """LOW,HIGH as two numbers."""
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise OptionError("bounds", f"must be LOW,HIGH, two numbers; got {text!r}") from None
    return low, high


# ---------------------------------------------------------------- the records


@dataclass(frozen=True)
class RowOptions:
    """Which rows to read, and how."""

    title: ClassVar = "Rows"

    data: Any = option(  # noqa: RUF009
        "CSV, TSV, Parquet, Arrow, JSON, svmlight, Vowpal Wabbit text, npy or npz, gzip, zstd or zip too; "
        "a folder of such files, or of a service; - for standard input; or sample:diabetes|breast-cancer|digits.",
        argument=True, metavar="FILE",
    )  # fmt: skip
    target: str | None = option("The column to predict.")
    weight: str | None = option("The column with the importance of each row.")
    features: Sequence[str] | None = option("Columns to learn from: A,B,C (all others if not given).", read=split)
    ignore: Sequence[str] = option("Columns to leave out: A,B,C.", default=(), read=split)
    types: Mapping[str, str] | None = option(
        "What columns hold: age:number,zip:category,note:text,when:date,id:ignore (else it is found).", read=types_of
    )
    categorical: Sequence[str] | str = option(
        "Columns of categories: A,B,C, or auto (those with text).", default=(), read=categories_of
    )
    missing: str | None = option("What to do with a missing value: {missing} (indicator; with --strict error).")
    na: Sequence[str] = option("Further words for a missing value: A,B,C.", default=(), read=words_of)
    cross: Sequence[Sequence[str]] = option(
        "Products of two columns as features: A,B; may be given several times.", "--cross", "-q", default=(),
        read=lambda pairs: [split(pair) for pair in pairs], several=True,
    )  # fmt: skip
    labels: Sequence[str] | None = option("The labels: A,B,C (those found if not given).", read=split)
    format: str | None = option("The format: {formats}.")
    header: bool | None = option("Whether the first line names the columns (else 1, 2, ...).", "--header/--no-header")
    separator: str | None = option("What separates fields: one character, tab or space.", read=separator_of)
    encoding: str | None = option("The encoding of text, as latin-1.")
    decimal: str | None = option("The decimal sign: . or a comma.")
    strict: bool = option("Take only UTF-8, commas, a header, numbers and no missing value.", "--strict", default=False)
    hash_bits: int | None = option("Hash sparse features to 2^BITS columns.", "--hash")
    scale: str = option("How to scale rows: {scales}.", default="none")
    limit: int | None = option("The most rows to take.", min=1)
    sample: float | None = option("Take each row with this probability, the same rows in every pass.")
    shuffle: bool = option("Learn from the rows in a random order.", "--shuffle", default=False)
    seed: int = option("Seed of --sample and --shuffle.", default=0, min=0)
    passes: int = option("The number of passes over the rows.", default=1, min=1)

    def reading(self, rejects: bool = False) -> dict[str, Any]:
        """The parameters of `hindsight.open_source`."""
        given = {name: as_lists(getattr(self, name, rejects)) for name in OF_READING}
        given["missing"] = self.missing or ("error" if self.strict else "indicator")
        given["types"] = dict(self.types or {})
        return given | ({"header": True} if self.strict and self.header is None else {})


def as_lists(value: Any) -> Any:
    """A value of an option, in which sequences are lists."""
    plain = isinstance(value, (str, Mapping)) or not isinstance(value, Iterable)
    return value if plain else [as_lists(each) for each in value]


@dataclass(frozen=True)
class LearnerOptions:
    """The learners and their settings; `more` are options of the learner by name, declared or not."""

    title: ClassVar = "Learner"
    own: ClassVar = (
        "learner",
        "eta",
        "intercept",
        "interval",
        "rounds",
        "lipschitz",
    )  # not options of a single learner

    learner: str = option("One of {learners} (or {batch}, in batches); several: A,B.", default="auto")
    eta: Sequence[float] | float | None = option("The rate η, above 0; several: 0.01,0.1.", read=rates_of)
    power: float = option("Rates fall as η·t^−power.", default=0.0)
    update: str | None = option("{takers}: one of {updates}.")
    loss: str | None = option("{takers}: one of {losses}.")
    geometry: str | None = option("{takers}: one of {geometries}.")
    l1: float | None = option("{takers}: penalty l1·|w|₁ in each round; makes weights exactly 0.")
    l2: float | None = option("{takers}: penalty l2·|w|²/2 in each round.")
    quantile: float | None = option("--loss quantile: which, between 0 and 1 (0.5).")
    delta: float | None = option("--loss huber: from where on errors count linearly (1).")
    radius: float | None = option("{takers}: L1 norm of signed weights.")
    margin: float | None = option("{takers}: a margin between 0 and 1 that sets η.")
    link: str | None = option("{takers}: one of {links}.")
    second_order: str | None = option("{takers}: whether members with a matrix join: auto, yes, no.")
    kappa: float | None = option("{takers}: the prior, or the part of the curvature.")
    prior: float | None = option("{takers}: the prior.")
    window: int | None = option("{takers}: forget 1/N with each row, N at least 2; 0 forgets nothing.", metavar="N")
    drift: float | None = option("{takers}: weight that members share again after each row, as 0.001.")
    cells: bool | None = option(
        "{takers}: members that see numeric columns cut at quantiles, and pairs of them.", "--cells"
    )
    intercept: bool = option("A constant coordinate 1 ({batch} has none).", default=True)
    interval: float | None = option(
        "Ranges of predictions (sets of labels) that cover so many per cent of the rows, as 90.", read=part_of,
        metavar="PERCENT",
    )  # fmt: skip
    rounds: int | None = option("{batch}: passes over all rows (100 if not given).", min=1)
    lipschitz: float | None = option("{batch}: the largest slope of its link.")
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def options(self) -> dict[str, Any]:
        """The options given that only some learners take."""
        apart = (*self.own, "power", "more")
        some = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in apart}
        given = {name: value for name, value in some.items() if value is not None}
        return given | ({"power": self.power} if self.power else {}) | dict(self.more)

    @property
    def etas(self) -> list[float] | None:
        """The rates."""
        if self.eta is None or isinstance(self.eta, Sequence):
            return None if self.eta is None else list(self.eta)
        return [self.eta]

    def one_eta(self) -> float | None:
        """The single rate; an OptionError if there are several."""
        if self.etas is not None and len(self.etas) != 1:
            shown = ",".join(f"{eta:g}" for eta in self.etas)
            raise OptionError("eta", f"must be a number above 0; got {shown!r}")
        return None if self.etas is None else self.etas[0]


@dataclass(frozen=True)
class ResultOptions:
    """What to compute besides the model, what to print, and the files to write; None for a file not wanted."""

    title: ClassVar = "Results"

    compare: bool = option(
        "Compare several learners: for every pair an interval, valid at every time.", "--compare", default=False
    )
    bounds: tuple[float, float] | None = option(
        "--compare: where all targets lie, if they are numbers.", read=pair_of_numbers, metavar="LOW,HIGH"
    )
    certify: bool = option("Print the certificate.", "--certify", default=False)
    report: str | None = option("Certify, and write a report in HTML.", metavar="PAGE")
    save: str | None = option("Write the model.", metavar="MODEL")
    predictions: str | None = option(
        "Write each row's target, and its prediction before it was learnt: .csv, .jsonl or .parquet."
    )
    rejects: str | None = option("Write bad rows here, and continue.", metavar="FILE")
    checkpoint: str | None = option("Write checkpoints here.", metavar="DIR")
    every: int = option("Rows between checkpoints.", default=1_000_000, min=1)
    resume: bool = option("Resume from the newest checkpoint.", "--resume", default=False)
    progress: str = option("Progress on standard error: {shows}.", default="auto")
    details: bool = option(
        "Print all that is known: every column, member and norm, and the sums of the theorem.", "--details",
        default=False,
    )  # fmt: skip
    as_json: bool = option("Print the result as JSON.", "--json", default=False)

    @property
    def quiet(self) -> bool:
        """Whether to print nothing but the result."""
        return self.progress in ("none", "json")

    @property
    def written(self) -> list[str]:
        """A description of the files written at the end."""
        paths = {"model": self.save, "report": self.report}
        return [f"{what}: {path}" for what, path in paths.items() if path is not None]

    @property
    def certifies(self) -> bool:
        """Whether certificates are computed, as a result or for the report."""
        return self.certify or self.report is not None

    @property
    def digest(self) -> bool:
        """Whether to compute the SHA-256 of the data read."""
        return self.save is not None or self.checkpoint is not None


@dataclass(frozen=True)
class ClusterOptions:
    """The cluster to learn on, if not in this process."""

    title: ClassVar = "Cluster"

    cluster: str | None = option("Learn on a Dask cluster, as tcp://HOST:8786.")
    workers: int | None = option("Learn in so many processes, by Dask.", min=1)
