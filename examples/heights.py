"""Gender from height: two Gaussians and Bayes' rule against a threshold.

Run ``python examples/heights.py [FOLDER]``; it draws heights.png there, by default in a temporary folder. Heights are
drawn from two Gaussians of unequal variance, so the generative assumption is right: compare how many people each method
needs.
"""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np
from scipy.stats import norm

from hindsight import charts
from hindsight.estimators.generative import GenerativeClassifier
from hindsight.estimators.threshold import ThresholdClassifier

MEN, WOMEN = (178.0, 7.5), (165.0, 6.0)  # mean and standard deviation in cm
SIZES = [4, 6, 10, 16, 25, 40, 63, 100, 160, 250, 400, 630, 1000]
DRAWS = 200
BLUE, ORANGE = charts.COLOURS[:2]


def people(m: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Heights and genders, half of each."""
    male = rng.permutation(np.arange(m) % 2 == 0)
    heights = np.where(male, rng.normal(*MEN, m), rng.normal(*WOMEN, m))
    return heights.reshape(-1, 1), np.where(male, "male", "female")


def risk(model: Any) -> float:
    """The probability of an error on a new person, by integrating the true densities."""
    heights = np.arange(130.0, 215.0, 0.1)
    male = model.predict(heights[:, None]) == "male"
    return float(
        0.05 * (np.where(male, 0.0, norm.pdf(heights, *MEN)) + np.where(male, norm.pdf(heights, *WOMEN), 0.0)).sum()
    )


def risks() -> list[dict[str, object]]:
    """The mean risk of each method, by the number of people it learnt from."""
    rows: list[dict[str, object]] = []
    for m in SIZES:
        found: dict[str, list[float]] = {"two Gaussians": [], "threshold": []}
        for seed in range(DRAWS):
            X, y = people(m, np.random.default_rng(1000 + seed))
            found["two Gaussians"].append(risk(GenerativeClassifier().fit(X, y)))
            found["threshold"].append(risk(ThresholdClassifier().fit(X, y)))
        rows += [{"people": m, "risk": float(np.mean(values)), "way": way} for way, values in found.items()]
    return rows


def main(path: str) -> None:
    """Learn from 60 people, print what was learnt, and draw."""
    text = [str(__doc__).splitlines()[0], ""]
    X, y = people(60, np.random.default_rng(0))
    bayes, threshold = GenerativeClassifier().fit(X, y), ThresholdClassifier(delta=0.05).fit(X, y)
    for label, density in zip(bayes.classes_, bayes.densities_, strict=True):
        text.append(f"{label}: {density.describe()}")
    text.append(f"threshold: {threshold.above_} above {threshold.threshold_:.1f} cm, {threshold.errors_} of 60 wrong")
    text.append(f"with probability 95 % its risk is at most {threshold.bound_:.3f}, if people are drawn independently")

    grid = np.linspace(140, 205, 300)
    curves = [
        {"height": h, "density": float(np.exp(p)), "gender": str(label)}
        for label, density in zip(bayes.classes_, bayes.densities_, strict=True)
        for h, p in zip(grid.tolist(), density.logpdf(grid), strict=True)
    ]
    colour = alt.Color(
        "gender:N",
        title=None,
        scale=alt.Scale(domain=["female", "male"], range=[ORANGE, BLUE]),
        legend=alt.Legend(orient="top-right"),
    )
    cm = alt.X("height:Q", title="height (cm)", scale=alt.Scale(domain=[140, 205]))
    drawn = (
        alt.Chart(alt.Data(values=curves))
        .mark_line(strokeWidth=2)
        .encode(x=cm, y=alt.Y("density:Q", title="density"), color=colour)
    )
    marks = [{"height": float(h), "gender": str(g)} for h, g in zip(X[:, 0], y, strict=True)]
    ticks = (
        alt.Chart(alt.Data(values=marks))
        .mark_tick(thickness=1.5, opacity=0.7, size=14)
        .encode(x=cm, y=alt.value(292), color=colour)
    )
    change = grid[np.flatnonzero(np.diff(bayes.predict(grid[:, None]) == "male"))]
    lines = [{"height": float(threshold.threshold_), "what": "threshold"}] + [
        {"height": float(h), "what": "Bayes' rule"} for h in change
    ]
    rule = (
        alt.Chart(alt.Data(values=lines))
        .mark_rule(strokeWidth=1.5)
        .encode(
            x=cm,
            strokeDash=alt.StrokeDash(
                "what:N",
                title=None,
                legend=alt.Legend(orient="top-left"),
                scale=alt.Scale(domain=["threshold", "Bayes' rule"], range=[[1, 0], [5, 3]]),
            ),
        )
    )
    left = (drawn + ticks + rule).properties(
        width=440,
        height=300,
        title=alt.TitleParams(
            "What 60 people teach", subtitle="two Gaussians learnt online, and where each way changes its mind"
        ),
    )
    ways = alt.Color(
        "way:N",
        title=None,
        scale=alt.Scale(domain=["two Gaussians", "threshold"], range=[charts.COLOURS[2], charts.COLOURS[3]]),
        legend=alt.Legend(orient="top-right"),
    )
    right = (
        alt.Chart(alt.Data(values=risks()))
        .mark_line(strokeWidth=2, point=True)
        .encode(
            x=alt.X(
                "people:Q",
                title="people learnt from",
                scale=alt.Scale(type="log", domain=[4, 1000], nice=False),
                axis=alt.Axis(values=[4, 10, 25, 100, 250, 1000]),
            ),
            y=alt.Y(
                "risk:Q", title="share of new people misjudged", axis=alt.Axis(format="%"), scale=alt.Scale(zero=False)
            ),
            color=ways,
        )
        .properties(
            width=440,
            height=300,
            title=alt.TitleParams(
                "The right assumption saves people",
                subtitle="mean of 200 draws",
            ),
        )
    )
    charts.save(charts.styled((left | right).resolve_scale(color="independent")), path, "\n".join(text))
    print("\n".join([*text[1:], f"chart: {path}"]))


if __name__ == "__main__":
    from pictures import folder

    main(str(folder() / "heights.png"))
