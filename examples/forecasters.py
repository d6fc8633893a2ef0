"""Which of two weather forecasters is closer to a truth that nobody sees?

Run ``python examples/forecasters.py [FOLDER]``; the chart needs ``pip install hindsight-learn[charts]``.

Thirty years of days are simulated. The probability of rain depends on the season and on the weather of the days before.
Careful knows the season and most of the weather, and reports what it believes. Bold sees a little more of the weather,
and exaggerates. Recalibrated is Bold, recalibrated on its first three years.
"""

from __future__ import annotations

import numpy as np

from hindsight import charts
from hindsight.estimators.calibrator import Calibrator
from hindsight.forecast import compare, identity, reliability

DAYS, TRAINING = 30 * 365, 3 * 365


def simulate(seed: int = 1) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """The true probabilities, the outcomes, and the forecasts of each day."""
    rng = np.random.default_rng(seed)
    day = np.arange(DAYS)
    front = np.zeros(DAYS)
    for t in range(1, DAYS):
        front[t] = 0.8 * front[t - 1] + 0.9 * rng.normal()
    season = -0.8 + 0.7 * np.cos(2 * np.pi * day / 365)
    p = 1 / (1 + np.exp(-season - front))
    rain = (rng.random(DAYS) < p).astype(int)
    careful = 1 / (1 + np.exp(-season - 0.85 * (front + 0.7 * rng.normal(size=DAYS))))
    bold = 1 / (1 + np.exp(-3.0 * (season + front + 0.4 * rng.normal(size=DAYS))))
    return p, rain, {"Careful": careful.round(2), "Bold": bold.round(2)}


def main(path: str) -> None:
    """Compare, recalibrate, and draw."""
    p, rain, said = simulate()
    early, late = slice(0, TRAINING), slice(TRAINING, DAYS)
    model = Calibrator().fit(said["Bold"][early], rain[early])
    forecasts = {name: h[late] for name, h in said.items()}
    forecasts["Recalibrated"] = model.transform(said["Bold"][late])

    found = compare(rain[late], forecasts, anytime=True)
    print(f"{found.rounds:,} days, mean square losses:")
    for name, mean in found.means.items():
        print(f"  {name:20} {mean:.4f}")
    print(found)

    print("\nthe truth is known, as this is a simulation:")
    for name, h in forecasts.items():
        print(f"{name}: {identity(rain[late], h, p[late])}")

    each = {name: reliability(rain[late], h) for name, h in forecasts.items()}
    print("\ndecomposition of the mean losses:")
    for name, one in each.items():
        print(f"{name}: {one.lines()[0]}")
    charts.save(charts.together(found, each, [one.band() for one in each.values()]), path)
    print(f"\nchart: {path}")


if __name__ == "__main__":
    from pictures import folder

    main(str(folder() / "forecasters.png"))
