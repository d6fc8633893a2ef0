"""Certificates of what the command learnt, and `hindsight certify`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from .app import app, one_line_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..online.run import Run
    from ..rows.matrices import Data
    from ..training.session import Course

SMALL = 1 << 28  # bytes of rows that are kept in memory rather than read again


@app.command()
def certify(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model that `learn --save` wrote.")],
    data: Annotated[str, typer.Argument(metavar="FILE", help="The rows it was trained on, in that order.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the certificate as JSON.")] = False,
) -> None:
    """Certify a saved model over the rows it was trained on: its loss, the rival's in hindsight, and the bound.

    Other rows, or another order, are refused. The exit status is 1 only if a bound is BROKEN.
    """
    import json

    with one_line_errors():
        import numpy as np

        from ..certificates.certificate import Certificates
        from ..certificates.certify import certify_run
        from ..certificates.theorems import Verdict
        from ..storage.model import load
        from ..training.model import Model
        from ..training.plan import Plan
        from ..training.session import Course

        found = load(model)
        if not isinstance(found, Model):
            raise ValueError(f"{model}: holds an estimator: certify it in Python, with its own certify(X, y)")
        s = dict(found.settings)
        if "learners" not in s:
            raise ValueError(f"{model}: was not written by `learn --save`, so how its rows were read is not known")
        learners = tuple((name, options) for name, options in s.pop("learners"))
        labels = s.pop("labels")
        plan = Plan(**s | {"data": data, "learners": learners, "labels": None if labels is None else tuple(labels)})
        made = found.preparation
        course = Course(plan, [found.runs], found.labels, made["scale"], made["state"], [0], np.zeros(0))
        names = found.labels if found.labels is not None and len(found.runs) > 1 else [None] * len(found.runs)
        rows = data_for(course, found.runs)
        each = [certify_run(run, d, label=name) for run, d, name in zip(found.runs, rows, names, strict=True)]
        done = each[0] if len(each) == 1 else Certificates(tuple(each))
    print(json.dumps(done.to_dict()) if as_json else str(done))
    if done.verdict is Verdict.BROKEN:
        raise typer.Exit(1)


def data_for(course: Course, runs: list[Run]) -> list[Data]:
    """The rows as played, for each run: in memory where they are small, otherwise read again each time."""
    from ..rows.matrices import Data

    kept, size = [], 0
    for X, targets, weight in rows(course, runs):
        kept.append((X, targets, weight))
        size += (X.nbytes if hasattr(X, "nbytes") else X.data.nbytes + X.indices.nbytes) + X.shape[0] * 8
        if size > SMALL:
            break
    else:
        return [Data(*joined(kept, k), runs[k].bias) for k in range(len(runs))]

    def chunks_of(k: int) -> Callable[[], Iterator[Any]]:
        return lambda: ((X, targets[k], weight) for X, targets, weight in rows(course, runs))

    return [Data.from_chunks(chunks_of(k), runs[k].bias) for k in range(len(runs))]


def joined(kept: list[Any], k: int) -> tuple[Any, Any, Any]:
    """Chunks as one."""
    import numpy as np
    from scipy.sparse import vstack

    X = [chunk[0] for chunk in kept]
    whole = np.concatenate(X) if isinstance(X[0], np.ndarray) else vstack(X, format="csr")
    weight = None if kept[0][2] is None else np.concatenate([chunk[2] for chunk in kept])
    return whole, np.concatenate([chunk[1][k] for chunk in kept]), weight


def rows(course: Course, runs: list[Run]) -> Iterator[tuple[Any, list[Any], Any]]:
    """One pass over the rows as played: scaled, with targets as the runs saw them."""
    from ..rows.scaling import scaled
    from ..training.prepare import coded, limited, targets_for, targets_of

    source = course.plan.open()
    if course.state is not None:
        source.restore(course.state)
    width = runs[0].v.shape[1] - bool(runs[0].bias)
    for chunk in limited(course.plan.chunks(source), course.plan.limit, 0):
        if not len(chunk):
            continue
        X, raw = scaled(chunk.X, course.scale), targets_of(chunk)
        if X.shape[1] < width and source.kind == "sparse":
            X.resize((X.shape[0], width))
        codes = None if course.labels is None else coded(course.labels, chunk, raw)
        yield X, targets_for(course.labels, runs[0], raw, codes), chunk.weight
