"""Requests that bring rows, answered straight from ASGI: they come by the thousand in a second."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from .client import ARROW, arrow_stream
from .parts import Part, ServiceError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .parts import Limits
    from .workers import Learning, Predicting

    Headers = list[tuple[bytes, bytes]]

FORMS = {
    "application/json": "json",
    "application/x-ndjson": "lines",
    "application/jsonl": "lines",
    ARROW: "arrow",
}
JSON_HEADER = (b"content-type", b"application/json")
SMALL = 1 << 16  # bytes that are parsed, or rows whose answer is written, between other requests
HELD = 8  # times the largest body: all bodies that are held at once
KEY = 200  # characters of an idempotency key


class GoneError(Exception):
    """The client has left."""


@dataclass
class Ask:
    """A request: its scope, its headers by name, its query, and how its body is received."""

    scope: Any
    headers: dict[bytes, bytes]
    query: dict[str, str]
    receive: Callable[[], Awaitable[Any]]
    held: int = 0

    def header(self, name: bytes) -> str:
        """A header as text; empty where there is none."""
        return self.headers.get(name, b"").decode("latin-1")


@dataclass
class Answer:
    """An answer: its body, what kind that is, its status and further headers."""

    body: bytes
    status: int = 200
    kind: tuple[bytes, bytes] = JSON_HEADER
    more: tuple[tuple[bytes, bytes], ...] = ()

    async def send(self, send: Callable[[Any], Awaitable[None]]) -> None:
        """Send it."""
        headers = [self.kind, (b"content-length", b"%d" % len(self.body)), *self.more]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


class Asking:
    """What answers requests with rows.

    Parameters
    ----------
    learning : Learning
        The thread that learns.
    predicting : Predicting
        The thread that predicts.
    limits : Limits
        The most that a request may bring.
    """

    def __init__(self, learning: Learning, predicting: Predicting, limits: Limits) -> None:
        self.learning, self.predicting, self.limits = learning, predicting, limits
        self.held = 0  # bytes of all bodies that are not answered yet
        self.paths = {"/predict": self.predict, "/learn": self.learn, "/outcome": self.outcome}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request for one of `paths`."""
        if scope["method"] != "POST":
            await unknown(405, scope["method"], ((b"allow", b"POST"),)).send(send)
            return
        query = scope["query_string"]
        given = dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True)) if query else {}
        ask = Ask(scope, dict(reversed(scope["headers"])), given, receive)
        try:
            found = await self.paths[scope["path"]](ask)
        except ValueError as error:
            found = refused(error)
        except GoneError:
            return
        except Exception:
            await bug().send(send)
            raise
        finally:
            self.held -= ask.held
        await found.send(send)

    async def part(self, ask: Ask, do: str) -> Part:
        """The rows of a request, parsed."""
        kind = ask.header(b"content-type").partition(";")[0].strip().lower()
        if kind not in FORMS:
            raise ServiceError(415, f"Content-Type must be one of {', '.join(FORMS)}; got {kind[:60]!r}")
        part = Part(do, FORMS[kind], await self.body(ask), quiet=ask.query.get("predictions") == "0")
        if b"idempotency-key" in ask.headers:
            part.key = key_of(ask)
            part.digest = digest_of(ask, part.body)
        if "source" in ask.query:
            part.source, part.start = source_of(ask)
        if do != "outcome":
            if len(part.body) <= SMALL:
                part.parse(self.limits)
            else:
                await asyncio.to_thread(part.parse, self.limits)
        return part

    async def body(self, ask: Ask) -> bytes:
        """The body, within its limits of size; the server limits its time."""
        most = self.limits.body
        told = ask.header(b"content-length")
        if told.isdigit() and int(told) > most:
            raise ServiceError(413, f"the body has {int(told):,} bytes, at most {most:,} are taken")
        pieces: list[bytes] = []
        more = True
        while more:
            message = await ask.receive()
            if message["type"] == "http.disconnect":
                raise GoneError
            piece, more = message.get("body", b""), message.get("more_body", False)
            ask.held += len(piece)
            self.held += len(piece)
            if self.held > HELD * most:
                raise ServiceError(429, "the bodies of other requests take all the room: try again soon")
            if ask.held > most:
                raise ServiceError(413, f"the body has more than {most:,} bytes")
            pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def predict(self, ask: Ask) -> Answer:
        """Predict rows; with ``keep=1`` also keep them until their outcome is known."""
        keep = ask.query.get("keep", "0")
        if keep not in ("0", "1"):
            raise ServiceError(422, f"keep must be 0 or 1; got {keep[:20]!r}")
        part = await self.part(ask, "keep")
        found = await self.predicting.do(part.parsed)
        if keep == "1":
            found = found | await self.learning.do(part)
        return await answer(ask, found)

    async def learn(self, ask: Ask) -> Answer:
        """Learn from rows with targets: each is predicted, then learnt."""
        return await answer(ask, await self.learning.do(await self.part(ask, "learn")))

    async def outcome(self, ask: Ask) -> Answer:
        """Learn from kept rows whose targets are now known."""
        part = await self.part(ask, "outcome")
        if part.form == "arrow":
            raise ServiceError(415, "outcomes come as JSON or JSON lines")
        rows = part.parse(self.limits)
        rows = rows if isinstance(rows, list) else rows.to_pylist()
        part.parsed = [outcome_of(k, row) for k, row in enumerate(rows)]
        return await answer(ask, await self.learning.do(part))


def outcome_of(k: int, row: dict[str, Any]) -> tuple[int, Any]:
    """The id and the target of an outcome."""
    if set(row) != {"id", "target"}:
        raise ServiceError(422, f"row {k}: an outcome has an id and a target, and nothing else")
    if type(row["id"]) is not int:
        raise ServiceError(422, f"row {k}: id must be a whole number")
    if not isinstance(row["target"], (int, float, str)):
        raise ServiceError(422, f"row {k}: target must be a number or text")
    return row["id"], row["target"]


def key_of(ask: Ask) -> str:
    """The idempotency key of a request."""
    key = ask.header(b"idempotency-key")
    if not (0 < len(key) <= KEY and key.isprintable()):
        raise ServiceError(422, f"Idempotency-Key must have 1 to {KEY} printable characters")
    return key


def source_of(ask: Ask) -> tuple[str, int]:
    """The stream that rows are from, and how many rows of it came before."""
    name, start = ask.query["source"], ask.query.get("start", "0")
    if not (0 < len(name) <= KEY and name.isprintable()):
        raise ServiceError(422, f"source must have 1 to {KEY} printable characters")
    if not (start.isascii() and start.isdigit() and len(start) < 16):
        raise ServiceError(422, f"start must be a whole number; got {start[:20]!r}")
    return name, int(start)


def digest_of(ask: Ask, body: bytes) -> str:
    """A digest of what was asked."""
    path, query = ask.scope["path"], ask.scope["query_string"].decode("latin-1")
    asked = f"{path}?{query} {ask.header(b'content-type')}\n".encode()
    return hashlib.sha256(asked + body).hexdigest()[:32]


# ---------------------------------------------------------------- answers


async def answer(ask: Ask, found: dict[str, Any]) -> Answer:
    """An answer as JSON, or where that is asked for its predictions as an Arrow stream."""
    if ask.header(b"accept").startswith(ARROW):
        data = await asyncio.to_thread(arrow_of, found)
        told = ((f"x-hindsight-{name}", found.get(name)) for name in ("sequence", "rows", "loss"))
        more = tuple((name.encode(), str(value).encode()) for name, value in told if value is not None)
        return Answer(data, kind=(b"content-type", ARROW.encode()), more=more)
    if len(found.get("predictions", ())) > 1000:
        return Answer((await asyncio.to_thread(dumps, found)).encode())
    return Answer(dumps(found).encode())


def arrow_of(found: dict[str, Any]) -> bytes:
    """Predictions, probabilities and ids as an Arrow stream."""
    import pyarrow as pa

    columns: dict[str, Any] = {"prediction": pa.array(found.get("predictions", []))}
    if "probabilities" in found:
        columns["probabilities"] = pa.array(found["probabilities"])
    if "ids" in found:
        columns["id"] = pa.array(found["ids"])
    return arrow_stream(pa.table(columns))


def refused(error: ValueError) -> Answer:
    """Why a request is refused, in one line."""
    status = error.status if isinstance(error, ServiceError) else 422
    more = []
    if status in (429, 503, 507):
        more.append((b"retry-after", b"1" if status == 429 else b"10"))
    if status == 401:
        more.append((b"www-authenticate", b'Basic realm="hindsight"'))
    if status in (401, 403, 413, 415, 421):
        more.append((b"connection", b"close"))  # the body is not read
    return Answer(dumps({"error": " ".join(str(error).split())[:1000]}).encode(), status, more=tuple(more))


def unknown(status: int, method: str, more: tuple[tuple[bytes, bytes], ...] = ()) -> Answer:
    """A path or a method that there is not."""
    what = "there is no such page" if status == 404 else f"{method} is not for this path"
    return Answer(dumps({"error": f"{what}: /docs lists what there is"}).encode(), status, more=more)


def bug() -> Answer:
    """A bug of ours."""
    return Answer(dumps({"error": "this is a bug of hindsight: see its log"}).encode(), 500)


def dumps(value: Any) -> str:
    """JSON; what is not finite is null."""
    try:
        return ENCODE(value)
    except ValueError:
        return json.dumps(finite(value), separators=(",", ":"))


ENCODE = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False).encode


def finite(value: Any) -> Any:
    """Plain values, with null for numbers that are not finite."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: finite(each) for name, each in value.items()}
    return [finite(each) for each in value] if isinstance(value, (list, tuple)) else value
