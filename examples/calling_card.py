"""Fraudulent calling-card calls: one density per customer, one for fraudsters, and Bayes' rule.

Run ``python examples/calling_card.py [FOLDER]``; it draws calling_card.png there and keeps fraud.model, by default
in a temporary folder. Calls are simulated: every customer has typical hours, durations and destinations; a fraudster
calls at night, for long, and to other places. The log-likelihood ratio of a call is a sum over its columns, which
explains each alarm.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
from sklearn.metrics import roc_auc_score, roc_curve

from hindsight import charts, load
from hindsight.density import Categorical, Exponential, Keyed, Product
from hindsight.estimators.generative import GenerativeClassifier

PLACES = ["home town", "same country", "Europe", "Asia", "Africa", "Americas"]
CUSTOMERS, CALLS = 400, 40_000


def simulate(m: int, seed: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Calls (customer, hour, minutes, place), 5 % of them fraudulent."""
    habits = np.random.default_rng(0)  # the same people in every sample
    peak = habits.choice([9, 13, 18, 21], CUSTOMERS) + habits.normal(0, 1.5, CUSTOMERS)
    length = habits.gamma(2.0, 2.0, CUSTOMERS) + 0.5
    taste = habits.dirichlet([4.0, 2.0, 0.4, 0.3, 0.2, 0.3], CUSTOMERS)
    rng = np.random.default_rng(seed)
    who = rng.integers(0, CUSTOMERS, m)
    fraud = rng.random(m) < 0.05
    hour = np.where(fraud, rng.normal(1.0, 4.0, m), rng.normal(peak[who], 2.0))
    minutes = np.where(fraud, rng.exponential(12.0, m), rng.exponential(length[who]))
    own = (rng.random((m, 1)) > taste[who].cumsum(axis=1)).sum(axis=1).clip(0, 5)
    place = np.where(fraud, rng.choice(6, m, p=[0.1, 0.15, 0.2, 0.2, 0.2, 0.15]), own)
    calls = {
        "customer": np.array([f"customer {k}" for k in who]),
        "hour": np.rint(hour).astype(int) % 24,
        "minutes": minutes,
        "place": np.array(PLACES)[place],
    }
    return calls, np.where(fraud, "fraud", "fine")


def card() -> Product:
    """Hour, duration and destination of a call."""
    return Product({"hour": Categorical(24), "minutes": Exponential(), "place": Categorical(PLACES)})


def main(path: str) -> None:
    """Learn from labelled calls, classify new ones, and draw."""
    text = [str(__doc__).splitlines()[0], ""]
    calls, labels = simulate(CALLS, 1)
    test, truth = simulate(CALLS // 2, 2)
    fine = labels == "fine"
    crowd = card().update({name: values[fine] for name, values in calls.items()})
    customers = Keyed(crowd.as_prior(5), "customer")
    models: dict[str, Any] = {
        "one per customer": GenerativeClassifier({"fine": customers, "fraud": card()}),
        "one for all customers": GenerativeClassifier({"fine": card(), "fraud": card()}),
    }
    roc: list[dict[str, Any]] = []
    for name, model in models.items():
        odds = model.fit(calls, labels).decision_function(test)
        false, true, _ = roc_curve(truth == "fraud", odds)
        area = roc_auc_score(truth == "fraud", odds)
        text.append(f"{name}: area under the ROC {area:.4f}")
        keep = np.unique(np.searchsorted(false, np.linspace(0, 1, 400)).clip(0, len(false) - 1))
        roc += [{"false": float(false[k]), "true": float(true[k]), "model": f"{name} ({area:.3f})"} for k in keep]
    keyed = models["one per customer"].densities_[0]
    text.append(
        f"{len(keyed.keys)} customers, {keyed.bits_per_row:.3f} bits per call; "
        f"with one density for all {crowd.bits_per_row:.3f}"
    )

    kept = Path(path).with_name("fraud.model")
    models["one per customer"].save(kept)  # as it would be deployed, with all customers
    model = load(kept)
    odds, parts = model.decision_function(test), model.explain(test)
    order = np.argsort(odds)
    frauds = truth == "fraud"
    picks = [
        order[-1],
        order[np.flatnonzero(frauds[order])[len(odds[frauds]) // 2]],
        order[np.flatnonzero(~frauds[order])[-3]],
        order[len(order) // 2],
    ]
    bars = []
    for rank, k in enumerate(picks):
        name = f"{rank + 1}. {test['hour'][k]} h, {test['minutes'][k]:.0f} min, {test['place'][k]} ({truth[k]})"
        text.append(
            f"{name}: log odds of fraud {odds[k]:+.2f} = " + ", ".join(f"{c} {v[k]:+.2f}" for c, v in parts.items())
        )
        bars += [{"call": name, "column": c, "nats": float(v[k]), "order": j} for j, (c, v) in enumerate(parts.items())]

    share = alt.Scale(domain=[0, 1])
    lines = (
        alt.Chart(alt.Data(values=roc))
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("false:Q", title="share of honest calls stopped", scale=share, axis=alt.Axis(format="%")),
            y=alt.Y("true:Q", title="share of frauds caught", scale=share, axis=alt.Axis(format="%")),
            color=alt.Color(
                "model:N",
                title="area under the curve",
                scale=alt.Scale(range=charts.COLOURS[:2]),
                legend=alt.Legend(orient="bottom-right"),
            ),
        )
    )
    left = lines.properties(
        width=380,
        height=320,
        title=alt.TitleParams(
            "Each customer's own calling card",
            subtitle=f"{CUSTOMERS} customers, {CALLS:,} calls learnt, {CALLS // 2:,} classified",
        ),
    )
    base = alt.Chart(alt.Data(values=bars)).encode(
        y=alt.Y("column:N", title=None, sort=list(parts)),
        x=alt.X("nats:Q", title="log-likelihood ratio (nats): left honest, right fraud"),
    )
    each = base.mark_bar().encode(
        color=alt.condition("datum.nats > 0", alt.value(charts.COLOURS[4]), alt.value(charts.COLOURS[2]))
    )
    right = (
        each.properties(width=380, height=64)
        .facet(
            row=alt.Row(
                "call:N",
                title=None,
                header=alt.Header(labelOrient="top", labelAnchor="start", labelFont=charts.FONT, labelFontSize=12),
            ),
            spacing=8,
        )
        .properties(
            title=alt.TitleParams("Why a call is thought fraudulent", subtitle="four calls, by column", offset=12)
        )
    )
    charts.save(charts.styled((left | right).resolve_scale(color="independent")), path, "\n".join(text))
    print("\n".join([*text[1:], f"chart: {path}"]))


if __name__ == "__main__":
    from pictures import folder

    main(str(folder() / "calling_card.png"))
