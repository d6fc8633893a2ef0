"""Panels: several learners over one stream, aggregated into one prediction.

Each member is a separate run with its own state, facts and theorem, and learns bit for bit as it would alone. A mixture
averages the predictions with weights that depend on what each member has lost. `auto` is the default panel of
`hindsight learn`; it has no rate to set.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..kernels import state as states
from ..kernels.aggregation import LogMixture, MeanMixture, mix
from ..kernels.compiler import for_parts
from ..kernels.drift import LogDrift, MeanDrift
from ..kernels.facts import empty_facts
from ..kernels.side_by_side import PROCESSORS, compile_all
from ..kernels.state import fields_of
from ..rows.matrices import unshared
from ..storage.fields import is_vector
from ..storage.registry import storable, want
from ..validation import choice, number
from .learners import Learner, constant, diagonal_newton, newton, ridge, running
from .parts import GEOMETRIES, LOSSES
from .relay import relay
from .run import Run, check_covered, checked_tally, of_width
from .stack import Stack, Stages, check_stack
from .together import together

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ETAS = tuple(2.0**k for k in (-3, -1, 1, 3, 5))  # of the running members
DIAGONAL = ((0.25, 0.1), (1.0, 1.0), (4.0, 0.01))  # prior and kappa of the diagonal Newton members
CURVATURES = (0.5, 0.125)  # kappa of the second-order members for the log loss
LIMIT = 256  # coordinates of members of second order, the intercept's included, if no more are asked for
SECOND_ORDER = ("auto", "yes", "no")
BUSY, PIECE = 20000, 80000  # numbers of a piece that a member plays in one go, on several processors: least, and most
ON_CELLS = " on cells"  # after the name of a learner
FEW = 4  # pieces of a block, until they are as large as can be


@dataclass(frozen=True)
class Panel:
    """Several learners of one loss, aggregated.

    Parameters
    ----------
    members : sequence of Learner
        At least one; all of one loss.
    name : str, default "panel"
        Its name.
    limit : int, default 0
        The largest number of coordinates of members that keep a matrix; 0 is no limit. With more features they learn
        only the first ones, as if the others were 0, provided that some member has no matrix and learns all features.
    drift : float, default 0.0
        The fraction of the weight that is shared equally among all members after each round, for streams that change;
        for the square and logistic losses.
    stack : bool, default False
        Whether a second-order learner on the members' predictions corrects the mixture; for the square and logistic
        losses.
    cells : int, default 0
        The number of members, the last ones, that also learn on cells of numeric columns, to fit nonlinear relations;
        for the square and logistic losses. These members have no guarantee against linear predictors on the columns.

    Attributes
    ----------
    loss, targets, score, theorem, geometry, update, rate : as for a `Learner`.

    Examples
    --------
    >>> from hindsight import AutoRegressor
    >>> from hindsight.online import learners
    >>> panel = Panel([learners.running(eta=0.5), learners.running(eta=8.0), learners.ridge()])
    >>> model = AutoRegressor(panel=panel).fit([[1.0], [2.0], [3.0], [4.0]], [2.0, 4.0, 6.0, 8.0])
    >>> list(model.shares_)
    ['running(eta=0.5)', 'running(eta=8)', 'ridge(kappa=0.01)']
    """

    members: tuple[Learner, ...]
    name: str = "panel"
    limit: int = 0
    drift: float = 0.0
    stack: bool = False
    cells: int = 0

    def __post_init__(self) -> None:
        plain = len(self.members) - self.cells
        object.__setattr__(self, "members", (*self.members[:plain], *map(on_cells, self.members[plain:])))
        if not self.members:
            raise ValueError("a panel needs at least one member")
        own = type(self.loss), self.loss, self.targets
        other = [m.name for m in self.members if (type(m.loss), m.loss, m.targets) != own]
        if other:
            raise ValueError(f"all members of a panel must have the same loss: {other[0]} has another")
        if not 0.0 <= self.drift < 1.0:
            raise ValueError(f"drift must be at least 0 and below 1, got {self.drift!r}")
        if not 0 <= self.cells < len(self.members) or any(keeps_matrix(m) for m in self.members[plain:]):
            raise ValueError("members on cells come after others, and keep no matrix")
        for name in ("drift", "stack", "cells"):
            if getattr(self, name) and not (self.in_logs or self.clipped_squares):
                raise ValueError(f"{name} is for the square and logistic losses")

    @property
    def loss(self) -> Any:
        """The loss of all members."""
        return self.members[0].loss

    @property
    def targets(self) -> str:
        """What the targets must be."""
        return self.members[0].targets

    @property
    def score(self) -> str:
        """What it is evaluated by."""
        return self.members[0].score

    theorem = "aggregation"
    rate = constant(1.0)

    @property
    def update(self) -> Any:
        """The update of the first member."""
        return self.members[0].update

    @property
    def geometry(self) -> Any:
        """What the geometries of all members allow."""
        return PanelGeometry(tuple(m.geometry for m in self.members))

    def begin(self, features: int, intercept: bool) -> PanelRun:
        """A run of this panel."""
        return PanelRun(self, features, intercept=intercept)

    @property
    def in_logs(self) -> bool:
        """Whether members predict probabilities, evaluated by the log loss."""
        return self.loss.link == "logistic" and self.targets == "unit"

    @property
    def clipped_squares(self) -> bool:
        """Whether members predict numbers, evaluated by the square loss."""
        return bool(self.loss.quadratic) and self.targets == "real"

    def mixture(self, members: int) -> Any:
        """The mixture for this number of members."""
        if not self.drift:
            return self.plain_mixture(members)
        return LogDrift(members, self.drift) if self.in_logs else MeanDrift(members, self.loss.scale, self.drift)

    def plain_mixture(self, members: int) -> Any:
        """The mixture without a drift."""
        if self.in_logs:
            return LogMixture(members)
        return MeanMixture(
            members, self.loss.scale if self.loss.quadratic else 0.0, 1.0 if self.targets == "real" else 0.0
        )

    def narrow(self, member: Learner) -> bool:
        """Whether `limit` applies to a member."""
        plain = self.members[: len(self.members) - self.cells]
        return self.limit > 0 and keeps_matrix(member) and not all(map(keeps_matrix, plain))

    def features_of(self, member: Learner, features: int, intercept: bool) -> int:
        """The number of features that a member learns: all of them, or the first ones within the limit."""
        return min(features, max(1, self.limit - intercept)) if self.narrow(member) else features


@dataclass(frozen=True)
class PanelGeometry:
    """What a panel can do as a whole."""

    each: tuple[Any, ...]
    name = "panel"
    averages = False
    linear = False
    radius = 1.0
    norm = ""

    @property
    def multiplicative(self) -> bool:
        """Whether the weights of some member depend on the number of features."""
        return any(g.multiplicative for g in self.each)

    @property
    def signed(self) -> bool:
        """Whether negating the labels negates the weights."""
        return all(g.signed for g in self.each)

    @property
    def can_grow(self) -> bool:
        """Whether features may be added later."""
        return all(g.can_grow for g in self.each)


def keeps_matrix(learner: Learner) -> bool:
    """Whether a learner keeps a matrix with one entry per pair of coordinates."""
    return any(field.axes == 2 for field in fields_of(learner.geometry.State).values())


def on_cells(learner: Learner) -> Learner:
    """The learner as a member on cells; its theorem compares with fixed predictors on the cells."""
    return learner if is_on_cells(learner) else replace(learner, name=learner.name + ON_CELLS, theorem=None)


def is_on_cells(learner: Learner) -> bool:
    """Whether a learner is a member on cells."""
    return learner.name.endswith(ON_CELLS) and learner.theorem is None


def member_name(learner: Learner) -> str:
    """The name of a member: that of its learner, with the parameters that distinguish it from other members."""
    geometry = learner.geometry
    shown = [f"{name}={value:g}" for name, value in geometry._asdict().items() if name != "declared"]
    if geometry.name in GEOMETRIES:
        radius = shown if geometry.multiplicative else []
        shown = [geometry.name, learner.update.name, *radius, f"eta={learner.rate.eta:g}"]
    return f"{learner.name}({', '.join(shown)})"


def shares_of(runs: list[Any]) -> dict[str, float]:
    """The weight of each member by name, averaged over the runs of a panel; empty if they are not runs of a panel."""
    if not all(isinstance(run, PanelRun) for run in runs):
        return {}
    names = [member_name(member.learner) for member in runs[0].members]
    return dict(zip(names, np.mean([run.shares for run in runs], axis=0).tolist(), strict=True))


def auto(
    loss: str = "square", second_order: str = "auto", limit: int = LIMIT, drift: float = 0.0, cells: bool = False,
    **settings: Any,
) -> Panel:  # fmt: skip
    """The panel that needs no rate: five running members, three diagonal Newton members, and second order if it pays.

    `settings` are parameters of the loss, such as `quantile`.
    """
    choice("loss", loss, LOSSES)
    choice("second_order", second_order, SECOND_ORDER)
    members = [running(loss, eta, **settings) for eta in ETAS]
    if hasattr(LOSSES[loss], "curvature"):
        members += [diagonal_newton(loss, prior, kappa) for prior, kappa in DIAGONAL]
    if second_order != "no" and loss == "square":
        members.append(ridge())
    elif second_order != "no" and loss == "logistic":
        members += [newton(kappa) for kappa in CURVATURES]
    most = int(number("limit", limit, 0)) if second_order == "auto" else 0
    beside = [m for m in members if not keeps_matrix(m)] if cells else []
    stack = loss in ("square", "logistic")
    return Panel((*members, *beside), "auto", most, number("drift", drift), stack, len(beside))


class PanelRun(Run):
    """A panel on one stream; the counterpart of `Run` for a single learner.

    Attributes
    ----------
    members : list of Run
        The runs of the members.
    state : NamedTuple of arrays
        The state of the mixture.
    tally : record
        The facts of the mixture.
    stack : Stack or None
        The correction of the mixture.
    left : list of str
        Members that were removed when there were too many features for them, in files of earlier versions.
    cells : Cells or None
        The cells of the rows, for the members on them.
    """

    learner: Any
    state: Any
    averaging = False
    start = None
    stack: Stack | None = None
    cells: Any = None
    watcher: Any = None  # what follows the rounds, see `play_block`
    _together: Any = None  # the members as they play, see `parties`
    _compiled: Any = None  # those whose kernels are compiled

    def __init__(self, learner: Panel, features: int, *, intercept: bool = True) -> None:
        self.learner = learner
        self.bias = 1.0 if intercept else 0.0
        if learner.cells:
            from .cells import Cells

            self.cells = Cells(features)
        rooms = self._rooms(learner.members, features)
        self.members = [
            Run(m, room, intercept=intercept, backwards=learner.narrow(m))
            for m, room in zip(learner.members, rooms, strict=True)
        ]
        self.left: list[str] = []
        self.mixture = learner.mixture(len(self.members))
        self.state = states.empty(self.mixture.State, len(self.members), False)
        self.stack = Stack(learner, len(self.members)) if learner.stack else None
        self.first = np.zeros(features + intercept)
        self.tally = empty_facts()

    @property
    def rounds(self) -> int:
        """Rows played so far; rows of weight 0 do not count."""
        return self.members[0].rounds

    @property
    def progress(self) -> np.ndarray:
        """The progress record of the first member."""
        return self.members[0].progress

    @property
    def shares(self) -> np.ndarray:
        """The weight of each member in the mixture."""
        return self.mixture.shares(self.state)

    @property
    def weights(self) -> np.ndarray:
        """The average of the members' weights by their shares, corrected by the stack if members predict numbers."""
        each = [run.weights[max(0, run.width - self.width) :] for run in self.members]  # without those of cells
        worth = self.shares if self.learner.in_logs else self._worth()
        return np.asarray(worth @ np.array([of_width(w, self.width, self.intercept) for w in each]))

    def _worth(self) -> np.ndarray:
        """The coefficient of each member's weights; to first order if probabilities are mixed."""
        v = self.shares
        if self.stack is not None:
            u = self.stack.share * self.stack.run.weights[: self.stack.run.features]
            v = v * (1.0 - u.sum()) + u[self.stack.places]
        return np.asarray(v)

    def cell_tables(self, names: Any = None) -> list[Any]:
        """The cuts of columns and of pairs of columns, with their weights; empty without members on cells."""
        if self.cells is None:
            return []
        on = np.array([run.weights[: self.cells.width] for run in self.members[-self.learner.cells :]])
        return list(self.cells.tables(self._worth()[-self.learner.cells :] @ on, names))

    @property
    def largest_x(self) -> np.ndarray:
        """The largest absolute value of each coordinate so far, if a member keeps it; otherwise ones."""
        kept = [run.state.largest_x for run in self.members if hasattr(run.state, "largest_x")]
        return kept[0] if kept else np.ones(self.members[0].width)

    def states(self) -> list[Any]:
        """The states of the mixture, of the members and of the correction."""
        stack = [] if self.stack is None else [self.stack.state, self.stack.run.state]
        return [self.state, *(run.state for run in self.members), *stack]

    def parties(self) -> list[Any]:
        """The members as they play, with several of a kind grouped together."""
        found = self._together
        if found is None or not all(party.whole() for party in found):
            self._together = found = together(self.members)
            for run in self.members:
                run.first = self.first if run.width == self.width else run.first
        return found

    def _beside(self, place: int, members: int) -> int:
        """The number of coordinates that the member at `place`, among `members`, has in addition to the features."""
        return self.cells.width if self.cells is not None and place >= members - self.learner.cells else 0

    def _rooms(self, members: Sequence[Learner], features: int) -> list[int]:
        """The number of coordinates of each member for this number of features, without the intercept."""
        own = (self.learner.features_of(m, features, bool(self.bias)) for m in members)
        return [room + self._beside(k, len(members)) for k, room in enumerate(own)]

    def sees_cells(self, party: Any) -> bool:
        """Whether members that play together are on cells."""
        return self._beside(party.places[0], len(self.members)) > 0

    def snapshot(self, touched: np.ndarray | None = None) -> tuple[Any, ...]:
        """A copy of the state for `restore`; only of the `touched` coordinates if the rows change no others."""
        cells, met = None, touched
        if self.cells is not None:
            cells, met = self.cells.snapshot(), None if touched is None else self.cells.touched(touched)
        parties = tuple(party.snapshot(met if self.sees_cells(party) else touched) for party in self.parties())
        stack = None if self.stack is None else self.stack.snapshot()
        return parties, states.snapshot(self.state), self.tally.copy(), self.covered(), stack, cells

    def restore(self, kept: tuple[Any, ...]) -> None:
        """Go back to a snapshot."""
        for party, old in zip(self.parties(), kept[0], strict=True):
            party.restore(old)
        states.restore(self.state, kept[1])
        self.tally[:] = kept[2]
        self.cover_as(kept[3])
        if self.stack is not None:
            self.stack.restore(kept[4])
        if self.cells is not None:
            self.cells.restore(kept[5])

    def reader(self) -> PanelRun:
        """A run that predicts as this one does, and can do so in parallel with others."""
        parties = self.parties()
        other = self._copy(Run.reader)
        other.coverage = None
        if self.cells is not None:
            other.cells = self.cells.reader()
        other._together = [party.reader([other.members[k] for k in party.places]) for party in parties]
        other._compiled = other._together if self._compiled is parties else None  # the kernels are the same
        return other

    def frozen(self) -> PanelRun:
        """A run that predicts as this one does now; later learning does not change it, since it copies all arrays."""
        other = self._copy(Run.frozen)
        other.coverage = None
        other._compiled = other.parties() if self._compiled is self.parties() else None  # the kernels are the same
        return other

    def bind(self, runs: Any, which: int, row: Any, old: Any) -> Any:
        """This run bound to single rows laid out in `row`."""
        from .single_row import PanelOne

        return PanelOne(runs, which, row, old)

    def fresh(self, average: bool = False) -> PanelRun:
        """The same panel with its current members, before its first round."""
        panel = replace(self.learner, members=tuple(run.learner for run in self.members))
        other = PanelRun(panel, self.features, intercept=self.intercept)
        other.members = [run.fresh() for run in self.members]
        return other

    def mirrored(self) -> PanelRun:
        """The run for negated labels."""
        other = self._copy(Run.mirrored)
        other.stack = None if self.stack is None else self.stack.mirrored()
        if self.learner.targets == "unit":
            other.tally[0].target = self.tally[0].weight - self.tally[0].target
        return other

    def _copy(self, each: Callable[[Run], Run]) -> PanelRun:
        """A copy whose members, and the run of the correction, are copied by `each`."""
        other: PanelRun = object.__new__(PanelRun)
        other.__dict__.update(self.__dict__)
        other.members, other.left = [each(run) for run in self.members], list(self.left)
        other.stack = None if self.stack is None else self.stack.copy(each(self.stack.run))
        if self.cells is not None:
            other.cells = self.cells.copy()
        other.state, other.tally = states.copied(self.state), self.tally.copy()
        other._together = other._compiled = other.watcher = None
        return other

    def resize(self, features: int) -> None:
        """Make room for this number of features; members that keep a matrix may have room only for the first ones."""
        rooms = self._rooms([run.learner for run in self.members], features)
        for run, room in zip(self.members, rooms, strict=True):
            if room != run.features:
                run.resize(room)
        self._together = None
        if self.cells is not None:
            self.cells.resize(features)
        self.first = np.zeros(features + self.intercept)

    def play_block(self, rows: Any, a: int, b: int, y: np.ndarray, c: np.ndarray, work: np.ndarray) -> int:
        """Play rows a..b with every member, then aggregate; `work` gets the mixture's margins and the rows' norms.

        A `watcher` receives the rows and the margins, norms and steps of all members, and determines the slices in
        which they are mixed. Returns how many rows all members could play.
        """
        parties = self.parties()
        numbers, cells, wide = numbers_of(rows, a, b, self.width), self.cells, None
        bounds = pieces_of(b - a, numbers) if cells is None else pieces_of(b - a, cells.most(b - a, numbers), True)
        each = [np.empty((len(self.members), 3 if self.watcher is None else 4, j - i)) for i, j in bounds]
        if self._compiled is not parties:
            self._compile(rows, a, b, y, c, each[0], work)
            self._compiled = parties
        if cells is not None:
            wide = cells.expanded(rows, a, bounds, c, sum(map(self.sees_cells, parties)))
        played = [[j - i] * len(parties) for i, j in bounds]

        def do(k: int, piece: int) -> bool:
            (i, j), own = bounds[piece], each[piece]
            if k < len(parties):
                given = unshared(rows), a + i, a + j
                if wide is not None and self.sees_cells(parties[k]):
                    given = wide[piece], 0, j - i
                played[piece][k] = int(parties[k].play(*given, y[i:j], c[i:j], own))
                return played[piece][k] == j - i
            j = i + min(played[piece])
            work[1:, i:j] = own[0, 1:3, : j - i]
            margins, part = np.ascontiguousarray(own[:, 0, : j - i].T), slice(i, j)
            if self.watcher is None:
                self.aggregate(margins, y[part], c[part], work[:, part])
                return True
            self.watcher.see(rows, a + i, y[part], c[part])
            for each_part in self.watcher.follow(own[:, :, : j - i], y[part], c[part]):
                self.aggregate(margins[each_part], y[part][each_part], c[part][each_part], work[:, part][:, each_part])
            return True

        relay(do, len(parties) + 1, len(bounds))
        for (i, j), own, counts in zip(bounds, each, played, strict=True):
            if (count := min(counts)) < j - i:
                short = int(np.argmax([not np.isfinite(own[k, 0, count]) for k in range(len(self.members))]))
                work[:, i + count] = own[short, :3, count]
                return i + count
        return b - a

    def _compile(self, rows: Any, a: int, b: int, y: np.ndarray, c: np.ndarray, own: np.ndarray, work: Any) -> None:
        """Compile the kernels that these rows need, those of the members in parallel."""
        calls, wide = [], rows
        if self.cells is not None:
            wide = self.cells.room(0, 0, rows.bias)
            calls.append(self.cells.call(rows, a, b, c, wide))
        for party in self.parties():
            calls.append((party.kernel, party.arguments(wide if self.sees_cells(party) else rows, a, b, y, c, own)))
        mixing = Stages(self, np.empty((0, len(self.members))), y[:0], c[:0], work[:, :0])
        compile_all([*calls, *mixing.calls()])

    @property
    def _mix_kernel(self) -> Any:
        return for_parts(mix, self.learner.loss, self.members[0].learner.geometry)

    def aggregate(self, margins: np.ndarray, y: np.ndarray, c: np.ndarray, work: np.ndarray) -> None:
        """Predict rows from the members' predictions, and update the weights of the members."""
        Stages(self, margins, y, c, work).run(self._mix_kernel)


def check_panel(fields: dict[str, Any]) -> None:
    """Refuse a panel whose members are not learners."""
    members = fields["members"]
    known = isinstance(members, tuple) and bool(members) and all(isinstance(m, Learner) for m in members)
    want(known, "the panel's `members` must be learners")
    want(isinstance(fields["name"], str), "the panel's `name` must be a string")
    want(type(fields["limit"]) is int and fields["limit"] >= 0, "the panel's `limit` must be a count")
    want(type(fields["drift"]) is float and 0.0 <= fields["drift"] < 1.0, "the panel's `drift` must be below 1")
    want(
        type(fields.get("stack", False)) is bool, "the panel's `stack` must be true or false"
    )  # earlier ones have none
    cells = fields.get("cells", 0)
    known = type(cells) is int and 0 <= cells < len(members)
    known = known and all(is_on_cells(m) and not keeps_matrix(m) for m in members[len(members) - cells :])
    want(known, "the panel's `cells` must be how many members are on them")


def check_panel_run(fields: dict[str, Any]) -> None:
    """Refuse the fields of a saved panel that do not have the sizes that the compiled loop relies on."""
    learner, members, bias = fields["learner"], fields["members"], fields["bias"]
    want(isinstance(learner, Panel), "the run's `learner` must be a panel")
    want(type(bias) is float and bias in (0.0, 1.0), "the run's `bias` must be 0 or 1")
    runs = isinstance(members, list) and bool(members) and all(isinstance(run, Run) for run in members)
    want(runs, "the panel's `members` must be runs")
    want(all(run.learner in learner.members for run in members), "the runs of a panel must be those of its members")
    cells, plain, beside = fields.get("cells"), len(members) - learner.cells, 0
    want((cells is not None) == (learner.cells > 0) and plain > 0, "the run's `cells` are not the panel's")
    want(is_vector(fields["first"]) and fields["first"].size > bias, "the first weights must be a vector")
    features = fields["first"].size - int(bias)
    if cells is not None:
        from .cells import width_of

        beside = width_of(cells, features)
    rooms = [learner.features_of(run.learner, features, bias > 0.0) for run in members]
    fit = [
        run.features == room + beside * (k >= plain) for k, (run, room) in enumerate(zip(members, rooms, strict=True))
    ]
    alike = {(run.bias, run.rounds) for run in members}
    want(
        all(fit) and len(alike) == 1 and members[0].bias == bias,
        "the runs of a panel must have its features and rounds",
    )
    mixture = learner.mixture(fields["mixture"].members)
    same = type(fields["mixture"]) is type(mixture) and fields["mixture"] == mixture
    want(same, "the run's `mixture` is not the panel's")
    want(len(members) <= fields["mixture"].members <= len(learner.members), "the mixture has other members")
    wrong = states.fault(fields["mixture"].State, fields["state"], len(members), False)
    want(wrong is None, f"{wrong}")
    left = fields["left"]
    want(isinstance(left, list) and all(isinstance(name, str) for name in left), "the run's `left` must be names")
    fields["tally"] = checked_tally(fields["tally"])
    check_covered(fields)
    stack = fields.get("stack")
    want((stack is not None) == learner.stack, "the run's `stack` is not the panel's")
    if stack is not None:
        check_stack(stack, learner, fields["mixture"].members, members)


storable(Panel, check=check_panel)
storable(PanelRun, check=check_panel_run, omit=("watcher", "_together", "_compiled"))
for kind in (LogMixture, MeanMixture, LogDrift, MeanDrift):
    storable(kind, where=__name__)
for kind in (LogMixture, MeanMixture, LogDrift):
    storable(kind.State, where=__name__)


def numbers_of(rows: Any, a: int, b: int, width: int) -> int:
    """The number of entries of the rows a..b."""
    return int(rows.indptr[b] - rows.indptr[a]) if hasattr(rows, "indptr") else (b - a) * width


def pieces_of(rows: int, numbers: int, always: bool = False) -> list[tuple[int, int]]:
    """The boundaries of the pieces in which members play a block; several if there is much work."""
    count = max(numbers // PIECE, min(numbers // BUSY, FEW)) if PROCESSORS > 1 or always else 1
    count = max(1, min(count, rows))
    return [(rows * k // count, rows * (k + 1) // count) for k in range(count)]
