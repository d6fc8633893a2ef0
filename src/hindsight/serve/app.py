"""The service over HTTP."""

from __future__ import annotations

import asyncio
import math
import time
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from .asking import Answer, Asking, bug, dumps, refused, unknown
from .certificate import Certifier
from .guard import LOOPBACK, Guard
from .metrics import Metrics
from .openapi import docs_page, document
from .page import live_page, shown
from .parts import ServiceError
from .workers import Learning, Predicting

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from .service import Service

LISTENERS = 200


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
        self.listeners = 0
        self.latest: tuple[float, dict[str, Any]] = (-math.inf, {})
        self.reading = asyncio.Lock()
        get = ["GET"]
        routes = [
            Route("/", self.page, methods=get),
            Route("/model", self.model, methods=get),
            Route("/facts", self.facts, methods=get),
            Route("/certificate", self.certificate, methods=get),
            Route("/metrics", self.prometheus, methods=get),
            Route("/health", self.health, methods=get),
            Route("/events", self.events, methods=get),
            Route("/openapi.json", self.openapi, methods=get),
            Route("/docs", self.docs, methods=get),
        ]
        handlers = dict.fromkeys((ValueError, HTTPException, Exception), said_no)
        self.pages = Starlette(routes=routes, exception_handlers=handlers)
        self.asking = Asking(self.learning, self.predicting, self.limits)
        self.app = Guard(self.answer, [*LOOPBACK, *hosts], token, self.metrics)

    async def answer(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request: with rows, or for a page."""
        await (self.asking if scope["path"] in self.asking.paths else self.pages)(scope, receive, send)

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
                told["certificate"] = self.certifier.shown
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
        text, kind = self.metrics.text(await self.summary(), request.headers.get("accept", ""))
        return Response(text, headers={"content-type": kind})

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
                        yield f"event: summary\ndata: {dumps(summary | {'page': shown(summary)})}\n\n"
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
        text, policy = live_page(await self.summary(), await self.learning.do(self.service.about))
        return HTMLResponse(text, headers={"content-security-policy": policy})

    async def openapi(self, request: Request) -> Response:
        """The description of this API."""
        return json_response(document(self.service.live.plan.target, self.limits))

    async def docs(self, request: Request) -> Response:
        """The same, to be read."""
        text, policy = docs_page(document(self.service.live.plan.target, self.limits))
        return HTMLResponse(text, headers={"content-security-policy": policy})


# ---------------------------------------------------------------- answers


def file_of(model: Any) -> bytes:
    """The file that `save` would write."""
    import os
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model")
        model.save(path)
        with open(path, "rb") as file:
            return file.read()


def json_response(value: Any, status: int = 200) -> Response:
    """An answer as JSON."""
    return Response(dumps(value), status, media_type="application/json")


async def said_no(request: Request, error: Exception) -> Response:
    """Why a request is refused."""
    if isinstance(error, HTTPException):
        return response_of(unknown(error.status_code, request.method), error.headers)
    return response_of(refused(error) if isinstance(error, ValueError) else bug())


def response_of(told: Answer, more: Any = None) -> Response:
    """An answer as a response of Starlette."""
    headers = {name.decode(): value.decode() for name, value in told.more} | dict(more or {})
    return Response(told.body, told.status, headers, "application/json")
