"""`hindsight serve` and the related `tail`, `rewind` and `rows`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Annotated, Any

import typer

from ..errors import OptionError
from ..serve.planning import ROWS, service_plan
from ..training.options import LearnerOptions, RowOptions
from .application import Some, verb
from .text import print_error_line

LOCAL = ("127.0.0.1", "localhost", "::1")
NEEDED = "the service needs more packages: pip install 'hindsight-learn[serve]'"
OF_LEARNERS = ("learner", "loss", "eta", "drift", "interval")


@verb()
def serve(
    folder: Annotated[
        str, typer.Argument(metavar="DIR", help="The folder that holds everything: rows, snapshots, settings.")
    ],
    rows: Annotated[dict[str, Any], Some(RowOptions, ROWS)],
    learner: Annotated[dict[str, Any], Some(LearnerOptions, OF_LEARNERS)],
    *,
    model: Annotated[
        str | None, typer.Option("--from", metavar="MODEL", help="A model to go on with, for a folder that is new.")
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = 8765,
    host: Annotated[
        str, typer.Option(help="The address to listen at; any but this machine's own needs --token.")
    ] = "127.0.0.1",
    token: Annotated[
        str | None, typer.Option(metavar="FILE", help="A file with the token that requests must bring.")
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A name of this host that requests may use; may be repeated."),
    ] = None,
    keep_log: Annotated[
        bool | None, typer.Option("--keep-log/--no-keep-log", help="Whether rows stay when snapshots cover them.")
    ] = None,
    body: Annotated[int, typer.Option(min=1, help="Bytes of a request at most.")] = 64 << 20,
    pending: Annotated[int, typer.Option(min=0, help="Rows at most that wait for their outcome.")] = 100_000,
    expire: Annotated[float, typer.Option(min=1.0, help="Seconds after which such a row is forgotten.")] = 7 * 86400.0,
) -> Callable[[], None]:
    """Serve a learner over HTTP: it predicts and learns, loses no acknowledged row, and shows its regret on a page."""
    try:
        from ..serve.app import Api
        from ..serve.server import run
    except ModuleNotFoundError as error:
        raise ValueError(f"{NEEDED} ({error.name} is missing)") from None
    from ..serve.requests import Limits
    from ..serve.service import Service

    secret = read_token(token)
    if host not in LOCAL and secret is None:
        raise OptionError("host", f"{host} can be reached by others: name a file with a token (--token FILE)")
    plan, found = begin(rows.pop("target", None), model, rows | learner)
    limits = Limits(body=body, pending=pending, expire=expire)
    service = Service(folder, plan, found, limits, keep_log, print_error_line)
    names = [host, *(allow_host or ())] if host not in ("0.0.0.0", "::") else list(allow_host or ())
    api = Api(service, [f"[{name}]" if ":" in name else name for name in names], secret)
    about = f"{service.sequence:,} rows" + (f", {service.replayed:,} commits replayed" if service.replayed else "")

    def listen() -> None:
        service.warm_up()
        api.start()
        try:
            run(api, host, port, lambda where: print_error_line(f"serving {folder} ({about}) at {where}"))
        finally:
            api.stop()

    return listen


def begin(target: str | None, model: str | None, options: dict[str, Any]) -> tuple[Any, Any]:
    """The plan and the model given by the options; both are None to continue with those in the folder."""
    from ..training.model import open_model

    if model is not None:
        if target is not None or options:
            name = "target" if target is not None else next(iter(options))
            raise OptionError(name, "is what the model says: leave it out beside --from")
        return None, open_model(model)
    if target is None:
        if options:
            raise OptionError(next(iter(options)), "is for a folder that is new: name its --target as well")
        return None, None
    return service_plan(target, options.pop("learner", "auto"), **options), None


def read_token(path: str | None) -> str | None:
    """The token in a file."""
    if path is None:
        return None
    try:
        with open(path, encoding="utf-8") as file:
            if os.fstat(file.fileno()).st_mode & 0o007:
                raise OptionError("token", f"{path}: can be read or written by everybody: chmod o= {path}")
            token = file.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(
            "token", f"{path}: cannot be read: {getattr(error, 'strerror', None) or 'not text'}"
        ) from None
    if len(token) < 16 or not token.isascii() or not token.isprintable() or " " in token:
        raise OptionError("token", f"{path}: must hold at least 16 printable characters without a space")
    return token


@verb()
def tail(
    path: Annotated[str, typer.Argument(metavar="FILE", help="CSV, TSV or JSON lines; - is standard input.")],
    to: Annotated[str, typer.Option(metavar="URL", help="The service.")] = "http://127.0.0.1:8765",
    format: Annotated[str | None, typer.Option(help="csv, tsv or jsonl, where the name does not show it.")] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Wait for rows that are added.")] = False,
    batch: Annotated[int, typer.Option(min=1, max=100_000, help="Rows in a request.")] = 1000,
    name: Annotated[str | None, typer.Option(help="What the service calls this stream; by default its path.")] = None,
    token: Annotated[str | None, typer.Option(metavar="FILE", help="A file with the token of the service.")] = None,
) -> None:
    """Feed a file, or what comes through a pipe, to a service; a file is resumed where the service stopped."""
    from ..serve.client import Client
    from ..serve.tail import tail as feed

    if format not in (None, "csv", "tsv", "jsonl"):
        raise OptionError("format", f"must be csv, tsv or jsonl; got {format!r}")
    try:
        with Client(to, read_token(token)) as client:
            sent = feed(path, client, form=format, batch=batch, follow=follow, name=name, notify=print_error_line)
    except ModuleNotFoundError as error:
        raise ValueError(str(error)) from None
    except (ConnectionError, FileNotFoundError) as error:
        raise ValueError(f"{path}: No such file" if isinstance(error, FileNotFoundError) else str(error)) from None
    print(f"{sent:,} rows were learnt")


@verb()
def rows(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="The folder of a service.")],
    first: Annotated[int, typer.Option("--from", min=1, metavar="SEQUENCE", help="The first row.")] = 1,
) -> None:
    """Print the rows of a service as JSON lines, in the order in which they were learnt."""
    from ..serve.rewind import rows_of

    for line in rows_of(folder, first):
        print(line)


@verb()
def rewind(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="The folder of a service that is not running.")],
    to: Annotated[
        int | None,
        typer.Option(min=0, metavar="SEQUENCE", help="The last row to keep; by default the last that can be read."),
    ] = None,
) -> None:
    """Take a service back to a row; its present database is kept in a folder inside DIR."""
    from ..serve.rewind import rewind as go_back

    found = go_back(folder, to)
    print(f"back at row {found['row']:,}: {found['dropped']:,} rows were put aside in {found['aside']}")
