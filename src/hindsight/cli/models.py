"""`hindsight predict`, `evaluate`, `certify`, `inspect` and `export`: the subcommands for model files."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import OptionError
from ..training.options import option, split
from .application import verb
from .text import check_chart, print_error_line, print_json, print_lines, print_title, status_of, written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..training.figures import Evaluation

DIAGRAMS = 12  # labels that a chart shows, those with the most rows
MODEL = "A file that --save or `model.save` wrote."
ModelPath = Annotated[str, typer.Argument(metavar="MODEL", help=MODEL)]
Output = Annotated[str | None, typer.Option("--output", "-o", metavar="FILE", help="Write there, not to stdout.")]


@dataclass(frozen=True)
class PredictOptions:
    """Which model predicts which rows, and what is written."""

    model: str = option(MODEL, argument=True, metavar="MODEL")
    data: str = option("Rows in any form that `learn` reads; - is stdin.", argument=True, metavar="FILE")
    output: str | None = option(
        "Write there: .csv, .jsonl or .parquet; - is stdout, CSV.", "--output", "-o", metavar="FILE"
    )
    keep: Sequence[str] = option(
        "Columns of FILE to write too, before the prediction.", default=(), read=split, metavar="A,B,..."
    )
    probabilities: bool = option("Write the probability of every label.", "--probabilities", default=False)
    margins: bool = option("Print the margins w·x too.", "--margins", default=False)
    score: bool = option("Where FILE has the targets, read it again and print a score to standard error.", default=True)
    form: str | None = option("The format of FILE, where its name does not tell.", "--format")


@verb()
def predict(how: PredictOptions) -> None:
    """Predict each row of a file with a saved model, as CSV: one line per row, in the order of the rows.

    Rows are prepared as they were for learning. A feature that the model does not know has weight 0; a column that it
    needs and the file lacks is an error. An output FILE is written completely or not at all. `hindsight evaluate` has
    more than the score.
    """
    from ..training.evaluation import brief_score
    from ..training.model import has_probabilities, open_model
    from ..training.outputs import check_outputs
    from . import predictions

    path = None if how.output == "-" else how.output
    form_out = predictions.output_form(path)
    check_outputs({"output": path}, how.model, how.data)
    known = open_model(how.model)
    if how.probabilities and not has_probabilities(known):
        raise OptionError("probabilities", f"{known.learner.name} gives none: take --margins")
    kept, shown = list(dict.fromkeys(how.keep)), (how.margins, how.probabilities)
    parts = predictions.tables(known, how.data, how.form, kept, *shown)
    names = [*kept, *predictions.names_of(known, *shown)]
    if form_out == "parquet" and path is not None:
        predictions.write_parquet(path, names, parts)
    else:
        emit(path, predictions.as_text(form_out, names, parts))
    if how.score and predictions.is_plain_file(how.data):
        sys.stdout.flush()
        for line in brief_score(known, how.data, how.form):
            print_error_line(line)


@dataclass(frozen=True)
class EvaluateOptions:
    """Which model is scored on which rows, and how."""

    model: str = option(MODEL, argument=True, metavar="MODEL")
    data: str = option("Rows with targets, in any form that `learn` reads; - is stdin.", argument=True, metavar="FILE")
    target: str | None = option("The column with the targets (the one learnt, if not given).", metavar="COLUMN")
    weight: str | None = option(
        "The column with the importance of each row (as learnt, if not given).", metavar="COLUMN"
    )
    unweighted: bool = option("Count every row as 1.", "--unweighted", default=False)
    by: str | None = option("Score the rows of each value of this column too, the 50 largest.", metavar="COLUMN")
    chart: str | None = option("Draw the calibration: a path that ends in .png, .svg or .html.", metavar="PICTURE")
    light: bool = option(
        "Take the same memory for any number of rows (otherwise some 160 bytes each, and 8 per class): "
        "without AUC, the parts of the Brier score, the chart, and the best constant's MAE.", "--light", default=False,
    )  # fmt: skip
    form: str | None = option("The format of FILE, where its name does not tell.", "--format")
    cluster: str | None = option("Score on a Dask cluster, as tcp://HOST:8786; --light.")
    workers: int | None = option("Score in so many processes, by Dask; --light.", min=1)
    as_json: bool = option("Print the result as JSON.", "--json", default=False)

    @property
    def columns(self) -> dict[str, Any]:
        """The columns and the format in the form that `hindsight.evaluate` takes."""
        return {"target": self.target, "weight": False if self.unweighted else self.weight, "format": self.form}


@verb()
def evaluate(how: EvaluateOptions) -> None:
    """Score a saved model on rows that have targets.

    Labels: accuracy, log loss, Brier score and its parts, AUC with an interval, confusion table, precision, recall and
    F1 of each label. Numbers: R², MSE, RMSE, MAE. Each stands beside that of the best constant for these rows in
    hindsight, and that of the model while it learnt, when each row was predicted before it was learnt. Rows are
    prepared as they were for learning, and read once.
    """
    check_chart(how.chart, how.model, how.data)
    if how.unweighted and how.weight is not None:
        raise OptionError("unweighted", "and --weight: take one of the two")
    found = _evaluate(how) if how.cluster is None and how.workers is None else _on_cluster(how)
    if how.as_json:
        print_json({"model": how.model, "data": how.data, **found.to_dict()})
        return
    weighed = "" if found.weight == found.rows else f", weight {found.weight:,.6g}"
    print_title(how.data, f"{found.rows:,} rows{weighed}")
    print_lines([*found.lines(), *written(chart=how.chart)])


def _evaluate(how: EvaluateOptions) -> Evaluation:
    from ..training.evaluation import evaluate
    from ..training.model import has_probabilities, open_model

    known = open_model(how.model)
    if how.chart is not None:
        if how.light:
            raise OptionError("chart", "and --light: a chart needs what every row was given")
        if known.labels is not None and not has_probabilities(known):
            raise OptionError("chart", f"{known.learner.name} gives margins and no probabilities: nothing to calibrate")
    found = evaluate(known, how.data, by=how.by, light=how.light, **how.columns)
    if how.chart is not None:
        from .. import charts

        charts.save(calibration_chart(found), how.chart)
    return found


def _on_cluster(how: EvaluateOptions) -> Evaluation:
    from ..cluster.scores import evaluate
    from ..training.model import open_model
    from .cluster import client_of

    for name in ("by", "chart"):
        if getattr(how, name) is not None:
            raise OptionError(name, "is not an option on a cluster, which keeps nothing of single rows")
    known = open_model(how.model)
    with client_of(how.cluster, how.workers) as client:
        return evaluate(known, how.data, client=client, **how.columns)


def calibration_chart(found: Evaluation) -> Any:
    """Reliability diagrams of the second of two labels, of each of several labels, or of the predicted numbers."""
    from .. import charts

    shown = sorted(found.calibration.items(), key=lambda item: -item[1].mean)[:DIAGRAMS]
    each = dict(shown)
    bands = [None if one.loss == "quadratic" else one.band() for one in each.values()]
    return charts.diagrams(each, bands)


@verb()
def certify(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model that `learn --save` wrote.")],
    data: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="The rows it was trained on, in that order: all parts.")
    ],
    within: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="End searches in hindsight by then, with the best so far and its gap."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the certificate as JSON.")] = False,
) -> int:
    """Certify a saved model over the rows it was trained on.

    What it lost, what the best constant and the best fixed predictor in hindsight lose, and what its theorem promises.

    Other rows, or another order, are refused. The exit status is 1 only if a bound is BROKEN.
    """
    from ..errors import ModelError
    from ..storage.model import load
    from ..training.certify import certify_model
    from .progress import search_bar

    found = load(model)
    try:
        with search_bar() as notify:
            certificate = certify_model(found, data if len(data) > 1 else data[0], within=within, notify=notify)
    except ModelError as error:
        raise ValueError(f"{model}: {error}") from None
    covered = found.coverage
    if as_json:
        print(json.dumps(certificate.to_dict() | ({} if covered is None else {"coverage": covered.to_dict()})))
    else:
        print(certificate if covered is None else f"{certificate}\n{covered}")
    return status_of(certificate)


@verb()
def inspect(
    model: ModelPath,
    top: Annotated[int, typer.Option(min=0, help="How many of the largest weights to show.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> None:
    """Show what a model file holds: learner and settings, largest weights, facts, certificate, data and versions.

    Of a density, what it has learnt, its log loss and its certificate.
    """
    from ..storage.model import opened
    from ..training.model import model_of
    from .card import card, card_values

    found = opened(model)
    if hasattr(found[0], "progressive") and hasattr(found[0], "logp"):
        from .densities import inspected

        emit(None, iter([inspected(model, found[0], as_json) + "\n"]))
        return
    known = model_of(model, *found)
    text = json.dumps(card_values(known, top), indent=2) if as_json else "\n".join(card(model, known, top))
    emit(None, iter([text + "\n"]))


@verb()
def export(
    model: ModelPath,
    output: Output = None,
    as_json: Annotated[bool, typer.Option("--json", help="Plain JSON, the only form.")] = True,
) -> None:
    """Write a model as plain JSON for use elsewhere: weights by name, intercept, link and labels.

    Numbers are written so that they read back to the same bits; weights that are 0 are left out.
    """
    from ..training.model import open_model, to_portable
    from ..training.outputs import check_outputs

    check_outputs({"output": output}, model)
    emit(output, iter([json.dumps(to_portable(open_model(model)), indent=1) + "\n"]))


def emit(output: str | None, texts: Iterator[str]) -> None:
    """Write text to standard output, or to a file that is written completely or not at all."""
    from ..storage.container import write_text

    if output is None:
        for text in texts:
            sys.stdout.write(printable(text))
        return
    first = next(texts, "")  # an error in the first rows comes before the file
    write_text(output, itertools.chain([first], texts))


def printable(text: str) -> str:
    """The text, in which characters that standard output cannot encode are escaped."""
    coding = sys.stdout.encoding or "utf-8"
    return text.encode(coding, "backslashreplace").decode(coding)
