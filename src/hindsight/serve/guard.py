"""Access control: hosts, origins and tokens are checked before a body is read."""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from typing import TYPE_CHECKING, Any

from .requests import ServiceError

if TYPE_CHECKING:
    from collections.abc import Sequence

HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^:\[\]]+)(?::\d+)?")  # a name or an address, and a port
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


class Guard:
    """Who may ask.

    Parameters
    ----------
    hosts : sequence of str
        The names allowed in the Host header, without a port. Others are refused, because the name of another site could
        be made to resolve to this host (DNS rebinding).
    token : str or None
        The token required in each request, as a bearer token or as the password of basic authentication.
    """

    def __init__(self, hosts: Sequence[str], token: str | None) -> None:
        self.hosts = frozenset(h.lower() for h in hosts)
        self.token = None if token is None else token.encode()

    def check(self, scope: Any) -> None:
        """Raise a ServiceError if a request is not permitted."""
        headers = dict(reversed(scope["headers"]))
        given = [value for name, value in scope["headers"] if name == b"host"]
        host = given[0].decode("latin-1").lower() if len(given) == 1 else ""
        name = HOST.fullmatch(host)
        if name is None or name[1] not in self.hosts:
            raise ServiceError(421, "this Host is not served here: --allow-host NAME adds one")
        origin = headers.get(b"origin")
        foreign = origin is not None and origin.decode("latin-1").lower().partition("://")[2] != host
        if foreign or headers.get(b"sec-fetch-site") in (b"cross-site", b"same-site"):
            raise ServiceError(403, "requests from pages of other sites are refused")
        if self.token is not None and scope["path"] != "/health" and not self.knows(headers.get(b"authorization", b"")):
            raise ServiceError(401, "a token is needed: Authorization: Bearer TOKEN")

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
