"""The live page: numbers that a script keeps up to date, and a chart; nothing is loaded from other hosts."""

from __future__ import annotations

import html
import math
from pathlib import Path
from string import Template
from typing import Any

from ..formatting import brief, percent
from .openapi import policy

FILES = ("page.css", "page.js", "page.html")
STYLE, SCRIPT, HTML = (Path(__file__).with_name(name).read_text(encoding="utf-8") for name in FILES)
PAGE = Template(HTML)
FIRST = 20  # row from which on it is drawn what intervals covered so far


def short_number(value: Any) -> str:
    """A number for display: counts in full, others with three digits."""
    if value is None or isinstance(value, str):
        return "–" if value is None else value
    return brief(value) if isinstance(value, float) else f"{value:,}"


def seconds(*values: float | None) -> str:
    """Seconds as milliseconds."""
    return ", ".join("–" if value is None else f"{short_number(1000.0 * value)} ms" for value in values)


def page_content(summary: dict[str, Any]) -> dict[str, Any]:
    """The content of the page: texts by element id, rows of tables, and the series of the chart.

    Squared errors are shown as their roots, in the unit of the target.

    Parameters
    ----------
    summary : dict
        What `Api.summary` returns.
    """
    certificate, squares = summary.get("certificate") or {}, summary.get("of") == "squared error"

    def unit(value: float | None) -> float | None:
        return value if value is None or not squares else math.sqrt(max(0.0, value))

    rounds = certificate.get("sequence") or 1
    best, bound = (None if certificate.get(n) is None else certificate[n] / rounds for n in ("best", "bound"))
    regret = certificate.get("regret")
    if summary.get("best") is not None:  # of all rows so far, not only of those that were certified
        best, regret = summary["best"] / summary["weight"], summary["loss"] - summary["best"]
    loss, constant = summary.get("mean_loss"), summary.get("mean_constant")
    r2 = None if not constant or loss is None else 1.0 - loss / constant
    right = None if summary.get("mistakes") is None else 1.0 - summary["mistakes"] / max(1, summary["sequence"])
    claims = [*certificate.get("claims", ()), *coverage_lines(summary.get("coverage"))]
    warnings = [line for line in [summary.get("order"), *summary.get("warnings", ())] if line]
    numbers = {name: summary[name] for name in ("rate", "features", "pending", "waiting", "refused")}
    numbers |= {"rows": summary["sequence"], "loss": unit(loss), "constant": unit(constant), "best": unit(best)}
    numbers |= {"limit": unit(bound), "regret": regret}
    texts = {name: short_number(value) for name, value in numbers.items()} | {
        "fit": short_number(r2) if right is None else percent(right),
        "verdict": f"{certificate['verdict']} (first {rounds:,} rows)" if certificate else "–",
        "learn": seconds(*summary["learn_seconds"].values()),
        "predict": seconds(*summary["predict_seconds"].values()),
        "sync": seconds(summary["sync"]),
        "broken": summary["broken"] or "",
        "order": " · ".join(f"warning: {line}" for line in warnings),
        "drift": f"drift: {summary['drift']['claim']}" if "drift" in summary else "",
        "claims": " ".join(f"{claim[:1].upper()}{claim[1:]}." for claim in claims),
        "of": "RMSE" if squares else f"{summary.get('of', 'loss')} per row",
        "measure": "R²" if right is None else "accuracy",
        "sum": "regret in all, squared" if squares else "regret in all",
        "off": "off by" if squares else summary.get("of", "loss"),
    }
    path, points = certificate.get("path", ()), summary.get("points", ())
    first = points[0][0] if points else 1
    series = (
        ("own", "the service", False, [(p[0], p[1]) for p in points]),
        ("constant", "best constant", False, [(p[0], p[2]) for p in points]),
        ("best", "fixed predictor of the bound", True, [(p[0], p[2] and p[2] / p[0]) for p in path if p[0] >= first]),
        ("bound", "bound, at the dots", True, [(p[0], p[3] and p[3] / p[0]) for p in path if p[0] >= first]),
    )
    asked = (summary.get("coverage") or {}).get("asked")
    along = [p for p in points if len(p) > 4 and p[0] >= FIRST]
    bands = () if len(along) < 2 else (
        ("own", "rows covered", False, [(p[0], p[4]) for p in along]),
        ("best", "asked for", False, [(p[0], asked) for p in (along[0], along[-1])]),
        ("bound", "guaranteed between", False, [(p[0], p[5]) for p in along]),
        ("bound", "", False, [(p[0], p[6]) for p in along]),
    )  # fmt: skip
    return {
        "texts": texts,
        "coverage": bands,
        "ranges": summary.get("ranges", ()),
        "top": [
            [
                (each["feature"] + ("" if each["label"] is None else f" ({each['label']})"), ""),
                (short_number(each["weight"]), "n"),
            ]
            for each in summary.get("top", ())
        ],
        "mistakes": [
            [(short_number(value), "n") for value in (m["sequence"], m["predicted"], m["target"], unit(m["loss"]))]
            for m in summary.get("newest_mistakes", ())
        ],
        "series": [
            (name, what, dotted, [(x, unit(y)) for x, y in pairs if x > 0 and y and 0.0 < y < math.inf])
            for name, what, dotted, pairs in series
        ],
    }


def live_page(summary: dict[str, Any], about: dict[str, Any]) -> tuple[str, str]:
    """The page with the current numbers, and its content security policy.

    Parameters
    ----------
    summary : dict
        What `Api.summary` returns.
    about : dict
        What `Service.about` returns.
    """
    page = page_content(summary)
    texts = page["texts"] | {"target": str(about["target"]), "learner": about["learner"]}
    tables = {name: table_rows(page[name]) for name in ("top", "mistakes")}
    escaped = {name: html.escape(text) for name, text in texts.items()}
    return PAGE.substitute(escaped | tables | {"style": STYLE, "script": SCRIPT}), policy(STYLE, SCRIPT)


def table_rows(cells: list[list[tuple[str, str]]]) -> str:
    """Rows of a table."""
    cell = '<td class="{}">{}</td>'
    return "".join(f"<tr>{''.join(cell.format(kind, html.escape(text)) for text, kind in row)}</tr>" for row in cells)


def coverage_lines(found: dict[str, Any] | None) -> list[str]:
    """The lines about intervals, if there are any."""
    if found is None or found["covered"] is None:
        return []
    covered, asked, low, high = (f"{100.0 * found[name]:.4g} %" for name in ("covered", "asked", "low", "high"))
    said = f"covered {covered} of {found['rounds']:,} rows, asked {asked}, guaranteed between {low} and {high}"
    if found["sets"]:
        return [f"sets of labels: {said}"]
    width = "infinite" if found["width"] is None else short_number(found["width"])
    return [f"intervals: {said}; mean width {width}"]
