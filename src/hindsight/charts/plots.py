"""Plots of certificates and models: regret, potential, reliability, the learnt link, weights."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..certificates.certificate import COLOURS as VERDICTS
from ..certificates.certificate import Certificate, Certificates
from ..formatting import _n
from ..validation import choice
from .drawing import COLOURS, GREY, altair, coloured, drawn, line_rows, records, rule, styled, thinned
from .forecast import diagrams
from .runs import BOUND, largest_weights, link_chart, rounds_axis, weights_chart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

WIDTH, HEIGHT = 520, 280
RUN, BEST, FOUND, COMPARATOR = "this run", "the best fixed predictor", "the best found", "the comparator"
INK = {RUN: COLOURS[0], BEST: COLOURS[2], FOUND: COLOURS[2], COMPARATOR: COLOURS[2], BOUND: GREY}
DEPTH = 0.1  # of the smallest loss of the run: what the best fixed predictor loses below that is beyond the scale
DOTS = 40  # rounds up to which each is marked
BANDS = ("consistency", "confidence", "none")


def plot_regret(certificate: Certificate | Certificates) -> Any:
    """Plot the mean loss of a run so far, that of the best fixed predictor on the same rounds, and the guarantee.

    The shaded area between the first two is the regret per round. If the bound weights the losses by rates, or is that
    of full-batch descent, the certificate has only the losses after 1, 2, 4, ... rounds, and the plot shows them with
    the comparator of the bound.

    Parameters
    ----------
    certificate : Certificate or Certificates
        The result of `certify`; for one-vs-rest there is one panel per class.

    Returns
    -------
    altair.Chart
        The chart; ``chart.save("regret.png")`` needs no browser.

    Raises
    ------
    ValueError
        If the certificate does not contain the course of the run.

    Examples
    --------
    >>> import numpy as np
    >>> from hindsight import WidrowHoffRegressor, plot_regret
    >>> X, y = np.eye(4), np.arange(4.0)
    >>> chart = plot_regret(WidrowHoffRegressor().fit(X, y).certify(X, y))
    >>> chart.to_dict()["title"]["text"]
    'HOLDS: implicit Widrow-Hoff, as met'
    """
    return styled(panels(certificate, regret_panel))


def plot_potential(certificate: Certificate | Certificates) -> Any:
    """Plot the distance of the weights from the comparator, which is the potential function of the proof.

    In each round in which the run loses more than the comparator, the weights get closer to it. The distance cannot
    fall below 0, so the regret is bounded.

    Parameters
    ----------
    certificate : Certificate or Certificates
        The result of `certify`; for one-vs-rest there is one panel per class.

    Returns
    -------
    altair.Chart
        The chart.

    Raises
    ------
    ValueError
        If the certificate does not contain the course of the run, or its theorem has no potential.

    Examples
    --------
    >>> import numpy as np
    >>> from hindsight import WidrowHoffRegressor, plot_potential
    >>> X, y = np.eye(4), np.arange(4.0)
    >>> certificate = WidrowHoffRegressor().fit(X, y).certify(X, y)
    >>> drawn = plot_potential(certificate).to_dict()["layer"][0]["data"]["values"]
    >>> [point["potential"] for point in drawn] == [stop.potential for stop in certificate.path]
    True
    """
    return styled(panels(certificate, potential_panel))


def plot_reliability(
    y: ArrayLike,
    forecasts: ArrayLike | Mapping[str, ArrayLike],
    weight: ArrayLike | None = None,
    *,
    loss: str = "square",
    band: str = "consistency",
) -> Any:
    """Plot reliability diagrams: recalibrated against actual forecasts, with the decomposition of the mean loss.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Outcomes: 0 or 1, or numbers with ``loss="quadratic"``.
    forecasts : array-like of shape (n_rows,), or mapping of str to such
        The forecasts, or a mapping of names to the forecasts of several forecasters.
    weight : array-like of shape (n_rows,), default=None
        Weight of each row; None is 1.
    loss : {"square", "log", "quadratic"}, default="square"
        The loss to decompose.
    band : {"consistency", "confidence", "none"}, default="consistency"
        The band behind each curve; there is none for numeric outcomes.

    Returns
    -------
    altair.ConcatChart
        The chart, with one diagram per forecaster.

    Examples
    --------
    >>> from hindsight import plot_reliability
    >>> chart = plot_reliability([0, 1, 1], {"Ada": [0.2, 0.6, 0.9], "Bert": [0.5, 0.5, 0.5]}, band="none")
    >>> len(chart.to_dict()["concat"])
    2
    """
    from ..forecast import reliability

    choice("band", band, BANDS)
    named = forecasts if isinstance(forecasts, Mapping) else {"forecast": forecasts}
    each = {str(name): reliability(y, h, weight, loss=loss) for name, h in named.items()}
    wanted = band != "none" and loss != "quadratic"
    return styled(diagrams(each, [one.band(band) if wanted else None for one in each.values()]))


def plot_link(model: Any, X: Any = None, y: ArrayLike | None = None) -> Any:
    """Plot the link learnt by Isotron: the mean of y as a function of the margin w.x.

    Parameters
    ----------
    model : estimator
        A fitted `IsotronRegressor` or `IsotronClassifier`; there is one panel per link.
    X : {array-like, CSR matrix, dataframe} of shape (n_rows, n_features), default=None
        Rows to show with the link, as mean targets of groups of rows with similar margins.
    y : array-like of shape (n_rows,), default=None
        Their targets.

    Returns
    -------
    altair.Chart
        The chart.

    Raises
    ------
    ValueError
        If the model has no learnt link.

    Examples
    --------
    >>> from hindsight import IsotronRegressor, plot_link
    >>> model = IsotronRegressor(rounds=3).fit([[1.0], [-1.0]], [0.9, 0.1])
    >>> [point["mean"] for point in plot_link(model).to_dict()["data"]["values"]]
    [0.1, 0.9]
    """
    found = getattr(model, "link_", None)
    if found is None:
        raise ValueError(f"{type(model).__name__} has learnt no link: plot_link takes a fitted Isotron")
    many = isinstance(found, list)
    links = found if many else [found]
    labels = [str(c) for c in model.classes_] if many else [None]
    seen = [[] for _ in links] if X is None else groups(model, X, y)
    parts = [link_panel(*each) for each in zip(links, seen, labels, strict=True)]
    return styled(parts[0] if len(parts) == 1 else altair().concat(*parts, columns=3))


def plot_weights(
    model: Any, *, names: Sequence[str] | None = None, top: int = 20, certificate: Certificate | None = None
) -> Any:
    """Plot the largest weights of a model, next to those of the best fixed predictor in hindsight.

    Parameters
    ----------
    model : estimator
        A fitted estimator with one weight per feature.
    names : sequence of str, default=None
        Names of the features; None uses those of the model's training data, or x0, x1, ...
    top : int, default=20
        How many weights to show.
    certificate : Certificate, default=None
        A certificate whose best fixed predictor is also shown; None uses the model's ``certificate_``, if it has one.

    Returns
    -------
    altair.Chart
        The chart.

    Raises
    ------
    ValueError
        If there is more than one weight per feature, or the number of names is not that of the features.

    Examples
    --------
    >>> from hindsight import WidrowHoffRegressor, plot_weights
    >>> model = WidrowHoffRegressor().fit([[1.0, 0.0], [0.0, 1.0]], [1.0, -3.0])
    >>> [bar["feature"] for bar in plot_weights(model).to_dict()["layer"][1]["data"]["values"]]
    ['x1', 'x0']
    """
    w = np.asarray(model.coef_, np.float64)
    if w.ndim == 2 and w.shape[0] > 1:
        raise ValueError(f"the model has {w.shape[0]} weights for each feature, one per class: nothing single to plot")
    w = w.reshape(-1)
    known = getattr(model, "feature_names_in_", None) if names is None else names
    known = [f"x{j}" for j in range(w.size)] if known is None else [str(name) for name in known]
    if len(known) != w.size:
        raise ValueError(f"names must have one name for each of the {w.size} features, got {len(known)}")
    certificate = getattr(model, "certificate_", None) if certificate is None else certificate
    u = certificate.comparator.u[: w.size] if isinstance(certificate, Certificate) else np.array([])
    beside = u.size == w.size and np.isfinite(u).all()
    rows = largest_weights(w[None], [u if beside else None], known, top=top)
    note = f"the largest {len(rows)} of {w.size:,}" if w.size > len(rows) else f"all {w.size:,}"
    if beside:
        note += "; ticks: the best fixed predictor in hindsight"
    chart = weights_chart([rows], rows, {}, (COLOURS[0], COLOURS[1], GREY))
    title = altair().TitleParams("Weights", subtitle=note)
    return styled(chart.properties(width=WIDTH, height=max(60, 22 * len(rows)), title=title))


# ---------------------------------------------------------------- panels


def panels(certificate: Certificate | Certificates, panel: Any) -> Any:
    """One panel, or one per class."""
    if isinstance(certificate, Certificate):
        return panel(certificate)
    return altair().concat(*(panel(one) for one in certificate.each), columns=2, spacing=30)


def course(certificate: Certificate) -> tuple[Any, ...]:
    """The milestones of the run; raises an error if there are none."""
    if not certificate.path:
        raise ValueError(f"this certificate ({certificate.theorem.name}) keeps no course of the run: nothing to plot")
    return certificate.path


def head(certificate: Certificate, lines: list[str]) -> Any:
    """The title: the verdict and the theorem in the colour of the verdict, with lines below."""
    label = "" if certificate.label is None else f"{certificate.label}: "
    words = f"{label}{certificate.verdict.value}: {certificate.theorem.name}"
    return altair().TitleParams(words, color=VERDICTS[certificate.verdict], subtitle=lines)


def regret_panel(certificate: Certificate) -> Any:
    """Mean losses on logarithmic axes."""
    alt = altair()
    rounds, curves = along(certificate)
    total = not averaged(certificate)
    pairs = {name: zip(rounds, values, strict=True) for name, values in curves.items()}
    points = [point for point in line_rows(pairs) if 0.0 < point["value"] < math.inf]
    run, rival, bound = curves.values()
    known = [v for v in (*run, *bound) if 0.0 < v < math.inf] or [1.0]
    low = max(min([*known, *(v for v in rival if v > 0.0)]), DEPTH * min(known))
    high = max([*known, *(v for v in rival if v < math.inf)])
    raised = [value if value > 0.0 else low for value in rival]
    between = [row for row in records(rounds=rounds, run=run, comparator=raised) if row["run"] > 0.0]
    shown = [name for name in INK if any(p["line"] == name for p in points)]
    x = rounds_axis(True, 1.0, rounds[-1])
    what = f"{certificate.quantity}, mean so far" if total else certificate.quantity
    scale = alt.Scale(type="log", domain=[low, high if high > low else 2.0 * low], nice=False)
    y = alt.Y("value:Q", title=what, scale=scale, axis=alt.Axis(tickCount=5, format="~g"))
    below = alt.Legend(orient="bottom", symbolType="stroke")
    colour = coloured("line", {name: INK[name] for name in shown}, title=None, legend=below)
    dash = alt.StrokeDash(
        "line:N", legend=None, scale=alt.Scale(domain=shown, range=[[5, 4] if n == BOUND else [1, 0] for n in shown])
    )
    area = drawn(between).mark_area(color=COLOURS[0], opacity=0.12, clip=True)
    dots = {"size": 26, "filled": True, "opacity": 1.0 if len(rounds) <= DOTS else 0.0}
    lines = drawn(points).mark_line(strokeWidth=2.2, point=dots, clip=True)
    tip = ["line:N", "rounds:Q", "value:Q"]
    promise = f", at most {_n(certificate.bound)} guaranteed" if math.isfinite(certificate.bound) else ""
    best = certificate.best
    shown_best = "the best fixed predictor in hindsight" if certificate.best_is_shown else "the best found"
    against = "the comparator" if best is None else shown_best
    loss = certificate.comparator.loss if best is None else best.loss
    text = [
        f"{_n(certificate.measured)} over {certificate.rounds:,} rounds{promise}",
        f"{against} {_n(loss)}, regret {_n(certificate.regret)}",
    ]
    layers = [
        area.encode(x=x, y=alt.Y("comparator:Q", title=what), y2="run:Q"),
        lines.encode(x=x, y=y, color=colour, strokeDash=dash, tooltip=tip),
    ]
    return alt.layer(*layers).properties(width=WIDTH, height=HEIGHT, title=head(certificate, text))


def along(certificate: Certificate) -> tuple[list[int], dict[str, list[float]]]:
    """Numbers of rounds, and the mean losses up to them: of the run, of its comparator, and the guarantee."""
    curve = certificate.curve
    if curve is not None and certificate.lost == certificate.measured:
        best = BEST if certificate.best_is_shown else FOUND
        guaranteed = curve.bound if math.isfinite(certificate.guaranteed) else np.full(curve.bound.size, math.nan)
        lines = {RUN: curve.lost, best: curve.best, BOUND: guaranteed}
        return curve.rounds.tolist(), {name: line.tolist() for name, line in lines.items()}
    path = course(certificate)
    per = [1 if averaged(certificate) else stop.rounds for stop in path]
    sums = {RUN: [s.measured for s in path], COMPARATOR: [s.comparator for s in path], BOUND: [s.bound for s in path]}
    lines_of = {name: [v / n for v, n in zip(line, per, strict=True)] for name, line in sums.items()}
    return [stop.rounds for stop in path], lines_of


def averaged(certificate: Certificate) -> bool:
    """Whether the measured loss is a mean, as for full-batch descent."""
    return certificate.quantity.startswith("f, ")


def potential_panel(certificate: Certificate) -> Any:
    """The potential at the milestones."""
    alt = altair()
    path = [stop for stop in course(certificate) if math.isfinite(stop.potential)]
    if not path:
        raise ValueError(f"{certificate.theorem.name} follows no potential: nothing to plot")
    points = [{"rounds": stop.rounds, "potential": stop.potential} for stop in path]
    y = alt.Y("potential:Q", title="potential: distance to the best fixed predictor", scale=alt.Scale(domainMin=0))
    dots = {"size": 30, "filled": True, "color": COLOURS[3]}
    line = drawn(points).mark_line(strokeWidth=2.2, color=COLOURS[3], point=dots)
    used = f"from {path[0].potential:.4g} after round {path[0].rounds:,} to {path[-1].potential:.4g} at the end"
    line = line.encode(x=rounds_axis(True, 1.0, path[-1].rounds), y=y, tooltip=["rounds:Q", "potential:Q"])
    title = head(certificate, [f"{used}; below 0 it cannot fall"])
    return alt.layer(line, rule("y", GREY)).properties(width=WIDTH, height=HEIGHT, title=title)


def link_panel(link: Any, seen: list[dict[str, float]], label: str | None) -> Any:
    """A link, with the mean targets of groups of rows."""
    alt = altair()
    points = [{"margin": z, "mean": m} for z, m in thinned(link.z, link.mean)]
    y = alt.Y("mean:Q", title="mean of y" if label is None else f"probability of {label}")
    line = link_chart([points], points, {}, y, color=COLOURS[0], strokeWidth=2.5)
    title = alt.TitleParams("The learnt link" if label is None else label, subtitle=f"{link.z.size:,} knots")
    if seen:
        dots = drawn(seen).mark_circle(color=COLOURS[1], size=50, opacity=0.7)
        line = alt.layer(dots.encode(x="margin:Q", y="mean:Q", tooltip=["margin:Q", "mean:Q", "rows:Q"]), line)
    return line.properties(width=WIDTH, height=HEIGHT, title=title)


def groups(model: Any, X: Any, y: Any, count: int = 30) -> list[list[dict[str, float]]]:
    """For each link, the mean margin and mean target of groups of rows with similar margins."""
    classes = getattr(model, "classes_", None)
    y = np.asarray(y)
    margins = np.asarray(X @ np.atleast_2d(model.coef_).T + model.intercept_)
    many = margins.shape[1]
    out = []
    for k in range(many):
        hit = y.astype(np.float64) if classes is None else (y == classes[k if many > 1 else 1]).astype(np.float64)
        order = np.argsort(margins[:, k], kind="stable")
        parts = [part for part in np.array_split(order, count) if part.size]
        out.append(
            [{"margin": float(margins[p, k].mean()), "mean": float(hit[p].mean()), "rows": p.size} for p in parts]
        )
    return out
