"""`hindsight density` and `hindsight duel`."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import OptionError
from ..training.options import option
from .application import verb
from .text import check_chart, lines_of_csv, place_in_file, print_lines, print_title, status_of, written

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy as np

    from ..estimators.duel import DuelCurve


@dataclass(frozen=True)
class DensityOptions:
    """Which columns of a table are modelled, by which density, and what is written."""

    source: str = option("A table with named columns, or sample:NAME.", argument=True, metavar="FILE")
    columns: str | None = option(
        "name:family, several with commas; a+b:gaussian models columns together. Families: gaussian, "
        "categorical, categorical(24), categorical(red|green), bernoulli, poisson, exponential, gamma(2), "
        "histogram(low|high|bins), ngram(3)."
    )
    key: str | None = option("One density for each value of this column.")
    forget: float | None = option("Factor in (0, 1] by which old rows are discounted at each row.  [1]")
    origin: str | None = option(
        "Go on with this density; --columns, --key and --forget are its.", "--from", metavar="MODEL"
    )
    save: str | None = option("Keep the density in a file.", metavar="MODEL")
    score: str | None = option("Write the rows with a column log_density (nats).", metavar="OUT.csv")
    as_json: bool = option("Print the certificate as JSON alone.", "--json", default=False)


@verb()
def density(how: DensityOptions) -> int:
    """Model the distribution of columns; every row is predicted before it is learnt, and the log loss is certified.

    Prints what was learnt, the log loss in nats and bits per row, and how much more that is than the best fixed
    distribution in hindsight pays. A low log density in --score is an unusual row. The exit status is 1 only if a bound
    is BROKEN.
    """
    from ..density import Keyed
    from ..density.spec import as_symbols
    from ..errors import RowError
    from ..storage.container import write_text
    from ..training.outputs import check_outputs

    source, model = how.source, new_density(how) if how.origin is None else known_density(how, how.origin)
    origin = [] if how.save == how.origin else [how.origin]
    check_outputs({"score": how.score, "save": how.save}, source, *origin)
    keyed = isinstance(model, Keyed)
    product = model.inner if keyed else model
    data = read_table(source, [*modelled_columns(product), *([model.key] if keyed else [])])
    for k, part in product.densities.items():
        if not isinstance(k, tuple):
            data[k] = as_symbols(part, data[k])
    try:
        scores = model.progressive(data)
    except RowError as error:
        raise ValueError(f"{place_in_file(source, error.row)}{error.message}") from None
    certificate = certificate_of(model)
    if how.save is not None:
        model.save(how.save)
    if how.as_json:
        print(as_json(model, certificate))
    else:
        print_title(source, f"{len(scores):,} rows")
        print_lines(described(model, certificate))
    if how.score is not None:
        write_text(how.score, lines_of_csv(scored(source, data, scores)))
    if not how.as_json:
        print_lines(written(scores=how.score, density=how.save))
    return status_of(certificate)


def new_density(how: DensityOptions) -> Any:
    """The density of a specification, without rows."""
    from ..density import Keyed
    from ..density.spec import parse

    if how.columns is None:
        raise OptionError("columns", "is missing: say which density each column has, or --from MODEL")
    product = parse(how.columns, 1.0 if how.forget is None else how.forget)
    if how.key in modelled_columns(product):
        raise OptionError("key", f"{how.key}: the key cannot be modelled too")
    return product if how.key is None else Keyed(product, how.key)


def known_density(how: DensityOptions, origin: str) -> Any:
    """The density of a file, over named columns."""
    from ..density import Keyed, Product
    from ..storage.model import load

    for name in ("columns", "key", "forget"):
        if getattr(how, name) is not None:
            raise OptionError(name, "cannot be given with --from: it is settled by the model")
    found = load(origin)
    if not isinstance(found.inner if isinstance(found, Keyed) else found, Product):
        raise ValueError(f"{origin}: holds {found!r}, where a density over named columns (a Product) is needed")
    return found


def modelled_columns(product: Any) -> list[str]:
    """The names of all columns of a product."""
    return [name for k in product.densities for name in (k if isinstance(k, tuple) else (k,))]


def certificate_of(model: Any) -> Any:
    """The certificate of a density; None for keyed densities with forgetting, for which no theorem is known."""
    from ..density import Keyed

    return None if isinstance(model, Keyed) and model.fades else model.certificate()


def described(model: Any, certificate: Any) -> list[str]:
    """The description of a density, its log loss, and its certificate, as lines of text."""
    from ..density import Product

    parts = zip(model.names, model.densities.values(), strict=True) if isinstance(model, Product) else []
    learnt = [f"  {name}: {part.name} {part.describe()}" for name, part in parts] or [f"  {model.describe()}"]
    loss = f"log loss {model.loss:.6g} nats, {model.bits_per_row:.6g} bits per row"
    void = ["VOID: old rows of each key fade, nothing is promised"]
    return [
        *learnt,
        f"{loss}, each predicted before it was learnt",
        "",
        *(certificate.lines() if certificate else void),
    ]


def as_json(model: Any, certificate: Any) -> str:
    """The log loss of a density, and its certificate."""
    import json

    plain = {"loss": model.loss, "bits_per_row": model.bits_per_row, "certificate": None}
    return json.dumps(plain if certificate is None else plain | {"certificate": certificate.to_dict()})


def inspected(path: str, model: Any, json: bool) -> str:
    """The description of a density file for `hindsight inspect`."""
    if not model.rows:
        raise ValueError(f"{path}: holds {model!r}: there is nothing to show yet")
    certificate = certificate_of(model)
    return as_json(model, certificate) if json else "\n".join([path, *described(model, certificate)])


def read_table(source: str, names: list[str]) -> dict[str, Any]:
    """The columns by name."""
    from ..sources import load_sample, read_columns

    if not source.startswith("sample:"):
        return read_columns(source, names)
    rows = load_sample(source.removeprefix("sample:"), None)
    for name in names:
        if name not in rows.names:
            raise ValueError(f"{source}: there is no column {name!r} (columns: {', '.join(rows.names)})")
    return {name: rows.X[:, rows.names.index(name)] for name in names}


def scored(source: str, data: dict[str, Any], scores: np.ndarray) -> Iterator[Iterable[Any]]:
    """The unchanged rows of a CSV file, or the columns that were read, with their log densities; first the names."""
    import numpy as np

    if Path(source).suffix == ".csv":
        with Path(source).open(encoding="utf-8-sig", newline="") as given:
            records = (record for record in csv.reader(given) if record)
            yield [*next(records), "log_density"]
            yield from ([*r, repr(float(p))] for r, p in zip(records, scores, strict=True))
    else:
        yield [*data, "log_density"]
        columns = [np.asarray(values).tolist() for values in data.values()]
        yield from zip(*columns, map(float, scores), strict=True)


@dataclass(frozen=True)
class DuelOptions:
    """Which rows, and the settings of both sides."""

    source: str = option("A table, or sample:breast-cancer|digits.", argument=True, metavar="FILE")
    target: str | None = option("The column to predict: a label.")
    family: str = option(
        "The density of each class: gaussian, tied (one variance), full, bernoulli, poisson or exponential.",
        "--density", default="gaussian",
    )  # fmt: skip
    eta: float = option("The rate η of logistic regression, above 0; it falls as η/√t.", default=0.5)
    shuffle: int | None = option("Shuffle the rows by this seed (files are often sorted).")
    chart: str | None = option("Draw the curves: .png, .svg or .html.", metavar="FILE")


@verb()
def duel(how: DuelOptions) -> None:
    """Bayes' rule with one density per class (generative) against logistic regression (discriminative) on one stream.

    Both predict every row before they learn it. The generative way needs fewer rows if its assumption on the
    distribution is right: see which one leads after 10, 100, 1,000, ... rows.
    """
    import numpy as np

    from .. import charts
    from ..errors import RowError
    from ..estimators.duel import check_density, duel, stations
    from ..sources import label_text
    from ..training.plan import Plan
    from ..training.prepare import MANY, read_all

    source, family, chart = how.source, how.family, how.chart
    check_chart(chart, source)
    check_density(family)
    X, y, _, _, place = read_all(Plan(source, how.target, ()))
    if not isinstance(X, np.ndarray):
        raise ValueError(f"{source}: these rows are sparse: a duel takes a table of numbers")
    X, y, order = np.ascontiguousarray(X, np.float64), label_text(y), np.arange(len(X))
    if how.shuffle is not None:
        order = np.random.default_rng(how.shuffle).permutation(len(X))
        X, y = X[order], y[order]
    if len(np.unique(y)) > MANY:
        raise ValueError(f"{source}: the target has {len(np.unique(y)):,} different values: a duel needs labels")
    try:
        first, second = duel(X, y, family, how.eta)
    except RowError as error:
        raise ValueError(f"{place(int(order[error.row]))}{error.message}") from None
    print_title(source, f"{X.shape[0]:,} rows × {X.shape[1]:,} features")
    parts = f"{'log loss':>14}{'mistakes':>10}"
    head = [
        f"  generative: Bayes' rule, {family} densities; discriminative: logistic regression, η = {how.eta:g}/√t",
        f"{'':>10}  {'generative':>24}  {'discriminative':>24}  {'leads':>14}  {'leads':<14}",
    ]
    print_lines(head)
    print_lines([f"{'rows':>10}  {parts}  {parts}  {'by log loss':>14}  {'by mistakes':<14}"], "bold")
    for t in stations(len(X)):
        cells = [f"{curve.mean(t):>14.4f}{curve.errors(t):>10,}" for curve in (first, second)]
        by_loss, by_mistakes = leads(first.mean(t), second.mean(t)), leads(first.errors(t), second.errors(t))
        print_lines([f"{t:>10,}  {cells[0]}  {cells[1]}  {by_loss:>14}  {by_mistakes:<14}"])
    if chart is not None:
        charts.save(charts.styled(duel_chart(first, second, source, family)), chart)
        print_lines(written(chart=chart))


def leads(first: float, second: float) -> str:
    """The name of the one with the smaller value."""
    return "even" if first == second else ("generative" if first < second else "discriminative")


def duel_chart(first: DuelCurve, second: DuelCurve, source: str, family: str) -> Any:
    """Mean log loss and fraction of mistakes so far, over the rows seen."""
    import numpy as np

    from .. import charts

    last = len(first.losses)
    stops = np.unique(np.geomspace(min(5, last), last, 200).astype(int)).tolist()

    def panel(title: str, value: str, what: str) -> Any:
        curves = {c.name: [(t, getattr(c, value)[:t].mean().item()) for t in stops] for c in (first, second)}
        return charts.learning_curves(curves, title, f"{source}, {family} densities against logistic regression", what)

    losses = panel("Log loss so far", "losses", "mean log loss (nats)")
    return losses | panel("Mistakes so far", "mistakes", "fraction of mistakes")
