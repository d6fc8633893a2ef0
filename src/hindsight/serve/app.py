"""The service over HTTP."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import math
import time
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from .certificate import Certifier
from .guard import LOOPBACK, Guard
from .metrics import Metrics
from .openapi import docs_page, document
from .page import live_page
from .parts import Part
from .service import ServiceError
from .workers import Learning, Predicting

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from .service import Service

ARROW = "application/vnd.apache.arrow.stream"
FORMS = {
    "application/json": "json",
    "application/x-ndjson": "lines",
    "application/jsonl": "lines",
    ARROW: "arrow",
}
SMALL = 1 << 16  # bytes that are parsed, or rows whose answer is written, between other requests
BODY_SECONDS = 60.0
LISTENERS = 200
HELD = 8  # times the largest body: all bodies that are held at once
KEY = 200  # characters of an idempotency key


class Api:
    """What answers requests, with the threads behind it.

    Parameters
    ----------
    service : Service
        What learns.
    hosts : sequence of str, default ()
        Further names of this host.
    token : str or None, default None
        What must come with each request.
    """

    def __init__(self, service: Service, hosts: Sequence[str] = (), token: str | None = None) -> None:
        self.service, self.limits = service, service.limits
        self.learning, self.predicting = Learning(service), Predicting(service)
        self.metrics, self.certifier = Metrics(), Certifier(service)
        self.listeners = self.held = 0
        self.latest: tuple[float, dict[str, Any]] = (-math.inf, {})
        self.reading = asyncio.Lock()
        get, post = ["GET"], ["POST"]
        routes = [
            Route("/", self.page, methods=get),
            Route("/predict", self.holding(self.predict), methods=post),
            Route("/learn", self.holding(self.learn), methods=post),
            Route("/outcome", self.holding(self.outcome), methods=post),
            Route("/model", self.model, methods=get),
            Route("/facts", self.facts, methods=get),
            Route("/certificate", self.certificate, methods=get),
            Route("/metrics", self.prometheus, methods=get),
            Route("/health", self.health, methods=get),
            Route("/events", self.events, methods=get),
            Route("/openapi.json", self.openapi, methods=get),
            Route("/docs", self.docs, methods=get),
        ]
        handlers: dict[Any, Any] = {ServiceError: refused, ValueError: refused, HTTPException: unknown}
        handlers |= {ClientDisconnect: gone, Exception: bug}
        inner = Starlette(routes=routes, exception_handlers=handlers)
        self.app = Guard(inner, [*LOOPBACK, *hosts], token, self.metrics)

    def start(self) -> None:
        """Begin to take jobs."""
        self.learning.start()
        self.predicting.start()

    def stop(self) -> None:
        """Finish what was taken, and close the folder."""
        self.certifier.close()
        self.predicting.stop()
        self.learning.stop()
        self.service.close()

    # ------------------------------------------------------------ rows

    def holding(self, answer: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        """An endpoint whose body counts as held until it is answered."""

        async def endpoint(request: Request) -> Response:
            request.state.held = 0
            try:
                return await answer(request)
            finally:
                self.held -= request.state.held

        return endpoint

    async def part(self, request: Request, do: str) -> Part:
        """The rows of a request, parsed."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in FORMS:
            raise ServiceError(415, f"Content-Type must be one of {', '.join(FORMS)}; got {kind[:60]!r}")
        part = Part(do, FORMS[kind], await self.body(request), quiet=request.query_params.get("predictions") == "0")
        part.key = key_of(request)
        part.source, part.start = source_of(request)
        if part.key is not None:
            part.digest = digest_of(request, part.body)
        if do != "outcome":
            if len(part.body) <= SMALL:
                part.parse(self.limits)
            else:
                await asyncio.to_thread(part.parse, self.limits)
        return part

    async def body(self, request: Request) -> bytes:
        """The body, within its limits of size and time."""
        most = self.limits.body
        told = request.headers.get("content-length", "")
        if told.isdigit() and int(told) > most:
            raise ServiceError(413, f"the body has {int(told):,} bytes, at most {most:,} are taken")
        pieces, size = [], 0
        try:
            async with asyncio.timeout(BODY_SECONDS):
                async for piece in request.stream():
                    size += len(piece)
                    request.state.held += len(piece)
                    self.held += len(piece)
                    if self.held > HELD * most:
                        raise ServiceError(429, "the bodies of other requests take all the room: try again soon")
                    if size > most:
                        raise ServiceError(413, f"the body has more than {most:,} bytes")
                    pieces.append(piece)
        except TimeoutError:
            raise ServiceError(408, f"the body did not come within {BODY_SECONDS:.0f} seconds") from None
        return b"".join(pieces)

    async def predict(self, request: Request) -> Response:
        """Predict rows; with ``keep=1`` also keep them until their outcome is known."""
        keep = request.query_params.get("keep", "0")
        if keep not in ("0", "1"):
            raise ServiceError(422, f"keep must be 0 or 1; got {keep[:20]!r}")
        part = await self.part(request, "keep")
        found = await self.predicting.do(part.parsed)
        if keep == "1":
            found = found | await self.learning.do(part)
        return await answer(request, found)

    async def learn(self, request: Request) -> Response:
        """Learn from rows with targets: each is predicted, then learnt."""
        part = await self.part(request, "learn")
        return await answer(request, await self.learning.do(part))

    async def outcome(self, request: Request) -> Response:
        """Learn from kept rows whose targets are now known."""
        part = await self.part(request, "outcome")
        if part.form == "arrow":
            raise ServiceError(415, "outcomes come as JSON or JSON lines")
        rows = part.parse(self.limits)
        rows = rows if isinstance(rows, list) else rows.to_pylist()
        pairs = []
        for k, row in enumerate(rows):
            if set(row) != {"id", "target"}:
                raise ServiceError(422, f"row {k}: an outcome has an id and a target, and nothing else")
            if type(row["id"]) is not int:
                raise ServiceError(422, f"row {k}: id must be a whole number")
            if not isinstance(row["target"], (int, float, str)):
                raise ServiceError(422, f"row {k}: target must be a number or text")
            pairs.append((row["id"], row["target"]))
        part.parsed = pairs
        return await answer(request, await self.learning.do(part))

    # ------------------------------------------------------------ what there is

    async def summary(self, age: float = 0.5) -> dict[str, Any]:
        """Where learning stands, at most so many seconds ago."""
        async with self.reading:
            if time.monotonic() - self.latest[0] > age:
                told = await self.learning.do(self.service.summary)
                self.metrics.note_rows(told["sequence"])
                told |= {"rate": self.metrics.rate(), "waiting": self.learning.jobs.qsize()}
                told["learn_seconds"] = self.metrics.quantiles("/learn")
                told["predict_seconds"] = self.metrics.quantiles("/predict")
                told["certificate"] = self.certifier.brief()
                self.latest = time.monotonic(), told
        return self.latest[1]

    async def model(self, request: Request) -> Response:
        """The model: what it learns and how; ``?file=1`` as a file for `hindsight.load`."""
        if request.query_params.get("file") == "1":
            model = await self.learning.do(self._copied)
            data = await asyncio.to_thread(file_of, model)
            return Response(data, media_type="application/octet-stream", headers={
                "content-disposition": 'attachment; filename="hindsight.model"'})  # fmt: skip
        return json_response(await self.learning.do(self.service.about))

    def _copied(self) -> Any:
        if self.service.live.state is None:
            raise ServiceError(409, "nothing was learnt yet")
        return self.service.live.to_model()

    async def facts(self, request: Request) -> Response:
        """Sums and maxima over the rows so far, and the losses."""
        return json_response(await self.learning.do(self.service.facts) | {"summary": await self.summary()})

    async def certificate(self, request: Request) -> Response:
        """The certificate against the best in hindsight so far."""
        material = await self.learning.do(self.certifier.material)
        found = await self.certifier.certify(material)
        if request.query_params.get("text") == "1":
            return PlainTextResponse(found["text"] + "\n")
        return json_response(found)

    async def prometheus(self, request: Request) -> Response:
        """Counts and times for Prometheus."""
        text = self.metrics.text(await self.summary(), self.learning.jobs.qsize())
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

    async def health(self, request: Request) -> Response:
        """Whether it learns."""
        good = self.service.broken is None and self.learning.is_alive()
        told = {"status": "ok" if good else "broken", "sequence": self.service.sequence}
        return json_response(told if good else told | {"error": self.service.broken}, 200 if good else 503)

    async def events(self, request: Request) -> Response:
        """Where learning stands, once a second, as server-sent events."""
        if self.listeners >= LISTENERS:
            raise ServiceError(429, f"{LISTENERS} listen already")

        async def told() -> AsyncIterator[str]:
            self.listeners += 1
            try:
                while True:
                    try:
                        summary = await self.summary()
                        yield f"event: summary\ndata: {dumps(summary)}\n\n"
                        if summary["settled"] and self.certifier.due(summary["sequence"]):
                            self.certifier.busy = True
                            material = await self.learning.do(self.certifier.material)
                            self.task = asyncio.create_task(self.certifier.refresh(material))
                    except ServiceError:
                        yield ": busy\n\n"
                    await asyncio.sleep(1.0)
            finally:
                self.listeners -= 1

        return StreamingResponse(told(), media_type="text/event-stream")

    async def page(self, request: Request) -> Response:
        """The live page."""
        text, policy = live_page(await self.summary(), self.service.about())
        return HTMLResponse(text, headers={"content-security-policy": policy})

    async def openapi(self, request: Request) -> Response:
        """The description of this API."""
        return json_response(document(self.service.live.plan.target, self.limits))

    async def docs(self, request: Request) -> Response:
        """The same, to be read."""
        text, policy = docs_page(document(self.service.live.plan.target, self.limits))
        return HTMLResponse(text, headers={"content-security-policy": policy})


# ---------------------------------------------------------------- answers


def key_of(request: Request) -> str | None:
    """The idempotency key of a request."""
    key = request.headers.get("idempotency-key")
    if key is not None and not (0 < len(key) <= KEY and key.isprintable()):
        raise ServiceError(422, f"Idempotency-Key must have 1 to {KEY} printable characters")
    return key


def source_of(request: Request) -> tuple[str | None, int]:
    """The stream that rows are from, and how many rows of it came before."""
    name, start = request.query_params.get("source"), request.query_params.get("start", "0")
    if name is None:
        return None, 0
    if not (0 < len(name) <= KEY and name.isprintable()):
        raise ServiceError(422, f"source must have 1 to {KEY} printable characters")
    if not (start.isascii() and start.isdigit() and len(start) < 16):
        raise ServiceError(422, f"start must be a whole number; got {start[:20]!r}")
    return name, int(start)


def digest_of(request: Request, body: bytes) -> str:
    """A digest of what was asked."""
    asked = f"{request.url.path}?{request.url.query} {request.headers.get('content-type')}\n".encode()
    return hashlib.sha256(asked + body).hexdigest()[:32]


async def answer(request: Request, found: dict[str, Any]) -> Response:
    """An answer as JSON, or where that is asked for its predictions as an Arrow stream."""
    if request.headers.get("accept", "").startswith(ARROW):
        data = await asyncio.to_thread(arrow_of, found)
        told = {f"x-hindsight-{name}": str(found[name]) for name in ("sequence", "rows", "loss") if name in found}
        return Response(data, media_type=ARROW, headers=told)
    if len(found.get("predictions", ())) > 1000:
        return Response(await asyncio.to_thread(dumps, found), media_type="application/json")
    return json_response(found)


def arrow_of(found: dict[str, Any]) -> bytes:
    """Predictions, probabilities and ids as an Arrow stream."""
    import pyarrow as pa

    columns: dict[str, Any] = {"prediction": pa.array(found.get("predictions", []))}
    if "probabilities" in found:
        columns["probabilities"] = pa.array(found["probabilities"])
    if "ids" in found:
        columns["id"] = pa.array(found["ids"])
    table, sink = pa.table(columns), io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue()


def file_of(model: Any) -> bytes:
    """The file that `save` would write."""
    import os
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model")
        model.save(path)
        with open(path, "rb") as file:
            return file.read()


def dumps(value: Any) -> str:
    """JSON; what is not finite is null."""
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False)
    except ValueError:
        return json.dumps(finite(value), separators=(",", ":"))


def finite(value: Any) -> Any:
    """Plain values, with null for numbers that are not finite."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: finite(each) for name, each in value.items()}
    return [finite(each) for each in value] if isinstance(value, (list, tuple)) else value


def json_response(value: Any, status: int = 200) -> Response:
    """An answer as JSON."""
    return Response(dumps(value), status, media_type="application/json")


async def refused(request: Request, error: Exception) -> Response:
    """Why a request is refused, in one line."""
    status = error.status if isinstance(error, ServiceError) else 422
    response = json_response({"error": " ".join(str(error).split())[:1000]}, status)
    if status in (429, 503, 507):
        response.headers["retry-after"] = "1" if status == 429 else "10"
    if status in (408, 413, 415):
        response.headers["connection"] = "close"
    return response


async def unknown(request: Request, error: Exception) -> Response:
    """A path or a method that there is not."""
    status = getattr(error, "status_code", 404)
    what = "there is no such page" if status == 404 else f"{request.method} is not for this path"
    headers = getattr(error, "headers", None) or {}
    response = json_response({"error": f"{what}: /docs lists what there is"}, status)
    response.headers.update(headers)
    return response


async def gone(request: Request, error: Exception) -> Response:
    """The client has left."""
    return Response(status_code=499)


async def bug(request: Request, error: Exception) -> Response:
    """A bug of ours."""
    return json_response({"error": "this is a bug of hindsight: see its log"}, 500)
