"""Pages that are written from the code: the command's reference, and the API."""

from __future__ import annotations

from typing import Any

GROUPS = {  # pages of the API: title, and what of the package they hold, by the folder that it lives in
    "training": ("Learn, evaluate, load", ("training", "storage", "sources", "errors")),
    "estimators": ("Estimators", ("estimators",)),
    "certificates": ("Certificates", ("certificates",)),
    "learners": ("Learners and parts", ("online",)),
    "batch": ("Exact solvers", ("batch",)),
    "plots": ("Plots and reports", ("charts", "reports")),
    "forecast": ("Forecasts", ("forecast",)),
    "density": ("Densities", ("density",)),
    "echo": ("Echo", ("echo",)),
    "cluster": ("Clusters", ("cluster",)),
    "serve": ("The client of a service", ("serve",)),
}
WORDS = {"<str>": "text", "<int>": "integer", "<float>": "number"}


def commands() -> str:
    """Every command with its arguments and options, as Markdown."""
    import typer

    from hindsight.cli import app

    group = typer.main.get_command(app)
    context = group.make_context("hindsight", [], resilient_parsing=True)
    parts = [section("hindsight", group, 2)]
    parts += [section(f"hindsight {name}", group.get_command(context, name), 2) for name in sorted(group.commands)]
    return "\n".join(parts)


def section(name: str, command: Any, level: int) -> str:
    """One command: how it is called, what it does, tables of its parameters."""
    import click

    context = click.Context(command, info_name=name)
    lines = [
        f"{'#' * level} {name}",
        "",
        "```text",
        " ".join([name, *command.collect_usage_pieces(context)]),
        "```",
        "",
    ]
    lines += [*(line.strip() for line in (command.help or "").splitlines()), ""]
    if command.epilog:
        lines += [command.epilog, ""]
    panels: dict[str, list[str]] = {}
    for parameter in command.params:
        if parameter.name in ("install_completion", "show_completion"):
            continue
        option = parameter.param_type_name == "option"
        panel = getattr(parameter, "rich_help_panel", None) or ("Options" if option else "Arguments")
        panels.setdefault(panel, []).append(row(parameter, context, option))
    for title, rows in panels.items():
        lines += [f"**{title}**", "", "| name | takes | what it does |", "|---|---|---|", *rows, ""]
    return "\n".join(lines)


def row(parameter: Any, context: Any, option: bool) -> str:
    """A line of a table: names, what it takes, what it does."""
    if option:
        names = ", ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])
        takes = "" if parameter.is_flag else WORDS.get(parameter.make_metavar(context), parameter.make_metavar(context))
    else:
        names, takes = f"`{parameter.make_metavar(context)}`", ""
    told = (getattr(parameter, "help", None) or "").strip()
    value = parameter.default
    if option and not parameter.is_flag and value is not None and not callable(value) and value != () and show(value):
        told += f" Default: `{value}`."
    if parameter.required and option:
        told += " Required."
    return f"| {names} | {cell(takes)} | {cell(told)} |"


def show(value: Any) -> bool:
    """Whether a default is a plain value."""
    return isinstance(value, (str, int, float)) and value != ""


def cell(text: str) -> str:
    """Text in a cell of a table."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def api() -> dict[str, str]:
    """Pages of the API by name, with one directive for each public name."""
    import hindsight

    names: dict[str, list[str]] = {page: [] for page in GROUPS}
    home = {folder: page for page, (_, folders) in GROUPS.items() for folder in folders}
    for name in hindsight.__all__:
        where = hindsight._HOME.get(name, "certificates").split(".")[0]
        names[home[where]].append(f"hindsight.{name}")
    for package in hindsight._PACKAGES:
        module = getattr(hindsight, package)
        names[home[package]] += [f"hindsight.{package}.{name}" for name in module.__all__]
    return {page: api_page(GROUPS[page][0], found) for page, found in names.items()}


def api_page(title: str, names: list[str]) -> str:
    """A page of the API."""
    return f"# {title}\n\n" + "\n\n".join(f"::: {name}" for name in names) + "\n"


def api_index() -> str:
    """Links to the pages of the API, with what each holds."""
    lines = ["| page | |", "|---|---|"]
    for page, text in api().items():
        held = ", ".join(
            f"`{line[4:].removeprefix('hindsight.')}`" for line in text.splitlines() if line.startswith(":::")
        )
        lines.append(f"| [{GROUPS[page][0]}]({page}.md) | {held} |")
    return "\n".join(lines)
