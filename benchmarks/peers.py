"""Peers as they are shipped, one pass: what each predicts of every row of a stream before it learns it.

For labels a prediction is the log-odds of 1.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from common import child, installed

# isort: split
import numpy as np
import scipy.sparse as sp
from sklearn import config_context
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.preprocessing import StandardScaler

from streams import Stream

SLOW = 20_000_000  # values of a stream above which River, which takes about a microsecond for each, is left out
SURE = 1e-15  # probabilities that River rounds to 0 or 1 are taken as this far from it


def vowpal_wabbit(stream: Stream, *options: str) -> np.ndarray:
    """The program, from a file of text to a file of predictions."""
    with tempfile.TemporaryDirectory() as folder:
        text, found = Path(folder) / "rows.vw", Path(folder) / "found"
        with text.open("w") as file:
            for x, y in zip(pairs(stream.X), stream.y.tolist(), strict=True):
                file.write(f"{y!r} |{''.join(f' {j}:{v!r}' for j, v in x)}\n")
        loss = ("--loss_function", "logistic") if stream.labels else ()
        told = child("-m", "vowpalwabbit", "-d", text, "-p", found, *loss, *options)
        # The wheel may read nothing at all, and says so only here.
        seen = re.search(r"number of examples = (\d+)", told)
        if not seen or int(seen[1]) != stream.y.size:
            raise SystemExit(f"Vowpal Wabbit did not read the {stream.y.size} rows of {stream.name}: {told[-300:]}")
        return np.loadtxt(found, ndmin=1)


def pairs(X: np.ndarray | sp.csr_matrix) -> Iterator[list[tuple[int, float]]]:
    """The columns and values of each row that are not 0."""
    X = sp.csr_matrix(X)
    for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        yield list(zip(X.indices[a:b].tolist(), X.data[a:b].tolist(), strict=True))


def sgd(stream: Stream) -> np.ndarray:
    """scikit-learn's, one row at a time; its columns are standardised beforehand, with rows it has yet to see."""
    X = StandardScaler(with_mean=not sp.issparse(stream.X)).fit_transform(stream.X)
    model: Any = SGDClassifier(loss="log_loss") if stream.labels else SGDRegressor()
    more = {"classes": [-1.0, 1.0]} if stream.labels else {}
    margins = np.zeros(stream.y.size)
    with config_context(assume_finite=True, skip_parameter_validation=True), np.errstate(all="ignore"):
        for t in range(stream.y.size):
            x = X[t : t + 1]
            if t:
                margins[t] = (x @ model.coef_.ravel()).item() + model.intercept_.item()
            try:
                model.partial_fit(x, stream.y[t : t + 1], **more)
            except ValueError as error:  # it says so where its weights overflow
                if "overflow" not in str(error):
                    raise
                margins[t:] = np.nan
                break
    return margins


def river(stream: Stream) -> np.ndarray | None:
    """River's linear models behind its StandardScaler; None where there is too much for it."""
    from river.linear_model import LinearRegression, LogisticRegression
    from river.preprocessing import StandardScaler as RiverScaler

    if (stream.X.nnz if sp.issparse(stream.X) else stream.X.size) > SLOW:
        return None
    model = RiverScaler() | (LogisticRegression() if stream.labels else LinearRegression())
    rows = map(dict, pairs(stream.X) if sp.issparse(stream.X) else (enumerate(x) for x in stream.X.tolist()))
    margins = np.empty(stream.y.size)
    for t, (x, y) in enumerate(zip(rows, stream.y.tolist(), strict=True)):
        if stream.labels:
            chance = min(max(model.predict_proba_one(x).get(True, 0.5), SURE), 1.0 - SURE)
            margins[t] = np.log(chance / (1.0 - chance))
            model.learn_one(x, y > 0.0)
        else:
            margins[t] = model.predict_one(x)
            model.learn_one(x, y)
    return margins


def peers() -> dict[str, Callable[[Stream], np.ndarray | None]]:
    """Those that are installed."""
    each: dict[str, tuple[str, Callable[[Stream], np.ndarray | None]]] = {
        "VW": ("vowpalwabbit", vowpal_wabbit),
        "VW --coin": ("vowpalwabbit", lambda stream: vowpal_wabbit(stream, "--coin")),
        "SGD": ("scikit-learn", sgd),
        "River": ("river", river),
    }
    return {name: learn for name, (package, learn) in each.items() if installed(package)}
