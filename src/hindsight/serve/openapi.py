"""The description of the API: as OpenAPI, and as a page to be read."""

from __future__ import annotations

import base64
import hashlib
import html
from typing import TYPE_CHECKING, Any

from .. import __version__

if TYPE_CHECKING:
    from .parts import Limits

NUMBER: dict[str, Any] = {"type": "number"}
WHOLE: dict[str, Any] = {"type": "integer"}
TEXT: dict[str, Any] = {"type": "string"}
VALUE: dict[str, Any] = {"type": ["number", "string", "boolean", "null"]}
ROW: dict[str, Any] = {
    "type": "object",
    "additionalProperties": VALUE,
    "description": "A row: numbers, text (categories), truth values; null is a missing value.",
}
PREDICTIONS: dict[str, Any] = {
    "predictions": {"type": "array", "items": {"type": ["number", "string"]}},
    "probabilities": {"type": "array", "items": {"type": "array", "items": NUMBER}},
    "sequence": WHOLE | {"description": "Rows learnt when it was predicted; of /learn the number of the first row."},
}
ERRORS = {
    "401": "a token is needed",
    "408": "the body came too slowly",
    "409": "nothing was learnt yet",
    "413": "the body is too large",
    "415": "the Content-Type is none of those above",
    "421": "the Host is not served here",
    "422": "a row, or an option, is not as it must be: one line says which, and nothing was taken",
    "429": "too many requests wait: try again after Retry-After",
    "503": "the log cannot be written: learning has stopped, predicting goes on",
    "507": "the disk is full: nothing was taken, predicting goes on",
}


def document(target: str | None, limits: Limits) -> dict[str, Any]:
    """The API as OpenAPI 3.1."""
    example = {"x1": 0.5, "colour": "red"}
    rows = body(ROW, example, True)
    learnt = {"rows": WHOLE, "loss": NUMBER, "of": TEXT, "repeated": {"type": "boolean"}} | PREDICTIONS
    quiet = parameter("predictions", "query", {"enum": ["0", "1"]}, "0 leaves predictions out of the answer.")
    key = parameter(
        "Idempotency-Key", "header", TEXT | {"maxLength": 200}, "Makes a repetition of the request count once."
    )
    source = parameter("source", "query", TEXT | {"maxLength": 200}, "The stream that the rows are from.")
    start = parameter("start", "query", WHOLE | {"minimum": 0}, "How many rows of it came before: each is taken once.")
    outcome = {
        "type": "object",
        "properties": {"id": WHOLE, "target": {"type": ["number", "string"]}},
        "required": ["id", "target"],
        "additionalProperties": False,
    }
    keep = parameter("keep", "query", {"enum": ["0", "1"]}, "1 keeps the rows until /outcome brings their targets.")
    paths: dict[str, Any] = {
        "/predict": post("Predict rows", rows, PREDICTIONS | {"ids": {"type": "array", "items": WHOLE}}, [keep, key]),
        "/learn": post(
            f"Learn from rows with their target {target!r}: each is predicted, then learnt",
            body(ROW, example | {str(target): 1.0}, True), learnt, [key, quiet, source, start],
            {"409": "other rows of the source are the next ones"},
        ),
        "/outcome": post(
            f"Learn from kept rows whose target is now known. They are forgotten after {limits.expire:g} seconds",
            body(outcome, {"id": 1, "target": 1.0}, False), learnt, [key],
            {"404": "this id was never given out", "410": "the row was learnt already, or has expired"},
        ),
        "/model": get("What is learnt, and how; ?file=1 is a file for hindsight.load"),
        "/facts": get("Sums and maxima over all rows, and the losses"),
        "/certificate": get("The loss against the best in hindsight so far, and what is claimed; ?text=1 to be read"),
        "/metrics": get("Counts and times, for Prometheus", "text/plain"),
        "/health": get("Whether it learns"),
        "/events": get("Where learning stands, once a second (server-sent events)", "text/event-stream"),
        "/openapi.json": get("This description"),
        "/docs": get("This description, to be read", "text/html"),
        "/": get("The live page", "text/html"),
    }  # fmt: skip
    about = (
        f"At most {limits.rows:,} rows and {limits.body:,} bytes at a time, {limits.row_features:,} features in a row."
    )
    return {
        "openapi": "3.1.0",
        "info": {"title": "hindsight", "version": __version__, "description": about},
        "paths": paths,
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def body(row: dict[str, Any], example: Any, arrow: bool) -> dict[str, Any]:
    """Rows as JSON, JSON lines and, where it can be, an Arrow stream."""
    some = {"oneOf": [row, {"type": "array", "items": row, "minItems": 1}]}
    content: dict[str, Any] = {
        "application/json": {"schema": some, "example": [example]},
        "application/x-ndjson": {"schema": TEXT | {"description": "One JSON object per line."}},
    }
    if arrow:
        content["application/vnd.apache.arrow.stream"] = {"schema": TEXT | {"format": "binary"}}
    return {"required": True, "content": content}


def parameter(name: str, where: str, schema: dict[str, Any], what: str) -> dict[str, Any]:
    """A parameter that may be left out."""
    return {"name": name, "in": where, "required": False, "schema": schema, "description": what}


def post(
    what: str, rows: dict[str, Any], answer: dict[str, Any], parameters: list[Any], more: dict[str, str] | None = None
) -> dict[str, Any]:
    """A request that brings rows."""
    found = {"200": {"description": "done", "content": {"application/json": {"schema": {
        "type": "object", "properties": answer}}}}}  # fmt: skip
    failures = {status: {"description": text} for status, text in (ERRORS | (more or {})).items()}
    return {"post": {"summary": what, "parameters": parameters, "requestBody": rows, "responses": found | failures}}


def get(what: str, kind: str = "application/json") -> dict[str, Any]:
    """A request that asks for something."""
    failures = {status: {"description": ERRORS[status]} for status in ("401", "409", "421", "429", "503")}
    return {"get": {"summary": what, "responses": {"200": {"description": "it", "content": {kind: {}}}} | failures}}


STYLE = """
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; margin: 1.5em auto; max-width: 46em; padding: 0 1em }
h2 { font-size: 1.05em; margin: 1.6em 0 .2em; font-family: ui-monospace, monospace } li { margin: .15em 0 }
code { font-family: ui-monospace, monospace; overflow-wrap: anywhere }
"""


def docs_page(told: dict[str, Any]) -> tuple[str, str]:
    """The description as a page, and what the page may do."""
    out = []
    for path, methods in told["paths"].items():
        for method, each in methods.items():
            out.append(f"<h2>{method.upper()} {html.escape(path)}</h2><p>{html.escape(each['summary'])}.</p><ul>")
            for given in each.get("parameters", ()):
                out.append(
                    f"<li><code>{given['name']}</code> ({given['in']}): {html.escape(given['description'])}</li>"
                )
            for kind in each.get("requestBody", {}).get("content", ()):
                out.append(f"<li>takes <code>{kind}</code></li>")
            for status, answer in each["responses"].items():
                out.append(f"<li><code>{status}</code> {html.escape(answer['description'])}</li>")
            out.append("</ul>")
    text = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>hindsight API</title><style>{STYLE}</style><h1>hindsight {html.escape(told['info']['version'])}</h1>"
        f"<p>{html.escape(told['info']['description'])}</p>"
        "<p><a href=/openapi.json>openapi.json</a> · <a href=/>live page</a></p>"
        f"{''.join(out)}</html>"
    )
    return text, policy(STYLE)


def policy(style: str, script: str | None = None) -> str:
    """What a page may do: use its own style and script, and ask this service; nothing else."""
    rules = ["default-src 'none'", f"style-src {hashed(style)}", "base-uri 'none'", "form-action 'none'"]
    rules += ["frame-ancestors 'none'", "img-src data:"]
    if script is not None:
        rules += [f"script-src {hashed(script)}", "connect-src 'self'"]
    return "; ".join(rules)


def hashed(text: str) -> str:
    """A source of a content policy: this very text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
