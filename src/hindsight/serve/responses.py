"""Responses: JSON, predictions as an Arrow stream, and the reasons of refusals."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from ..formatting import _plain
from .client import ARROW, arrow_stream
from .requests import ServiceError

if TYPE_CHECKING:
    from starlette.requests import Request

ENCODE = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False).encode
LONG = 1000  # predictions from which on an answer is written beside the event loop
RETRY_AFTER = {429: "1", 503: "10", 507: "10"}  # seconds
UNREAD = (401, 403, 413, 415, 421)  # statuses of requests whose body is not read


def dumps(value: Any) -> str:
    """A value as JSON; numbers that are not finite become null."""
    try:
        return ENCODE(value)
    except ValueError:
        return ENCODE(_plain(value))


def json_response(value: Any, status: int = 200, **headers: str) -> Response:
    """An answer as JSON."""
    return Response(dumps(value), status, headers, "application/json")


async def predictions_response(request: Request, found: dict[str, Any]) -> Response:
    """An answer as JSON, or its predictions as an Arrow stream if requested."""
    if request.headers.get("accept", "").startswith(ARROW):
        values = {name: str(found[name]) for name in ("sequence", "rows", "loss") if name in found}
        headers = {f"x-hindsight-{name}": value for name, value in values.items()}
        return Response(await asyncio.to_thread(arrow_of, found), headers=headers, media_type=ARROW)
    if len(found.get("predictions", ())) > LONG:
        return await asyncio.to_thread(json_response, found)
    return json_response(found)


def arrow_of(found: dict[str, Any]) -> bytes:
    """Predictions, probabilities, intervals and ids as an Arrow stream."""
    import pyarrow as pa

    columns = {"prediction": pa.array(found.get("predictions", []))}
    names = {"probabilities": "probabilities", "low": "low", "high": "high", "labels": "sets", "id": "ids"}
    return arrow_stream(pa.table(columns | {name: pa.array(found[key]) for name, key in names.items() if key in found}))


def refusal(error: Exception, status: int = 422, **headers: str) -> Response:
    """The response to a refused request, with the reason in one line."""
    status = error.status if isinstance(error, ServiceError) else status
    if status in RETRY_AFTER:
        headers["retry-after"] = RETRY_AFTER[status]
    if status == 401:
        headers["www-authenticate"] = 'Basic realm="hindsight"'
    if status in UNREAD:
        headers["connection"] = "close"
    return json_response({"error": " ".join(str(error).split())[:1000]}, status, **headers)
