"""`hindsight certify`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from .application import verb
from .search_bar import search_bar
from .text import status_of


@verb()
def certify(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model that `learn --save` wrote.")],
    data: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="The rows it was trained on, in that order: all parts.")
    ],
    within: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="End searches in hindsight by then, with the best so far and its gap."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the certificate as JSON.")] = False,
) -> int:
    """Certify a saved model over the rows it was trained on.

    What it lost, what the best constant and the best fixed predictor in hindsight lose, and what its theorem promises.

    Other rows, or another order, are refused. The exit status is 1 only if a bound is BROKEN.
    """
    from ..errors import ModelError
    from ..storage.model import load
    from ..training.certify import certify_model

    found = load(model)
    try:
        with search_bar() as notify:
            certificate = certify_model(found, data if len(data) > 1 else data[0], within=within, notify=notify)
    except ModelError as error:
        raise ValueError(f"{model}: {error}") from None
    covered = found.coverage
    if as_json:
        print(json.dumps(certificate.to_dict() | ({} if covered is None else {"coverage": covered.to_dict()})))
    else:
        print(certificate if covered is None else f"{certificate}\n{covered}")
    return status_of(certificate)
