"""Charts of a run and of the learnt model, one function each, for reports and notebooks.

They draw given rows, or a named dataset of a page.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .drawing import altair, coloured, diagonal, drawn, rule, tips, unvalidated

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

BLUE, ORANGE, GREEN, PURPLE, RED, GREY = "#3b8eea", "#e8590c", "#2da44e", "#a371f7", "#e5534b", "#8b949e"
CYCLE = [BLUE, ORANGE, GREEN, PURPLE, RED, "#d4a72c", "#1b9e9e", "#db61a2", "#7c8ea3", "#8a6d3b"]
HEIGHT = 240
FAR = 5.0  # times the other lines: a promise that ends further up is beyond a linear scale
LONG = 50  # rounds from which a stream is drawn over logarithmic rounds
FEW = 8  # rounds that say little
PROMISE = "at most, by the theorem"
BOUND = "guaranteed at most"
ROUNDS = {"line": "N", "rounds": ",", "value": ".5~g"}
CONFIG = {  # the page colours the text and the axes
    "autosize": {"type": "fit-x", "contains": "padding"},
    "axis": {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"},
    "background": "transparent",
    "font": "system-ui, sans-serif",
    "legend": {"labelFontSize": 12, "symbolStrokeWidth": 3, "labelLimit": 260},
    "padding": 2,
    "view": {"stroke": None},
}


# ---------------------------------------------------------------- of a page


def page_charts(content: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The charts by their place in the page: the data, and specifications with linear and with logarithmic axes."""
    data, out = content["datasets"], dict[str, dict[str, Any]]()
    with unvalidated():
        for each in content["learners"]:
            k = each["key"]
            if f"loss{k}" in data:
                used = [f"loss{k}", f"hover{k}"]
                out[f"c-loss{k}"] = {"data": used} | both(lambda log, e=each, u=used: loss_chart(e, u, data, log))
            for name, make in SIMPLE.items():
                if rows := data.get(f"{name}{k}") or data.get(f"{name}{k}/0"):  # of several labels the first
                    used = [f"{name}{k}", *([f"band{k}"] if name == "calibration" else [])]
                    out[f"c-{name}{k}"] = {"data": used, "linear": finished(make(used, rows, each))}
        if rows := data.get("overlay"):
            unit = content["comparison"]["unit"]
            out["c-overlay"] = {"data": ["overlay"]} | both(lambda log: overlay_chart(rows, unit, log))
        if data.get("pairs") and any("low" in row for row in data["pairs"]):
            out["c-pairs"] = {"data": ["pairs"], "linear": finished(pairs_chart(data["pairs"]))}
    return out


def both(make: Any) -> dict[str, Any]:
    """The specifications of a chart with linear and with logarithmic axes."""
    return {"linear": finished(make(False)), "log": finished(make(True))}


def finished(chart: Any) -> dict[str, Any]:
    """The specification of a chart as wide as its place."""
    found = chart.to_dict(validate=False)
    del found["$schema"]  # an address, which nobody needs to visit
    given = found.get("config", {})
    config = given | CONFIG | {"view": given.get("view", {}) | CONFIG["view"]}
    return {"height": HEIGHT} | found | {"width": "container", "config": config}


def per_row(unit: str) -> str:
    """The unit over which a mean is taken."""
    return "mistakes per row" if unit == "mistakes" else "RMSE" if unit == "squared error" else f"mean {unit}"


def best_name(each: dict[str, Any]) -> str:
    """The name of the best fixed predictor, or of the best one found if it is not proved to be the best."""
    return "best fixed weights" if each["best_shown"] else "best weights found"


def loss_lines(each: dict[str, Any]) -> dict[str, str]:
    """The lines of the chart of the loss, by what they show."""
    names = {"so far": "this run so far", "window": f"its last {each['window']:,} rounds"}
    return names | {"constant": "best constant", "best": best_name(each), "guaranteed": BOUND}


def is_far(each: dict[str, Any], chart: str) -> bool:
    """Whether the bound ends so far above the other lines of a chart that a linear scale would hide them."""
    means = {name: value for name, value in each["means"].items() if value is not None}
    if "guaranteed" not in means:
        return False
    if chart == "regret":
        return bool(means["guaranteed"] - means["best"] > FAR * abs(means["regret"]))
    far = FAR**2 if each["unit"] == "squared error" else FAR  # drawn by its root
    return bool(means["guaranteed"] > far * max(abs(means.get(name, 0.0)) for name in ("loss", "constant", "best")))


def first_shown(rounds: float) -> int:
    """The first round to show in a curve over `rounds` rounds, because means of few rows are too noisy."""
    return min(max(FEW, math.isqrt(int(rounds))), max(1, int(rounds) // 2))


def from_first_shown(rows: list[dict[str, Any]]) -> str:
    """The rows of a curve that a chart shows."""
    return f"datum.rounds >= {first_shown(max(row['rounds'] for row in rows))}"


# ---------------------------------------------------------------- axes and legends


def rounds_axis(log: bool, first: float, last: float) -> Any:
    """The axis of rounds."""
    alt = altair()
    kind, start = ("log", max(1.0, first)) if log else ("linear", 0.0)
    scale = alt.Scale(type=kind, domain=[start, max(2.0, last)], nice=False)
    form = ",~r" if last < 10_000 else "~s"
    return alt.X("rounds:Q", title="rounds", scale=scale, axis=alt.Axis(format=form, tickCount=6, grid=False))


def log_rounds() -> Any:
    """The axis of rounds that double."""
    alt = altair()
    scale = alt.Scale(type="log", nice=False)
    return alt.X("rounds:Q", title="rounds", scale=scale, axis=alt.Axis(format="~s", grid=False, labelSeparation=8))


def axis(kind: str, field: str, title: str | None, ticks: int | None = 6, form: str | None = None, **scale: Any) -> Any:
    """An axis of numbers: "X" or "Y"."""
    alt = altair()
    look = {name: value for name, value in (("tickCount", ticks), ("format", form)) if value is not None}
    more = {"axis": alt.Axis(**look)} if look else {}
    return getattr(alt, kind)(f"{field}:Q", title=title, **({"scale": alt.Scale(**scale)} if scale else {}), **more)


def legend(columns: int = 2, symbol: str = "stroke") -> Any:
    """A legend below."""
    return altair().Legend(orient="bottom", symbolType=symbol, symbolOpacity=1, columns=columns, title=None)


def cycled(rows: list[dict[str, Any]], below: Any) -> Any:
    """A colour for each line, in the order of the rows."""
    names = list(dict.fromkeys(row["line"] for row in rows))
    inks = {name: CYCLE[i % len(CYCLE)] for i, name in enumerate(names)}
    return coloured("line", inks, legend=below, sort=names)


def label_axis(labels: Iterable[str]) -> Any:
    """An axis with these labels at positions 0, 1, ..., so that equal names remain distinct."""
    words = json.dumps([label if len(label) <= 30 else label[:29] + "…" for label in labels])
    return altair().Axis(labelExpr=f"{words}[datum.value]", labelLimit=220, ticks=False)


def dotted(size: int, **more: Any) -> dict[str, Any]:
    """The dots of a line."""
    return {"size": size, "filled": True, **more}


def shown_of(inks: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The lines that are present."""
    there = {row["line"] for row in rows}
    return {name: ink for name, ink in inks.items() if name in there}


# ---------------------------------------------------------------- along the run


def loss_chart(each: dict[str, Any], used: list[str], data: dict[str, Any], log: bool) -> Any:
    """The mean loss so far and over a window, with the best constant, the best fixed predictor and the bound."""
    alt, rows = altair(), data[used[0]]
    names = loss_lines(each)
    looks = [(BLUE, [1, 0]), ("#9ec8f5", [1, 0]), (GREY, [6, 3]), (GREEN, [6, 3]), (ORANGE, [3, 3])]
    inks = shown_of(dict(zip(names.values(), looks, strict=True)), rows)
    last, first = max(row["rounds"] for row in rows), min(row["rounds"] for row in rows)
    first = max(first, first_shown(last))
    usable = [
        row for row in rows
        if row["value"] is not None and row["rounds"] >= first and (not log or row["value"] > 0.0)
    ]  # fmt: skip
    hidden = BOUND if is_far(each, "loss") else None
    late = [r["value"] for r in usable if r["line"] != hidden and (r["rounds"] >= last / 50 or r["rounds"] == last)]
    kept = [row["value"] for row in usable] if log else late or [1.0]
    low, high = min(kept, default=1.0), max(kept, default=1.0)
    scale: dict[str, Any] = {"type": "log", "domain": [low, high if high > low else 2.0 * low], "clamp": True}
    if not log:
        floor = 0.0 if low > 0.0 and low < 0.6 * high else low - 0.1 * (high - low or 1.0)
        scale = {"domain": [floor, high + 0.05 * (high - floor)], "zero": False}
    x, y = rounds_axis(log, first, last), axis("Y", "value", per_row(each["unit"]), **scale, nice=False)
    colour = coloured("line", {name: ink for name, (ink, _) in inks.items()}, legend=legend(), sort=None)
    dashes = alt.Scale(domain=list(inks), range=[dash for _, dash in inks.values()])
    dash = alt.StrokeDash("line:N", scale=dashes, legend=legend(), sort=None)
    lines = drawn(used[0]).mark_line(strokeWidth=2, clip=True, interpolate="linear")
    lines = lines.encode(x=x, y=y, color=colour, strokeDash=dash).transform_filter(from_first_shown(rows))
    if log:
        lines = lines.transform_filter("datum.value > 0")
    over = alt.selection_point(
        name="over", fields=["rounds"], nearest=True, on="pointerover", clear="pointerout", empty=False
    )
    there = [field for field in names if any(field in row for row in data[used[1]])]
    tip = tips(rounds=("round", ","), **{field: (names[field], ".5~g") for field in there})
    unseen = alt.condition(over, alt.value(0.8), alt.value(0.001))
    line = drawn(used[1]).mark_rule(color=GREY, strokeWidth=1.5).encode(x=x, opacity=unseen, tooltip=tip)
    return alt.layer(lines, line.add_params(over)).properties(height=320)


def regret_chart(used: list[str], rows: list[dict[str, Any]], each: dict[str, Any]) -> Any:
    """The regret per round, over logarithmic rounds."""
    few = first_shown(rows[-1]["rounds"])
    hidden = PROMISE if is_far(each, "regret") else None
    late = [row["value"] for row in rows if row["rounds"] >= few and row["line"] != hidden] or [0.0, 1.0]
    low, high = min(0.0, *late), max(0.0, *late)
    wide = (high - low) or 1.0
    ends, what = [low - 0.03 * wide, high + 0.03 * wide], f"regret per round ({each['unit']})"
    y = axis("Y", "value", what, domain=ends, nice=False)
    colour = coloured("line", shown_of({"regret": BLUE, PROMISE: ORANGE}, rows), legend=legend())
    tip = tips(line="N", rounds=",", value=("per round", ".5~g"))
    line = drawn(used[0]).mark_line(strokeWidth=2, clip=True, point=dotted(30, opacity=0.01))
    line = line.transform_filter(from_first_shown(rows))
    return altair().layer(rule("y", GREY), line.encode(x=log_rounds(), y=y, color=colour, tooltip=tip))


def shares_chart(used: list[str], rows: list[dict[str, Any]], each: dict[str, Any]) -> Any:
    """The weights of the members of a panel, stacked."""
    alt = altair()
    y = alt.Y("value:Q", title="weight", stack="zero", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%"))
    colour, tip = cycled(rows, legend(1, "square")), tips(line="N", rounds=",", value=("weight", ".1%"))
    return drawn(used[0]).mark_area(opacity=0.85).encode(x=log_rounds(), y=y, color=colour, tooltip=tip)


def rounds_chart(used: list[str], rows: list[dict[str, Any]], each: dict[str, Any]) -> Any:
    """The errors in every round over all rows."""
    y = axis("Y", "value", per_row(each["unit"]), zero=False)
    line = drawn(used[0]).mark_line(strokeWidth=2, point=dotted(30, opacity=0.01))
    return line.encode(x=log_rounds(), y=y, color=cycled(rows, legend(3)), tooltip=tips(**ROUNDS))


def overlay_chart(rows: list[dict[str, Any]], unit: str, log: bool) -> Any:
    """The mean loss of all learners so far."""
    last = max(row["rounds"] for row in rows)
    first = max(first_shown(last), min(row["rounds"] for row in rows))
    shown = [row for row in rows if row["value"] is not None and row["rounds"] >= first]
    usable = [row["value"] for row in shown if row["value"] > 0.0 or not log]
    late = [row["value"] for row in rows if row["value"] is not None and row["rounds"] >= last / 50]
    values = [v for v in (usable if log else late) if math.isfinite(v)] or [1.0]
    low, high = min(values), max(values)
    scale: dict[str, Any] = {"type": "log" if log else "linear", "domain": [low, high if high > low else low + 1.0]}
    y = axis("Y", "value", f"{unit} so far", **scale, nice=not log, zero=False)
    lines = drawn("overlay").mark_line(strokeWidth=2, clip=True, point=dotted(12, opacity=0.01))
    x = rounds_axis(log, first, last)
    lines = lines.encode(x=x, y=y, color=cycled(rows, legend()), tooltip=tips(**ROUNDS)).properties(height=300)
    lines = lines.transform_filter(from_first_shown(rows))
    return lines.transform_filter("datum.value > 0") if log else lines


def pairs_chart(rows: list[dict[str, Any]]) -> Any:
    """The difference of every pair, with its interval."""
    alt = altair()
    y = alt.Y("pair:N", title=None, sort=None, axis=alt.Axis(labelLimit=320, ticks=False))
    tip = tips(pair="N", difference=".4~g", low=".4~g", high=".4~g")
    x, pairs = axis("X", "low", "difference of the mean losses", 5), drawn("pairs")
    layers = [
        rule("x", GREY),
        pairs.mark_rule(color=BLUE, strokeWidth=3).encode(x=x, x2="high:Q", y=y, tooltip=tip),
        pairs.mark_circle(color=BLUE, size=70, opacity=1).encode(x="difference:Q", y=y, tooltip=tip),
    ]
    return alt.layer(*layers).properties(height=max(60, 30 * len(rows)))


# ---------------------------------------------------------------- what was learnt


def largest_weights(
    w: np.ndarray, best: Sequence[np.ndarray | None], names: Sequence[str] | None, *, labels: list[str] | None = None,
    spread: np.ndarray | None = None, top: int = 20,
) -> list[dict[str, Any]]:  # fmt: skip
    """The weights with the largest effect (or size, if no spread is known), with those of the best u of each run."""
    n = w.shape[1]
    order = np.argsort(-(np.abs(w) * (1.0 if spread is None else spread[:n])).ravel(), kind="stable")[:top]
    rows = []
    for rank, j in enumerate(order.tolist()):
        run, feature = divmod(j, n)
        name = names[feature] if names is not None and feature < len(names) else f"column {feature}"
        u = best[run]
        row: dict[str, Any] = {"feature": name, "rank": rank, "weight": float(w[run, feature])}
        if labels is not None and len(w) > 1:
            row["label"] = labels[run]
        if u is not None and feature < u.size:
            row["best"] = float(u[feature])
        if spread is not None:
            for move, value in (("move", "weight"), ("best_move", "best")):
                if value in row:
                    row[move] = row[value] * float(spread[feature])
        rows.append(row)
    return rows


def weights_chart(
    used: list[Any], rows: list[dict[str, Any]], each: dict[str, Any], inks: tuple[str, str, str] = (BLUE, GREEN, GREY)
) -> Any:
    """The largest weights, and those of the best fixed predictor."""
    alt, (own_ink, best_ink, grey) = altair(), inks
    names = [row["feature"] + (f" ({row['label']})" if "label" in row else "") for row in rows]
    features = alt.Y("rank:O", title=None, axis=label_axis(names))
    moves = any("move" in row for row in rows)
    field, other = ("move", "best_move") if moves else ("weight", "best")
    own, beside = ([row[name] for row in rows if row.get(name) is not None] for name in (field, other))
    top = 3.0 * max(map(abs, own), default=1.0)  # what lies beyond is not drawn: it would hide the rest
    inside = [0.0, *own, *(v for v in beside if abs(v) <= top)]
    ends = [min(inside), max(inside)] if max(inside) > min(inside) else [-1.0, 1.0]
    x = axis("X", field, "weight × spread of the column" if moves else "weight", domain=ends)
    tip = tips(feature="N", weight=".5~g", **({"best": ("best fixed weights", ".5~g")} if beside else {}))
    bars = drawn(used[0]).mark_bar(color=own_ink, height={"band": 0.65})
    layers = [rule("x", grey, dashed=False), bars.encode(x=x, y=features, tooltip=tip)]
    if beside:
        tick = drawn(used[0]).mark_tick(color=best_ink, thickness=3, height={"band": 0.9}, clip=True)
        layers.append(tick.encode(x=f"{other}:Q", y=features, tooltip=tip))
    return alt.layer(*layers).properties(height=max(60, 20 * len(rows)))


def link_chart(used: list[Any], rows: list[dict[str, Any]], each: dict[str, Any], y: Any = None, **mark: Any) -> Any:
    """The learnt link: the mean of y over the margin."""
    x = axis("X", "margin", "margin w·x", nice=False, zero=False)
    y = y or axis("Y", "mean", "probability" if "confusion" in each else "mean of y", None, zero=False)
    line = drawn(used[0]).mark_line(**(mark or {"color": BLUE, "strokeWidth": 2.2, "point": dotted(14, color=BLUE)}))
    return line.encode(x=x, y=y, tooltip=tips(margin=".5~g", mean=".5~g"))


def predicted_chart(used: list[str], rows: list[dict[str, Any]], each: dict[str, Any]) -> Any:
    """Progressive predictions against the true targets."""
    true = [row["true"] for row in rows]
    dots = drawn(used[0]).mark_circle(size=22, opacity=0.45, color=BLUE)
    x, y = (axis(kind, name, name, None, nice=True, zero=False) for kind, name in (("X", "true"), ("Y", "predicted")))
    equal = diagonal(x, y, (min(true), max(true)), color=GREY)
    return altair().layer(equal, dots.encode(x=x, y=y, tooltip=tips(true=".6~g", predicted=".6~g")))


def threshold_chart(used: list[str], rows: list[dict[str, Any]], each: dict[str, Any]) -> Any:
    """Recall, precision and error rate as functions of the threshold."""
    colour = coloured("line", {"recall": BLUE, "precision": GREEN, "error rate": ORANGE}, legend=legend(3))
    x = axis("X", "threshold", f"threshold on the {each['scores']}", nice=False, zero=False)
    y = axis("Y", "value", None, None, "%", domain=[0, 1])
    line = drawn(used[0]).mark_line(strokeWidth=2, point=dotted(14))
    return line.encode(x=x, y=y, color=colour, tooltip=tips(line="N", threshold=".4~g", value=".2%"))


def calibration_chart(used: list[str], rows: list[dict[str, Any]], each: dict[str, Any]) -> Any:
    """Observed frequencies by isotonic regression (PAV) against the probabilities, with a consistency band."""
    x = axis("X", "probability", "predicted probability", 5, domain=[0, 1])
    low, y = (axis("Y", name, "observed frequency", None, domain=[0, 1]) for name in ("low", "observed"))
    band = drawn(used[1]).mark_area(opacity=0.2, color=BLUE)
    line = drawn(used[0]).mark_line(color=BLUE, strokeWidth=2.2, point=dotted(14, color=BLUE))
    tip, equal = tips(probability=".4~g", observed=".4~g"), diagonal(x, y, (0, 1), color=GREY)
    return altair().layer(band.encode(x=x, y=low, y2="high:Q"), equal, line.encode(x=x, y=y, tooltip=tip))


def histogram_chart(used: list[str], rows: list[dict[str, Any]], each: dict[str, Any]) -> Any:
    """A histogram of the predicted probabilities."""
    alt = altair()
    unit, few = alt.Scale(domain=[0, 1]), alt.Axis(tickCount=5)
    x = alt.X("from:Q", bin="binned", title="predicted probability", scale=unit, axis=few)
    bars = drawn(used[0]).mark_bar(color=BLUE, opacity=0.8).properties(height=90)
    return bars.encode(
        x=x, x2="to:Q", y=axis("Y", "rows", "rows", 3), tooltip=tips(**{"from": "", "to": "", "rows": ","})
    )


def coverage_chart(used: list[str], rows: list[dict[str, Any]], each: dict[str, Any]) -> Any:
    """The fraction of the rows covered by intervals so far, and the requested fraction."""
    asked = each["coverage"]["asked"]
    first = first_shown(rows[-1]["rounds"])
    lowest = min([asked - 0.05, *(row["value"] for row in rows if row["rounds"] >= first)])
    y = axis("Y", "value", "covered so far", None, "%", zero=False, nice=False, clamp=True, domain=[lowest, 1.0])
    line = drawn(used[0]).mark_line(color=BLUE, strokeWidth=2, point=dotted(30, opacity=0.01))
    line = line.transform_filter(from_first_shown(rows))
    return altair().layer(
        rule("y", GREY, asked), line.encode(x=log_rounds(), y=y, tooltip=tips(rounds=",", value=("covered", ".2%")))
    )


def ranges_chart(used: list[str], rows: list[dict[str, Any]], each: dict[str, Any]) -> Any:
    """The last rows with their intervals; those that were missed in another colour."""
    alt = altair()
    x, y = axis("X", "rounds", "the last rows", zero=False), axis("Y", "low", "target and interval", zero=False)
    missed = alt.condition("datum.covered == 1", alt.value(BLUE), alt.value(ORANGE))
    tip = tips(rounds=",", target=".6~g", low=".6~g", high=".6~g")
    bars = drawn(used[0]).mark_rule(strokeWidth=4, opacity=0.3, color=BLUE).encode(x=x, y=y, y2="high:Q")
    dots = drawn(used[0]).mark_circle(size=34, opacity=1.0).encode(x=x, y="target:Q", color=missed, tooltip=tip)
    return alt.layer(bars, dots)


SIMPLE = {  # charts of one learner with one kind of axes, by the dataset that they draw
    "regret": regret_chart,
    "rounds": rounds_chart,
    "link": link_chart,
    "weights": weights_chart,
    "shares": shares_chart,
    "coverage": coverage_chart,
    "ranges": ranges_chart,
    "predicted": predicted_chart,
    "threshold": threshold_chart,
    "calibration": calibration_chart,
    "histogram": histogram_chart,
}
