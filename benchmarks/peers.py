"""Peers, one pass: what each predicts of every row of a stream before it learns it.

They are taken as they are shipped, but for Vowpal Wabbit tuned in hindsight and for LightGBM, which is no online
learner and is fitted anew now and then. For labels a prediction is the log-odds of 1.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
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

TUNED = [  # settings of Vowpal Wabbit of which the best in hindsight is taken
    (*update, "--learning_rate", rate, "--power_t", power)
    for update in ((), ("--normalized", "--invariant"))
    for rate in ("0.02", "0.1", "0.5", "2.5", "12.5")
    for power in ("0", "0.5")
] + [("--coin",), ("--ftrl",), ("--pistol",), ("--sgd",)]
FIRST = 64  # rows from which on LightGBM is fitted, and again at each doubling
SLOW = 20_000_000  # values of a stream above which River, which takes about a microsecond for each, is left out
SURE = 1e-15  # probabilities that River rounds to 0 or 1 are taken as this far from it


def vowpal_wabbit(stream: Stream, settings: Sequence[Sequence[str]]) -> Iterator[np.ndarray]:
    """The program with each of these settings, from a file of text to a file of predictions."""
    with tempfile.TemporaryDirectory() as folder:
        text, found = Path(folder) / "rows.vw", Path(folder) / "found"
        with text.open("w") as file:
            for x, y in zip(pairs(stream.X), stream.y.tolist(), strict=True):
                file.write(f"{y!r} |{''.join(f' {j}:{v!r}' for j, v in x)}\n")
        loss = ("--loss_function", "logistic") if stream.labels else ()
        for options in settings:
            told = child("-m", "vowpalwabbit", "-d", text, "-p", found, *loss, *options)
            # The wheel may read nothing at all, and says so only here.
            seen = re.search(r"number of examples = (\d+)", told)
            if not seen or int(seen[1]) != stream.y.size:
                raise SystemExit(f"Vowpal Wabbit did not read the {stream.y.size} rows of {stream.name}: {told[-300:]}")
            yield np.loadtxt(found, ndmin=1)


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


def lightgbm(stream: Stream) -> np.ndarray:
    """Boosted trees with their defaults, fitted to all rows so far at each doubling; the mean so far before that."""
    from lightgbm import LGBMClassifier, LGBMRegressor

    X, y = stream.X, stream.y
    rows = np.arange(y.size)
    means = np.concatenate(([0.0], np.cumsum(y)[:-1])) / np.maximum(rows, 1)
    chances = (1.0 + rows * (means + 1.0)) / (2.0 + 2.0 * rows)  # one more of each label
    margins = np.log(chances / (1.0 - chances)) if stream.labels else means
    first = FIRST
    while first < y.size:
        rest = slice(first, min(2 * first, y.size))
        if stream.labels and np.unique(y[:first]).size > 1:
            model = LGBMClassifier(n_jobs=1, verbose=-1).fit(X[:first], y[:first] > 0.0)
            margins[rest] = model.predict_proba(X[rest], raw_score=True)
        elif not stream.labels:
            margins[rest] = LGBMRegressor(n_jobs=1, verbose=-1).fit(X[:first], y[:first]).predict(X[rest])
        first *= 2
    return margins


def peers() -> dict[str, Callable[[Stream], np.ndarray | None]]:
    """Those that are installed."""
    each: dict[str, tuple[str, Callable[[Stream], np.ndarray | None]]] = {
        "VW": ("vowpalwabbit", lambda stream: next(vowpal_wabbit(stream, [()]))),
        "VW --coin": ("vowpalwabbit", lambda stream: next(vowpal_wabbit(stream, [("--coin",)]))),
        "VW tuned": ("vowpalwabbit", lambda stream: min(vowpal_wabbit(stream, TUNED), key=stream.loss)),
        "SGD": ("scikit-learn", sgd),
        "River": ("river", river),
        "LightGBM": ("lightgbm", lightgbm),
    }
    return {name: learn for name, (package, learn) in each.items() if installed(package)}
