"""Intervals that cover, also where the rows change: the coverage so far, and the last rows with their intervals.

Run ``python examples/intervals.py [FOLDER]``; it draws intervals.png there.

The default learner goes once through 442 patients (scikit-learn's diabetes data). For the second half the outcome is
measured on a scale twice as long: intervals follow, and nine in ten still cover, as guaranteed for any rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes

from hindsight import AutoRegressor, charts

ASKED, LAST = 0.9, 60
BLUE, ORANGE = charts.COLOURS[:2]


def run() -> tuple[AutoRegressor, list[dict[str, Any]]]:
    """The model, and each row with the interval that stood before it was learnt."""
    X, y = load_diabetes(return_X_y=True, scaled=False)
    y[len(y) // 2 :] *= 2.0
    model, rows = AutoRegressor(interval=ASKED), []
    model.learn_one(X[0], y[0])  # which gives the learner its start
    covered = 0
    for t, (x, target) in enumerate(zip(X[1:], y[1:], strict=True), 1):
        low, high = model.predict_interval_one(x)
        model.learn_one(x, target)
        covered += low <= target <= high
        rows.append({"row": t, "low": low, "high": high, "target": float(target), "covered": covered / t})
    return model, rows


def picture(rows: list[dict[str, Any]]) -> Any:
    """The coverage along the run above, the last rows below."""
    alt = charts.altair()
    found = np.array([each["covered"] for each in rows])
    y = alt.Y(
        "covered:Q", title="covered so far", scale=alt.Scale(domain=[min(0.7, found[20:].min()), 1.0], clamp=True)
    )
    course = alt.Chart(alt.Data(values=rows)).mark_line(color=BLUE).encode(x=alt.X("row:Q", title="rows"), y=y)
    rule = alt.Chart(alt.Data(values=[{"asked": ASKED}])).mark_rule(strokeDash=[4, 4]).encode(y="asked:Q")
    base = alt.Chart(alt.Data(values=rows[-LAST:])).encode(
        x=alt.X("row:Q", title="the last rows", scale={"zero": False})
    )
    ranges = base.mark_rule(strokeWidth=5, opacity=0.3, color=BLUE).encode(
        y=alt.Y("low:Q", title="target and interval"), y2="high:Q"
    )
    missed = alt.condition(
        "datum.low <= datum.target && datum.target <= datum.high", alt.value(BLUE), alt.value(ORANGE)
    )
    dots = base.mark_circle(size=36, opacity=1.0).encode(y="target:Q", color=missed)
    size = {"width": 640, "height": 170}
    return alt.vconcat((course + rule).properties(**size), (ranges + dots).properties(**size))


def main(path: str) -> None:
    """Print the certificate, and draw the picture."""
    model, rows = run()
    print(model.coverage_)
    charts.save(picture(rows), path)
    print(path)


if __name__ == "__main__":
    from pictures import folder

    main(str(folder() / "intervals.png"))
