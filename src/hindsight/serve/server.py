"""The server: uvicorn with limits on slow and large headers."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import sys
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    from collections.abc import Callable

HEADER_SECONDS, HEADER_BYTES = 10.0, 1 << 16
BODY_SECONDS = 60.0


class GuardedProtocol(HttpToolsProtocol):
    """HTTP with limits on the time and the size of headers and on the time of bodies: slow clients are disconnected."""

    timer: Any = None
    unread = 0

    def connection_made(self, transport: Any) -> None:
        """Start waiting for a request."""
        super().connection_made(transport)
        self.wait(HEADER_SECONDS, self.transport.abort)

    def wait(self, seconds: float, otherwise: Callable[[], None]) -> None:
        """Call `otherwise` if the headers, or the body, are not complete in time."""
        if self.timer is None:
            self.timer = asyncio.get_event_loop().call_later(seconds, otherwise)

    def cease(self) -> None:
        """Stop waiting."""
        if self.timer is not None:
            self.timer.cancel()
        self.timer, self.unread = None, 0

    def data_received(self, data: bytes) -> None:
        """Receive data; limits its size while headers are incomplete."""
        if self.cycle is None or self.cycle.response_complete:
            self.wait(HEADER_SECONDS, self.transport.abort)
            self.unread += len(data)
        super().data_received(data)
        if self.timer is not None and self.unread > HEADER_BYTES and not self.transport.is_closing():
            self.cease()
            self.send_400_response("The headers are too long.")
        if self.cycle is not None and self.cycle.more_body and not self.cycle.response_complete:
            self.wait(BODY_SECONDS, self.late)

    def on_headers_complete(self) -> None:
        """Handle complete headers."""
        self.cease()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Handle a complete body."""
        self.cease()
        super().on_message_complete()

    def late(self) -> None:
        """Answer that the body took too long, unless the request is already answered, and close the connection."""
        if not self.transport.is_closing() and not self.cycle.response_started:
            body = f'{{"error":"the body did not come within {BODY_SECONDS:.0f} seconds"}}'
            lines = ("HTTP/1.1 408 Request Timeout", "content-type: application/json", f"content-length: {len(body)}")
            self.transport.write("\r\n".join((*lines, "connection: close", "", body)).encode())
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self.cease()
        super().connection_lost(exc)


def run(app: Any, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve until stopped by a signal; `ready` is called with the address once connections are accepted."""
    with contextlib.suppress(OSError, ValueError):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))
    sys.setswitchinterval(0.001)  # so that a request need not wait 5 ms for the thread that learns
    config = uvicorn.Config(
        app, host=host, port=port, http=GuardedProtocol, ws="none", lifespan="off", log_level="warning",
        access_log=False, proxy_headers=False, server_header=False, timeout_keep_alive=75, timeout_graceful_shutdown=3,
    )  # fmt: skip
    server = uvicorn.Server(config)

    async def main() -> None:
        serving = asyncio.create_task(server.serve())
        while not server.started and not serving.done():
            await asyncio.sleep(0.01)
        if server.started:
            where = server.servers[0].sockets[0].getsockname()
            name = f"[{where[0]}]" if ":" in where[0] else where[0]
            ready(f"http://{name}:{where[1]}")
        await serving

    runner = config.get_loop_factory() if hasattr(config, "get_loop_factory") else None
    with asyncio.Runner(loop_factory=runner) as loop:
        loop.run(main())
