"""`hindsight predict`, `inspect` and `export`: what to do with a model file."""

from __future__ import annotations

import csv
import io
import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .app import app, one_line_errors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..training.model import Model

ModelPath = Annotated[str, typer.Argument(metavar="MODEL", help="A file that --save or `model.save` wrote.")]
Output = Annotated[str | None, typer.Option("--output", "-o", metavar="FILE", help="Write there, not to stdout.")]


@app.command()
def predict(
    model: ModelPath,
    data: Annotated[str, typer.Argument(metavar="FILE", help="Rows in any form that `learn` reads; - is stdin.")],
    output: Output = None,
    margins: Annotated[bool, typer.Option("--margins", help="Print the margins w·x too.")] = False,
    form: Annotated[
        str | None, typer.Option("--format", help="The format of FILE, where its name does not tell.")
    ] = None,
) -> None:
    """Predict each row of a file with a saved model, as CSV: one line per row, in the order of the rows.

    Rows are prepared as they were for learning. A feature that the model does not know has weight 0; a column that it
    needs and the file lacks is an error. An output FILE is written completely or not at all.
    """
    with one_line_errors():
        from ..training.outputs import check_destination, check_outputs
        from ..training.saved import open_model

        check_outputs({"output": output}, model, data)
        if output is not None:
            check_destination(output)
        emit(output, predictions(open_model(model), data, form, margins))


@app.command()
def inspect(
    model: ModelPath,
    top: Annotated[int, typer.Option(min=0, help="How many of the largest weights to show.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> None:
    """Show what a model file holds: learner and settings, largest weights, facts, certificate, data and versions."""
    with one_line_errors():
        from ..training.saved import open_model
        from .card import card, card_values

        known = open_model(model)
        text = json.dumps(card_values(known, top), indent=2) if as_json else "\n".join(card(model, known, top))
        emit(None, iter([text + "\n"]))


@app.command()
def export(
    model: ModelPath,
    output: Output = None,
    as_json: Annotated[bool, typer.Option("--json", help="Plain JSON, the only form.")] = True,
) -> None:
    """Write a model as plain JSON for use elsewhere: weights by name, intercept, link and labels.

    Numbers are written so that they read back to the same bits; weights that are 0 are left out.
    """
    with one_line_errors():
        from ..training.outputs import check_outputs
        from ..training.saved import open_model, to_portable

        check_outputs({"output": output}, model)
        emit(output, iter([json.dumps(to_portable(open_model(model)), indent=1) + "\n"]))


def emit(output: str | None, texts: Iterator[str]) -> None:
    """Write texts to standard output, or to a file that is written completely or not at all."""
    from ..storage.container import write_text

    if output is None:
        for text in texts:
            sys.stdout.write(printable(text))
        return
    write_text(output, texts)


def printable(text: str) -> str:
    """The text, with characters that standard output cannot encode escaped."""
    coding = sys.stdout.encoding or "utf-8"
    return text.encode(coding, "backslashreplace").decode(coding)


def predictions(model: Model, data: str, form: str | None, with_margins: bool) -> Iterator[str]:
    """Lines of CSV, chunk by chunk, the header first."""
    from ..training.prepare import rows_to_predict

    start = ",".join(header(model, with_margins)) + "\n"
    for X, place in rows_to_predict(model, data, form):
        yield start + lines(model, X, place, with_margins)
        start = ""
    yield start


def header(model: Model, with_margins: bool) -> list[str]:
    """The names of the columns."""
    from ..training.saved import has_probability

    columns = ["prediction"] + (["probability"] if has_probability(model) else [])
    if with_margins:
        columns += ["margin"] if len(model.runs) == 1 else [field(f"margin {label}") for label in model.labels or ()]
    return columns


def field(text: str) -> str:
    """A field of CSV, quoted where it must be."""
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow([text])
    return out.getvalue()


def lines(model: Model, X: Any, place: Any, with_margins: bool) -> str:
    """The lines of one chunk."""
    from ..errors import RowError
    from ..online.margins import each_mean
    from ..training.saved import has_probability

    try:
        z = model.margins(X)
    except RowError as error:
        raise ValueError(f"{place(error.row)}{error.message}") from None
    if model.labels is None:
        columns = [map(repr, model.predictions(z).tolist())]
    else:
        texts = [field(label) for label in model.labels]
        columns = [map(texts.__getitem__, model.choices(z).tolist())]
    if has_probability(model):
        columns.append(map(repr, each_mean(model.learner.loss, z[:, 0]).tolist()))
    if with_margins:
        columns += [map(repr, z[:, k].tolist()) for k in range(z.shape[1])]
    return "".join(",".join(row) + "\n" for row in zip(*columns, strict=True))
