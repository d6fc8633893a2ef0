"""`hindsight learn` and `hindsight learners`."""

from __future__ import annotations

import json
import signal
import sys
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table as Grid

from .app import app, one_line_errors
from .results import title

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..certificates.certificate import Certificate
    from ..training.plan import Plan
    from ..training.session import Course

NAMES = "perceptron, winnow, widrow-hoff, eg, descent or glm-tron (or isotron, in batches)"
ROWS, LEARNER, RESULTS = "Rows", "Learner", "Results"


@app.command()
def learners() -> None:
    """List the learners: one update rule, θ ← θ − η · slope · x, in different geometries."""
    from ..online.learners import TABLE

    grid = Grid(title="w = weights(θ)    z = w·x    θ ← θ − η · slope · x", title_justify="left", box=None)
    for column in ("learner", "task", "geometry", "slope", "steps", "from"):
        grid.add_column(column, overflow="fold")
    for row in TABLE:
        grid.add_row(row.name, row.task, row.geometry, pretty(row.slope), pretty(row.when), row.source)
    Console().print(grid)


def pretty(formula: str) -> str:
    """Formulas as the notes write them."""
    for plain, fine in (("<=", "≤"), ("w.x", "w·x"), ("eta", "η"), ("^2", "²"), ("d loss / d(", "∂loss/∂(")):
        formula = formula.replace(plain, fine)
    return formula


def option(text: str, panel: str, *names: str, **more: Any) -> Any:
    """An option of `learn`."""
    return typer.Option(*names, help=text, rich_help_panel=panel, **more)


@app.command()
def learn(
    data: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="CSV, TSV, Parquet, Arrow, JSON lines, svmlight, Vowpal Wabbit text, npy or npz, gzip or zstd too; "
            "a folder of such files; - for standard input; or sample:diabetes|breast-cancer|digits.",
        ),
    ],
    target: Annotated[str | None, option("The column to predict.", ROWS)] = None,
    weight: Annotated[str | None, option("The column with the importance of each row.", ROWS)] = None,
    features: Annotated[str | None, option("Columns to learn from: A,B,C (all others if not given).", ROWS)] = None,
    ignore: Annotated[str | None, option("Columns to leave out: A,B,C.", ROWS)] = None,
    categorical: Annotated[str, option("Columns of categories: A,B,C, or auto (those with text).", ROWS)] = "",
    missing: Annotated[str, option("A missing value: error, zero (take 0) or skip (the row).", ROWS)] = "error",
    labels: Annotated[str | None, option("The labels: A,B,C (those found if not given).", ROWS)] = None,
    format: Annotated[str | None, option("csv, tsv, parquet, arrow, jsonl, svmlight, vw, npy, npz.", ROWS)] = None,
    header: Annotated[bool, option("Whether the first line of CSV names the columns (else 1, 2, ...).", ROWS)] = True,
    hash_bits: Annotated[int | None, option("Hash sparse features to 2^BITS columns.", ROWS, "--hash")] = None,
    scale: Annotated[str, option("none, row-unit, global-unit, max-abs or standard.", ROWS)] = "none",
    limit: Annotated[int | None, option("Take this many rows at most.", ROWS, min=1)] = None,
    sample: Annotated[
        float | None, option("Take each row with this probability, the same rows in every pass.", ROWS)
    ] = None,
    seed: Annotated[int, option("What --sample draws by.", ROWS, min=0)] = 0,
    passes: Annotated[int, option("Times through the rows.", ROWS, min=1)] = 1,
    learner: Annotated[str, option(f"{NAMES}; several: A,B.", LEARNER)] = "widrow-hoff",
    eta: Annotated[str | None, option("The rate η, above 0; several: 0.01,0.1.", LEARNER)] = None,
    power: Annotated[float, option("Rates fall as η·t^−power.", LEARNER)] = 0.0,
    update: Annotated[str | None, option("explicit or implicit.", LEARNER)] = None,
    loss: Annotated[str | None, option("descent: square, absolute, logistic, hinge, perceptron.", LEARNER)] = None,
    geometry: Annotated[str | None, option("descent: euclidean, simplex or balanced.", LEARNER)] = None,
    radius: Annotated[float | None, option("eg, descent: L1 norm of signed weights.", LEARNER)] = None,
    margin: Annotated[float | None, option("winnow: a margin between 0 and 1 that sets η.", LEARNER)] = None,
    link: Annotated[str | None, option("glm-tron: identity, logistic, clipped, probit or tanh.", LEARNER)] = None,
    intercept: Annotated[bool, option("A constant coordinate 1 (isotron has none).", LEARNER)] = True,
    rounds: Annotated[int | None, option("isotron: passes over all rows (100 if not given).", LEARNER, min=1)] = None,
    lipschitz: Annotated[float | None, option("isotron: the steepest its link may be.", LEARNER)] = None,
    certify: Annotated[bool, option("Print the certificate; reads the rows again.", RESULTS, "--certify")] = False,
    report: Annotated[str | None, option("Certify, and write an HTML page.", RESULTS, metavar="PAGE")] = None,
    save: Annotated[str | None, option("Write the model.", RESULTS, metavar="MODEL")] = None,
    predictions: Annotated[str | None, option("Write each row's prediction before it was learnt.", RESULTS)] = None,
    rejects: Annotated[str | None, option("Write bad rows here, and go on.", RESULTS, metavar="FILE")] = None,
    checkpoint: Annotated[str | None, option("Keep the state here.", RESULTS, metavar="DIR")] = None,
    every: Annotated[int, option("Rows between checkpoints.", RESULTS, min=1)] = 1_000_000,
    resume: Annotated[bool, option("Go on from the newest checkpoint.", RESULTS, "--resume")] = False,
    progress: Annotated[str, option("auto, table, json or none, on standard error.", RESULTS)] = "auto",
    as_json: Annotated[bool, option("Print the result as JSON.", RESULTS, "--json")] = False,
) -> None:
    """Learn from rows in one pass; each is predicted before it is learnt.

    With --certify: what the run lost, what the rival in hindsight loses, what the theorem promises, and whether this
    data met its assumptions. The exit status is 1 only if a bound is BROKEN, 2 for bad input, and 130 or 143 when the
    run was interrupted (with --checkpoint it can then be resumed).
    """
    given = {"update": update, "loss": loss, "geometry": geometry, "radius": radius, "margin": margin, "link": link}
    options = {k: v for k, v in given.items() if v is not None} | ({"power": power} if power else {})
    reading = {
        "weight": weight,
        "features": split(features),
        "ignore": split(ignore) or [],
        "categorical": "auto" if categorical == "auto" else split(categorical) or [],
        "missing": missing,
        "format": format,
        "header": header,
        "hash_bits": hash_bits,
        "rejects": rejects is not None,
    }
    with one_line_errors():
        from ..training.plan import Plan
        from .progress import SHOWS

        choice("--progress", progress, SHOWS)
        if learner == "isotron":
            for_streams = {"scale": scale != "none", "passes": passes > 1, "labels": labels, "report": report}
            for_streams |= {"predictions": predictions, "rejects": rejects, "checkpoint": checkpoint, "resume": resume}
            for name in [*options, *(name for name, value in for_streams.items() if value)]:
                raise ValueError(f"--{name} is not an option of isotron, which learns from all rows at once")
            from .isotron import learn_isotron

            quiet = progress in ("none", "json")
            status = learn_isotron(
                data, target, reading, {"limit": limit, "sample": sample, "seed": seed}, rounds or 100, lipschitz, eta,
                certify, save, quiet, as_json,
            )  # fmt: skip
            if status:
                raise typer.Exit(status)
            return
        for name, value in (("rounds", rounds), ("lipschitz", lipschitz)):
            if value is not None:
                raise ValueError(f"--{name} is an option of isotron")
        plan = Plan(
            data, target, chosen(learner, eta, options), reading, intercept, passes, scale,
            None if labels is None else tuple(split(labels) or ()), limit, sample, seed,
            digest=save is not None or checkpoint is not None,
        )  # fmt: skip
        work = Work(plan, certify or report is not None, report, save, predictions, rejects, checkpoint, every, resume)
        status = work.run(progress, as_json)
    if status:
        raise typer.Exit(status)


def split(text: str | None) -> list[str] | None:
    """A,B,C."""
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]


def choice(name: str, value: str, options: Any) -> None:
    """Refuse a value that is none of the options."""
    if value not in options:
        import difflib

        near = difflib.get_close_matches(value, options, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"{name} must be one of {', '.join(options)}; got {value!r}{hint}")


def chosen(names: str, etas: str | None, options: dict[str, Any]) -> tuple[tuple[str, dict[str, Any]], ...]:
    """Every learner at every rate, each with the options it takes; an option that none takes is an error."""
    import inspect

    from ..online.learners import BY_NAME

    rates: list[float | None] = [None]
    if etas is not None:
        try:
            rates = [float(eta) for eta in split(etas) or []]
        except ValueError:
            raise ValueError(f"--eta must be a number above 0, or several: 0.01,0.1; got {etas!r}") from None
    out, taken = [], set()
    for name in split(names) or []:
        choice("--learner", name, BY_NAME)
        takes = inspect.signature(BY_NAME[name].make).parameters
        for rate in rates if "eta" in takes else [None]:
            mine = {k: v for k, v in options.items() if k in takes} | ({} if rate is None else {"eta": rate})
            taken |= set(mine)
            BY_NAME[name].make(**mine)  # says what is wrong with a value
            out.append((name, mine))
    if not out:
        raise ValueError(f"--learner must be one of {', '.join(BY_NAME)}")
    for name in [*options, *(["eta"] if etas is not None else [])]:
        if name not in taken:
            some = inspect.signature(BY_NAME[out[0][0]].make).parameters
            whom = out[0][0] if len(out) == 1 else "any of these learners"
            raise ValueError(
                f"--{name} is not an option of {whom}" + f" (it takes: {', '.join(some) or 'none'})" * (len(out) == 1)
            )
    return tuple(out)


class Work:
    """One call of `learn`."""

    def __init__(
        self,
        plan: Plan,
        certify: bool,
        page: str | None,
        save: str | None,
        predictions: str | None,
        rejects: str | None,
        checkpoint: str | None,
        every: int,
        resume: bool,
    ) -> None:
        self.plan, self.certify, self.page, self.save = plan, certify, page, save
        self.predictions, self.rejects, self.checkpoint, self.every = predictions, rejects, checkpoint, every
        self.titles = [title(made) for made in plan.make()]
        self.stopped, self.quiet = 0, False
        self.notes: list[str] = []
        once = plan.data == "-"
        if resume and checkpoint is None:
            raise ValueError("--resume goes on from a checkpoint: say which with --checkpoint DIR")
        if once and checkpoint is not None:
            raise ValueError("a run from standard input cannot be resumed: take --checkpoint away, or read from a file")
        if once and certify:
            raise ValueError("--certify reads the rows again, which standard input does not allow: read from a file")
        if save is not None and len(self.titles) > 1:
            raise ValueError("--save takes one learner at one rate")
        self.kept = self._newest(resume)

    def _newest(self, resume: bool) -> dict[str, Any] | None:
        if self.checkpoint is None:
            return None
        from ..storage import checkpoint

        found = checkpoint.latest(self.checkpoint) if resume else None
        if resume and found is None:
            raise ValueError(f"{self.checkpoint}: there is no checkpoint to resume from")
        if not resume and checkpoint.generations(self.checkpoint):
            raise ValueError(f"{self.checkpoint}: holds checkpoints already: add --resume, or take another folder")
        return found

    # ---- the run

    def run(self, show: str, as_json: bool) -> int:
        """Learn, save and certify; the exit status."""
        from ..errors import NewLabelError
        from ..training.session import Course, begin
        from .results import result, summary

        self.quiet = show in ("none", "json")
        tell = self.notes.append
        course = Course.going_on(self.plan, self.kept["course"]) if self.kept else begin(self.plan, tell)
        began = time.perf_counter()
        try:
            self.learn(course, show)
        except NewLabelError as error:
            if self.plan.labels is not None or self.plan.data == "-":
                raise
            self.say(f"{error}: starting again with all labels")
            self.kept, self.notes = None, []
            course = begin(self.plan, self.notes.append, all_labels=True)
            self.learn(course, show)
        if self.stopped:
            where = f"resume with --checkpoint {self.checkpoint} --resume" if self.checkpoint else "nothing was kept"
            self.say(f"interrupted after {course.done:,} rows: {where}")
            return 128 + self.stopped
        seconds = time.perf_counter() - began
        certificates = self.certificates(course) if self.certify else []
        self.write(course, certificates)
        if as_json:
            print(json.dumps(result(course, self.titles, certificates, seconds)))
        else:
            for line in summary(course, self.titles, certificates, seconds):
                print(line)
            if self.page is not None:
                print(f"report: {self.page}")
        from ..certificates.theorems import Verdict

        return int(any(c.verdict is Verdict.BROKEN for each in certificates for c in each))

    def say(self, line: str) -> None:
        """Tell something that is no result."""
        if not self.quiet:
            print(line, file=sys.stderr, flush=True)

    def settings(self, course: Course) -> Iterator[str]:
        """Every setting, given or default."""
        plan, source = self.plan, course.source or self.plan.open()
        r = plan.reading
        goal = "its own" if plan.target is None else repr(plan.target)
        yield f"{plan.data}  target {goal}" + (f", weight {r['weight']!r}" if r["weight"] else "")
        for name in self.titles:
            yield f"  {name}"
        hashed = f", hashed to 2^{r['hash_bits']} columns" if r["hash_bits"] is not None else ""
        yield (
            f"  intercept {'yes' if plan.intercept else 'no'}, {plan.passes} pass{'es' if plan.passes > 1 else ''}, "
            f"scale {plan.scale}, missing values: {r['missing']}, {source.kind} rows{hashed}"
        )
        if plan.sample is not None:
            yield f"  each row is taken with probability {plan.sample:g}, drawn by seed {plan.seed}"
        elif plan.seed:
            yield f"  seed {plan.seed}, but nothing is drawn without --sample"
        if course.labels is not None and len(course.labels) == 2:
            yield f"  labels: {course.labels[0]} is −1, {course.labels[1]} is +1"
        elif course.labels is not None:
            yield f"  labels: {len(course.labels)} classes, each against the rest: {', '.join(course.labels)}"
        yield from (f"  {note}" for note in self.notes)
        if self.kept:
            yield f"  going on after {course.done:,} rows"

    def learn(self, course: Course, show: str) -> None:
        """Play the rows to the end, or until a signal."""
        from ..training.session import learn
        from .outputs import Outputs
        from .progress import Progress

        outputs = Outputs(course, self.titles, self.predictions, self.rejects, self.kept and self.kept["lengths"])
        progress = Progress(show, course, self.titles, list(self.settings(course)))
        due = course.done + self.every
        handlers = {s: signal.signal(s, self._stop) for s in (signal.SIGINT, signal.SIGTERM)}
        try:
            for piece in learn(course, progress.mark):
                outputs.add(piece)
                progress.step(course)
                if piece.whole and (self.stopped or (self.checkpoint and course.done >= due)):
                    self._keep(course, outputs)
                    due = course.done + self.every
                    if self.stopped:
                        break
            outputs.safe()
            progress.end(course)
        finally:
            progress.close()
            outputs.close()
            for s, handler in handlers.items():
                signal.signal(s, handler)

    def _stop(self, number: int, frame: Any) -> None:
        if self.plan.data == "-":  # nothing can be kept, and the next row may be long in coming
            raise SystemExit(128 + number)
        self.stopped = number

    def _keep(self, course: Course, outputs: Any) -> None:
        if self.checkpoint is not None:
            from ..storage import checkpoint

            checkpoint.write(self.checkpoint, {"lengths": outputs.safe(), "course": course.kept()})

    # ---- after it

    def certificates(self, course: Course) -> list[list[Certificate]]:
        """For each learner the certificates of its runs."""
        from ..certificates.certify import certify_run
        from .certify import data_for

        out = []
        for runs in course.runs:
            labels = course.labels if course.labels is not None and len(runs) > 1 else [None] * len(runs)
            rows = data_for(course, runs)
            out.append([certify_run(run, d, label=name) for run, d, name in zip(runs, rows, labels, strict=True)])
        return out

    def write(self, course: Course, certificates: list[list[Certificate]]) -> None:
        """The page and the model."""
        if self.page is not None:
            from ..report.page import write
            from .results import about

            write(self.page, str(self.plan.data), about(course), [c for each in certificates for c in each])
        if self.save is not None:
            from ..certificates.certificate import Certificates
            from ..training.model import Model

            made: Any = None
            if certificates:
                made = certificates[0][0] if len(certificates[0]) == 1 else Certificates(tuple(certificates[0]))
            source = course.source
            assert source is not None
            reading = dict(self.plan.reading)
            columns = getattr(source, "plan", None)
            if columns is not None:  # a table: its columns as they were sorted out
                reading |= {"features": [*columns.numeric, *columns.categorical], "ignore": []}
                reading["categorical"] = columns.categorical
            preparation = {"kind": source.kind, "source": reading, "scale": course.scale, "state": course.state}
            Model(
                course.runs[0],
                course.names,
                course.labels,
                None,
                self.plan.settings(),
                preparation,
                course.digest,
                made,
            ).save(self.save)
