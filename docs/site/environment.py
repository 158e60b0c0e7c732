"""The reference of environment variables: those that the code names, and those that stand for options."""

from __future__ import annotations

import click

from docs.site.commands import tree, variable
from docs.site.markdown import code, page, table
from hpn.cli import command_line
from hpn.testbed.variables import VARIABLES, Side


def environment() -> str:
    """The page of environment variables."""
    parts = (page(f"## {side}", _table(side)) for side in Side)
    return page("# Environment variables", *parts, _of_options())


def _table(side: Side) -> str:
    return table(("variable", ""), ((code(v.name), v.summary) for v in VARIABLES.values() if v.side is side))


def _of_options() -> str:
    context = click.Context(command_line, info_name="hpn", **command_line.context_settings)
    rows = [
        (code(name), code(f"{found.command_path} {max(param.opts, key=len)}"))
        for found in tree(context)
        for param in found.command.params
        if isinstance(param, click.Option) and not param.hidden and (name := variable(param, found))
    ]
    return (
        page("## Options", "Each stands for an option that is not written.", table(("variable", "option"), rows))
        if rows
        else ""
    )
