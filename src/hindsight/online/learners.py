"""Learners: each consists of a loss, an update, a geometry and a rate, and names the theorem that was proved for it.

`LEARNERS` is the table of all learners. To add one, write a function that returns a `Learner` and `register` it. It
then works on dense and sparse rows and in the command, and has facts and law tests, without further edits. A learner
that names no theorem is certified as UNCHECKABLE, with its measured regret; nothing is inferred from a class or a name.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..kernels.compiler import part
from ..kernels.diagonal_newton import DiagonalNewton
from ..kernels.geometries import fill_in_geometry
from ..kernels.losses import Square, fill_in_loss
from ..kernels.penalised import Penalised
from ..kernels.rates import RateSchedule
from ..kernels.running import Running
from ..kernels.second_order import Forecaster, LogisticNewton, Ridge, WindowedRidge
from ..storage.registry import storable
from ..validation import choice, number
from .parts import GEOMETRIES, LINKS, LOSSES, UPDATES, check_part, kind_of, loss_of
from .saving import check_learner, register_part

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Learner:
    """One online learner: its loss, where it evaluates the slope, and how it steps.

    Parameters
    ----------
    name : str
        Its name in the table.
    loss, update, geometry, rate : parts
        See `hindsight.kernels`. A part that lacks a method is a TypeError that names it.
    targets : {"", "real", "sign", "unit", "count"}, default ""
        What y must be: any number, -1 or 1, between 0 and 1, or at least 0; "" uses the targets of the loss.
    score : {"loss", "square"}, default "loss"
        What it is evaluated by: the loss that it minimises, or the squared error of its predictions.
    theorem : str or None, default None
        The name of the theorem that was proved for exactly this learner (see `hindsight.certificates.judge.FAMILIES`);
        None if there is none.
    """

    name: str
    loss: Any
    update: Any
    geometry: Any
    rate: RateSchedule
    targets: str = ""
    score: str = "loss"
    theorem: str | None = None

    def __post_init__(self) -> None:
        for kind in ("loss", "update", "geometry", "rate"):
            check_part(kind, getattr(self, kind))
        for method in getattr(self.update, "needs", ()):
            if not callable(getattr(self.geometry, method, None)):
                update, geometry = type(self.update).__name__, type(self.geometry).__name__
                raise TypeError(f"{geometry} must implement {method} for the update {update}")
        if not self.targets:
            object.__setattr__(self, "targets", self.loss.targets)

    def with_rates(self, rates: Any) -> Learner:
        """The same learner with these rates, one per round."""
        rates = np.array(rates, np.float64, ndmin=1)
        bad = np.flatnonzero(~((rates > 0) & (rates < np.inf)))
        if rates.ndim != 1 or bad.size:
            where = f"rates[{bad[0]}] = {float(rates[bad[0]])!r}" if bad.size else f"{rates.ndim} dimensions"
            raise ValueError(f"rates must be a sequence of numbers above 0, one a round; got {where}")
        return replace(self, rate=RateSchedule(self.rate.eta, self.rate.power, rates))

    def begin(self, features: int, intercept: bool) -> Any:
        """A run of this learner."""
        from .run import Run

        return Run(self, features, intercept=intercept)


storable(Learner, check=check_learner)


def constant(eta: float, power: float = 0.0) -> RateSchedule:
    """The rate eta t^-power."""
    return RateSchedule(number("eta", eta, 0), number("power", power), np.zeros(0))


def space(geometry: str, radius: float) -> Any:
    """A geometry by name."""
    return GEOMETRIES[choice("geometry", geometry, GEOMETRIES)](number("radius", radius, 0))


# ---------------------------------------------------------------- the learners


SCALED = {"euclidean": "euclidean", "scale-free": "scale-free"}  # the geometries of learners that add rows


def perceptron(geometry: str = "euclidean") -> Learner:
    """w += y x on a mistake; in the scale-free geometry each x_i is measured relative to its largest size so far."""
    where, theorem = space(choice("geometry", geometry, SCALED), 1.0), {"euclidean": "perceptron"}
    return Learner(
        "perceptron", LOSSES["perceptron"], UPDATES["explicit"], where, constant(1.0),
        theorem=theorem.get(geometry, "scale-free-perceptron"),
    )  # fmt: skip


def winnow(eta: float = 0.1, margin: float | None = None, balanced: bool = True, power: float = 0.0) -> Learner:
    """Multiply by e^(eta y x) on a mistake; a margin sets the tuned eta = ln((1 + margin)/(1 - margin)) / 2."""
    if margin is not None:
        if number("margin", margin, 0) >= 1:
            raise ValueError(f"margin must lie between 0 and 1 (the tuned rate takes |x|_inf <= 1), got {margin!r}")
        eta = math.atanh(margin)
    geometry = space("balanced" if balanced else "simplex", 1.0)
    rate = constant(eta, power)
    return Learner("winnow", LOSSES["perceptron"], UPDATES["explicit"], geometry, rate, theorem="winnow")


def widrow_hoff(eta: float = 0.1, update: str = "implicit", power: float = 0.0, geometry: str = "euclidean") -> Learner:
    """w -= eta (w.x - y) x; `WidrowHoff(eta)` is `GD(square, eta/2)`, without the gradient's 2 by convention."""
    choice("update", update, UPDATES)
    theorem = {"explicit": "widrow-hoff", "implicit": "implicit-widrow-hoff"}.get(update)
    where, rate = space(choice("geometry", geometry, SCALED), 1.0), constant(eta, power)
    if geometry == "scale-free":
        theorem = scale_free_theorem(update, power)
    return Learner("widrow-hoff", Square(1.0), UPDATES[update], where, rate, "real", "square", theorem)


def scale_free_theorem(update: str, power: float) -> str | None:
    """The name of the theorem for steps in the scale-free geometry; None for changing rates or user-defined updates."""
    return "scale-free" if power == 0.0 and update in ("explicit", "implicit") else None


def eg(eta: float = 0.1, radius: float | None = 1.0, update: str = "explicit", power: float = 0.0) -> Learner:
    """Multiply by e^(-eta (w.x - y) x); a radius gives signed weights of that L1 norm, None the simplex."""
    choice("update", update, UPDATES)
    geometry = space("simplex", 1.0) if radius is None else space("balanced", radius)
    theorem = {"explicit": "exponentiated-gradient", "implicit": "implicit-descent"}.get(update)
    return Learner("eg", Square(1.0), UPDATES[update], geometry, constant(eta, power), "real", "square", theorem)


OWN = frozenset(LOSSES), frozenset(GEOMETRIES)  # the losses and geometries that descent was proved for


def descent(
    loss: str = "square",
    geometry: str = "euclidean",
    eta: float = 0.1,
    update: str = "explicit",
    radius: float = 1.0,
    power: float = 0.0,
    l1: float = 0.0,
    l2: float = 0.0,
    quantile: float | None = None,
    delta: float | None = None,
) -> Learner:
    """w -= eta loss'(w.x, y) x in any geometry, for any loss of the table.

    Explicit steps take the slope before the step, implicit ones after it; the latter never overshoot, at any rate. With
    l1 or l2, in the Euclidean geometry, each round adds the penalty l1 |w|_1 + l2/2 |w|^2, without the intercept.
    `quantile` and `delta` are parameters of some losses.
    """
    chosen, rate = loss_of(loss, quantile=quantile, delta=delta), constant(eta, power)
    choice("update", update, UPDATES)
    where = penalised(geometry, l1, l2) or space(geometry, radius)
    theorem = None
    if isinstance(where, Penalised):
        theorem = "penalised-descent" if update in ("explicit", "implicit") and loss in OWN[0] else None
    elif geometry == "scale-free":
        theorem = scale_free_theorem(update, power) if loss in OWN[0] else None
    elif update == "explicit" and loss in OWN[0] and geometry in OWN[1]:
        theorem = "convex-descent"
        if loss == "square":
            theorem = "widrow-hoff" if geometry == "euclidean" else "exponentiated-gradient"
    elif (loss, geometry, update) == ("square", "euclidean", "implicit"):
        theorem = "implicit-widrow-hoff"
    elif update == "implicit" and loss in OWN[0] and geometry in OWN[1]:
        theorem = "implicit-descent"
    return Learner("descent", chosen, UPDATES[update], where, rate, theorem=theorem)


def penalised(geometry: str, l1: float, l2: float) -> Penalised | None:
    """The Euclidean geometry with these penalties; None if both are 0."""
    for name, value in (("l1", l1), ("l2", l2)):
        if number(name, value) < 0:
            raise ValueError(f"{name} must be at least 0, got {value!r}")
    if l1 == 0 and l2 == 0:
        return None
    if geometry != "euclidean":
        raise ValueError(f"l1 and l2 are for the euclidean geometry, not for {geometry!r}")
    return Penalised(float(l1), float(l2))


def glm_tron(link: str = "logistic", eta: float | None = None, power: float = 0.0) -> Learner:
    """w -= eta (u(w.x) - y) x for a known link u; eta None is 1/lambda, right for |x|_2 <= 1."""
    loss = LINKS[choice("link", link, LINKS)]
    rate = constant(1.0 / loss.link_lipschitz if eta is None else eta, power)
    return Learner("glm-tron", loss, UPDATES["explicit"], space("euclidean", 1.0), rate, "real", "square", "glm-tron")


def auto(
    loss: str = "auto",
    second_order: str = "auto",
    drift: float = 0.0,
    quantile: float | None = None,
    delta: float | None = None,
    cells: bool = False,
) -> Any:
    """The panel that needs no rate; see `hindsight.online.panel`. The loss "auto" is chosen from the targets."""
    from .panel import auto as panel

    chosen = "square" if loss == "auto" else loss
    return panel(chosen, second_order, drift=drift, cells=cells, quantile=quantile, delta=delta)


def running(
    loss: str = "square", eta: float = 2.0, quantile: float | None = None, delta: float | None = None
) -> Learner:
    """Lazy implicit steps in the running geometry: columns need no scaling, and the rate does not depend on units."""
    chosen = loss_of(loss, quantile=quantile, delta=delta)
    where = Running(number("eta", eta, 0), known_range(chosen))
    score = "square" if chosen.quadratic else "loss"
    return Learner("running", chosen, UPDATES["implicit"], where, constant(1.0), score=score, theorem="running")


def ridge(kappa: float = 0.01, window: int | None = None) -> Learner:
    """Least squares on all earlier rows with the prior kappa M_i^2 u_i^2; a window of N forgets 1/N in each round."""
    prior = number("kappa", kappa, 0)
    if not window:
        return second_order("ridge", Ridge(prior), "square", "ridge")
    if number("window", window) < 2:
        raise ValueError(f"window must be at least 2 rounds, or 0 for all of them, got {window!r}")
    return second_order("ridge", WindowedRidge(prior, 1.0 - 1.0 / window), "square", "windowed-ridge")


def vaw(kappa: float = 0.01) -> Learner:
    """Vovk, Azoury and Warmuth's forecaster: ridge that includes the current row, with its target at mid-range."""
    return second_order("vaw", Forecaster(number("kappa", kappa, 0)), "square", "vaw")


def newton(kappa: float = 0.5, prior: float = 0.1) -> Learner:
    """Second order for the log loss, with quadratics of curvature kappa p (1 - p)."""
    return second_order(
        "newton", LogisticNewton(number("prior", prior, 0), number("kappa", kappa, 0)), "logistic", "newton"
    )


def second_order(name: str, geometry: Any, loss: str, theorem: str) -> Learner:
    """A learner whose geometry takes its own steps."""
    score = "square" if loss == "square" else "loss"
    return Learner(name, LOSSES[loss], UPDATES["explicit"], geometry, constant(1.0), score=score, theorem=theorem)


def diagonal_newton(loss: str = "square", prior: float = 1.0, kappa: float = 1.0) -> Learner:
    """Steps divided by a prior plus the accumulated curvature, coordinate by coordinate; without a theorem."""
    chosen = LOSSES[choice("loss", loss, LOSSES)]
    if not hasattr(chosen, "curvature"):
        raise ValueError(f"diagonal-newton takes a loss with a second derivative, not {loss!r}")
    where = DiagonalNewton(number("prior", prior, 0), number("kappa", kappa, 0), known_range(chosen))
    score = "square" if chosen.quadratic else "loss"
    return Learner("diagonal-newton", chosen, UPDATES["implicit"], where, constant(1.0), score=score)


def known_range(loss: Any) -> float:
    """The range of margins for the targets of a loss: 1 for labels, 0 (not known in advance) for numbers."""
    if loss.targets == "count":  # whose margins are logarithms
        raise ValueError(f"the loss {loss.name!r} is for the learner descent")
    return 0.0 if loss.targets == "real" else 1.0


# ---------------------------------------------------------------- the table


class Entry(NamedTuple):
    """One learner of the table: its name, the function that makes it, and its description in a listing.

    `task` is "classify", "regress" or "either".
    """

    name: str
    make: Callable[..., Learner]
    task: str
    geometry: str
    slope: str
    when: str
    source: str


LEARNERS: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        Entry("auto", auto, "either", "a panel", "of each member", "always", "aggregated"),
        Entry("perceptron", perceptron, "classify", "Euclidean", "-y", "only if y(w.x) <= 0", "Rosenblatt, Novikoff"),
        Entry("winnow", winnow, "classify", "balanced or simplex", "-y", "only if y(w.x) <= 0", "Littlestone"),
        Entry(
            "widrow-hoff", widrow_hoff, "regress", "Euclidean", "w.x - y, or /(1 + eta|x|^2)", "always", "Widrow, Hoff"
        ),
        Entry("eg", eg, "regress", "balanced or simplex", "w.x - y", "always", "Kivinen, Warmuth"),
        Entry("descent", descent, "either", "any", "d loss / d(w.x)", "always", "Zinkevich"),
        Entry("glm-tron", glm_tron, "regress", "Euclidean", "u(w.x) - y", "always", "Kakade et al."),
        Entry("running", running, "either", "running", "loss'(z - q s), implicit", "always", "Duchi et al., McMahan"),
        Entry("ridge", ridge, "regress", "second order", "least squares", "always", "Vovk; Azoury, Warmuth"),
        Entry("vaw", vaw, "regress", "second order", "least squares", "always", "Vovk; Azoury, Warmuth"),
        Entry("newton", newton, "classify", "second order", "d loss / d(w.x)", "always", "Jézéquel et al."),
        Entry("diagonal-newton", diagonal_newton, "either", "diagonal", "d loss / d(w.x)", "always", "no theorem"),
    )
}


def register(given: Any, name: str | None = None) -> Any:
    """Register a loss, an update, a geometry or a learner of your own under a name.

    A registered loss, update or geometry can be given by its name to the estimators, to `learners.descent` and to the
    command (``--loss``, ``--update``, ``--geometry``), a learner to the command (``--learner``). Models that use it can
    be saved, and loaded again where it was registered.

    Parameters
    ----------
    given : part, class of a geometry, or function
        An instance of a loss or an update, a class of geometries (a NamedTuple of one number, the radius), or a
        function that returns a `Learner`; all its parameters must have defaults.
    name : str, default None
        Its name; None takes the part's own `name`, or that of the function with "-" for "_".

    Returns
    -------
    given : the argument unchanged, so that `register` can decorate classes and functions.

    Raises
    ------
    TypeError
        If it lacks a required method; the message names the method.
    ValueError
        If the name is already taken.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> class Cubic(NamedTuple):
    ...     scale: float
    ...
    ...     def value(self, z, y):
    ...         return self.scale * abs(z - y) ** 3 / 3.0
    ...
    ...     def slope(self, z, y):
    ...         return self.scale * (z - y) * abs(z - y)
    ...
    ...     def curvature(self, z):
    ...         return 0.0
    >>> _ = register(Cubic(1.0), "cubic")
    >>> descent("cubic").theorem is None
    True
    """
    kind = kind_of(given)
    if kind is None:
        return _register_learner(given, name)
    table = {"loss": LOSSES, "geometry": GEOMETRIES, "update": UPDATES}[kind]
    made = given(1.0) if kind == "geometry" and isinstance(given, type) else given
    if isinstance(made, type):
        raise TypeError(f"register an instance of the {kind} {made.__name__}, such as {made.__name__}(1.0)")
    {"loss": fill_in_loss, "geometry": fill_in_geometry}.get(kind, lambda kind: kind)(type(made))
    check_part(kind, made)
    part(type(made))
    name = getattr(made, "name", type(made).__name__.lower()) if name is None else name
    entry = type(made) if kind == "geometry" else made
    known = table.get(name, entry)
    if (type(known), known) != (type(entry), entry):
        raise ValueError(f"there is another {kind} named {name!r}")
    register_part(kind, type(made))
    table[name] = entry
    return given


def _register_learner(make: Any, name: str | None) -> Any:
    if not callable(make):
        raise TypeError(f"register takes a part, or a function that makes a learner; got {make!r}")
    learner = make()
    if not isinstance(learner, Learner):
        raise TypeError(f"{make.__name__}() must return a Learner, got {learner!r}")
    name = make.__name__.replace("_", "-") if name is None else name
    if name in LEARNERS and LEARNERS[name].make is not make:
        raise ValueError(f"there is another learner named {name!r}")
    task = "regress" if learner.targets in ("real", "count") else "classify"
    for role in ("loss", "update", "geometry"):
        register_part(role, type(getattr(learner, role)))
    LEARNERS[name] = Entry(name, make, task, learner.geometry.name, "its own", "its own", "registered")
    return make


OWN_GEOMETRIES = (  # of one learner each: not offered by name
    Penalised(1.0, 1.0), Running(1.0, 1.0), Ridge(1.0), Forecaster(1.0), LogisticNewton(1.0, 1.0),
    WindowedRidge(1.0, 0.5),
    DiagonalNewton(1.0, 1.0, 1.0),
)  # fmt: skip


def _register_own_parts() -> None:
    made = {
        "loss": (*LOSSES.values(), *LINKS.values()),
        "update": UPDATES.values(),
        "geometry": (*(kind(1.0) for kind in GEOMETRIES.values()), *OWN_GEOMETRIES),
        "rate": (constant(1.0),),
    }
    for role, of_role in made.items():
        for given in of_role:
            register_part(role, type(given), where=__name__)


_register_own_parts()
