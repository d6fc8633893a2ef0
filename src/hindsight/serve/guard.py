"""Access control: hosts, origins and tokens are checked before a body is read, and headers restrict pages."""

from __future__ import annotations

import base64
import binascii
import hmac
import re
import time
from typing import TYPE_CHECKING, Any

from .requests import ServiceError
from .responses import refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .metrics import Metrics

POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^:\[\]]+)(?::\d+)?")  # a name or an address, and a port
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


class Guard:
    """An ASGI application that passes on only permitted requests.

    Parameters
    ----------
    app : ASGI application
        The application that answers.
    hosts : sequence of str
        The names allowed in the Host header, without a port. Others are refused, because the name of another site could
        be made to resolve to this host (DNS rebinding).
    token : str or None
        The token required in each request, as a bearer token or as the password of basic authentication.
    metrics : Metrics
        The metrics that count requests.
    """

    def __init__(self, app: Any, hosts: Sequence[str], token: str | None, metrics: Metrics) -> None:
        self.app, self.hosts, self.metrics = app, frozenset(h.lower() for h in hosts), metrics
        self.token = None if token is None else token.encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        headers = dict(reversed(scope["headers"]))
        began, status = time.perf_counter(), 499  # remains if the client has disconnected

        async def say(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                given = message.setdefault("headers", [])
                own = any(name == b"content-security-policy" for name, _ in given)
                message["headers"] = [*given, *(HEADERS[1:] if own else HEADERS)]
            await send(message)

        why = self.refused(scope, headers)
        try:
            if why is not None:
                await refusal(why)(scope, receive, say)
            else:
                await self.app(scope, receive, say)
        finally:
            self.metrics.add(scope["path"], scope["method"], status, time.perf_counter() - began)

    def refused(self, scope: Any, headers: dict[bytes, bytes]) -> ServiceError | None:
        """The reason to refuse a request, or None."""
        given = [value for name, value in scope["headers"] if name == b"host"]
        host = given[0].decode("latin-1").lower() if len(given) == 1 else ""
        name = HOST.fullmatch(host)
        if name is None or name[1] not in self.hosts:
            return ServiceError(421, "this Host is not served here: --allow-host NAME adds one")
        origin = headers.get(b"origin")
        foreign = origin is not None and origin.decode("latin-1").lower().partition("://")[2] != host
        if foreign or headers.get(b"sec-fetch-site") in (b"cross-site", b"same-site"):
            return ServiceError(403, "requests from pages of other sites are refused")
        if self.token is not None and scope["path"] != "/health" and not self.knows(headers.get(b"authorization", b"")):
            return ServiceError(401, "a token is needed: Authorization: Bearer TOKEN")
        return None

    def knows(self, authorization: bytes) -> bool:
        """Whether the token is correct, in constant time."""
        assert self.token is not None
        kind, _, value = authorization.partition(b" ")
        value = value.strip()
        if kind.lower() == b"basic":
            try:
                value = base64.b64decode(value, validate=True).partition(b":")[2]
            except (binascii.Error, ValueError):
                value = b""
        elif kind.lower() != b"bearer":
            value = b""
        return hmac.compare_digest(value, self.token)
