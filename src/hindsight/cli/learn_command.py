"""One call of `hindsight learn`: a training session with progress on standard error, and its results."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

from numba.core.event import install_timer

from ..errors import OptionError
from ..training.session import Session
from .progress import Progress, search_bar
from .results import model_certificate, print_result
from .text import label_lines, print_error_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..certificates.certificate import Certificate
    from ..training.model import Model
    from ..training.options import ResultOptions
    from ..training.plan import Plan
    from ..training.state import TrainingState


def described(source: Any, state: dict[str, Any] | None, details: bool) -> Iterator[str]:
    """The decisions about reading a table, if there were any."""
    if getattr(source, "decisions", None) is None:
        return
    from ..sources.tables.describe import decisions_of, describe_table, table_in_short

    describe = describe_table if details else table_in_short
    yield from (f"  {line}" for line in describe(source, decisions_of(source, state)))


def in_short(learner: Any) -> str:
    """A short description of a learner, without its members or settings."""
    from ..training.plan import describe_learner, part_name

    members = getattr(learner, "members", ())
    if not members:
        return describe_learner(learner)
    return f"{learner.name}, a panel of {len(members)} learners; loss {part_name(learner.loss)}"


def counted(position: dict[str, Any] | None) -> Iterator[str]:
    """How many rows were not learnt, and why."""
    at = position or {}
    if at.get("unlabelled"):
        yield f"{at['unlabelled']:,} rows have no target: they were predicted, not learnt"
    if at.get("short"):
        yield f"{at['short']:,} rows have fewer fields than there are columns: the last ones are missing in them"
    if at.get("skipped"):
        yield f"{at['skipped']:,} rows were skipped: a value is missing in them (--missing indicator takes them)"


class LearnCommand:
    """One call of `learn`.

    Parameters
    ----------
    plan : Plan
        What to learn.
    results : ResultOptions
        What to print and to write.
    model : Model or None, default None
        A model to continue training.
    """

    def __init__(self, plan: Plan, results: ResultOptions, model: Model | None = None) -> None:
        if results.certify and not plan.reread:
            raise OptionError("certify", "reads the rows again, which standard input does not allow: read from a file")
        self.plan, self.results = plan, results
        self.session = Session(plan, results, self.restarts, model)
        self.progress = Progress(self)
        self.signal, self.compiled = 0, False
        self.uncertified: str | None = None  # why there is no certificate

    def run(self) -> int:
        """Learn, certify, write and print; the exit status."""
        results, session = self.results, self.session
        with install_timer("numba:compile", self.compiles), closing(self.progress):
            with closing(session.steps(self.progress.next_stop)) as steps:
                for state in steps:
                    self.progress.advance(state)
            self.progress.finish(state)
        if self.signal:
            folder = results.checkpoint
            what = f"resume with --checkpoint {folder} --resume" if folder else "nothing was saved"
            self.notify(f"interrupted after {state.rows_done:,} rows: {what}")
            return 128 + self.signal
        for line in counted(state.position):
            self.notify(line)
        certificates = self.certify(state)
        self.write(state, certificates)
        return print_result(
            results, state, certificates, session.seconds,
            None if session.scores is None else session.scores.comparison(),
            compiled=self.compiled, spread=session.spread.deviations, files=results.written,
        )  # fmt: skip

    def compiles(self, seconds: float) -> None:
        """Report the time spent on compilation."""
        self.compiled = self.compiled or 2.0 * seconds > self.session.seconds

    def certify(self, state: TrainingState) -> list[list[Certificate]]:
        """The certificates; empty, with a message, if they are only for the report and cannot be computed."""
        if not self.results.certifies:
            return []
        from ..training.certify import certify_state

        try:
            if not self.plan.reread:
                raise ValueError("the rows came from standard input, which cannot be read again")
            with search_bar(self.results.progress == "auto") as notify:
                return certify_state(state, notify, self.session.followed)
        except ValueError as error:
            if self.results.certify:
                raise
            self.uncertified = str(error)
            self.notify(f"no certificate: {error}")
            return []

    def notify(self, line: str) -> None:
        """Print a line that is not a result, unless progress is turned off."""
        if not self.results.quiet:
            print_error_line(line)

    def restarts(self, line: str) -> None:
        """Report why learning starts again, which signals end at once until it does."""
        self.progress.close()
        self.notify(line)

    def interrupt(self, number: int, frame: Any) -> None:
        """Stop the session at the next checkpoint, or immediately if no checkpoint can be written."""
        if not self.plan.reread:  # and the next row may be long in coming
            raise SystemExit(128 + number)
        self.signal = number
        self.session.stop()

    def settings(self, state: TrainingState) -> Iterator[str]:
        """Print what is learnt, and the decisions made; with --details all settings, given or default."""
        plan, source, details = self.plan, state.source or state.preparation.open(), self.results.details
        r = plan.reading
        goal = "its target" if plan.target is None else repr(plan.target)
        yield f"{plan.data}: predicting {goal}" + (f", rows weighted by {r['weight']!r}" if r["weight"] else "")
        if details:
            yield from (f"  {title}" for title in self.session.titles)
            missing = getattr(source, "asked", source.options).missing
            hashed = f", hashed to 2^{r['hash_bits']} columns" if r["hash_bits"] is not None else ""
            passes = f"{plan.passes} pass{'es' if plan.passes > 1 else ''}"
            yield (
                f"  intercept {'yes' if plan.intercept else 'no'}, {passes}, scale {plan.scale}, "
                f"missing values: {missing}, {source.kind} rows{hashed}"
            )
        elif len(self.session.titles) == 1:
            yield f"  {in_short(state.runs[0][0].learner)}"
        if state.before:
            yield f"  going on after {state.rows_done - state.own_rows:,} rows ({len(state.before)} before this part)"
        yield from described(source, state.source_state, details)
        if plan.sample is not None:
            yield f"  each row is taken with probability {plan.sample:g}, drawn by seed {plan.seed}"
        if plan.shuffle:
            yield f"  in a random order, drawn by seed {plan.seed}"
        if plan.seed and not plan.shuffle and plan.sample is None:
            yield f"  seed {plan.seed}, but nothing is drawn without --sample or --shuffle"
        yield from (f"  {line}" for line in label_lines(state.labels, details))
        yield from (f"  {note}" for note in self.session.notes)
        if self.session.checkpoint:
            yield f"  resumed after {state.rows_done:,} rows"

    def write(self, state: TrainingState, certificates: list[list[Certificate]]) -> None:
        """Write the report and the model."""
        if self.results.report is not None:
            from ..reports.writing import write_report

            assert self.session.curves is not None
            notes = [] if self.uncertified is None else [f"No certificate: {self.uncertified}."]
            seconds = self.session.seconds
            write_report(self.results.report, state, self.session.curves, certificates, seconds=seconds, notes=notes)
        if self.results.save is not None:
            state.to_model(model_certificate(certificates)).save(self.results.save)
