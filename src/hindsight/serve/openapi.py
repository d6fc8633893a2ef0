"""The description of the API, as OpenAPI and as an HTML page."""

from __future__ import annotations

import html
import inspect
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..content_policy import hashes
from .client import ARROW

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.responses import Response

    from .requests import Limits

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
    "low": {"type": "array", "items": {"type": ["number", "null"]}},
    "high": {"type": "array", "items": {"type": ["number", "null"]}},
    "sets": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
    "sequence": WHOLE | {"description": "Rows learnt when it was predicted; of /learn the number of the first row."},
}
IDS: dict[str, Any] = {"ids": {"type": "array", "items": WHOLE}}
LEARNT: dict[str, Any] = {"rows": WHOLE, "loss": NUMBER, "of": TEXT, "repeated": {"type": "boolean"}} | PREDICTIONS
OUTCOME: dict[str, Any] = {
    "type": "object",
    "properties": {"id": WHOLE, "target": {"type": ["number", "string"]}},
    "required": ["id", "target"],
    "additionalProperties": False,
}
ERRORS = {
    "401": "a token is needed",
    "408": "the body came too slowly",
    "409": "nothing was learnt yet",
    "413": "the body is too large",
    "415": "the Content-Type is not one of those above",
    "421": "the Host is not served here",
    "422": "a row, or an option, is not as it must be: one line says which, and nothing was taken",
    "429": "too many requests wait: try again after Retry-After",
    "503": "the log cannot be written: learning has stopped, predicting goes on",
    "507": "the disk is full: nothing was taken, predicting goes on",
}


def parameter(name: str, where: str, schema: dict[str, Any], what: str) -> dict[str, Any]:
    """An optional parameter."""
    return {"name": name, "in": where, "required": False, "schema": schema, "description": what}


SHORT = TEXT | {"maxLength": 200}
YES_NO = {"enum": ["0", "1"]}
KEY = parameter("Idempotency-Key", "header", SHORT, "Makes a repetition of the request count once.")
KEEP = parameter("keep", "query", YES_NO, "1 keeps the rows until /outcome brings their targets.")
QUIET = parameter("predictions", "query", YES_NO, "0 leaves predictions out of the answer.")
SOURCE = parameter("source", "query", SHORT, "The stream that the rows are from.")
START = parameter("start", "query", WHOLE | {"minimum": 0}, "How many rows of it came before: each is taken once.")


@dataclass(frozen=True)
class Route:
    """The handler of a path and its description.

    Attributes
    ----------
    answer : callable
        From an `Api` and a request to a response; the first line of its docstring is the summary.
    rows : dict or None
        The schema of a row in the request; None if it takes none.
    gives : dict or None
        The properties of its response.
    parameters : tuple of dict
        Optional parameters of the request.
    errors : dict of str to str
        The error statuses of this path, with their meanings.
    kind : str
        The content type of the response.
    """

    answer: Callable[[Any, Any], Awaitable[Response]]
    rows: dict[str, Any] | None = None
    gives: dict[str, Any] | None = None
    parameters: tuple[dict[str, Any], ...] = ()
    errors: dict[str, str] = field(default_factory=dict)
    kind: str = "application/json"

    @property
    def methods(self) -> tuple[str, ...]:
        """The HTTP methods that it accepts."""
        return ("GET", "HEAD") if self.rows is None else ("POST",)

    def described(self, example: dict[str, Any]) -> dict[str, Any]:
        """The route as OpenAPI, with an example of a row."""
        entry: dict[str, Any] = {"summary": (inspect.getdoc(self.answer) or "").partition("\n")[0].removesuffix(".")}
        errors, good = ERRORS | self.errors, {"description": "it", "content": {self.kind: {}}}
        if self.rows is None:
            errors = {status: ERRORS[status] for status in ("401", "409", "421", "429", "503")}
        else:
            some = {"oneOf": [self.rows, {"type": "array", "items": self.rows, "minItems": 1}]}
            content: dict[str, Any] = {
                "application/json": {"schema": some, "example": [example]},
                "application/x-ndjson": {"schema": TEXT | {"description": "One JSON object per line."}},
            }
            if self.rows is not OUTCOME:
                content[ARROW] = {"schema": TEXT | {"format": "binary"}}
            entry |= {"parameters": list(self.parameters), "requestBody": {"required": True, "content": content}}
            schema = {"type": "object", "properties": self.gives}
            good = {"description": "done", "content": {self.kind: {"schema": schema}}}
        entry["responses"] = {"200": good} | {status: {"description": text} for status, text in errors.items()}
        return {self.methods[0].lower(): entry}


def document(routes: Mapping[str, Route], target: str | None, limits: Limits) -> dict[str, Any]:
    """The API as OpenAPI 3.1."""
    row: dict[str, Any] = {"x1": 0.5, "colour": "red"}
    examples = {"/learn": row | {str(target): 1.0}, "/outcome": {"id": 1, "target": 1.0}}
    about = (
        f"The target is {target!r}. At most {limits.rows:,} rows and {limits.body:,} bytes are taken at a time, "
        f"{limits.row_features:,} features in a row. Rows that are kept for their outcome are forgotten after "
        f"{limits.expire:g} seconds."
    )
    return {
        "openapi": "3.1.0",
        "info": {"title": "hindsight", "version": __version__, "description": about},
        "paths": {path: route.described(examples.get(path, row)) for path, route in routes.items()},
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


STYLE = """
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; margin: 1.5em auto; max-width: 46em; padding: 0 1em }
h2 { font-size: 1.05em; margin: 1.6em 0 .2em; font-family: ui-monospace, monospace } li { margin: .15em 0 }
code { font-family: ui-monospace, monospace; overflow-wrap: anywhere }
"""


def docs_page(api: dict[str, Any]) -> tuple[str, str]:
    """The description as a page, and its content security policy."""
    out = []
    for path, methods in api["paths"].items():
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
        f"<title>hindsight API</title><style>{STYLE}</style><h1>hindsight {html.escape(api['info']['version'])}</h1>"
        f"<p>{html.escape(api['info']['description'])}</p>"
        "<p><a href=/openapi.json>openapi.json</a> · <a href=/>live page</a></p>"
        f"{''.join(out)}</html>"
    )
    return text, policy(STYLE)


def policy(style: str, script: str | None = None) -> str:
    """A content security policy that permits a page its own style and script and requests to this service only."""
    rules = ["default-src 'none'", f"style-src {hashes([style])}", "base-uri 'none'", "form-action 'none'"]
    rules += ["frame-ancestors 'none'", "img-src data:"]
    if script is not None:
        rules += [f"script-src {hashes([script])}", "connect-src 'self'"]
    return "; ".join(rules)
