"""Members of a panel that process each row together, with their states side by side in one array.

The runs themselves do not change: the fields of their states become views of that array, and what depends only on the
rows is a single array for all of them. Anything that gives a run another state (a new width, negated labels, a copy, a
file) separates it from the group; `together` forms the groups anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..kernels.compiler import for_parts
from ..kernels.diagonal_newton import DiagonalNewton
from ..kernels.facts import FACTS
from ..kernels.online import NO_NOTES, PROGRESS, play
from ..kernels.running import Running
from ..kernels.state import aligned
from ..kernels.together import DiagonalRows, Out, RunningRows, play_diagonal, play_running

if TYPE_CHECKING:
    from .run import Run


class Kind(NamedTuple):
    """How members of a geometry play together: the kernel, the fields that each member has, and their parameters."""

    kernel: Any
    own: tuple[str, ...]
    scratch: tuple[str, ...]
    shared: Any
    parameters: tuple[str, ...]


KINDS = {
    Running: Kind(play_running, ("theta", "metric", "squares"), ("fresh",), RunningRows, ("eta",)),
    DiagonalNewton: Kind(play_diagonal, ("w", "curved"), (), DiagonalRows, ("prior", "kappa")),
}


SIZES = (5, 3)  # how many members play together: their kernels are compiled for each number, so there are few


class Group:
    """Members of one geometry, with their places in the panel."""

    def __init__(self, members: list[Run], places: list[int]) -> None:
        learner, width, size = members[0].learner, members[0].width, len(members)
        self.members, self.places = members, places
        self.kind = kind = KINDS[type(learner.geometry)]
        self.numbers = aligned(width * len(kind.own) * size).reshape(width, len(kind.own), size)
        self.scratch = tuple(aligned(width * size).reshape(width, size) for _ in kind.scratch)
        shared = {name: getattr(members[0].state, name) for name in kind.shared._fields}
        self.shared = kind.shared(**{name: np.require(v, requirements=["C", "W"]) for name, v in shared.items()})
        self.progress, self.facts = np.zeros(size, PROGRESS).view(np.recarray), np.zeros(size, FACTS).view(np.recarray)
        for k, run in enumerate(members):
            self.progress[k], self.facts[k] = run.progress[0], run.tally[0]
            for f, name in enumerate(kind.own):
                self.numbers[:, f, k] = getattr(run.state, name)
            own = {name: self.numbers[:, f, k] for f, name in enumerate(kind.own)}
            for f, name in enumerate(kind.scratch):
                self.scratch[f][:, k] = getattr(run.state, name)
                own[name] = self.scratch[f][:, k]
            run.state = run.state._replace(**own, **self.shared._asdict())
            run.progress, run.tally = self.progress[k : k + 1], self.facts[k : k + 1]
        self.states = [run.state for run in members]
        self._prepare()

    def _prepare(self) -> None:
        learner, size = self.members[0].learner, len(self.members)
        parameters = (tuple(float(getattr(m.learner.geometry, p)) for m in self.members) for p in self.kind.parameters)
        self.args = (
            learner.loss, learner.geometry, *parameters, learner.geometry.declared, self.shared, self.numbers,
            *self.scratch, self.progress, self.facts,
        )  # fmt: skip
        self.room = np.array(self.places), *(aligned(size) for _ in range(4))
        self.kernel = for_parts(self.kind.kernel, learner.loss, learner.geometry)

    def whole(self) -> bool:
        """Whether the states of the runs are still views of the arrays of this group."""
        name, owner = self.kind.own[0], self.numbers.base  # a copy of `numbers` is no view, nor are copies of its views
        return owner is not None and all(
            run.state is state and getattr(state, name).base is owner
            for run, state in zip(self.members, self.states, strict=True)
        )

    def arguments(self, rows: Any, a: int, b: int, y: np.ndarray, c: np.ndarray, own: np.ndarray) -> tuple[Any, ...]:
        """The arguments of the kernel."""
        return rows, a, b, y, c, *self.args, Out(own, *self.room)

    def play(self, rows: Any, a: int, b: int, y: np.ndarray, c: np.ndarray, own: np.ndarray) -> int:
        """Play rows a..b, writing margins and norms to the members' places of `own`; return how many were played."""
        return int(self.kernel(*self.arguments(rows, a, b, y, c, own)))

    def reader(self, members: list[Run]) -> Group:
        """The same group for runs that only predict, in parallel with others."""
        other: Group = object.__new__(Group)
        other.__dict__.update(self.__dict__)
        other.members, other.states = members, [run.state for run in members]
        other.scratch = tuple(np.empty_like(v) for v in self.scratch)
        other.progress, other.facts = self.progress.copy(), self.facts.copy()
        other._prepare()
        return other

    def snapshot(self, touched: np.ndarray | None = None) -> tuple[Any, ...]:
        """A copy of all that rows change, or of the `touched` coordinates, for `restore`."""
        if touched is None:
            touched = np.arange(len(self.numbers))
        shared = [v.copy() if v.size == 1 else v.take(touched) for v in self.shared]
        return touched, self.numbers.take(touched, axis=0), shared, self.progress.copy(), self.facts.copy()

    def restore(self, kept: tuple[Any, ...]) -> None:
        """Go back to a snapshot."""
        at, self.numbers[kept[0]], shared, self.progress[:], self.facts[:] = kept[0], *kept[1:]
        for values, old in zip(self.shared, shared, strict=True):
            values[slice(None) if values.size == 1 else at] = old


class Single:
    """A member that plays by itself."""

    def __init__(self, member: Run, place: int) -> None:
        self.members, self.places, self.states = [member], [place], [member.state]

    def whole(self) -> bool:
        """Whether the run still has its state."""
        return self.members[0].state is self.states[0]

    @property
    def kernel(self) -> Any:
        """The kernel that plays it."""
        return for_parts(play, *self.members[0].parts()[:3])

    def arguments(self, rows: Any, a: int, b: int, y: np.ndarray, c: np.ndarray, own: np.ndarray) -> tuple[Any, ...]:
        """The arguments of the kernel."""
        notes = NO_NOTES if own.shape[1] == 3 else np.zeros((b - a, own.shape[1] - 3))
        out = *own[self.places[0], :3], self.members[0].tally, notes
        return self.members[0].own(rows), a, b, y, c, *self.members[0].parts(), *out

    def play(self, rows: Any, a: int, b: int, y: np.ndarray, c: np.ndarray, own: np.ndarray) -> int:
        """Play rows a..b; steps, or all that can be noted of a round, are written to `own` if it has room for them."""
        args = self.arguments(rows, a, b, y, c, own)
        played = int(self.kernel(*args))
        if own.shape[1] > 3:
            own[self.places[0], 3:] = args[-1].T
        return played

    def reader(self, members: list[Run]) -> Single:
        """The same member for a run that only predicts."""
        return Single(members[0], self.places[0])

    def snapshot(self, touched: np.ndarray | None = None) -> tuple[Any, ...]:
        """A copy of the state."""
        return self.members[0].snapshot()

    def restore(self, kept: tuple[Any, ...]) -> None:
        """Go back to a snapshot."""
        self.members[0].restore(kept)


def together(members: list[Run]) -> list[Any]:
    """Members grouped as they play: those of one kind together, after the others, one by one, which take longest."""
    found: dict[Any, list[int]] = {}
    for k, run in enumerate(members):
        found.setdefault(key_of(run, k), []).append(k)
    alone, groups = [places for key, places in found.items() if len(key) == 1], []
    for places in (places for key, places in found.items() if len(key) > 1):
        for size in SIZES:
            while len(places) >= size:
                groups.append(Group([members[k] for k in places[:size]], places[:size]))
                places = places[size:]
        alone += [[k] for k in places]
    return [*(Single(members[k], k) for (k,) in alone), *groups]


def key_of(run: Run, place: int) -> tuple[Any, ...]:
    """The key that is equal for runs that play together; the place of a run that plays by itself."""
    learner = run.learner
    plain = learner.update.name == "implicit" and learner.rate.is_constant() and learner.rate.eta == 1.0
    if type(learner.geometry) not in KINDS or not plain or run.start is not None:
        return (place,)
    return type(learner.geometry), learner.geometry.declared, run.rounds, run.width
