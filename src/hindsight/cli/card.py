"""The description of a model file for `hindsight inspect`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from ..formatting import _plain, aligned, brief
from ..training.model import describe_model, feature_name
from ..training.prepare import check_preparation
from .text import label_lines, norms_of

if TYPE_CHECKING:
    from ..training.model import Model

COLUMNS = 40  # of a table that are shown


def card(path: str, model: Model, top: int) -> list[str]:
    """The content of a model file as lines of text."""
    titled = aligned([(f"  {title}", text) for title, text in general(model)], 2)
    out = [f"{path}", *titled, *column_lines(model), *fact_lines(model), *largest_weights(model, top)]
    if model.coverage is not None:
        out += ["intervals", *(f"  {line}" for line in model.coverage.lines())]
    if model.certificate is None:
        out.append("certificate: none was made")
    else:
        out += ["certificate", *(f"  {line}" for line in model.certificate.lines())]
    out.append("versions: " + ", ".join(f"{name} {version}" for name, version in model.versions.items()))
    return out


def general(model: Model) -> list[tuple[str, str]]:
    """General facts about a model and its training data, each with a title."""
    from ..training.state import check_progress

    settings, prepared = model.settings, check_preparation(model) if model.progress else model.preparation
    names = "numbered" if model.names is None else "named"
    out = [("learner", describe_model(model))]
    if settings.get("target") is not None:
        out.append(("target", str(settings["target"])))
    out += [("labels", line.removeprefix("labels: ")) for line in label_lines(model.labels)]
    out.append(("features", f"{model.features:,} ({names}), {'with' if model.intercept else 'without'} an intercept"))
    if said := while_learning(model):
        out.append(("while learning", said))
    for k, part in enumerate(check_progress(model)["parts"] if model.progress else []):
        digest = f", SHA-256 {part['digest'][:16]}…" if part["digest"] else ""
        out.append(("learnt from" if k == 0 else "then from", f"{short(part['data'])}: {part['rows']:,} rows{digest}"))
    if model.digest and not model.progress:
        out.append(("learnt from", f"rows of SHA-256 {model.digest}"))
    shown = {name: value for name, value in settings.items() if name not in ("data", "target", "learners", "reading")}
    out.append(("settings", ", ".join(named(shown))))
    reading = {k: v for k, v in (prepared.get("source") or {}).items() if k != "features"}
    out.append(("reading", ", ".join(named(reading))))
    if prepared.get("scale") is not None:
        out.append(("scaled by", short(prepared["scale"])))
    return [(title, text) for title, text in out if text]


def while_learning(model: Model) -> str:
    """The quality of the progressive predictions; empty if it is not known."""
    from ..training.recording import scores_of_runs
    from ..training.state import check_progress

    known = check_progress(model) if model.progress else {}
    if not model.facts[0].rounds or (len(model.runs) > 1 and not known):
        return ""
    return scores_of_runs(model.runs, model.labels, known.get("mistakes", 0), known.get("constant")).sentence()


def column_lines(model: Model) -> list[str]:
    """The content of each column of the training table."""
    table = (model.preparation.get("state") or {}).get("table")
    if table is None:
        return []
    from ..sources.tables.describe import one_line

    used = model.preparation["source"].get("features") or []
    shown = [each for each in table["columns"] if each["name"] in used]
    wide = min(30, max((len(each["name"]) for each in shown), default=6))
    lines = [f"  {one_line(c['name'], wide):<{wide}}  {c['type']:<8}  {c['why']}".rstrip() for c in shown[:COLUMNS]]
    more = [f"  … and {len(shown) - COLUMNS:,} more"] if len(shown) > COLUMNS else []
    return ["columns", *lines, *more]


def fact_lines(model: Model) -> list[str]:
    """The facts of each run."""
    out = ["facts"]
    for k, facts in enumerate(model.facts):
        what, total = ("squared error", facts.square) if model.learner.score == "square" else ("loss", facts.loss)
        head = f"  {model.labels[k]}: " if model.labels is not None and len(model.runs) > 1 else "  "
        mean = f", mean {total / facts.weight:.6g}" if facts.weight else ""
        wrong = "" if model.labels is None else f", {facts.mistakes:,} mistakes"
        out.append(f"{head}{facts.rounds:,} rounds, {what} {total:.6g}{mean}{wrong}")
        out.append(f"{' ' * len(head)}{norms_of(model.learner, facts)}")
    return out


def largest_weights(model: Model, top: int) -> list[str]:
    """The largest weights, and the intercepts."""
    found = heaviest(model, top)
    if model.intercept:
        labels: list[Any] = [None] if model.labels is None or len(model.runs) == 1 else model.labels
        found += list(zip(labels, ["intercept"] * len(labels), model.weights[:, -1].tolist(), strict=True))
    count = int((model.weights[:, : model.features] != 0).sum())
    wide = max((len(name) for _, name, _ in found), default=0)
    return [
        f"weights: {count:,} that are not 0" + (", the largest:" if found else ""),
        *(f"  {name:<{wide}} {brief(weight):>14}" + (f"  {label}" if label else "") for label, name, weight in found),
    ]


def short(value: Any) -> str:
    """A short form of a setting."""
    if isinstance(value, np.ndarray):
        return f"({' × '.join(map(str, value.shape))} numbers)"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, dict):
        parts, ends = named(value), "{}"
    elif isinstance(value, (list, tuple)):
        parts, ends = [short(v) for v in value[:8]] + ["…"] * (len(value) > 8), "[]"
    else:
        return str(value)
    return ends[0] + ", ".join(parts) + ends[1]


def named(values: dict[str, Any]) -> list[str]:
    """Settings with their names, without those that are None or empty."""
    given = {k: v for k, v in values.items() if v is not None and not (isinstance(v, (list, tuple, dict)) and not v)}
    return [f"{k} {short(v)}" for k, v in given.items()]


def card_values(model: Model, top: int) -> dict[str, Any]:
    """The content of a model file as plain values."""
    found = {
        "learner": describe_model(model),
        "features": model.features,
        "intercept": model.intercept,
        "labels": model.labels,
        "settings": model.settings,
        "preparation": model.preparation,
        "facts": [asdict(facts) for facts in model.facts],
        "largest": [{"label": label, "name": name, "weight": weight} for label, name, weight in heaviest(model, top)],
        "certificate": None if model.certificate is None else model.certificate.to_dict(),
        "digest": model.digest,
        "versions": model.versions,
    }
    if model.coverage is not None:
        found["coverage"] = model.coverage.to_dict()
    return dict(_plain(found))


def heaviest(model: Model, top: int) -> list[tuple[str | None, str, float]]:
    """The largest weights of features: label (for one-vs-rest), name, weight."""
    w = model.weights[:, : model.features]
    size = np.abs(w).ravel()
    order = np.argsort(-size, kind="stable")[:top]
    labels = model.labels if len(model.runs) > 1 else None
    return [
        (
            None if labels is None else labels[k // model.features],
            feature_name(model, k % model.features),
            float(w.flat[k]),
        )
        for k in order.tolist()
        if size[k] > 0
    ]
