"""What a run gave, as text to be read and as plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..certificates.certificate import Certificate
    from ..online.learners import Learner
    from ..training.session import Course


def title(learner: Learner) -> str:
    """A learner with its resolved settings, in a line."""
    rule, geometry, step = learner.loss, learner.geometry, learner.rate
    rate = f"η = {step.eta:g}" + (f"·t^−{step.power:g}" if step.power else "")
    name = type(geometry).__name__.lower()
    parts = [learner.name, f"{type(learner.update).__name__.lower()} step", rate]
    parts.append(f"rule {type(rule).__name__.lower()}({rule[0]:g})")
    parts.append(f"geometry {name}" + ("" if name == "euclidean" else f" of radius {geometry.radius:g}"))
    return ", ".join(parts)


def about(course: Course) -> str:
    """The rows in a few words."""
    features = course.runs[0][0].v.shape[1] - course.plan.intercept
    scale = "" if course.scale is None else f", scaled by {course.scale['kind']}"
    more = f" ({course.source.preparation})" if course.source is not None and course.source.preparation else ""
    return f"{course.done:,} rows × {features:,} features{scale}{more}"


def result(course: Course, titles: list[str], certificates: list[list[Certificate]], seconds: float) -> dict[str, Any]:
    """Everything as plain values."""
    from dataclasses import asdict

    from ..formatting import _plain

    learners = []
    for k, (runs, loss) in enumerate(zip(course.runs, course.losses(), strict=True)):
        mine: dict[str, Any] = {"learner": titles[k], "loss": loss, "mean_loss": loss / course.weight}
        mine |= {"mistakes": course.wrong[k]} if course.labels else {}
        mine["facts"] = [asdict(run.facts) for run in runs]
        if certificates:
            mine["certificates"] = [c.to_dict() for c in certificates[k]]
        learners.append(mine)
    out = {"data": str(course.plan.data), "rows": course.done, "rejected": course.rejected, "labels": course.labels}
    out |= {"best_constant": course.best_constant(), "seconds": seconds, "settings": course.plan.settings()}
    return dict(_plain(out | {"learners": learners}))


def summary(course: Course, titles: list[str], certificates: list[list[Certificate]], seconds: float) -> Iterator[str]:
    """The result to be read."""
    from ..certificates.certificate import Certificates
    from ..online.run import doubts

    rejected = f" ({course.rejected:,} rejected)" if course.rejected else ""
    yield f"{about(course)}{rejected}"
    for k, (runs, loss) in enumerate(zip(course.runs, course.losses(), strict=True)):
        facts = runs[0].facts
        for run in runs[1:]:
            facts = facts + run.facts
        what = {"square": "squared error", "loss": "loss"}[runs[0].learner.score]
        wrong = f", {course.wrong[k]:,} mistakes" if course.labels else ""
        if len(titles) > 1:
            yield titles[k]
        yield f"{what} {loss:.6g}, mean {loss / course.weight:.6g}{wrong}"
        yield f"max |x|₂ = {facts.x2:.6g}, max |x|∞ = {facts.xinf:.6g}, Σ|g|² = {facts.gradient:.6g}"
        for doubt in doubts(runs[0]):
            yield f"warning: {doubt}"
    best = "mistakes" if course.labels else "squared error"
    yield f"the best constant: {best} {course.best_constant():.6g}"
    speed = (
        f", {course.done / seconds:,.0f} rows/s" if seconds > 2.0 else ""
    )  # below that, loading the kernel counts most
    yield f"{seconds:.2f} s{speed}"
    for k, each in enumerate(certificates):
        yield ""
        if len(titles) > 1:
            yield titles[k]
        yield from (each[0] if len(each) == 1 else Certificates(tuple(each))).lines()
