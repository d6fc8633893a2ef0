"""Online to batch: a bound on the risk of the averaged predictor of one pass over i.i.d. rows, without held-out rows.

Let v be the mean of w_1..w_m, where w_t predicted row t before it was learnt. Let L_A be the sum of the losses of these
predictions, and R_v the expected loss of v on a new row. Losses are convex, so R_v <= (1/m) Sigma R_(w_t); and w_t was
fixed before row t, so the sums of loss_t - R_(w_t) are a martingale. Hence, for losses in [0, c],

    E[R_v] <= E[L_A]/m        and with probability 1 - delta        R_v <= L_A/m + c sqrt(ln(1/delta) / (2m)).

The first, with a regret bound, gives E[R_v] <= min_u [R_u/(1 - eta X^2) + |u|^2/(eta m)] for Widrow-Hoff, and similar
bounds for every learner with a regret bound. No data can show that rows are i.i.d., that no loss is above c, or that
w_1 and the rate were fixed before the rows were seen. So the verdict is UNCHECKABLE, and the bound is given. It is VOID
if the rows contradict an assumption, or if w_1 was given and not declared to be independent of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..kernels.losses import Square
from ..online.margins import each_loss
from ..online.run import Run
from ..online.together import Single
from ..storage.registry import storable
from ..validation import number
from . import theorems
from .applied import loss_as_measured, unit_and_name
from .audit import Rounds, passes_over, play_over, replay
from .best import comparator
from .certificate import Assumption, Certificate, Certificates, Comparator
from .certify import certify_run
from .theorems import NONE, ONLINE_TO_BATCH, Verdict

if TYPE_CHECKING:
    from ..online.learners import Learner
    from ..rows.data import Data

SQUARE = ("widrow-hoff", "implicit-widrow-hoff", "exponentiated-gradient")  # theorems about the square loss


@storable
@dataclass(frozen=True)
class RiskCertificate(Certificate):
    """A certificate of the risk R_v of the averaged predictor.

    It has the attributes of a `Certificate` and three more. `measured` is the mean progressive loss L_A/m, and `bound`
    is the value that R_v does not exceed with probability 1 - delta.

    Attributes
    ----------
    predictor : ndarray
        v, the mean of w_1..w_m, the intercept's weight last.
    delta : float
        The probability with which the bound may fail.
    expectation : float
        An unbiased estimate, from these rows, of a bound on E[R_v]; NaN if no regret bound covers the run.
    """

    predictor: np.ndarray = field(default_factory=lambda: np.zeros(0))
    delta: float = math.nan
    expectation: float = math.nan


def risk_certificate(
    model: Any,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    bound: float | None = None,
    delta: float = 0.05,
    support: float | None = None,
    target: float | None = None,
    independent_start: bool = False,
) -> RiskCertificate | Certificates:
    """Bound the risk of the averaged predictor of one pass, for i.i.d. rows whose losses do not exceed `bound`.

    The mean v of w_1..w_m has, with probability 1 - delta, a risk of at most L_A/m + c sqrt(ln(1/delta)/(2m)), where
    L_A is the sum of the progressive losses.

    Parameters
    ----------
    model : estimator
        An online regressor, or a classifier with a convex loss, trained in one pass.
    X, y, sample_weight : array_like
        The rows it was trained on, as for `certify`.
    bound : float, default None
        c, which you declare: an upper bound on every possible loss, (w_t . x - y)^2 or the learner's own. Do not take
        it from the losses seen, or the bound fails with a probability above delta. None derives it from `support` and
        `target`, if the weights have bounded norm: exponentiated gradient, and descent on the simplex or in the
        balanced geometry.
    delta : float, default 0.05
        The probability with which the bound may fail, between 0 and 1; one-vs-rest learners divide it equally.
    support : float, default None
        An upper bound on the norm of every row of the distribution (|x|_2; |x|_inf for multiplicative weights), the
        intercept included, which you declare. The bound in expectation of the square loss uses it; None takes the
        largest norm seen.
    target : float, default None
        An upper bound on every |y| of the distribution, which you declare; needed only to derive `bound`.
    independent_start : bool, default False
        Declares that the `start` given to the model was fixed before these rows were seen. Otherwise a model with a
        start has no bound, since weights fitted on the same rows make the losses too small.

    Returns
    -------
    RiskCertificate or Certificates
        One certificate, or one per class for one-vs-rest.

    Raises
    ------
    ValueError
        If the model is not an online learner, counts mistakes, or predicts with weights that depend on the row, as
        panels do; or if `bound` is missing and cannot be derived.

    References
    ----------
    .. [1] N. Cesa-Bianchi, A. Conconi, C. Gentile, "On the generalization ability of on-line learning algorithms", IEEE
       Transactions on Information Theory, 2004.

    Examples
    --------
    >>> import numpy as np, hindsight
    >>> rng = np.random.default_rng(0)
    >>> X = rng.choice([-0.5, 0.5], size=(1000, 2))
    >>> model = hindsight.WidrowHoffRegressor(0.1, average="before", fit_intercept=False).fit(X, X[:, 0])
    >>> found = risk_certificate(model, X, X[:, 0], bound=0.5)  # |w_t - u| falls from 1, so no loss is above |x|^2
    >>> found.verdict.value, round(found.measured, 4), round(found.bound, 4)
    ('UNCHECKABLE', 0.0054, 0.0247)
    """
    declared = {"bound": bound, "support": support, "target": target}
    for name, value in declared.items():
        if value is not None:
            declared[name] = number(name, value, 0)
    if not 0.0 < number("delta", delta) < 1.0:
        raise ValueError(f"delta must lie above 0 and below 1, got {delta!r}")
    runs: list[Run] = getattr(model, "runs_", [])
    if runs and not isinstance(runs[0], Run):
        raise ValueError(
            f"a risk certificate is for one pass of an online learner; {type(model).__name__} reads its rows many times"
        )
    if not runs:
        raise ValueError(f"a risk certificate is for online learners that were trained, not for {model!r}")
    learner = runs[0].learner
    if learner.theorem in ("perceptron", "winnow"):
        raise ValueError(f"{learner.name} counts mistakes, which are not convex: take a learner that descends a loss")
    if not learner.loss.convex:
        raise ValueError(f"the {learner.loss.name} loss is not known to be convex, which a risk certificate needs")
    if not learner.geometry.linear:
        raise ValueError(
            f"a risk certificate is for the mean of the weights that predicted; those of {learner.name} depend on the "
            "row that is predicted: take a learner such as DescentRegressor or DescentClassifier"
        )
    c = _largest_loss(learner, **declared)
    labels = model._run_labels()
    each_delta, limits = delta / len(runs), (declared["support"], declared["target"], bool(independent_start))
    each = tuple(
        _certificate(run, model._data(k, X, y, sample_weight), c, each_delta, *limits, model.average, labels[k])
        for k, run in enumerate(runs)
    )
    return each[0] if len(each) == 1 else Certificates(each)


def _largest_loss(learner: Learner, bound: float | None, support: float | None, target: float | None) -> float:
    """Return the declared c, or the largest loss with |w . x| <= U X and |y| <= target, by convexity at a corner."""
    if bound is not None:
        return bound
    if not learner.geometry.multiplicative:
        raise ValueError("declare bound: the weights of this learner have no norm cap for it to follow from")
    ends = {"sign": (-1.0, 1.0), "unit": (0.0, 1.0)}.get(learner.targets)
    if support is None or (ends is None and target is None):
        raise ValueError("declare bound, or support and target for it to follow from")
    reach = learner.geometry.radius * support
    ends = (-float(target or 0.0), float(target or 0.0)) if ends is None else ends
    corners = [(z, y) for z in (-reach, reach) for y in ends]
    z, y = (np.array(values) for values in zip(*corners, strict=True))
    return float(each_loss(loss_as_measured(learner), z, y).max())


def _certificate(
    run: Run,
    data: Data,
    c: float,
    delta: float,
    support: float | None,
    target: float | None,
    independent: bool,
    average: str | None,
    label: str | None,
) -> RiskCertificate:
    t = replay(run, data)
    measured, quantity = (
        loss_as_measured(run.learner),
        unit_and_name(run.learner)[1].replace("squared error", "square loss"),
    )
    loss = each_loss(measured, t.z, t.y)
    m, mean, high, low = loss.size, math.fsum(loss) / loss.size, float(loss.max()), float(loss.min())
    seen = f"largest seen {high:.6g}" if low >= 0.0 else f"least seen {low:.6g}"
    needs = [
        Assumption(f"one pass: {run.rounds:,} rounds over {data.rounds:,} rows", run.rounds <= data.rounds),
        Assumption("every weight is 1", bool((data.c == 1.0).all())),
        Assumption(f"losses lie between 0 and c = {c:g}: {seen}", None if low >= 0.0 and high <= c else False),
    ]
    norm, symbol = float(np.sqrt(t.q.max())), "|x|₂"
    if run.learner.geometry.multiplicative:
        norm, symbol = float(t.top.max()), "|x|∞"
    for name, most, value in ((symbol, support, norm), ("|y|", target, float(np.abs(t.y).max()))):
        if most is not None:
            needs.append(Assumption(f"{name} ≤ {most:g}: largest seen {value:.6g}", None if value <= most else False))
    needs.append(Assumption("rows are i.i.d., and those to come are drawn alike", None))
    needs.append(_fixed_before(run, independent))
    void = any(need.met is False for need in needs)
    regret = certify_run(run, data, seek_best=False)
    rival = regret.comparator
    own = float(each_loss(measured, t.of(data.margins(rival.u)), t.y).sum()) / m
    expectation, says = (math.nan, "void") if void else _in_expectation(run, data, t, regret, support)
    whose = (
        "the weights this model predicts with"
        if average == "before"
        else 'not those this model predicts with: fit it with average="before", or read them in `predictor`'
    )
    return RiskCertificate(
        Verdict.VOID if void else Verdict.UNCHECKABLE,
        ONLINE_TO_BATCH,
        f"mean progressive {quantity}",
        mean,
        math.nan if void else theorems.online_to_batch(mean, m, c, delta),
        Comparator(rival.u, own, rival.norm, rival.gap / m, rival.found),
        tuple(needs),
        m,
        notes=(f"δ = {delta:g}", f"v is the mean of w₁..w_m, {whose}", f"in expectation: {says}"),
        label=label,
        predictor=_mean_weights(run, data),
        delta=delta,
        expectation=expectation,
    )


def _fixed_before(run: Run, independent: bool) -> Assumption:
    """The assumption that start and rate do not depend on the rows; not met if the start may be fitted on them."""
    text = "w₁ and η were fixed before these rows were seen"
    if run.start is None:
        return Assumption(text, None)
    if independent:
        return Assumption(f"{text} (w₁ was given, and declared so)", None)
    return Assumption(f"{text}: w₁ was given; declare independent_start=True if it was", False)


def _mean_weights(run: Run, data: Data) -> np.ndarray:
    """Return the mean of w_1..w_m, from the run if it kept the sum, otherwise from a replay."""
    if run.averaging:
        return run.mean("before")
    again = run.fresh(average=True)
    alone = Single(again, 0)

    def play(p: int, part: slice, rows: Any, a: int, b: int) -> int:
        return alone.play(rows, a, b, data.y[part], data.c[part], np.empty((1, 3, b - a)))

    play_over(data, passes_over(run, data), play)
    return again.mean("before")


def _in_expectation(run: Run, data: Data, t: Rounds, regret: Certificate, support: float | None) -> tuple[float, str]:
    """Return an unbiased estimate of a bound on E[R_v], and a note about it."""
    learner, m = run.learner, t.z.size
    if regret.theorem is NONE or not learner.rate.is_constant():
        return math.nan, "no regret bound here covers this run"
    square = learner.theorem in SQUARE
    if not square or support is None:
        value = theorems.expected_risk(regret.bound, m)
        which = "X the largest seen: declare support" if square else "with the gradients met"
    else:
        rate, radius = float(t.eta[0]) * learner.loss.scale, learner.geometry.radius
        x2, which = rate * (radius * support) ** 2, f"X = {support:g}"
        explicit = learner.theorem != "implicit-widrow-hoff"
        if explicit and x2 >= 1.0:
            return math.nan, f"void, ηX² = {x2:.6g} must be below 1"
        a = np.full(data.rounds, 1.0 / (1.0 - x2) if explicit else 1.0)
        best = comparator.best(data, Square(2.0), learner.geometry, 2.0 / rate, a, run.first)
        value = theorems.expected_risk(best.objective, m, 1.0 if explicit else 1.0 + x2)
    if not math.isfinite(value):
        return math.nan, "the regret bound is void"
    return value, f"E[R_v] is at most a bound that these rows estimate, without bias, at {value:.6g} ({which})"
