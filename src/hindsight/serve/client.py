"""A client of the service."""

from __future__ import annotations

import io
import json
import time
import uuid
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

ARROW = "application/vnd.apache.arrow.stream"
AGAIN = (429, 503)  # statuses after which a request is retried


class RefusedError(ValueError):
    """A request that the service refused: `status`, and one line that says why."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Client:
    """A client of ``hindsight serve``.

    Learning is safe to retry: every request has a key, so a request whose answer was lost is sent again and counts only
    once.

    Parameters
    ----------
    url : str, default "http://127.0.0.1:8765"
        The address of the service.
    token : str or None, default None
        Its token.
    timeout : float, default 60.0
        Seconds to wait for an answer.
    tries : int, default 5
        How often to send a request if there is no answer or the service is busy.

    Examples
    --------
    >>> client = Client("http://127.0.0.1:8765")
    >>> client.url
    'http://127.0.0.1:8765'
    >>> client.close()
    """

    def __init__(
        self, url: str = "http://127.0.0.1:8765", token: str | None = None, timeout: float = 60.0, tries: int = 5
    ) -> None:
        try:
            import httpx
        except ModuleNotFoundError:
            raise ModuleNotFoundError("the client needs httpx: pip install 'hindsight-learn[serve]'") from None
        self.url, self.tries = url.rstrip("/"), tries
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        self.http = httpx.Client(base_url=self.url, headers=headers, timeout=timeout, trust_env=False)
        self.failure: type[Exception] = httpx.TransportError

    def close(self) -> None:
        """Close the connection."""
        self.http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def predict(self, rows: Any, keep: bool = False) -> dict[str, Any]:
        """Predict rows.

        Parameters
        ----------
        rows : dict, list of dict, or data frame
            The rows, without the target.
        keep : bool, default False
            Whether to keep them until `outcome` brings their targets.

        Returns
        -------
        dict
            ``predictions``, ``probabilities`` if available, ``sequence``, and with `keep` also ``ids``.
        """
        return self._post("/predict", rows, {"keep": "1"} if keep else {}, keep)

    def learn(
        self, rows: Any, *, key: str | None = None, source: str | None = None, start: int = 0, predictions: bool = True
    ) -> dict[str, Any]:
        """Learn from rows with their targets; each is predicted before it is learnt.

        Parameters
        ----------
        rows : dict, list of dict, data frame, or bytes of JSON lines
            The rows.
        key : str or None, default None
            The idempotency key, by which a repeated request counts once; None generates one.
        source : str or None, default None
            The name of the stream that the rows come from.
        start : int, default 0
            The number of rows of the stream before these.
        predictions : bool, default True
            Whether the answer contains the predictions.

        Returns
        -------
        dict
            ``sequence`` (the number of the first row), ``rows``, ``loss``, ``of`` (the name of the loss),
            ``predictions``.
        """
        asked = {} if source is None else {"source": source, "start": str(start)}
        return self._post("/learn", rows, asked | ({} if predictions else {"predictions": "0"}), True, key)

    def outcome(self, pairs: Any, *, key: str | None = None) -> dict[str, Any]:
        """Send the targets of rows that were kept.

        Parameters
        ----------
        pairs : mapping of int to value
            The target of each id.
        key : str or None, default None
            As for `learn`.
        """
        return self._post("/outcome", [{"id": k, "target": v} for k, v in dict(pairs).items()], {}, True, key)

    def model(self) -> dict[str, Any]:
        """Describe the model and its settings."""
        return dict(self._get("/model").json())

    def save(self, path: str) -> None:
        """Save the current model to a file for `hindsight.load`."""
        from ..storage.container import replace

        replace(path, [self._get("/model", {"file": "1"}).content])

    def facts(self) -> dict[str, Any]:
        """Return sums and maxima over all rows."""
        return dict(self._get("/facts").json())

    def certificate(self) -> dict[str, Any]:
        """Return the current certificate."""
        return dict(self._get("/certificate").json())

    def health(self) -> dict[str, Any]:
        """Return the health of the service."""
        return dict(self._get("/health").json())

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield the progress of learning once a second."""
        with self.http.stream("GET", "/events", timeout=None) as answer:
            for line in answer.iter_lines():
                if line.startswith("data: "):
                    yield json.loads(line[6:])

    def _get(self, path: str, asked: dict[str, str] | None = None) -> Any:
        return self._send("GET", path, asked or {}, {}, None)

    def _post(self, path: str, rows: Any, asked: dict[str, str], keyed: bool, key: str | None = None) -> dict[str, Any]:
        body, kind = body_of(rows)
        headers = {"content-type": kind}
        if keyed:
            headers["idempotency-key"] = key or uuid.uuid4().hex
        return dict(self._send("POST", path, asked, headers, body).json())

    def _send(self, method: str, path: str, asked: dict[str, str], headers: dict[str, str], body: bytes | None) -> Any:
        pause = 0.1
        for k in range(1, self.tries + 1):
            try:
                answer = self.http.request(method, path, params=asked, headers=headers, content=body)
            except self.failure as error:
                if k == self.tries:
                    raise ConnectionError(f"{self.url}: no answer: {error}") from None
            else:
                if answer.status_code < 400:
                    return answer
                if answer.status_code not in AGAIN or k == self.tries:
                    raise RefusedError(answer.status_code, why_of(answer))
            time.sleep(pause)
            pause *= 2.0


def why_of(answer: Any) -> str:
    """The reason why a request was refused."""
    try:
        return str(answer.json()["error"])
    except (ValueError, KeyError, TypeError):
        return f"status {answer.status_code}"


def body_of(rows: Any) -> tuple[bytes, str]:
    """Encode rows as the body of a request; returns it and its content type."""
    if isinstance(rows, (bytes, bytearray)):
        return bytes(rows), "application/x-ndjson"
    if isinstance(rows, (dict, list, tuple)):
        return json.dumps(rows).encode(), "application/json"
    import pyarrow as pa

    if not hasattr(rows, "__arrow_c_stream__"):
        raise TypeError(f"rows must be a dict, a list of dicts or a data frame; got {type(rows).__name__}")
    return arrow_stream(pa.table(rows)), ARROW


def arrow_stream(table: Any) -> bytes:
    """A table as an Arrow stream."""
    import pyarrow as pa

    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue()
