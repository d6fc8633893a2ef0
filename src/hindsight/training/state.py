"""The state of training: how it starts, how it is saved, and how it is resumed."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import numpy as np

from ..errors import ModelError
from ..online.run import Run
from ..rows.checksum import TARGET_SUM, RowChecksum
from ..rows.labels import run_count, type_of_texts
from ..rows.order import FIELDS, label_order, number_order
from ..rows.scaling import SCALES, Measure, check_scale
from ..sources import SourceError
from ..storage.fields import Count, FiniteVector, Vector, check_types, check_value
from ..storage.registry import want
from .plan import ONCE, Opened, Plan, describe_learner, part_name
from .prepare import (
    MANY,
    Preparation,
    check_labels,
    check_preparation,
    check_source_state,
    in_order,
    labels_in,
    targets_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..certificates.certificate import Certificate, Certificates
    from ..certificates.coverage import CoverageCertificate
    from ..online.coverage import Coverage
    from ..online.learners import Learner
    from ..sources import Chunk, Source
    from .model import Model

OrderSums = Annotated[Vector, lambda sums: sums.size == FIELDS, "the sums of the order"]


class LearntPart(TypedDict):
    """A part of the data that was learnt in one session."""

    data: Any
    rows: Count
    digest: str | None


NOT_KEPT = {"plan", "label_type", "source", "pending"}  # what a checkpoint leaves to the plan and the model


@dataclass
class TrainingState:
    """The progress of training. `start` makes a state, `hindsight.training.session.learn_chunks` advances it.

    Attributes
    ----------
    plan : Plan
        The plan.
    runs : list of list of Run
        For each learner one run, or one per label if there are more than two labels.
    labels : list of str or None
        The labels in the order of their numbers; None where targets are numbers.
    scale : dict or None
        How rows are scaled; None leaves them as they are.
    source_state : dict or None
        The mapping of features to columns, once all rows were read.
    mistakes : list of int
        The number of mistakes of each learner.
    constant : ndarray
        Sums for the loss of the best constant: weight, mean and squared distances of numbers, or the weight of each
        label. A row that only initialises the first learner does not count.
    position : dict or None
        The position of the source after the last chunk; None at the start of a pass.
    passes_done : int
        Passes completed.
    pass_rows : int
        Rows played in this pass.
    rows_done : int
        Rows played in all.
    bytes_read : int
        Bytes read in this pass.
    rejected : int
        Bad rows left out.
    checksum : list of int or None
        The checksum of the rows of this pass so far, if rows are read more than once.
    earlier : list of int or None
        The checksum of the previous pass, which this one must match.
    order : ndarray
        Sums that show whether the targets come sorted or in blocks; see `hindsight.rows.order`.
    before : list of dict
        The parts learnt before these rows when a model is continued, each with its data, rows and digest.
    label_type : str or None
        The type of the labels when a model is continued; otherwise it is that of the rows.
    source : Source or None
        The source being read.
    pending : iterator of Chunk or None
        The chunks of that source, if none was learnt yet.
    """

    plan: Plan
    runs: list[list[Run]]
    labels: list[str] | None
    scale: dict[str, Any] | None
    source_state: dict[str, Any] | None
    mistakes: list[Count]
    constant: FiniteVector
    position: dict[str, Count | str | bool | list[str] | list[int] | None] | None = None
    passes_done: Count = 0
    pass_rows: Count = 0
    rows_done: Count = 0
    bytes_read: Count = 0
    rejected: Count = 0
    checksum: list[int] | None = None
    earlier: list[int] | None = None
    order: OrderSums = field(default_factory=lambda: np.zeros(FIELDS))
    before: list[LearntPart] = field(default_factory=list)
    label_type: str | None = None
    source: Source | None = None
    pending: Iterator[Chunk] | None = None

    def to_checkpoint(self) -> dict[str, Any]:
        """The state as plain values, arrays and runs, from which `resumed` restores an equal one."""
        source_state = self.source.state() if self.source is not None else self.source_state
        own = {k: v for k, v in vars(self).items() if k not in NOT_KEPT}
        return own | {"source_state": source_state, "settings": self.plan.settings()}

    @classmethod
    def resumed(cls, plan: Plan, checkpoint: dict[str, Any]) -> TrainingState:
        """The state in a checkpoint; a ValueError if it was written under another plan."""
        check_value("the state", checkpoint, dict[str, Any])
        own = dict(checkpoint)
        before, now = own.pop("settings", None), plan.settings()
        check_value("the settings", before, dict[str, Any])
        for name in now:
            was = before.get(name)
            if not same_plain(was, now[name]):
                text = f"{name} was {was!r:.200} when the checkpoint was written"
                raise ValueError(f"{text} and is {now[name]!r:.200} now: resume with the same settings")
        check_state(plan, own)
        return cls(plan, **own)

    @property
    def preparation(self) -> Preparation:
        """How rows are prepared."""
        return Preparation(self.plan, self.labels, self.scale, self.source_state, bool(self.before))

    @property
    def names(self) -> list[str] | None:
        """The names of the features; None if they are hashed."""
        if self.source is None or (self.source.kind == "sparse" and self.plan.reading.get("hash_bits") is not None):
            return None
        return list(self.source.names)

    @property
    def tracker(self) -> Coverage | None:
        """The tracker that makes prediction intervals; None without intervals."""
        found: Coverage | None = self.runs[0][0].coverage
        return found

    @property
    def coverage(self) -> CoverageCertificate | None:
        """The coverage of the intervals so far; None without intervals."""
        if self.tracker is None:
            return None
        from ..certificates.coverage import certify_coverage

        return certify_coverage(self.tracker, self.labels is not None)

    @property
    def features(self) -> int:
        """The number of features."""
        return self.runs[0][0].features

    @property
    def digest(self) -> str | None:
        """SHA-256 of the data read; None if it was not computed, or if a limit stopped reading within a chunk."""
        cut = self.plan.limit is not None and self.own_rows == self.plan.limit * self.plan.passes
        position: Any = self.position
        return None if cut or position is None else position.get("digest")

    @property
    def weight(self) -> float:
        """The total weight of the rows so far."""
        return self.runs[0][0].facts.weight or 1.0

    def add_checksum(self, X: Any, y: np.ndarray, weight: np.ndarray | None) -> None:
        """Add rows of this pass to its checksum, if there is another pass to compare it with."""
        if self.pass_rows == 0 and (self.plan.passes > 1 or self.earlier is not None):
            self.checksum = RowChecksum().counts
        if self.checksum is not None:
            sums = RowChecksum(self.checksum)
            sums.add(X, y, weight)
            self.checksum = sums.counts

    def check_pass(self) -> None:
        """Raise an error if the rows differ from those of the previous pass."""
        now, before = self.checksum, self.earlier
        if now is not None and before is not None and RowChecksum(now).differs_from(before):
            assert self.source is not None
            what = "the values of its rows, or their order" if now[0] == before[0] else f"{now[0]:,} rows"
            raise SourceError(f"{self.source.where}: has changed since the pass before, of {before[0]:,} rows: {what}")
        self.checksum, self.earlier = None, now or before

    @property
    def titles(self) -> list[str]:
        """A one-line description of each learner, as at the start."""
        return [describe_learner(runs[0].learner) for runs in self.runs]

    def losses(self) -> list[float]:
        """The loss of each learner, summed over its runs."""
        return [
            sum(run.facts.square if run.learner.score == "square" else run.facts.loss for run in runs)
            for runs in self.runs
        ]

    def compared_losses(self) -> list[float]:
        """The loss of each learner in the units of `best_constant`."""
        if self.labels is None:
            return [runs[0].facts.square for runs in self.runs]
        if self.in_logs:
            return self.losses()
        pairs = zip(self.runs, self.mistakes, strict=True)
        return [runs[0].facts.mistake_weight if len(runs) == 1 else float(wrong) for runs, wrong in pairs]

    def best_constant(self) -> float:
        """The loss of the best constant in hindsight so far: squared error, log loss or (weighted) mistakes.

        It is the log loss if all learners minimise that; with one run per label, summed over the runs.
        """
        if self.labels is None:
            return float(self.constant[2])
        return log_loss_of_constant(self.constant) if self.in_logs else float(self.constant.sum() - self.constant.max())

    def mean_of_constant(self) -> float:
        """The loss of the best constant per unit of weight."""
        weight = float(self.constant[0] if self.labels is None else self.constant.sum())
        return self.best_constant() / (weight or 1.0)

    @property
    def in_logs(self) -> bool:
        """Whether the loss of all learners is the log loss."""
        return all(judged_in_logs(runs[0].learner) for runs in self.runs)

    @property
    def constant_quantity(self) -> str:
        """The name of the loss that `best_constant` sums."""
        return "squared error" if self.labels is None else "log loss" if self.in_logs else "mistakes"

    def order_warning(self) -> str | None:
        """A warning about the order of the targets, or None."""
        if self.labels is None:
            return number_order(self.order)
        return label_order(self.order, self.order[0] * self.constant / (self.constant.sum() or 1.0))

    @property
    def own_rows(self) -> int:
        """The number of rows of this plan that were played, without those of earlier parts."""
        return self.rows_done - sum(part["rows"] for part in self.before)

    @property
    def parts(self) -> list[LearntPart]:
        """The parts that were learnt."""
        data = self.plan.settings()["data"]
        return [*self.before, {"data": data, "rows": self.own_rows, "digest": self.digest}]

    def to_model(self, certificate: Certificate | Certificates | None = None) -> Model:
        """The model of the first learner, after all rows were learnt."""
        from .model import Model

        source = self.source
        assert source is not None
        reading = self.plan.reading | source.resolved_options()
        preparation = {"kind": source.kind, "source": reading, "scale": self.scale, "state": self.source_state}
        if self.labels is not None:
            preparation["labels"] = self.label_type or source.label_type or type_of_texts(self.labels)
        progress = {
            "mistakes": self.mistakes[0], "constant": self.constant, "order": self.order, "rows": self.rows_done,
            "rejected": self.rejected, "parts": self.parts,
        }  # fmt: skip
        digest = None if self.before else self.digest
        return Model(
            self.runs[0], self.names, self.labels, None, self.plan.settings(), preparation, digest, certificate,
            progress=progress,
        )  # fmt: skip


def in_squares(learner: Learner) -> bool:
    """Whether the loss of a learner is the squared error."""
    return learner.score == "square" or bool(learner.loss.quadratic and learner.loss.scale == 2.0)


def judged_in_logs(learner: Any) -> bool:
    """Whether the loss of a learner of labels is the log loss."""
    return bool(learner.targets == "unit" and learner.loss.link == "logistic" and learner.score == "loss")


def log_loss_of_constant(weights: np.ndarray) -> float:
    """The log loss of the best constant probabilities; with several labels, summed over each against the rest."""
    total = weights.sum()
    pairs = [(w, total - w) for w in (weights[1:] if weights.size == 2 else weights)]
    return float(sum(w * np.log(total / w) for pair in pairs for w in pair if w > 0.0))


def same_plain(a: Any, b: Any) -> bool:
    """Whether two plain values are equal; a value from a file may have a type that cannot be compared."""
    if isinstance(b, dict):
        return isinstance(a, dict) and set(a) == set(b) and all(same_plain(a[k], b[k]) for k in b)
    if isinstance(b, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same_plain, a, b))
    return type(a) is type(b) and bool(a == b)


def check_state(plan: Plan, own: dict[str, Any]) -> None:
    """Raise an error if the fields of a checkpoint do not fit this plan; compiled loops rely on matching runs."""
    known = {f.name for f in fields(TrainingState)} - NOT_KEPT
    want(set(own) == known, f"the state must have {', '.join(sorted(known))}")
    check_types(TrainingState, own)
    labels, learners, each = own["labels"], plan.make(), [run for runs in own["runs"] for run in runs]
    asked = None if not each or each[0].coverage is None else each[0].coverage.asked
    want(asked == plan.interval, "intervals must be those of the settings")
    want((labels is not None) == plan.classify(), "there must be labels if the learners take them")
    want(labels is None or len(set(labels)) == len(labels) >= 2, "the labels must differ")
    count = 1 if labels is None else run_count(len(labels))
    want([len(runs) for runs in own["runs"]] == [count] * len(learners), f"each learner must have {count} runs")
    for run in each:
        alike = (run.width, run.bias, run.averaging) == (each[0].width, float(plan.intercept), False)
        want(alike, "all runs must have the same features")
    for runs, learner in zip(own["runs"], learners, strict=True):
        parts = [
            [type(getattr(of, role)) for role in ("loss", "update", "geometry")] for of in (runs[0].learner, learner)
        ]
        want(parts[0] == parts[1], f"a run must be of {learner.name}")
    want(len(own["mistakes"]) == len(learners), "mistakes must be counted for each learner")
    want(own["constant"].size == (3 if labels is None else len(labels)), "there must be sums of each label")
    want(own["passes_done"] <= plan.passes, "there are more passes than asked for")
    want(plan.limit is None or own["pass_rows"] <= plan.limit, "there are more rows than asked for")
    check_source_state(own["source_state"], each[0].features)
    check_scale(own["scale"], each[0].features)


def start(
    plan: Plan,
    notify: Callable[[str], None] = lambda _: None,
    all_labels: bool = False,
    look_at_all: bool = False,
    opened: Opened | None = None,
) -> TrainingState:
    """Return the state before the first row.

    If needed, a pass over the rows finds the labels, the scale, and, for geometries that must know them all, the
    features.

    Parameters
    ----------
    plan : Plan
        What to learn.
    notify : callable, default does nothing
        Called with a line of text about what is done before learning.
    all_labels : bool, default False
        Whether to find the labels in all rows. Otherwise two labels in the first chunk are assumed to be all, and
        learning raises a `NewLabelError` for a third one.
    look_at_all : bool, default False
        Whether to infer the column types of a table from all rows. Otherwise they are inferred from the first rows, and
        reading raises a `DisprovedError` if a later row contradicts them.
    opened : Opened or None, default None
        The source, if it was already opened to inspect its first rows.

    Returns
    -------
    TrainingState

    Examples
    --------
    >>> from hindsight.training.plan import choose_learners
    >>> state = start(Plan("sample:breast-cancer", None, choose_learners(["perceptron"])))
    >>> state.labels, state.features, state.rows_done
    (['benign', 'malignant'], 30, 0)
    """
    opened = opened or Opened(plan, plan.open(look_at_all))
    source = opened.source
    learners, classify = plan.make(), plan.classify()
    if plan.scale not in SCALES:
        raise ValueError(f"scale must be one of {', '.join(SCALES)}; got {plan.scale!r}")
    if plan.passes > 1 and not source.reread:
        raise SourceError(f"{ONCE}: take one pass")
    labels = None if plan.labels is None or not classify else in_order(set(plan.labels))
    if classify and labels is None and not all_labels:
        chunk = opened.first()
        found = labels_in(targets_of(chunk)) if chunk is not None else set()
        if len(found) == 2 or not source.reread:
            labels = in_order(found)
    scale = {"kind": "row-unit"} if plan.scale == "row-unit" else None
    source_state = source.state() if source.decided else None
    earlier = None
    reasons = reasons_for_a_pass(plan, source, learners, classify and labels is None)
    if reasons:
        if not source.reread:
            raise SourceError(f"{ONCE}, but {' and '.join(reasons)} takes a pass of its own")
        notify(f"a first pass over the rows for {' and '.join(reasons)}")
        source = plan.open(look_at_all)
        met, measure, earlier = survey(plan, source)
        labels = in_order(met) if classify and labels is None else labels
        scale = measure.scale(plan.scale) if SCALES[plan.scale] else scale
        source_state = source.state()
    if labels is not None:
        check_labels(labels)
    hashed = plan.reading.get("hash_bits") if source.kind == "sparse" else None
    width = len(source.names) if hashed is None else 1 << hashed
    count = 1 if labels is None else run_count(len(labels))
    runs = plan.begin(max(1, width), count)
    constant = np.zeros(3 if labels is None else len(labels))
    state = TrainingState(plan, runs, labels, scale, source_state, [0] * len(runs), constant, earlier=earlier)
    state.source = source
    if not reasons and not (plan.shuffle and source.reread):
        state.pending = opened.chunks
    return state


def reasons_for_a_pass(plan: Plan, source: Source, learners: list[Learner], find_labels: bool) -> list[str]:
    """The reasons for reading all rows before the first is learnt."""
    reasons = [f"scale {plan.scale!r}"] if SCALES[plan.scale] else []
    if find_labels:
        reasons.append("finding the labels")
    fixed = [learner.geometry for learner in learners if not learner.geometry.can_grow]
    if fixed and source.kind == "sparse" and plan.reading.get("hash_bits") is None:
        reasons.append(f"counting the features, which the {part_name(fixed[0])} geometry must know")
    return reasons


def survey(plan: Plan, source: Source) -> tuple[set[str], Measure, list[int]]:
    """Find the labels, the sizes of columns and rows, and the checksum of the rows in one pass."""
    labels: set[str] = set()
    measure, classify, checksum = Measure(), plan.classify(), RowChecksum()
    for chunk in plan.chunks(source):
        checksum.add(chunk.X, None, chunk.weight)
        if classify:
            labels |= labels_in(targets_of(chunk))
            if len(labels) > MANY:
                check_labels(sorted(labels))
        if SCALES[plan.scale]:
            measure.add(chunk.X, plan.scale)
    return labels, measure, checksum.counts[:TARGET_SUM]


# ---------------------------------------------------------------- a model that goes on


class ModelProgress(TypedDict):
    """The training progress saved in a model."""

    mistakes: Count
    constant: FiniteVector
    order: OrderSums
    rows: Count
    rejected: Count
    parts: list[LearntPart]


# The settings that belong to the rows, not to the model.
OF_ROWS: dict[str, Any] = {"limit": None, "sample": None, "shuffle": False, "seed": 0, "passes": 1}


def plan_after(model: Model, data: Any, **rows: Any) -> Plan:
    """Return the plan for continuing a model with further rows.

    Parameters
    ----------
    model : Model
        A model that `hindsight learn --save` or `hindsight.learn` made.
    data : object
        The rows: anything that `hindsight.open_source` reads.
    **rows
        Which rows to take: `limit`, `sample`, `shuffle` and `seed` of a `Plan`, and `format` and `rejects` of
        `hindsight.open_source`.

    Returns
    -------
    Plan

    Raises
    ------
    ModelError
        If the model was made in another way, or does not record its progress.
    """
    settings = getattr(model, "settings", {})
    if "learners" not in settings:
        raise ModelError("was not made by `hindsight learn`: an estimator goes on by its own partial_fit, in Python")
    check_progress(model)
    reading = {"format": rows.pop("format", None), "rejects": rows.pop("rejects", False)}
    return Plan.from_settings(
        settings | OF_ROWS | rows | {"data": None, "reading": dict(settings["reading"]) | reading}, data
    )


def check_progress(model: Model) -> dict[str, Any]:
    """The validated training progress of a model; a ModelError if it is invalid."""
    made: Any = model.progress
    check_value("what the model says of how far it has got", made, ModelProgress)
    want(
        made["constant"].size == (3 if model.labels is None else len(model.labels)), "there must be sums of each label"
    )
    return dict(made)


def state_after(model: Model, plan: Plan) -> TrainingState:
    """Return the state after the rows that a model learnt from and before those of a plan.

    Parameters
    ----------
    model : Model
        The model, which is not changed.
    plan : Plan
        What `plan_after` returned.

    Returns
    -------
    TrainingState
    """
    prepared, made = check_preparation(model), check_progress(model)
    return TrainingState(
        plan,
        [copy.deepcopy(model.runs)],
        model.labels,
        prepared["scale"],
        prepared["state"],
        [made["mistakes"]],
        np.array(made["constant"]),
        rows_done=made["rows"],
        rejected=made["rejected"],
        order=np.array(made["order"]),
        before=list(made["parts"]),
    )
