"""`hindsight evaluate`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import OptionError
from ..training.options import option
from .application import verb
from .models import MODEL
from .text import check_chart, print_json, print_lines, print_title, written

if TYPE_CHECKING:
    from ..training.figures import Evaluation

DIAGRAMS = 12  # labels that a chart shows, those with the most rows


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

        charts.save(picture(found), how.chart)
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


def picture(found: Evaluation) -> Any:
    """Reliability diagrams of the second of two labels, of each of several labels, or of the predicted numbers."""
    from .. import charts

    shown = sorted(found.calibration.items(), key=lambda item: -item[1].mean)[:DIAGRAMS]
    each = dict(shown)
    bands = [None if one.loss == "quadratic" else one.band() for one in each.values()]
    return charts.diagrams(each, bands)
