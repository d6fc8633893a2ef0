"""`hindsight evaluate`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from ..errors import OptionError
from .application import verb
from .models import ModelPath
from .text import check_chart, print_lines, print_title

if TYPE_CHECKING:
    from ..training.figures import Evaluation

DIAGRAMS = 12  # labels that a chart shows, those with the most rows


@verb()
def evaluate(
    model: ModelPath,
    data: Annotated[
        str, typer.Argument(metavar="FILE", help="Rows with targets, in any form that `learn` reads; - is stdin.")
    ],
    target: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column with the targets (the one learnt, if not given).")
    ] = None,
    weight: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column with the importance of each row (as learnt, if not given)."),
    ] = None,
    unweighted: Annotated[bool, typer.Option("--unweighted", help="Count every row as 1.")] = False,
    by: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Score the rows of each value of this column too, the 50 largest."),
    ] = None,
    chart: Annotated[
        str | None,
        typer.Option(metavar="PICTURE", help="Draw the calibration: a path that ends in .png, .svg or .html."),
    ] = None,
    light: Annotated[
        bool,
        typer.Option(
            "--light",
            help="Take the same memory for any number of rows (otherwise some 160 bytes each, and 8 per class): "
            "without AUC, the parts of the Brier score, the chart, and the best constant's MAE.",
        ),
    ] = False,
    form: Annotated[
        str | None, typer.Option("--format", help="The format of FILE, where its name does not tell.")
    ] = None,
    cluster: Annotated[str | None, typer.Option(help="Score on a Dask cluster, as tcp://HOST:8786; --light.")] = None,
    workers: Annotated[int | None, typer.Option(help="Score in so many processes, by Dask; --light.", min=1)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Score a saved model on rows that have targets.

    Labels: accuracy, log loss, Brier score and its parts, AUC with an interval, confusion table, precision, recall and
    F1 of each label. Numbers: R², MSE, RMSE, MAE. Each stands beside that of the best constant for these rows in
    hindsight, and that of the model while it learnt, when each row was predicted before it was learnt. Rows are
    prepared as they were for learning, and read once.
    """
    check_chart(chart, model, data)
    if unweighted and weight is not None:
        raise OptionError("unweighted", "and --weight: take one of the two")
    weighed_by = False if unweighted else weight
    if cluster is not None or workers is not None:
        found = _on_cluster(model, data, target, weighed_by, form, {"by": by, "chart": chart}, cluster, workers)
    else:
        found = _evaluate(model, data, target, weighed_by, by, form, light, chart)
    if as_json:
        print(json.dumps({"model": model, "data": data, **found.to_dict()}, indent=2, ensure_ascii=False))
        return
    console = Console()
    weighed = "" if found.weight == found.rows else f", weight {found.weight:,.6g}"
    print_title(console, data, f"{found.rows:,} rows{weighed}")
    print_lines(console, found.lines())
    if chart is not None:
        print_lines(console, [f"chart: {chart}"])


def _evaluate(
    path: str, data: str, target: str | None, weight: Any, by: str | None, form: str | None, light: bool, chart: Any
) -> Evaluation:
    from ..training.evaluation import evaluate
    from ..training.model import has_probabilities, open_model

    known = open_model(path)
    if chart is not None:
        if light:
            raise OptionError("chart", "and --light: a chart needs what every row was given")
        if known.labels is not None and not has_probabilities(known):
            raise OptionError("chart", f"{known.learner.name} gives margins and no probabilities: nothing to calibrate")
    found = evaluate(known, data, target=target, weight=weight, by=by, format=form, light=light)
    if chart is not None:
        from .. import charts

        charts.save(picture(found), chart)
    return found


def _on_cluster(
    path: str, data: str, target: str | None, weight: Any, form: str | None, others: dict[str, Any],
    address: str | None, workers: int | None,
) -> Evaluation:  # fmt: skip
    from ..cluster.scores import evaluate
    from ..training.model import open_model
    from .cluster import client_of

    for name, value in others.items():
        if value is not None:
            raise OptionError(name, "is not an option on a cluster, which keeps nothing of single rows")
    known = open_model(path)
    with client_of(address, workers) as client:
        return evaluate(known, data, client=client, target=target, weight=weight, format=form)


def picture(found: Evaluation) -> Any:
    """Reliability diagrams: of the second of two labels, of each of several, or of the predicted numbers."""
    from .. import charts

    shown = sorted(found.calibration.items(), key=lambda item: -item[1].mean)[:DIAGRAMS]
    each = dict(shown)
    bands = [None if one.loss == "quadratic" else one.band() for one in each.values()]
    return charts.diagrams(each, bands)
