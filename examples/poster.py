"""One picture of what Hindsight does: a run, the best fixed predictor in hindsight, and the guarantee between them.

Run ``python examples/poster.py [FOLDER]``; it draws poster.png there.

The default learner goes once through 442 patients (scikit-learn's diabetes data, columns as measured), and predicts
each patient before it learns from that patient. Every line is a mean over the patients so far, and the guarantee is
that of the certificate of just these. The first one is not counted, for no line: the learner starts from its target.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hindsight import AutoRegressor, charts

RUN, CONSTANT = "Hindsight, one pass", "best constant"
BEST, BOUND = "best fixed predictor", "guaranteed at most"
FIRST, STOPS = 40, 48
INK = {CONSTANT: "#57606a", BOUND: charts.COLOURS[1], RUN: charts.COLOURS[0], BEST: charts.COLOURS[2]}


def rows() -> tuple[np.ndarray, np.ndarray]:
    """The patients, and how far the disease had got a year later."""
    from sklearn.datasets import load_diabetes

    return load_diabetes(return_X_y=True, scaled=False)


def curves(X: np.ndarray, y: np.ndarray) -> dict[str, dict[int, float]]:
    """For each line, mean squared errors by the number of rows."""
    stops = sorted({int(m) for m in np.linspace(min(FIRST, len(y)), len(y), STOPS)})
    ones = np.column_stack([X, np.ones(len(y))])
    found: dict[str, dict[int, float]] = {name: {} for name in INK}
    for m in stops:
        certificate = AutoRegressor().fit(X[:m], y[:m]).certify(X[:m], y[:m])
        found[RUN][m], found[BOUND][m] = certificate.measured / (m - 1), certificate.bound / (m - 1)
        x, target = ones[1:m], y[1:m]
        found[CONSTANT][m] = float(target.var())
        u = np.linalg.lstsq(x, target, rcond=None)[0]
        found[BEST][m] = float(((x @ u - target) ** 2).mean())
    return found


def picture(found: dict[str, dict[int, float]]) -> Any:
    """Mean losses over rows, with the name and the last value of each line at its end."""
    alt = charts.altair()
    points = [{"rows": m, "loss": v, "line": name} for name, values in found.items() for m, v in values.items()]
    last = max(found[RUN])
    between = [{"rows": m, "low": found[BEST][m], "high": found[RUN][m]} for m in found[RUN]]
    scale = alt.Scale(domain=list(INK), range=list(INK.values()))
    colour = alt.Color("line:N", scale=scale, legend=None)
    axis = alt.Axis(values=list(range(0, last, 100)), grid=False, tickSize=4)
    x = alt.X("rows:Q", title="patients so far", scale=alt.Scale(domain=[min(found[RUN]), last], nice=False), axis=axis)
    most = max(max(values.values()) for values in found.values())
    y = alt.Y("loss:Q", title="mean squared error so far", scale=alt.Scale(domain=[0, 1.05 * most], nice=False),
              axis=alt.Axis(tickCount=6, format=",.0f"))  # fmt: skip
    dash = alt.StrokeDash(
        "line:N", legend=None, scale=alt.Scale(domain=list(INK), range=[[2, 3], [6, 4], [1, 0], [1, 0]])
    )
    area = alt.Chart(alt.Data(values=between)).mark_area(color=INK[RUN], opacity=0.1)
    lines = alt.Chart(alt.Data(values=points)).mark_line(strokeWidth=3)
    ends = [
        {"rows": last, "loss": place, "line": name, "text": f"{name}  {found[name][last]:,.0f}"}
        for name, place in apart({name: values[last] for name, values in found.items()}, 0.055 * most).items()
    ]
    layers = [
        area.encode(x=x, y=alt.Y("low:Q", title="mean squared error so far"), y2="high:Q"),
        lines.encode(x=x, y=y, color=colour, strokeDash=dash),
        *(label(alt, end, x, y, colour) for end in ends),
    ]
    title = alt.TitleParams(
        "One pass, nothing to tune, and a promise that can be checked",
        fontSize=19,
        subtitle=[
            "Each of 442 patients is predicted before learning from them. The shaded gap is the regret: what it cost",
            "not to have known the best predictor beforehand. The certificate bounds it on this very data.",
        ],
        subtitleFontSize=13,
        subtitlePadding=6,
        offset=14,
    )
    return charts.styled(alt.layer(*layers).properties(width=560, height=330, title=title))


def apart(values: dict[str, float], least: float) -> dict[str, float]:
    """The values, moved up where they lie closer together than the least distance."""
    placed: dict[str, float] = {}
    for name, value in sorted(values.items(), key=lambda item: item[1]):
        placed[name] = max([value, *(other + least for other in placed.values())])
    return placed


def label(alt: Any, end: dict[str, Any], x: Any, y: Any, colour: Any) -> Any:
    """The name of a line at its end."""
    text = alt.Chart(alt.Data(values=[end])).mark_text(align="left", dx=8, fontSize=13, fontWeight="bold")
    return text.encode(x=x, y=y, color=colour, text="text:N")


def main(path: str) -> None:
    """Learn, print the last values, and draw."""
    found = curves(*rows())
    for name, values in found.items():
        print(f"{name:>22} {values[max(values)]:>8,.0f}")
    charts.save(picture(found), path)
    print(f"chart: {path}")


if __name__ == "__main__":
    from pictures import folder

    main(str(folder() / "poster.png"))
