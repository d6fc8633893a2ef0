"""A risk certificate from one pass with no row held out, compared with the loss on a test set.

The bound c on the loss is declared, not taken from the losses: it follows from known ranges of targets and weights
(docs/theory.md#online-to-batch).

Run ``python examples/risk.py [FOLDER]``; it draws risk.png there.
"""

import numpy as np
from sklearn.datasets import load_diabetes, load_digits

import hindsight
from hindsight import charts
from hindsight.certificates.risk import risk_certificate

SPLITS, DELTA = 100, 0.05


def diabetes():
    """Square loss: the disease score runs from 25 to 346, so that y is in [0, 1]; c = 1 for predictions there too."""
    X, y = load_diabetes(return_X_y=True)
    model = hindsight.WidrowHoffRegressor(0.3, average="before")
    return "diabetes, Widrow-Hoff", model, X / 0.4, (y - 25) / (346 - 25), {"bound": 1.0}


def digits():
    """Odd or even, hinge loss, weights with |w|_1 <= 4 on pixels in [0, 1]: c = 5 follows from the declared support."""
    X, y = load_digits(return_X_y=True)
    model = hindsight.DescentClassifier("hinge", "balanced", eta=0.05, radius=4.0, average="before")
    return "odd digits, hinge", model, X / 16, y % 2, {"support": 1.0}


def test_loss(model, X, y):
    """The mean loss on held-out rows."""
    if isinstance(model, hindsight.WidrowHoffRegressor):
        return float(((model.predict(X) - y) ** 2).mean())
    return float(np.maximum(0.0, 1.0 - np.where(y == 1, 1.0, -1.0) * model.decision_function(X)).mean())


def picture(points):
    """Each split as a dot: the loss on held-out rows against the figure that one pass promised."""
    alt = charts.altair()
    parts = []
    for name in dict.fromkeys(point["name"] for point in points):
        mine = [point for point in points if point["name"] == name]
        span = [min(p["held"] for p in mine), max(p["figure"] for p in mine)]
        room = 0.08 * (span[1] - span[0])
        scale = alt.Scale(domain=[span[0] - room, span[1] + room], nice=False)
        x = alt.X("figure:Q", title="promised by one pass", scale=scale)
        y = alt.Y("held:Q", title="loss on held-out rows", scale=scale)
        dots = alt.Chart(alt.Data(values=mine)).mark_circle(color=charts.COLOURS[0], size=36, opacity=0.6)
        ends = [{"figure": v, "held": v} for v in scale.domain]
        line = alt.Chart(alt.Data(values=ends)).mark_line(color="#57606a", strokeDash=[4, 3]).encode(x=x, y=y)
        covered = sum(p["held"] <= p["figure"] for p in mine)
        title = alt.TitleParams(name, subtitle=f"below the line, the promise was kept: {covered} of {len(mine)} splits")
        parts.append(alt.layer(line, dots.encode(x=x, y=y)).properties(width=280, height=280, title=title))
    return charts.styled(alt.hconcat(*parts, spacing=30))


def main(path: str) -> None:
    """Split many times, learn in one pass, and count how often the figure covers the held-out loss."""
    points = []
    print(f"{'data and learner':24} {'rows':>5} {'paid':>8} {'figure':>8} {'held out':>9} {'covered':>12}")
    for name, model, X, y, declared in (diabetes(), digits()):
        paid, figures, held = [], [], []
        for seed in range(SPLITS):
            order = np.random.default_rng(seed).permutation(len(y))
            train, test = order[: 2 * len(y) // 3], order[2 * len(y) // 3 :]
            model.fit(X[train], y[train])
            found = risk_certificate(model, X[train], y[train], delta=DELTA, **declared)
            paid.append(found.measured)
            figures.append(found.bound)
            held.append(test_loss(model, X[test], y[test]))
        covered = int((np.array(held) <= figures).sum())
        points += [{"name": name, "figure": f, "held": h} for f, h in zip(figures, held, strict=True)]
        print(
            f"{name:24} {len(train):5} {np.mean(paid):8.4f} {np.mean(figures):8.4f} {np.mean(held):9.4f}"
            f" {covered:5} of {SPLITS}"
        )
    print(f"\nthe last of them, with delta = {DELTA}:\n{found}")
    charts.save(picture(points), path)
    print(f"chart: {path}")


if __name__ == "__main__":
    from pictures import folder

    main(str(folder() / "risk.png"))
