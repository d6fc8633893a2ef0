"""Isotron against logistic regression: on data whose link is not logistic, and on data whose link is.

Run ``python examples/isotron.py [FOLDER]``; the chart needs ``pip install hindsight-learn[charts]``. Labels are 1
with probability u(w*.x). Logistic regression assumes that u is logistic; Isotron learns it. Both are measured by the
distance of their probabilities from the true ones on new rows, which is known in a simulation only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from hindsight import charts
from hindsight.estimators.isotron import IsotronClassifier

DIRECTION = np.array([2.5, -2.0, 1.0, 0.0])
ROWS, BINS = 30_000, 60


def terrace(z: np.ndarray) -> np.ndarray:
    """Two ramps with a terrace between them: nondecreasing, and nothing like a logistic curve."""
    return 0.1 + 0.35 * np.clip(z + 2.5, 0.0, 1.0) + 0.45 * np.clip(z - 1.0, 0.0, 1.0)


def draw(u: Callable[[np.ndarray], np.ndarray], seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows on the unit sphere, labels, and the true probabilities."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((ROWS, 4))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    p = u(X @ DIRECTION)
    return X, (rng.random(ROWS) < p).astype(int), p


def compare(name: str, u: Callable[[np.ndarray], np.ndarray]) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """Points to draw, and each model's root mean square distance from the true probabilities."""
    X, y, _ = draw(u, 0)
    T, _, p = draw(u, 1)
    models = {
        "Isotron": IsotronClassifier(rounds=30, held_out=0.2, random_state=0),
        "L-Isotron": IsotronClassifier(lipschitz=1.0, rounds=150),
        "logistic regression": LogisticRegression(C=1e6),
    }
    index = T @ DIRECTION
    place = np.argsort(np.argsort(index)) * BINS // ROWS
    where = np.bincount(place, index) / np.bincount(place)
    points, off = [], {}
    for model, learner in models.items():
        predicted = learner.fit(X, y).predict_proba(T)[:, 1]
        off[model] = float(np.sqrt(np.mean((predicted - p) ** 2)))
        mean = np.bincount(place, predicted) / np.bincount(place)
        points += [
            {"data": name, "model": model, "index": a, "probability": b} for a, b in zip(where, mean, strict=True)
        ]
    grid = np.linspace(index.min(), index.max(), 400)
    points += [
        {"data": name, "model": "truth", "index": a, "probability": b} for a, b in zip(grid, u(grid), strict=True)
    ]
    return points, off


def picture(panels: dict[str, tuple[list[dict[str, Any]], dict[str, float]]]) -> Any:
    """The true link and what each model predicts along the true direction, one panel per kind of data."""
    alt = charts.altair()
    alt.data_transformers.disable_max_rows()
    order = ["truth", "Isotron", "L-Isotron", "logistic regression"]
    colours = ["#111111", "#0072b2", "#009e73", "#d55e00"]
    dashes = [[5, 4], [1, 0], [1, 0], [1, 0]]
    parts = []
    for name, (points, off) in panels.items():
        words = ", ".join(f"{model} {value:.3f}" for model, value in off.items())
        chart = (
            alt.Chart(alt.Data(values=points))
            .mark_line(strokeWidth=2.2, interpolate="linear")
            .encode(
                x=alt.X("index:Q", title="w*·x, the true direction", axis=alt.Axis(tickCount=7)),
                y=alt.Y("probability:Q", title="probability of label 1", scale=alt.Scale(domain=[0, 1])),
                color=alt.Color(
                    "model:N", title=None, sort=order, scale=alt.Scale(domain=order, range=colours),
                    legend=alt.Legend(orient="bottom", labelFontSize=13, symbolStrokeWidth=3),
                ),
                strokeDash=alt.StrokeDash(
                    "model:N", sort=order, legend=None, scale=alt.Scale(domain=order, range=dashes)
                ),
            )
            .properties(
                width=430, height=320,
                title=alt.TitleParams(name, subtitle=["distance from the true probabilities (RMS), new rows:", words]),
            )
        )  # fmt: skip
        parts.append(chart)
    return alt.hconcat(*parts).configure_title(anchor="start", fontSize=16).configure_axis(titleFontSize=13)


def main(path: str) -> None:
    """Fit, print the distances, and draw."""
    panels = {
        "A link that is not logistic": compare("terrace", terrace),
        "A logistic link": compare("logistic", expit),
    }
    for name, (_, off) in panels.items():
        print(f"{name}: " + ", ".join(f"{model} {value:.4f}" for model, value in off.items()))
    charts.save(picture(panels), path)
    print(f"chart: {path}")


if __name__ == "__main__":
    from pictures import folder

    main(str(folder() / "isotron.png"))
