"""The charts of a report: what each draws is a dataset of its content, under the same name."""

from __future__ import annotations

import math
from typing import Any

from .drawing import altair, unvalidated
from .plots import label_axis

BLUE, ORANGE, GREEN, PURPLE, RED, GREY = "#3b8eea", "#e8590c", "#2da44e", "#a371f7", "#e5534b", "#8b949e"
CYCLE = [BLUE, ORANGE, GREEN, PURPLE, RED, "#d4a72c", "#1b9e9e", "#db61a2", "#7c8ea3", "#8a6d3b"]
HEIGHT = 240
FAR = 5.0  # times the other lines: a promise that ends further up is beyond a linear scale
FEW = 8  # rounds that say little
PROMISE = "at most, by the theorem"


def charts(content: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The charts by the name of their place: for each its data, its specification and that with logarithmic axes."""
    with unvalidated():
        return drawn(content, content["datasets"])


def drawn(content: dict[str, Any], data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The charts of these datasets."""
    out: dict[str, dict[str, Any]] = {}
    for each in content["learners"]:
        k = each["key"]
        if f"loss{k}" in data:
            logs = {"linear": loss_chart(each, data, False), "log": loss_chart(each, data, True)}
            out[f"c-loss{k}"] = {"data": [f"loss{k}", f"hover{k}"], **logs}
        for name, make in SIMPLE.items():
            if rows := data.get(f"{name}{k}") or data.get(f"{name}{k}/0"):  # of several labels the first
                used = [f"{name}{k}", *([f"band{k}"] if name == "calibration" else [])]
                out[f"c-{name}{k}"] = {"data": used, "linear": make(each, rows)}
    if data.get("overlay"):
        unit = content["comparison"]["unit"]
        logs = {"linear": overlay_chart(data, unit, False), "log": overlay_chart(data, unit, True)}
        out["c-overlay"] = {"data": ["overlay"], **logs}
    if data.get("pairs") and any("low" in row for row in data["pairs"]):
        out["c-pairs"] = {"data": ["pairs"], "linear": pairs_chart(data["pairs"])}
    return out


def named(name: str) -> Any:
    """A chart of a dataset of the report."""
    alt = altair()
    return alt.Chart(alt.NamedData(name=name))


CONFIG = {  # the page colours the text and the axes
    "autosize": {"type": "fit-x", "contains": "padding"},
    "axis": {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"},
    "background": "transparent",
    "font": "system-ui, sans-serif",
    "legend": {"labelFontSize": 12, "symbolStrokeWidth": 3, "labelLimit": 260},
    "padding": 2,
    "view": {"stroke": None},
}


def finished(chart: Any, height: int = HEIGHT) -> dict[str, Any]:
    """The specification of a chart as wide as its place."""
    found = chart.to_dict(validate=False)
    del found["$schema"]  # an address, which nobody needs to visit
    given = found.get("config", {})
    config = given | CONFIG | {"view": given.get("view", {}) | CONFIG["view"]}
    return found | {"width": "container", "height": height, "config": config}


def rounds_axis(log: bool, first: float, last: float, title: str = "rounds") -> Any:
    """The axis of rounds."""
    alt = altair()
    scale = alt.Scale(
        type="log" if log else "linear", domain=[max(1.0, first) if log else 0.0, max(2.0, last)], nice=False
    )
    form = ",~r" if last < 10_000 else "~s"
    return alt.X("rounds:Q", title=title, scale=scale, axis=alt.Axis(format=form, tickCount=6, grid=False))


def log_rounds() -> Any:
    """The axis of rounds that double."""
    alt = altair()
    scale = alt.Scale(type="log", nice=False)
    return alt.X("rounds:Q", title="rounds", scale=scale, axis=alt.Axis(format="~s", grid=False, labelSeparation=8))


def legend(columns: int = 2, symbol: str = "stroke") -> Any:
    """A legend below."""
    return altair().Legend(orient="bottom", symbolType=symbol, symbolOpacity=1, columns=columns, title=None)


def coloured(names: list[str], legend: Any) -> Any:
    """A colour for each line, in this order."""
    alt = altair()
    colours = [CYCLE[i % len(CYCLE)] for i in range(len(names))]
    return alt.Color("line:N", sort=names, scale=alt.Scale(domain=names, range=colours), legend=legend)


def per_row(unit: str) -> str:
    """What a mean is a mean of."""
    return "mistakes per row" if unit == "mistakes" else f"mean {unit}"


def best_name(each: dict[str, Any]) -> str:
    """The best fixed predictor, or what was found of it where it is not shown to be the best."""
    return "best fixed predictor" if each["best_shown"] else "best found"


def is_far(each: dict[str, Any], chart: str) -> bool:
    """Whether the promise ends so far above the other lines of a chart that a linear scale for it would hide them."""
    means = {name: value for name, value in each["means"].items() if value is not None}
    if "guaranteed" not in means:
        return False
    if chart == "regret":
        return bool(means["guaranteed"] - means["best"] > FAR * abs(means["regret"]))
    return bool(means["guaranteed"] > FAR * max(abs(means.get(name, 0.0)) for name in ("loss", "constant", "best")))


def loss_chart(each: dict[str, Any], data: dict[str, Any], log: bool) -> dict[str, Any]:
    """The mean loss so far and over a window, beside the constant, the best fixed predictor and the promise."""
    alt = altair()
    k, rows = each["key"], data[f"loss{each['key']}"]
    window = f"mean of the last {each['window']:,} rounds"
    inks = {"mean so far": (BLUE, [1, 0]), window: ("#9ec8f5", [1, 0]), "best constant": (GREY, [6, 3])}
    best = best_name(each)
    inks |= {best: (GREEN, [6, 3]), "guaranteed at most": (ORANGE, [3, 3])}
    shown = [name for name in inks if any(row["line"] == name for row in rows)]
    usable = [row for row in rows if row["value"] is not None and (not log or row["value"] > 0.0)]
    last, first = max(row["rounds"] for row in rows), min(row["rounds"] for row in rows)
    hidden = "guaranteed at most" if is_far(each, "loss") else None
    late = [r["value"] for r in usable if r["line"] != hidden and (r["rounds"] >= last / 50 or r["rounds"] == last)]
    kept = [row["value"] for row in usable] if log else late or [1.0]
    low, high = min(kept, default=1.0), max(kept, default=1.0)
    if log:
        y_scale = alt.Scale(type="log", domain=[low, high if high > low else 2.0 * low], nice=False, clamp=True)
    else:
        floor = 0.0 if low > 0.0 and low < 0.6 * high else low - 0.1 * (high - low or 1.0)
        y_scale = alt.Scale(domain=[floor, high + 0.05 * (high - floor)], nice=False, zero=False)
    x = rounds_axis(log, first, last)
    y = alt.Y("value:Q", title=per_row(each["unit"]), scale=y_scale, axis=alt.Axis(tickCount=6))
    colour = alt.Color(
        "line:N", scale=alt.Scale(domain=shown, range=[inks[n][0] for n in shown]), legend=legend(), sort=None
    )
    dash = alt.StrokeDash(
        "line:N", scale=alt.Scale(domain=shown, range=[inks[n][1] for n in shown]), legend=legend(), sort=None
    )
    lines = (
        named(f"loss{k}")
        .mark_line(strokeWidth=2, clip=True, interpolate="linear")
        .encode(x=x, y=y, color=colour, strokeDash=dash)
    )
    if log:
        lines = lines.transform_filter("datum.value > 0")
    over = alt.selection_point(
        name="over", fields=["rounds"], nearest=True, on="pointerover", clear="pointerout", empty=False
    )
    tips = {"so far": "mean so far", "window": window, "constant": "best constant", "best": best}
    tips |= {"guaranteed": "guaranteed at most"}
    there = [field for field in tips if any(field in row for row in data[f"hover{k}"])]
    rule = (
        named(f"hover{k}").mark_rule(color=GREY, strokeWidth=1.5)
        .encode(
            x=x,
            opacity=alt.condition(over, alt.value(0.8), alt.value(0.001)),
            tooltip=[alt.Tooltip("rounds:Q", title="round", format=","), *(
                alt.Tooltip(f"{field}:Q", title=tips[field], format=".5~g") for field in there
            )],
        )
        .add_params(over)
    )  # fmt: skip
    return finished(alt.layer(lines, rule), 320)


def regret_chart(each: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The regret per round, over logarithmic rounds; the first few are beyond the scale."""
    alt, k = altair(), each["key"]
    few = max(FEW, math.isqrt(rows[-1]["rounds"]))
    shown = [name for name in ("regret", PROMISE) if any(row["line"] == name for row in rows)]
    hidden = PROMISE if is_far(each, "regret") else None
    late = [row["value"] for row in rows if row["rounds"] >= few and row["line"] != hidden] or [0.0, 1.0]
    low, high = min(0.0, *late), max(0.0, *late)
    wide = (high - low) or 1.0
    x = log_rounds()
    scale = alt.Scale(domain=[low - 0.03 * wide, high + 0.03 * wide], nice=False)
    y = alt.Y("value:Q", title="regret per round", scale=scale, axis=alt.Axis(tickCount=6))
    colour = alt.Color("line:N", scale=alt.Scale(domain=shown, range=[BLUE, ORANGE][: len(shown)]), legend=legend())
    tip = ["line:N", alt.Tooltip("rounds:Q", format=","), alt.Tooltip("value:Q", title="per round", format=".5~g")]
    line = named(f"regret{k}").mark_line(strokeWidth=2, clip=True, point={"size": 30, "filled": True, "opacity": 0.01})
    zero = alt.Chart(alt.Data(values=[{"zero": 0}])).mark_rule(color=GREY, strokeDash=[4, 3]).encode(y="zero:Q")
    return finished(alt.layer(zero, line.encode(x=x, y=y, color=colour, tooltip=tip)))


def weights_chart(each: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The largest weights, and those of the best fixed predictor."""
    alt, k = altair(), each["key"]
    names = [row["feature"] + (f" ({row['label']})" if "label" in row else "") for row in rows]
    features = alt.Y("rank:O", title=None, axis=label_axis(names))
    moves = any("move" in row for row in rows)
    field, other = ("move", "best_move") if moves else ("weight", "best")
    own, beside = ([row[name] for row in rows if row.get(name) is not None] for name in (field, other))
    top = 3.0 * max(map(abs, own), default=1.0)  # what lies beyond is not drawn: it would hide the rest
    inside = [0.0, *own, *(v for v in beside if abs(v) <= top)]
    scale = alt.Scale(domain=[min(inside), max(inside)] if max(inside) > min(inside) else [-1.0, 1.0])
    x = alt.X(
        f"{field}:Q", title="weight × largest value" if moves else "weight", scale=scale, axis=alt.Axis(tickCount=6)
    )
    tip = ["feature:N", alt.Tooltip("weight:Q", format=".5~g")]
    tip += [alt.Tooltip("best:Q", title="best fixed predictor", format=".5~g")] if beside else []
    layers = [
        alt.Chart(alt.Data(values=[{"zero": 0}])).mark_rule(color=GREY).encode(x="zero:Q"),
        named(f"weights{k}").mark_bar(color=BLUE, height={"band": 0.65}).encode(x=x, y=features, tooltip=tip),
    ]
    if beside:
        tick = named(f"weights{k}").mark_tick(color=GREEN, thickness=3, height={"band": 0.9}, clip=True)
        layers.append(tick.encode(x=f"{other}:Q", y=features, tooltip=tip))
    return finished(alt.layer(*layers), max(60, 20 * len(rows)))


def shares_chart(each: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The weights of the members of a panel, stacked."""
    alt, k = altair(), each["key"]
    names = list(dict.fromkeys(row["line"] for row in rows))
    x = log_rounds()
    y = alt.Y("value:Q", title="weight", stack="zero", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%"))
    colour = coloured(names, legend(1, "square"))
    tip = ["line:N", alt.Tooltip("rounds:Q", format=","), alt.Tooltip("value:Q", title="weight", format=".1%")]
    return finished(named(f"shares{k}").mark_area(opacity=0.85).encode(x=x, y=y, color=colour, tooltip=tip))


def predicted_chart(each: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Predictions before each row against the truth."""
    alt, k = altair(), each["key"]
    true = [row["true"] for row in rows]
    low, high = min(true), max(true)
    scale = alt.Scale(nice=True, zero=False)
    dots = named(f"predicted{k}").mark_circle(size=22, opacity=0.45, color=BLUE)
    tip = [alt.Tooltip("true:Q", format=".6~g"), alt.Tooltip("predicted:Q", format=".6~g")]
    x, y = alt.X("true:Q", title="true", scale=scale), alt.Y("predicted:Q", title="predicted", scale=scale)
    ends = [{"true": low, "predicted": low}, {"true": high, "predicted": high}]
    equal = (
        alt.Chart(alt.Data(values=ends)).mark_line(color=GREY, strokeDash=[4, 3]).encode(x="true:Q", y="predicted:Q")
    )
    return finished(alt.layer(equal, dots.encode(x=x, y=y, tooltip=tip)))


def threshold_chart(each: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Recall, precision and error rate by the threshold."""
    alt, k = altair(), each["key"]
    names = ["recall", "precision", "error rate"]
    colour = alt.Color("line:N", scale=alt.Scale(domain=names, range=[BLUE, GREEN, ORANGE]), legend=legend(3))
    tip = ["line:N", alt.Tooltip("threshold:Q", format=".4~g"), alt.Tooltip("value:Q", format=".2%")]
    y = alt.Y("value:Q", title=None, scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%"))
    x = alt.X(
        "threshold:Q",
        title=f"threshold on the {each['scores']}",
        scale=alt.Scale(nice=False, zero=False),
        axis=alt.Axis(tickCount=6),
    )
    line = named(f"threshold{k}").mark_line(strokeWidth=2, point={"size": 14, "filled": True})
    return finished(line.encode(x=x, y=y, color=colour, tooltip=tip))


def calibration_chart(each: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Observed frequencies by isotonic regression (PAV) against the probabilities, with a consistency band."""
    alt, k = altair(), each["key"]
    unit = alt.Scale(domain=[0, 1])
    x = alt.X("probability:Q", title="predicted probability", scale=unit, axis=alt.Axis(tickCount=5))
    band = named(f"band{k}").mark_area(opacity=0.2, color=BLUE)
    ends = [{"probability": 0, "observed": 0}, {"probability": 1, "observed": 1}]
    equal = alt.Chart(alt.Data(values=ends)).mark_line(color=GREY, strokeDash=[4, 3])
    line = named(f"calibration{k}").mark_line(
        color=BLUE, strokeWidth=2.2, point={"size": 14, "filled": True, "color": BLUE}
    )
    tip = [alt.Tooltip("probability:Q", format=".4~g"), alt.Tooltip("observed:Q", format=".4~g")]
    y = alt.Y("observed:Q", title="observed frequency", scale=unit)
    layers = [
        band.encode(x=x, y=alt.Y("low:Q", scale=unit, title="observed frequency"), y2="high:Q"),
        equal.encode(x=x, y=y),
        line.encode(x=x, y=y, tooltip=tip),
    ]
    return finished(alt.layer(*layers))


def rounds_chart(each: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The errors in every round over all rows."""
    alt, k = altair(), each["key"]
    names = list(dict.fromkeys(row["line"] for row in rows))
    y = alt.Y("value:Q", title=f"mean {each['unit']}", scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=6))
    tip = ["line:N", alt.Tooltip("rounds:Q", format=","), alt.Tooltip("value:Q", format=".5~g")]
    line = named(f"rounds{k}").mark_line(strokeWidth=2, point={"size": 30, "filled": True, "opacity": 0.01})
    line = line.encode(x=log_rounds(), y=y, color=coloured(names, legend(3)), tooltip=tip)
    return finished(line)


def link_chart(each: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The learnt link: the mean of y over the margin."""
    alt, k = altair(), each["key"]
    x = alt.X("margin:Q", title="margin w·x", scale=alt.Scale(nice=False, zero=False), axis=alt.Axis(tickCount=6))
    y = alt.Y("mean:Q", title="probability" if "confusion" in each else "mean of y", scale=alt.Scale(zero=False))
    tip = [alt.Tooltip("margin:Q", format=".5~g"), alt.Tooltip("mean:Q", format=".5~g")]
    line = named(f"link{k}").mark_line(color=BLUE, strokeWidth=2.2, point={"size": 14, "filled": True, "color": BLUE})
    return finished(line.encode(x=x, y=y, tooltip=tip))


def histogram_chart(each: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
    """How often each probability was given."""
    alt, k = altair(), each["key"]
    x = alt.X(
        "from:Q",
        bin="binned",
        title="predicted probability",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(tickCount=5),
    )
    tip = [alt.Tooltip("from:Q"), alt.Tooltip("to:Q"), alt.Tooltip("rows:Q", format=",")]
    bars = named(f"histogram{k}").mark_bar(color=BLUE, opacity=0.8)
    return finished(
        bars.encode(x=x, x2="to:Q", y=alt.Y("rows:Q", title="rows", axis=alt.Axis(tickCount=3)), tooltip=tip), 90
    )


def overlay_chart(data: dict[str, Any], unit: str, log: bool) -> dict[str, Any]:
    """The mean loss of all learners so far."""
    alt = altair()
    rows = data["overlay"]
    names = list(dict.fromkeys(row["line"] for row in rows))
    first, last = min(row["rounds"] for row in rows), max(row["rounds"] for row in rows)
    usable = [row["value"] for row in rows if row["value"] is not None and (row["value"] > 0.0 or not log)]
    late = [row["value"] for row in rows if row["value"] is not None and row["rounds"] >= last / 50]
    values = [v for v in (usable if log else late) if math.isfinite(v)] or [1.0]
    low, high = min(values), max(values)
    scale = alt.Scale(
        type="log" if log else "linear", domain=[low, high if high > low else low + 1.0], nice=not log, zero=False
    )
    y = alt.Y("value:Q", title=f"mean {unit} so far", scale=scale, axis=alt.Axis(tickCount=6))
    colour = coloured(names, legend())
    tip = ["line:N", alt.Tooltip("rounds:Q", format=","), alt.Tooltip("value:Q", format=".5~g")]
    lines = named("overlay").mark_line(strokeWidth=2, clip=True, point={"size": 12, "filled": True, "opacity": 0.01})
    lines = lines.encode(x=rounds_axis(log, first, last), y=y, color=colour, tooltip=tip)
    return finished(lines.transform_filter("datum.value > 0") if log else lines, 300)


def pairs_chart(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The difference of every pair, with its interval."""
    alt = altair()
    y = alt.Y("pair:N", title=None, sort=None, axis=alt.Axis(labelLimit=320, ticks=False))
    tip = ["pair:N", *(alt.Tooltip(f"{name}:Q", format=".4~g") for name in ("difference", "low", "high"))]
    x = alt.X("low:Q", title="difference of the mean losses", axis=alt.Axis(tickCount=5))
    layers = [
        alt.Chart(alt.Data(values=[{"zero": 0}])).mark_rule(color=GREY, strokeDash=[4, 3]).encode(x="zero:Q"),
        named("pairs").mark_rule(color=BLUE, strokeWidth=3).encode(x=x, x2="high:Q", y=y, tooltip=tip),
        named("pairs").mark_circle(color=BLUE, size=70, opacity=1).encode(x="difference:Q", y=y, tooltip=tip),
    ]
    return finished(alt.layer(*layers), max(60, 30 * len(rows)))


SIMPLE = {  # charts of one learner with one kind of axes, by the dataset that they draw
    "regret": regret_chart,
    "rounds": rounds_chart,
    "link": link_chart,
    "weights": weights_chart,
    "shares": shares_chart,
    "predicted": predicted_chart,
    "threshold": threshold_chart,
    "calibration": calibration_chart,
    "histogram": histogram_chart,
}
