"""Online to batch: the mean of the weights of one online pass predicts new rows well, and the regret says how well.

Run ``python examples/online_to_batch.py [FOLDER]``; it draws online_to_batch.png there.

Rows are drawn anew from one distribution: |x| = 1, y = u.x + noise. Widrow-Hoff plays each row once, with no row held
out. Its last weights follow the noise of the last rows for ever; the mean of all its weights does not, and its
expected loss on a new row is at most L_u/(1 - eta) + |u|²/(eta m) after m rows, where L_u is the expected loss of u
(docs/theory.md#online-to-batch). Each line is the mean over 40 streams, the band holds nine tenths of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hindsight import WidrowHoffRegressor, charts

FEATURES, NOISE, ETA, STREAMS = 20, 0.5, 0.2, 40
SIZES = (10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000)
LAST, MEAN = "the last weights", "the mean of the weights"
PROMISED, BEST = "promised for the mean", "the best weights"


def stream(rng: np.random.Generator, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As many rows as the largest size."""
    X = rng.standard_normal((SIZES[-1], FEATURES))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, X @ u + NOISE * rng.standard_normal(X.shape[0])


def expected_loss(w: np.ndarray, u: np.ndarray) -> float:
    """On a new row: the noise, and (w - u).x squared, whose mean over the sphere is |w - u|²/FEATURES."""
    return float(NOISE**2 + ((w - u) ** 2).sum() / FEATURES)


def losses() -> dict[str, np.ndarray]:
    """Expected losses after each size, one row per stream."""
    u = np.full(FEATURES, 2.0 / np.sqrt(FEATURES))
    found = {LAST: np.empty((STREAMS, len(SIZES))), MEAN: np.empty((STREAMS, len(SIZES)))}
    for seed in range(STREAMS):
        X, y = stream(np.random.default_rng(seed), u)
        models = {
            LAST: WidrowHoffRegressor(ETA, "explicit", fit_intercept=False),
            MEAN: WidrowHoffRegressor(ETA, "explicit", fit_intercept=False, average="before"),
        }
        for k, (first, last) in enumerate(zip((0, *SIZES), SIZES, strict=False)):
            for name, model in models.items():
                model.partial_fit(X[first:last], y[first:last])
                found[name][seed, k] = expected_loss(model.coef_, u)
    promised = NOISE**2 / (1.0 - ETA) + (u @ u) / (ETA * np.array(SIZES))
    return found | {PROMISED: promised[None], BEST: np.full((1, len(SIZES)), NOISE**2)}


def picture(found: dict[str, np.ndarray]) -> Any:
    """Expected losses over the number of rows."""
    alt = charts.altair()
    lines = [
        {"rows": m, "loss": float(v), "line": name}
        for name, values in found.items()
        for m, v in zip(SIZES, values.mean(axis=0), strict=True)
    ]
    bands = [
        {"rows": m, "low": float(a), "high": float(b), "line": name}
        for name in (LAST, MEAN)
        for m, a, b in zip(SIZES, *np.quantile(found[name], [0.05, 0.95], axis=0), strict=True)
    ]
    order = [PROMISED, LAST, MEAN, BEST]
    colours = ["#57606a", charts.COLOURS[1], charts.COLOURS[0], charts.COLOURS[2]]
    scale = alt.Scale(domain=order, range=colours)
    x = alt.X("rows:Q", title="rows seen, each once", scale=alt.Scale(type="log", nice=False),
              axis=alt.Axis(values=[10, 100, 1_000, 10_000], format=",", grid=False))  # fmt: skip
    y = alt.Y("loss:Q", title="expected squared error on a new row",
              scale=alt.Scale(type="log", domain=[0.24, 2.4], nice=False, clamp=True),
              axis=alt.Axis(values=[0.25, 0.3, 0.4, 0.5, 0.7, 1.0, 2.0], format="~g"))  # fmt: skip
    colour = alt.Color(
        "line:N", title=None, scale=scale, sort=order, legend=alt.Legend(orient="right", symbolType="stroke")
    )
    dash = alt.StrokeDash("line:N", legend=None, scale=alt.Scale(domain=order, range=[[5, 4], [1, 0], [1, 0], [2, 2]]))
    height = alt.Y("low:Q", title="expected squared error on a new row")
    areas = [
        alt.Chart(alt.Data(values=[band for band in bands if band["line"] == name]))
        .mark_area(opacity=0.15, color=colours[order.index(name)])
        .encode(x=x, y=height, y2="high:Q")
        for name in (LAST, MEAN)
    ]
    line = alt.Chart(alt.Data(values=lines)).mark_line(strokeWidth=2.4, clip=True)
    title = alt.TitleParams(
        "One pass, no row held out: average the weights",
        subtitle=f"Widrow-Hoff at η = {ETA}, {STREAMS} streams; bands hold nine tenths of them",
    )
    drawn = alt.layer(*areas, line.encode(x=x, y=y, color=colour, strokeDash=dash))
    return charts.styled(drawn.properties(width=520, height=320, title=title))


def main(path: str) -> None:
    """Learn, print the table, and draw."""
    found = losses()
    print(f"{'rows':>24}" + "".join(f"{m:>9,}" for m in SIZES))
    for name, values in found.items():
        print(f"{name:>24}" + "".join(f"{v:>9.4f}" for v in values.mean(axis=0)))
    charts.save(picture(found), path)
    print(f"chart: {path}")


if __name__ == "__main__":
    from pictures import folder

    main(str(folder() / "online_to_batch.png"))
