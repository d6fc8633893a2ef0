"""Additive against multiplicative: who wins as the number of features n grows to 100,000?

Run ``python examples/additive_multiplicative.py [FOLDER]``; it draws additive_multiplicative.png there.

Widrow-Hoff and the perceptron add to their weights, exponentiated gradient (EG) and Winnow multiply them. The bounds of
the first speak of L2 norms of rows and weights, those of the second of the largest feature and the L1 norm of the
weights, times ln n. So where 3 of n features matter, what the second lose grows like ln n and what the first lose like
n. Where all features matter and rows are sparse, the theorem of EG allows it only tiny steps.

Solid lines take half the largest rate that the theorem allows (Winnow: the rate that its theorem recommends for the
margin); dashed lines the best of several rates, chosen in hindsight. Then a factor of 1.5 is left of EG's disadvantage.
Winnow has none here: at the small rate that its theorem recommends it takes nearly the perceptron's steps.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from hindsight import (
    AssumptionWarning,
    EGRegressor,
    PerceptronClassifier,
    WidrowHoffRegressor,
    WinnowClassifier,
    charts,
)

SIZES = (10, 32, 100, 320, 1_000, 3_200, 10_000, 32_000, 100_000)
ROWS, CHUNK, ACTIVE, PER_FEATURE = 1_000, 100, 5, 5
TRIED = (0.03, 0.1, 0.3, 0.9)  # rates of which the best is chosen in hindsight, in units of what one step can change
Chunks = Iterator[tuple[Any, np.ndarray]]


def few(n: int) -> Chunks:
    """Rows of -1 and 1, of whose n features the first 3 matter equally."""
    rng = np.random.default_rng(n)
    for _ in range(0, ROWS, CHUNK):
        bits = np.unpackbits(rng.integers(0, 256, (CHUNK, (n + 7) // 8), dtype=np.uint8), axis=1, count=n)
        X = 2.0 * bits.astype(np.float32) - 1.0
        yield X, X[:, :3].sum(axis=1, dtype=np.float64) / 3.0


def many(n: int) -> Chunks:
    """Sparse rows with 5 features of n; all n matter, with weights -1 and 1. There are 5 n rows."""
    rng = np.random.default_rng(n)
    u, count = rng.choice([-1.0, 1.0], n), PER_FEATURE * n
    columns = rng.integers(0, n // ACTIVE, (count, ACTIVE)) + np.arange(ACTIVE) * (n // ACTIVE)
    values = rng.choice([-1.0, 1.0], (count, ACTIVE))
    X = csr_array((values.ravel(), columns.ravel(), np.arange(0, values.size + 1, ACTIVE)), shape=(count, n))
    yield X, X @ u


def learners(l2: float, l1: float, margin: float) -> dict[str, list[Any]]:
    """For rows of squared length l2 and weights of L1 norm l1: the theorems' own rates first, then those tried."""
    additive = [0.5 / l2, *(tried / l2 for tried in TRIED)]
    multiplicative = [0.5 / l1**2, *(tried / l1 for tried in TRIED)]
    return {
        "Widrow-Hoff": [WidrowHoffRegressor(eta, "explicit", fit_intercept=False) for eta in additive],
        "EG": [EGRegressor(eta, radius=l1, fit_intercept=False) for eta in multiplicative],
        "perceptron": [PerceptronClassifier(fit_intercept=False)],
        "Winnow": [WinnowClassifier(margin=margin, fit_intercept=False)],
    }


def lost(chunks: Chunks, models: dict[str, list[Any]]) -> dict[str, list[float]]:
    """What each loses per row, every row predicted before it is learnt: squared error, or mistakes."""
    rows, classify = 0, {"perceptron", "Winnow"}
    for X, z in chunks:
        rows += z.size
        for name, model in ((name, model) for name, each in models.items() for model in each):
            if name in classify:
                model.partial_fit(X, np.where(z > 0.0, 1, -1), classes=[-1, 1])
                continue
            with warnings.catch_warnings():  # some of the rates tried are above what the theorem allows
                warnings.simplefilter("ignore", AssumptionWarning)
                model.partial_fit(X, z)
    return {
        name: [float(m.facts_.mistakes if name in classify else m.facts_.square) / rows for m in each]
        for name, each in models.items()
    }


def curves() -> list[dict[str, Any]]:
    """Points of the lines: what is lost for each n, task and learner, at the theorem's rate and at the best."""
    points = []
    for n in SIZES:
        wide = n - n % ACTIVE
        tasks = {
            "3 of n features matter": (few(n), learners(n, 1.0, 1.0 / 3.0)),
            "all n features matter": (many(wide), learners(ACTIVE, wide, 1.0 / wide)),
        }
        for task, (chunks, models) in tasks.items():
            for name, values in lost(chunks, models).items():
                points.append({"task": task, "n": n, "learner": name, "rate": "theorem's rate", "lost": values[0]})
                if len(values) > 1:
                    best = min(values)
                    points.append({"task": task, "n": n, "learner": name, "rate": "best rate", "lost": best})
    return points


def picture(points: list[dict[str, Any]]) -> Any:
    """Two tasks side by side, squared errors above mistakes."""
    alt = charts.altair()
    pairs = {("Widrow-Hoff", "EG"): "squared error per row", ("perceptron", "Winnow"): "mistakes per row"}
    dash = alt.StrokeDash(
        "rate:N", title=None, scale=alt.Scale(domain=["theorem's rate", "best rate"], range=[[1, 0], [4, 3]]),
        legend=None,
    )  # fmt: skip
    rows = []
    for names, what in pairs.items():
        colour = alt.Color(
            "learner:N", title=None, scale=alt.Scale(domain=list(names), range=[charts.COLOURS[1], charts.COLOURS[0]]),
            legend=alt.Legend(orient="right", symbolType="stroke"),
        )  # fmt: skip
        parts = []
        for task in dict.fromkeys(point["task"] for point in points):
            mine = [p for p in points if p["task"] == task and p["learner"] in names]
            x = alt.X("n:Q", title="n, the number of features", scale=alt.Scale(type="log", nice=False),
                      axis=alt.Axis(values=[10, 100, 1000, 10_000, 100_000], format="~s", grid=False))  # fmt: skip
            y = alt.Y("lost:Q", title=what, scale=alt.Scale(type="log" if task[0] == "3" else "linear"),
                      axis=alt.Axis(format="~g", tickCount=4))  # fmt: skip
            line = alt.Chart(alt.Data(values=mine)).mark_line(strokeWidth=2.2, point={"size": 24, "filled": True})
            kind = f"{ROWS:,} rows of ±1" if task[0] == "3" else f"{PER_FEATURE}n rows of {ACTIVE} features, ±1"
            note = [kind, "solid: the theorem's rate, dashed: the best in hindsight"]
            title = alt.TitleParams(task, subtitle=note) if what.startswith("squared") else alt.TitleParams("")
            chart = line.encode(x=x, y=y, color=colour, strokeDash=dash)
            parts.append(chart.properties(width=310, height=200, title=title))
        rows.append(alt.hconcat(*parts, spacing=30))
    return charts.styled(alt.vconcat(*rows, spacing=10).resolve_scale(color="independent"))


def main(path: str) -> None:
    """Learn, print the table, and draw."""
    points = curves()
    for task in dict.fromkeys(point["task"] for point in points):
        print(task)
        for name in ("Widrow-Hoff", "EG", "perceptron", "Winnow"):
            for rate in ("theorem's rate", "best rate"):
                mine = [p["lost"] for p in points if (p["task"], p["learner"], p["rate"]) == (task, name, rate)]
                if mine:
                    print(f"  {name:12} {rate:15}" + "".join(f"{value:>10.4g}" for value in mine))
    charts.save(picture(points), path)
    print(f"chart: {path}")


if __name__ == "__main__":
    from pictures import folder

    main(str(folder() / "additive_multiplicative.png"))
