"""`hindsight density` and `hindsight duel`."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from ..errors import OptionError
from .application import app, one_line_errors
from .text import lines_of_csv, place_in_file, print_lines, print_title

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy as np

    from ..estimators.duel import Curve


@app.command()
def density(
    source: Annotated[str, typer.Argument(metavar="FILE", help="A table with named columns, or sample:NAME.")],
    columns: Annotated[
        str,
        typer.Option(
            help="name:family, several with commas; a+b:gaussian models columns together. Families: gaussian, "
            "categorical, categorical(24), categorical(red|green), bernoulli, poisson, exponential, gamma(2), "
            "histogram(low|high|bins), ngram(3)."
        ),
    ],
    key: Annotated[str | None, typer.Option(help="One density for each value of this column.")] = None,
    forget: Annotated[float, typer.Option(help="Factor in (0, 1] by which old rows are discounted at each row.")] = 1.0,
    score: Annotated[
        str | None, typer.Option(metavar="OUT.csv", help="Write the rows with a column log_density (nats).")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the certificate as JSON alone.")] = False,
) -> None:
    """Model the distribution of columns; every row is predicted before it is learnt, and the log loss is certified.

    Prints what was learnt, the log loss in nats and bits per row, and how much more that is than the best fixed
    distribution in hindsight pays. A low log density in --score is an unusual row. The exit status is 1 only if a bound
    is BROKEN.
    """
    with one_line_errors():
        broken = _density(source, columns, key, forget, score, json)
    if broken:
        raise typer.Exit(1)


def _density(source: str, text: str, key: str | None, forget: float, score: str | None, json: bool) -> bool:
    from ..certificates.theorems import Verdict
    from ..density import Keyed
    from ..density.spec import parse, texts
    from ..errors import RowError
    from ..training.outputs import check_destination, check_outputs

    product = parse(text, forget)
    names = [name for k in product.densities for name in (k if isinstance(k, tuple) else (k,))]
    if key in names:
        raise OptionError("key", f"{key}: the key cannot be modelled too")
    check_outputs({"score": score}, source)
    if score is not None:
        check_destination(score)
    data = table(source, [*names, *([] if key is None else [key])])
    for k, part in product.densities.items():
        if not isinstance(k, tuple):
            data[k] = texts(part, data[k])
    model: Any = product if key is None else Keyed(product, key)
    try:
        scores = model.progressive(data)
    except RowError as error:
        raise ValueError(f"{place_in_file(source, error.row)}{error.message}") from None
    certificate = None if key is not None and forget < 1.0 else model.certificate()
    console = Console()
    if json:
        import json as written

        plain = {"loss": model.loss, "bits_per_row": model.bits_per_row, "certificate": certificate}
        plain["certificate"] = None if certificate is None else certificate.to_dict()
        print(written.dumps(plain))
    else:
        print_title(console, source, f"{model.rows:,} rows")
        parts = zip(product.names, product.densities.values(), strict=True)
        learnt = [f"{n}: {p.name} {p.describe()}" for n, p in parts] if key is None else [model.describe()]
        print_lines(console, [f"  {line}" for line in learnt])
        loss = f"log loss {model.loss:.6g} nats, {model.bits_per_row:.6g} bits per row"
        void = ["VOID: old rows of each key fade, nothing is promised"]
        lines = void if certificate is None else certificate.lines()
        print_lines(console, [f"{loss}, each predicted before it was learnt", "", *lines])
    if score is not None:
        write_scores(source, score, data, scores)
        if not json:
            print_lines(console, [f"scores: {score}"])
    return certificate is not None and certificate.verdict is Verdict.BROKEN


def table(source: str, names: list[str]) -> dict[str, Any]:
    """The columns by name."""
    from ..sources import load_sample, read_columns

    if not source.startswith("sample:"):
        return read_columns(source, names)
    rows = load_sample(source.removeprefix("sample:"), None)
    for name in names:
        if name not in rows.names:
            raise ValueError(f"{source}: there is no column {name!r} (columns: {', '.join(rows.names)})")
    return {name: rows.X[:, rows.names.index(name)] for name in names}


def write_scores(source: str, out: str, data: dict[str, Any], scores: np.ndarray) -> None:
    """The rows of a CSV file as they stand, or the columns that were read, and their log densities."""
    from ..storage.container import write_text

    write_text(out, lines_of_csv(scored(source, data, scores)))


def scored(source: str, data: dict[str, Any], scores: np.ndarray) -> Iterator[Iterable[Any]]:
    """The records of the table with their log densities, the names of the columns first."""
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


@app.command()
def duel(
    source: Annotated[str, typer.Argument(metavar="FILE", help="A table, or sample:breast-cancer|digits.")],
    target: Annotated[str | None, typer.Option(help="The column to predict: a label.")] = None,
    family: Annotated[
        str,
        typer.Option("--density", help="The density of each class: gaussian, full, bernoulli, poisson or exponential."),
    ] = "gaussian",
    eta: Annotated[float, typer.Option(help="The rate η of logistic regression, above 0; it falls as η/√t.")] = 0.5,
    shuffle: Annotated[int | None, typer.Option(help="Shuffle the rows by this seed (files are often sorted).")] = None,
    chart: Annotated[str | None, typer.Option(metavar="FILE", help="Draw the curves: .png, .svg or .html.")] = None,
) -> None:
    """Bayes' rule with one density per class (generative) against logistic regression (discriminative) on one stream.

    Both predict every row before they learn it. The generative way needs fewer rows if its assumption on the
    distribution is right: see which one leads after 10, 100, 1,000, ... rows.
    """
    with one_line_errors():
        from ..training.outputs import check_outputs

        check_outputs({"chart": chart}, source)
        _duel(source, target, family, eta, shuffle, chart)


def _duel(source: str, target: str | None, family: str, eta: float, shuffle: int | None, chart: str | None) -> None:
    import numpy as np

    from .. import charts
    from ..errors import RowError
    from ..estimators.duel import check, duel, stations
    from ..sources import label_text
    from ..training.plan import Plan
    from ..training.prepare import MANY, read_all

    check(family)
    if chart is not None:
        charts.check(chart)
    X, y, _, _, place = read_all(Plan(source, target, ()))
    if not isinstance(X, np.ndarray):
        raise ValueError(f"{source}: these rows are sparse: a duel takes a table of numbers")
    X, y, order = np.ascontiguousarray(X, np.float64), label_text(y), np.arange(len(X))
    if shuffle is not None:
        order = np.random.default_rng(shuffle).permutation(len(X))
        X, y = X[order], y[order]
    if len(np.unique(y)) > MANY:
        raise ValueError(f"{source}: the target has {len(np.unique(y)):,} different values: a duel needs labels")
    try:
        first, second = duel(X, y, family, eta)
    except RowError as error:
        raise ValueError(f"{place(int(order[error.row]))}{error.message}") from None
    console = Console()
    print_title(console, source, f"{X.shape[0]:,} rows × {X.shape[1]:,} features")
    parts = f"{'log loss':>14}{'mistakes':>10}"
    head = [
        f"  generative: Bayes' rule, {family} densities; discriminative: logistic regression, η = {eta:g}/√t",
        f"{'':>10}  {'generative':>24}  {'discriminative':>24}  {'leads':>14}  {'leads':<14}",
    ]
    print_lines(console, head)
    print_lines(console, [f"{'rows':>10}  {parts}  {parts}  {'by log loss':>14}  {'by mistakes':<14}"], "bold")
    for t in stations(len(X)):
        cells = [f"{curve.mean(t):>14.4f}{curve.errors(t):>10,}" for curve in (first, second)]
        by_loss, by_mistakes = leads(first.mean(t), second.mean(t)), leads(first.errors(t), second.errors(t))
        print_lines(console, [f"{t:>10,}  {cells[0]}  {cells[1]}  {by_loss:>14}  {by_mistakes:<14}"])
    if chart is not None:
        charts.save(charts.styled(picture(first, second, source, family)), chart)
        print_lines(console, [f"chart: {chart}"])


def leads(first: float, second: float) -> str:
    """Which of the two has the smaller value."""
    return "even" if first == second else ("generative" if first < second else "discriminative")


def picture(first: Curve, second: Curve, source: str, family: str) -> Any:
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
