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
    from collections.abc import Iterator, Sequence

    from ..training.model import Model

ModelPath = Annotated[str, typer.Argument(metavar="MODEL", help="A file that --save or `model.save` wrote.")]
Output = Annotated[str | None, typer.Option("--output", "-o", metavar="FILE", help="Write there, not to stdout.")]


@app.command()
def predict(
    model: ModelPath,
    data: Annotated[str, typer.Argument(metavar="FILE", help="Rows in any form that `learn` reads; - is stdin.")],
    output: Output = None,
    margins: Annotated[bool, typer.Option("--margins", help="Also the margins w·x.")] = False,
    form: Annotated[str | None, typer.Option("--format", help="Of FILE, where its name does not tell.")] = None,
) -> None:
    """Predict each row of a file with a saved model, as CSV: one line a row, in the order of the rows.

    Rows are prepared as they were for learning. A feature that the model does not know has weight 0; a column that it
    needs and the file lacks is an error. An output FILE is written whole or not at all.
    """
    with one_line_errors():
        known = opened(model)
        emit(output, predictions(known, data, form, margins))


@app.command()
def inspect(
    model: ModelPath,
    top: Annotated[int, typer.Option(min=0, help="How many of the largest weights to show.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Show what a model file holds: learner and settings, largest weights, facts, certificate, data and versions."""
    with one_line_errors():
        known = opened(model)
        text = json.dumps(summary(known, top), indent=2) if as_json else "\n".join(card(model, known, top))
        emit(None, iter([text + "\n"]))


@app.command()
def export(
    model: ModelPath,
    output: Output = None,
    as_json: Annotated[bool, typer.Option("--json", help="Plain JSON: the form there is.")] = True,
) -> None:
    """Write a model as plain JSON for use elsewhere: weights by name, intercept, link and labels.

    Numbers are written so that they read back to the same bits; weights that are 0 are left out.
    """
    with one_line_errors():
        emit(output, iter([json.dumps(plain(opened(model)), indent=1) + "\n"]))


# ---------------------------------------------------------------- files in and out


def opened(path: str) -> Model:
    """The model of a file, or that inside a saved estimator."""
    from ..storage.model import opened as read_model
    from ..training.model import Model

    found, versions = read_model(path)
    if isinstance(found, Model):
        return found
    runs = getattr(found, "runs_", None)
    if not runs:
        raise ValueError(f"{path}: holds a {type(found).__name__} without runs: open it with hindsight.load in Python")
    features = found.n_features_in_
    for run in runs:  # dicts may have left room for names to come
        if run.v.shape[1] > features + bool(run.bias):
            run.resize(features)
    names = getattr(found, "feature_names_in_", None)
    if names is None:
        names = vars(found).get("_column")
    classes = getattr(found, "classes_", None)
    settings = {"estimator": type(found).__name__} | found.get_params(deep=False)
    return Model(
        runs,
        None if names is None else [str(name) for name in names],
        None if classes is None else [str(label) for label in classes],
        found.average,
        settings,
        certificate=getattr(found, "certificate_", None),
        versions=versions,
    )


def emit(output: str | None, texts: Iterator[str]) -> None:
    """Write texts to standard output, or to a file that they fill whole or not at all."""
    from ..storage.container import replace

    if output is None:
        for text in texts:
            sys.stdout.write(printable(text))
        return
    replace(output, (text.encode("utf-8", "surrogateescape") for text in texts))


def printable(text: str) -> str:
    """The text with what the terminal cannot show escaped."""
    coding = sys.stdout.encoding or "utf-8"
    return text.encode(coding, "backslashreplace").decode(coding)


# ---------------------------------------------------------------- predict


def predictions(model: Model, data: str, form: str | None, with_margins: bool) -> Iterator[str]:
    """Lines of CSV, a chunk at a time, the header first."""
    start = ",".join(header(model, with_margins)) + "\n"
    for X, place in rows(model, data, form):
        yield start + lines(model, X, place, with_margins)
        start = ""
    yield start


def header(model: Model, with_margins: bool) -> list[str]:
    columns = ["prediction"] + (["probability"] if has_probability(model) else [])
    if with_margins:
        columns += ["margin"] if len(model.runs) == 1 else [field(f"margin {label}") for label in model.labels or ()]
    return columns


def has_probability(model: Model) -> bool:
    """Whether a margin says, through the logistic link, how probable the second of two labels is."""
    from ..kernels.losses import Logistic

    return model.labels is not None and len(model.runs) == 1 and isinstance(model.learner.loss, Logistic)


def field(text: str) -> str:
    """A field of CSV, quoted where it must be."""
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow([text])
    return out.getvalue()


def lines(model: Model, X: Any, place: Any, with_margins: bool) -> str:
    """The lines of some rows."""
    from ..errors import RowError
    from ..training.model import means

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
        columns.append(map(repr, means(model.learner.loss, z[:, 0]).tolist()))
    if with_margins:
        columns += [map(repr, z[:, k].tolist()) for k in range(z.shape[1])]
    return "".join(",".join(row) + "\n" for row in zip(*columns, strict=True))


# What of the reading at learning time holds for other files too; `features` are then the columns as sorted out.
READING = ("features", "ignore", "header", "separator", "categorical", "missing", "zero_based", "hash_bits")


def rows(model: Model, data: str, form: str | None) -> Iterator[tuple[Any, Any]]:
    """The rows of a file as the model takes them, a chunk at a time, and where each stands."""
    from ..rows.scaling import scaled
    from ..sources import open_source

    known = model.preparation.get("source", {})
    options = {name: known[name] for name in READING if name in known}
    if options.get("missing") == "skip":
        options["missing"] = "error"  # a row left out would shift all lines after it
    if not options.get("categorical") and "features" not in options and model.preparation.get("kind") != "sparse":
        options["features"] = model.names
    source = open_source(data, None, format=form, **options)
    column = None if model.names is None else {name: j for j, name in enumerate(model.names)}
    for chunk in source.chunks():
        X = chunk.X
        if source.kind == "sparse" and column is not None:
            X = renumbered(X, source.names, column, model.features)
        yield scaled(X, model.preparation.get("scale")), chunk.place


def renumbered(X: Any, names: Sequence[str], column: dict[str, int], features: int) -> Any:
    """Sparse rows with the columns that the model gave these names; those of unknown names are left out."""
    import numpy as np
    from scipy.sparse import csr_matrix

    met, where = np.unique(X.indices, return_inverse=True)
    columns = np.array([column.get(names[k], -1) for k in met.tolist()], np.int32)[where]
    known = columns >= 0
    ends = np.concatenate([[0], np.cumsum(known)])[X.indptr]
    out = csr_matrix((X.data[known], columns[known], ends), shape=(X.shape[0], features))
    out.sort_indices()  # as they stood for learning: the order of the sum is the same
    return out


# ---------------------------------------------------------------- inspect and export


def describe(model: Model) -> str:
    """The learner in a line."""
    learner = model.learner
    step, geometry = learner.rate, learner.geometry
    rate = f"η = {step.eta:g}" + (f"·t^−{step.power:g}" if step.power else "")
    if step.rates.size:
        rate = f"{step.rates.size:,} given rates"
    name = type(geometry).__name__.lower()
    parts = [learner.name, f"{type(learner.update).__name__.lower()} step", rate]
    parts.append(f"rule {type(learner.loss).__name__.lower()}({learner.loss[0]:g})")
    parts.append(f"geometry {name}" + ("" if name == "euclidean" else f" of radius {geometry.radius:g}"))
    if model.average is not None:
        parts.append(f"mean of the weights {model.average} each step")
    return ", ".join(parts)


def heaviest(model: Model, top: int) -> list[tuple[str | None, str, float]]:
    """The largest weights of features: label (for one-vs-rest), name, weight."""
    import numpy as np

    w = model.weights[:, : model.features]
    size = np.abs(w).ravel()
    order = np.argsort(-size, kind="stable")[:top]
    labels = model.labels if len(model.runs) > 1 else None
    return [
        (None if labels is None else labels[k // model.features], name_of(model, k % model.features), float(w.flat[k]))
        for k in order.tolist()
        if size[k] > 0
    ]


def name_of(model: Model, j: int) -> str:
    return f"column {j}" if model.names is None else model.names[j]


def card(path: str, model: Model, top: int) -> list[str]:
    """What a model file holds, to be read."""
    out = [f"{path}: {describe(model)}"]
    names = "numbered" if model.names is None else "named"
    out.append(f"  {model.features:,} features ({names}), {'with' if model.intercept else 'without'} an intercept")
    if model.labels is not None and len(model.runs) == 1:
        out.append(f"  labels: {model.labels[0]} is −1, {model.labels[1]} is +1")
    elif model.labels is not None:
        out.append(f"  labels: {len(model.labels)} classes, each against the rest: {', '.join(model.labels)}")
    for title, values in (("settings", model.settings), ("rows", model.preparation)):
        out += [f"  {title}: {', '.join(named(values))}"] if named(values) else []
    out += [*facts_of(model), *weights_of(model, top)]
    if model.certificate is None:
        out.append("certificate: none was made")
    else:
        out += ["certificate", *(f"  {line}" for line in model.certificate.lines())]
    out.append(f"data: {model.digest or 'no digest'}")
    out.append("versions: " + ", ".join(f"{name} {version}" for name, version in model.versions.items()))
    return out


def facts_of(model: Model) -> list[str]:
    out = ["facts"]
    for k, facts in enumerate(model.facts):
        what, total = ("squared error", facts.square) if model.learner.score == "square" else ("loss", facts.loss)
        head = f"  {model.labels[k]}: " if model.labels is not None and len(model.runs) > 1 else "  "
        mean = f", mean {total / facts.weight:.6g}" if facts.weight else ""
        wrong = "" if model.labels is None else f", {facts.mistakes:,} mistakes"
        out.append(f"{head}{facts.rounds:,} rounds, {what} {total:.6g}{mean}{wrong}")
        norms = f"max |x|₂ = {facts.x2:.6g}, max |x|∞ = {facts.xinf:.6g}"
        out.append(f"{' ' * len(head)}{norms}, Σ|g|² = {facts.gradient:.6g}")
    return out


def weights_of(model: Model, top: int) -> list[str]:
    found = heaviest(model, top)
    if model.intercept:
        labels: list[Any] = [None] if model.labels is None or len(model.runs) == 1 else model.labels
        found += list(zip(labels, ["intercept"] * len(labels), model.weights[:, -1].tolist(), strict=True))
    count = int((model.weights[:, : model.features] != 0).sum())
    wide = max((len(name) for _, name, _ in found), default=0)
    return [
        f"weights: {count:,} that are not 0" + (", the largest:" if found else ""),
        *(f"  {name:<{wide}} {weight:>14.6g}" + (f"  {label}" if label else "") for label, name, weight in found),
    ]


def short(value: Any) -> str:
    """A setting in a few words."""
    import numpy as np

    if isinstance(value, np.ndarray):
        return f"({' × '.join(map(str, value.shape))} numbers)"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, dict):
        parts, ends = named(value), "{}"
    elif isinstance(value, (list, tuple)):
        parts, ends = [short(v) for v in value[:8]] + ["…"] * (len(value) > 8), "[]"
    else:
        return str(value)
    return ends[0] + ", ".join(parts) + ends[1]


def named(values: dict[str, Any]) -> list[str]:
    """Settings with their names; those that are None or empty were not given."""
    given = {k: v for k, v in values.items() if v is not None and not (isinstance(v, (list, tuple, dict)) and not v)}
    return [f"{k} {short(v)}" for k, v in given.items()]


def summary(model: Model, top: int) -> dict[str, Any]:
    """The card as plain values."""
    from dataclasses import asdict

    from ..formatting import _plain

    found = {
        "learner": describe(model),
        "features": model.features,
        "intercept": model.intercept,
        "labels": model.labels,
        "settings": model.settings,
        "preparation": model.preparation,
        "facts": [asdict(facts) for facts in model.facts],
        "largest": [{"label": label, "name": name, "weight": weight} for label, name, weight in heaviest(model, top)],
        "certificate": None if model.certificate is None else model.certificate.to_dict(),
        "digest": model.digest,
        "versions": model.versions,
    }
    return dict(_plain(found))


LINKS = ("Logistic", "Clipped", "Tanh", "Probit")  # rules that predict through a link of that name


def plain(model: Model) -> dict[str, Any]:
    """The model for use elsewhere: prediction = link(weights . x + intercept), or a label by its margin."""
    from ..formatting import _plain

    decide, rule = "value", type(model.learner.loss).__name__
    if model.labels is not None:
        decide = "sign" if len(model.runs) == 1 else "argmax"
    outputs = []
    for k, w in enumerate(model.weights.tolist()):
        outputs.append(
            {
                "label": None if model.labels is None else model.labels[k if len(model.runs) > 1 else 1],
                "intercept": w.pop() if model.intercept else 0.0,
                "weights": {name_of(model, j): value for j, value in enumerate(w) if value != 0.0},
            }
        )
    found = {
        "format": "hindsight linear model",
        "version": 1,
        "learner": model.learner.name,
        "features": model.features,
        "link": rule.lower() if rule in LINKS else "identity",
        "decide": decide,
        "labels": model.labels,
        "outputs": outputs,
        "preparation": model.preparation,
    }
    return dict(_plain(found))
