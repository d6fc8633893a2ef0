"""The service over HTTP: the handler of each path, declared once with its description."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import math
import time
from typing import TYPE_CHECKING, Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse

from ..formatting import _plain
from ..storage.codec import encode
from ..storage.container import pieces_of
from .certificate import Certifier
from .client import ARROW, arrow_stream
from .guard import LOOPBACK, Guard
from .metrics import Metrics
from .openapi import IDS, KEEP, KEY, LEARNT, OUTCOME, PREDICTIONS, QUIET, ROW, SOURCE, START, Route, docs_page, document
from .page import live_page, page_content
from .requests import Part, ServiceError
from .workers import Learning, Predicting

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from .service import Service

LOG = logging.getLogger("uvicorn.error")
POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
HEADERS = [  # of every response, but that pages have policies of their own
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]
CONTENT_TYPES = {
    "application/json": "json",
    "application/x-ndjson": "lines",
    "application/jsonl": "lines",
    ARROW: "arrow",
}
LISTENERS = 200
SMALL = 1 << 16  # bytes that are parsed between other requests
HELD = 8  # times the largest body: the limit on all bodies in memory
LONGEST = 200  # characters of an idempotency key, and of the name of a stream
ENCODE = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False).encode
MANY = 1000  # predictions from which on an answer is written beside the event loop
RETRY_AFTER = {429: "1", 503: "10", 507: "10"}  # seconds
UNREAD = (401, 403, 413, 415, 421)  # statuses of requests whose body is not read
ROUTES: dict[str, Route] = {}


def route(path: str, *described: Any, **more: Any) -> Callable[[Any], Any]:
    """Register a method of `Api` for a path; the first line of its docstring becomes the summary in OpenAPI."""

    def declare(answer: Callable[[Api, Asked], Awaitable[Response]]) -> Any:
        ROUTES[path] = Route(answer, *described, **more)
        return answer

    return declare


class Asked(Request):
    """A request, with the number of bytes of its body that are in memory."""

    held = 0


class Api:
    """The ASGI application that answers all requests, with its worker threads.

    Parameters
    ----------
    service : Service
        The service to expose.
    hosts : sequence of str, default ()
        Further names of this host.
    token : str or None, default None
        The token that every request must have.
    """

    def __init__(self, service: Service, hosts: Sequence[str] = (), token: str | None = None) -> None:
        self.service, self.limits = service, service.limits
        self.learning, self.predicting = Learning(service), Predicting(service)
        self.metrics, self.certifier = Metrics(ROUTES), Certifier(service)
        self.listeners = 0
        self.held = 0  # bytes of the bodies of all unanswered requests
        self.latest: tuple[float, dict[str, Any]] = (-math.inf, {})
        self.reading = asyncio.Lock()
        self.guard = Guard([*LOOPBACK, *hosts], token)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, with little overhead because single rows may come by the thousand per second."""
        if scope["type"] != "http":
            return
        began, status = time.perf_counter(), 499  # remains if the client has disconnected
        try:
            response = await self.respond(Asked(scope, receive))
            if response is not None:
                status = response.status_code
                if response.media_type != "text/html":
                    response.raw_headers.append((b"content-security-policy", POLICY.encode()))
                response.raw_headers += HEADERS
                await response(scope, receive, send)
        finally:
            self.metrics.add(scope["path"], scope["method"], status, time.perf_counter() - began)

    async def respond(self, request: Asked) -> Response | None:
        """The response to a request; None if the client has disconnected."""
        path, method = request.scope["path"], request.scope["method"]
        try:
            self.guard.check(request.scope)
            found = ROUTES.get(path.rstrip("/") or "/")
            if found is None:
                raise ServiceError(404, "there is no such page: /docs lists what there is")
            if method not in found.methods:
                error = ServiceError(405, f"{method} is not for this path: /docs lists what there is")
                return refusal(error, allow=", ".join(found.methods))
            return await found.answer(self, request)
        except ClientDisconnect:
            return None
        except ValueError as error:
            return refusal(error)
        except Exception:
            LOG.exception("Exception in ASGI application")
            return json_response({"error": "this is a bug of hindsight: see its log"}, 500)
        finally:
            self.held -= request.held

    def start(self) -> None:
        """Start the workers."""
        self.learning.start()
        self.predicting.start()

    def stop(self) -> None:
        """Finish the accepted jobs and close the folder."""
        self.certifier.close()
        self.predicting.stop()
        self.learning.stop()
        self.service.close()

    # ------------------------------------------------------------ requests that bring rows

    @route("/predict", ROW, PREDICTIONS | IDS, (KEEP, KEY))
    async def predict(self, request: Asked) -> Response:
        """Predict rows."""
        keep = request.query_params.get("keep", "0")
        if keep not in ("0", "1"):
            raise ServiceError(422, f"keep must be 0 or 1; got {keep[:20]!r}")
        part = await self.part(request, "keep")
        found = await self.predicting.do(part.parsed)
        if keep == "1":
            found = found | await self.learning.do(part)
        return await predictions_response(request, found)

    @route("/learn", ROW, LEARNT, (KEY, QUIET, SOURCE, START), {"409": "other rows of the source are the next ones"})
    async def learn(self, request: Asked) -> Response:
        """Learn from rows with their target: each is predicted, then learnt."""
        return await predictions_response(request, await self.learning.do(await self.part(request, "learn")))

    @route(
        "/outcome", OUTCOME, LEARNT, (KEY,),
        {"404": "this id was never given out", "410": "the row was learnt already, or has expired"},
    )  # fmt: skip
    async def outcome(self, request: Asked) -> Response:
        """Learn from kept rows whose target is now known."""
        part = await self.part(request, "outcome")
        if part.form == "arrow":
            raise ServiceError(415, "outcomes come as JSON or JSON lines")
        part.parsed = [outcome_of(k, row) for k, row in enumerate(part.mappings())]
        return await predictions_response(request, await self.learning.do(part))

    async def part(self, request: Asked, do: str) -> Part:
        """Parse the rows of a request."""
        given, query = request.headers.get("content-type", ""), request.query_params
        kind = given.partition(";")[0].strip().lower()
        if kind not in CONTENT_TYPES:
            raise ServiceError(415, f"Content-Type must be one of {', '.join(CONTENT_TYPES)}; got {kind[:60]!r}")
        part = Part(do, CONTENT_TYPES[kind], await self.body(request), quiet=query.get("predictions") == "0")
        if "idempotency-key" in request.headers:
            part.key = short_text("Idempotency-Key", request.headers["idempotency-key"])
            asked = f"{request.scope['path']}?{request.scope['query_string'].decode('latin-1')} {given}\n"
            part.digest = hashlib.sha256(asked.encode() + part.body).hexdigest()[:32]
        if "source" in query:
            part.source, start = short_text("source", query["source"]), query.get("start", "0")
            if not (start.isascii() and start.isdigit() and len(start) < 16):
                raise ServiceError(422, f"start must be a whole number; got {start[:20]!r}")
            part.start = int(start)
        if do == "outcome" or len(part.body) <= SMALL:
            part.parse(self.limits)
        else:
            await asyncio.to_thread(part.parse, self.limits)
        return part

    async def body(self, request: Asked) -> bytes:
        """Read the body, within the size limits; the server limits its time."""
        most, announced = self.limits.body, request.headers.get("content-length", "")
        if announced.isdigit() and int(announced) > most:
            raise ServiceError(413, f"the body has {int(announced):,} bytes, at most {most:,} are taken")
        pieces: list[bytes] = []
        async for piece in request.stream():
            request.held += len(piece)
            self.held += len(piece)
            if self.held > HELD * most:
                raise ServiceError(429, "the bodies of other requests take all the room: try again soon")
            if request.held > most:
                raise ServiceError(413, f"the body has more than {most:,} bytes")
            pieces.append(piece)
        return b"".join(pieces)

    # ------------------------------------------------------------ what there is

    async def summary(self, age: float = 0.5) -> dict[str, Any]:
        """The progress of learning, at most `age` seconds old."""
        async with self.reading:
            if time.monotonic() - self.latest[0] > age:
                out = await self.learning.do(self.service.summary)
                self.metrics.note_rows(out["sequence"])
                out |= {"rate": self.metrics.rate(), "waiting": self.learning.jobs.qsize()}
                out["learn_seconds"] = self.metrics.quantiles("/learn")
                out["predict_seconds"] = self.metrics.quantiles("/predict")
                out["certificate"] = self.certifier.shown
                self.latest = time.monotonic(), out
        return self.latest[1]

    @route("/model")
    async def model(self, request: Asked) -> Response:
        """What is learnt, and how; ?file=1 is a file for hindsight.load."""
        if request.query_params.get("file") != "1":
            return json_response(await self.learning.do(self.service.about))
        model = await self.learning.do(self.service.live.to_model)
        data = await asyncio.to_thread(lambda: b"".join(pieces_of("model", "model", *encode(model))))
        named = {"content-disposition": 'attachment; filename="hindsight.model"'}
        return Response(data, headers=named, media_type="application/octet-stream")

    @route("/facts")
    async def facts(self, request: Asked) -> Response:
        """Sums and maxima over all rows, and the losses."""
        return json_response(await self.learning.do(self.service.facts) | {"summary": await self.summary()})

    @route("/certificate")
    async def certificate(self, request: Asked) -> Response:
        """The loss against the best in hindsight so far, and what is claimed; ?text=1 to be read."""
        material = await self.learning.do(self.certifier.material)
        found = await self.certifier.certify(material)
        if request.query_params.get("text") == "1":
            return PlainTextResponse(found["text"] + "\n")
        return json_response(found)

    @route("/metrics", kind="text/plain")
    async def prometheus(self, request: Asked) -> Response:
        """Counts and times, for Prometheus."""
        text, kind = self.metrics.text(await self.summary(), request.headers.get("accept", ""))
        return Response(text, headers={"content-type": kind})

    @route("/health")
    async def health(self, request: Asked) -> Response:
        """Whether it learns."""
        good = self.service.broken is None and self.learning.is_alive()
        answer = {"status": "ok" if good else "broken", "sequence": self.service.sequence}
        return json_response(answer if good else answer | {"error": self.service.broken}, 200 if good else 503)

    @route("/events", kind="text/event-stream")
    async def events(self, request: Asked) -> Response:
        """Where learning stands, once a second (server-sent events)."""
        if self.listeners >= LISTENERS:
            raise ServiceError(429, f"{LISTENERS} listen already")

        async def summaries() -> AsyncIterator[str]:
            self.listeners += 1
            try:
                while True:
                    try:
                        summary = await self.summary()
                        yield f"event: summary\ndata: {dumps(summary | {'page': page_content(summary)})}\n\n"
                        if summary["settled"]:
                            self.certifier.refresh(self.learning, summary["sequence"])
                    except ServiceError:
                        yield ": busy\n\n"
                    await asyncio.sleep(1.0)
            finally:
                self.listeners -= 1

        return StreamingResponse(summaries(), media_type="text/event-stream")

    @route("/openapi.json")
    async def openapi(self, request: Asked) -> Response:
        """This description."""
        return json_response(document(ROUTES, self.service.live.plan.target, self.limits))

    @route("/docs", kind="text/html")
    async def docs(self, request: Asked) -> Response:
        """This description, to be read."""
        return html_response(*docs_page(document(ROUTES, self.service.live.plan.target, self.limits)))

    @route("/", kind="text/html")
    async def page(self, request: Asked) -> Response:
        """The live page."""
        return html_response(*live_page(await self.summary(), await self.learning.do(self.service.about)))


def outcome_of(k: int, row: dict[str, Any]) -> tuple[int, Any]:
    """The id and the target of an outcome."""
    if set(row) != {"id", "target"}:
        raise ServiceError(422, f"row {k}: an outcome has an id and a target, and nothing else")
    if type(row["id"]) is not int:
        raise ServiceError(422, f"row {k}: id must be a whole number")
    if not isinstance(row["target"], (int, float, str)):
        raise ServiceError(422, f"row {k}: target must be a number or text")
    return row["id"], row["target"]


def short_text(name: str, text: str) -> str:
    """A short text that a request gives."""
    if not (0 < len(text) <= LONGEST and text.isprintable()):
        raise ServiceError(422, f"{name} must have 1 to {LONGEST} printable characters")
    return text


# ---------------------------------------------------------------- responses


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
    if len(found.get("predictions", ())) > MANY:
        return await asyncio.to_thread(json_response, found)
    return json_response(found)


def arrow_of(found: dict[str, Any]) -> bytes:
    """Predictions, probabilities, intervals and ids as an Arrow stream."""
    import pyarrow as pa

    columns = {"prediction": pa.array(found.get("predictions", []))}
    names = {"probabilities": "probabilities", "low": "low", "high": "high", "labels": "sets", "id": "ids"}
    return arrow_stream(pa.table(columns | {name: pa.array(found[key]) for name, key in names.items() if key in found}))


def refusal(error: Exception, **headers: str) -> Response:
    """The response to a refused request, with the reason in one line."""
    status = error.status if isinstance(error, ServiceError) else 422
    if status in RETRY_AFTER:
        headers["retry-after"] = RETRY_AFTER[status]
    if status == 401:
        headers["www-authenticate"] = 'Basic realm="hindsight"'
    if status in UNREAD:
        headers["connection"] = "close"
    return json_response({"error": " ".join(str(error).split())[:1000]}, status, **headers)


def html_response(text: str, policy: str) -> Response:
    """An HTML response with a content security policy."""
    return HTMLResponse(text, headers={"content-security-policy": policy})
