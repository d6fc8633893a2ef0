"""From River, scikit-learn and Vowpal Wabbit to Hindsight: the same job side by side.

Run ``python examples/from_peers.py [FOLDER]``; it draws from_peers.png there. A peer that is not installed is shown and
skipped.

The job is logistic regression on a stream: predict each row, then learn it, by gradient descent at the constant rate
0.1. All make the same steps, so their predictions before each row agree; what differs is how the job is written, how
long it takes, and what is known at the end.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy.special import expit

from hindsight import DescentClassifier, charts

ROWS, FEATURES, ETA = 2_000, 10, 0.1


def stream(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows, and labels 0 and 1 drawn with a logistic probability."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((ROWS, FEATURES))
    return X, (rng.random(ROWS) < expit(X @ np.linspace(-1.0, 1.0, FEATURES))).astype(int)


def river(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """River: dicts, one row at a time."""
    from river import linear_model, optim

    model = linear_model.LogisticRegression(optim.SGD(ETA), intercept_lr=ETA)
    chances = []
    for x, label in zip(X.tolist(), y.tolist(), strict=True):
        row = dict(enumerate(x))
        chances.append(model.predict_proba_one(row)[True])
        model.learn_one(row, bool(label))
    return np.array(chances)


def scikit_learn(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """scikit-learn: slices of one row."""
    from sklearn.linear_model import SGDClassifier

    model = SGDClassifier(loss="log_loss", alpha=0.0, learning_rate="constant", eta0=ETA)
    chances = [0.5]
    model.partial_fit(X[:1], y[:1], classes=[0, 1])
    for t in range(1, len(y)):
        chances.append(model.predict_proba(X[t : t + 1])[0, 1])
        model.partial_fit(X[t : t + 1], y[t : t + 1])
    return np.array(chances)


def vowpal_wabbit(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Vowpal Wabbit: lines of text; it computes in single precision."""
    import vowpalwabbit

    model = vowpalwabbit.Workspace(f"--loss_function logistic --link logistic --sgd -l {ETA} --power_t 0 --quiet")
    chances = []
    for x, label in zip(X.tolist(), y.tolist(), strict=True):
        line = f"{2 * label - 1} |" + "".join(f" {j}:{v}" for j, v in enumerate(x))
        chances.append(model.predict(line))
        model.learn(line)
    model.finish()
    return np.array(chances)


def one_by_one(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Hindsight, one row at a time: arrays, or dicts as for River."""
    model = DescentClassifier("logistic", eta=ETA, update="explicit")
    chances = [0.5]
    model.partial_fit(X[:1], y[:1], classes=[0, 1])
    for x, label in zip(X[1:], y[1:].tolist(), strict=True):
        chances.append(model.predict_proba_one(x)[1])
        model.learn_one(x, label)
    return np.array(chances)


def whole(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Hindsight, the whole stream in one call: every row is predicted before it is learnt, and that is kept."""
    model = DescentClassifier("logistic", eta=ETA, update="explicit", keep_margins=True).fit(X, y)
    return expit(model.margins_)


Job = Callable[[np.ndarray, np.ndarray], np.ndarray]
PEERS: dict[str, tuple[str, Job]] = {
    "scikit-learn": ("sklearn", scikit_learn),
    "River": ("river", river),
    "Vowpal Wabbit": ("vowpalwabbit", vowpal_wabbit),
}
OURS: dict[str, Job] = {"Hindsight, row by row": one_by_one, "Hindsight, one call": whole}


def timed(job: Job, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float]:
    """The predictions, and microseconds per row; what must be compiled or imported is so before the clock runs."""
    job(X[:50], y[:50])
    times = []
    while len(times) < 3 and sum(times) < 1.0:
        began = time.perf_counter()
        chances = job(X, y)
        times.append(time.perf_counter() - began)
    return chances, 1e6 * min(times) / len(y)


def picture(bars: list[dict[str, Any]]) -> Any:
    """Time per row, and how far predictions are from ours."""
    alt = charts.altair()
    order = [bar["name"] for bar in bars]
    names = alt.Y("name:N", title=None, sort=order, axis=alt.Axis(labelLimit=220, ticks=False, labelFontSize=13))
    span = alt.Scale(type="log", domain=[0.1, 30_000], nice=False)
    x = alt.X("time:Q", title="microseconds per row, predicted and learnt", scale=span,
              axis=alt.Axis(values=[0.1, 1, 10, 100, 1000], format="~r"))  # fmt: skip
    colour = alt.Color(
        "ours:N", legend=None, scale=alt.Scale(domain=[False, True], range=["#8c959f", charts.COLOURS[0]])
    )
    base = alt.Chart(alt.Data(values=bars))
    texts = base.mark_text(align="left", dx=10, fontSize=12).encode(x=x, y=names, text="text:N")
    dots = base.mark_circle(size=170, opacity=1).encode(x=x, y=names, color=colour)
    title = alt.TitleParams(
        "The same logistic regression, the same predictions",
        subtitle=f"{ROWS:,} rows of {FEATURES} features, η = {ETA}; Hindsight's certificate of this run comes with it",
    )
    return charts.styled(alt.layer(dots, texts).properties(width=560, height=44 * len(bars), title=title))


def main(path: str) -> None:
    """Do the job with each, print how it is written, and draw."""
    X, y = stream()
    ours, _ = timed(whole, X, y)
    bars = []
    jobs = {name: job for name, (_, job) in PEERS.items()} | OURS
    for name, job in jobs.items():
        print(inspect.getsource(job))
        if name in PEERS and find_spec(PEERS[name][0]) is None:
            print(f"{name} is not installed: skipped\n")
            continue
        chances, micros = timed(job, X, y)
        apart = float(np.abs(chances - ours).max())
        spent = f"{micros:,.0f} µs" if micros >= 100.0 else f"{micros:.2g} µs"
        print(f"{name}: {spent} per row, predictions within {apart:.1g} of ours\n")
        text = spent + ("" if job is whole else f", predictions within {apart:.0e}")
        bars.append({"name": name, "time": micros, "ours": name in OURS, "text": text})
    model = DescentClassifier("logistic", eta=ETA, update="explicit").fit(X, y)
    print(model.certify(X, y))
    charts.save(picture(bars), path)
    print(f"chart: {path}")


if __name__ == "__main__":
    from pictures import folder

    main(str(folder() / "from_peers.png"))
