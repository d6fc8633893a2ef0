"""The command `hindsight`: each module adds its subcommands to one application."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .application import app as app

VERBS = {  # by module
    "densities": ["density", "duel"],
    "echo": ["echo"],
    "forecasts": ["compare", "calibrate"],
    "learn": ["learn", "learners"],
    "look": ["look"],
    "models": ["predict", "evaluate", "certify", "inspect", "export"],
    "serve": ["serve", "tail", "rows", "rewind"],
}


def load_app(verb: str | None = None) -> Any:
    """The application with all subcommands, or only those in the module of one subcommand, which is faster to build."""
    modules = [module for module, verbs in VERBS.items() if verb in verbs]
    for module in modules or VERBS:
        import_module(f".{module}", __name__)
    return import_module(".application", __name__).app


def __getattr__(name: str) -> Any:
    """`app`, with all subcommands, built on first use."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return load_app()
