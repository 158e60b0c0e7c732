"""The reference of commands, read from the commands themselves."""

from __future__ import annotations

from collections.abc import Iterator

import click

from docs.site.markdown import code, page, plain, prose, table
from hpn.cli import command_line

_INTRODUCTION = """# Commands

What `--help` says of each. Exit codes: 0 pass, 1 fail, 2 usage or file error, 3 this machine cannot run it,
4 inconclusive. Options of `hpn` itself stand before the command."""


def commands() -> str:
    """The page of every command."""
    context = click.Context(command_line, info_name="hpn", **command_line.context_settings)
    return page(_INTRODUCTION, *(_command(found) for found in tree(context)))


def tree(context: click.Context) -> Iterator[click.Context]:
    """The context of a command and those of the commands below it, hidden ones left out."""
    yield context
    if not isinstance(context.command, click.Group):
        return
    for name in context.command.list_commands(context):
        command = context.command.get_command(context, name)
        if command is not None and not command.hidden:
            yield from tree(click.Context(command, context, name, **command.context_settings))


def variable(option: click.Parameter, context: click.Context) -> str:
    """The environment variable that stands for an option; '' where there is none."""
    named = option.envvar
    if named:
        return named if isinstance(named, str) else ", ".join(named)
    prefix = context.auto_envvar_prefix
    automatic = isinstance(option, click.Option) and option.allow_from_autoenv and prefix is not None
    return f"{prefix}_{str(option.name).upper()}" if automatic else ""


def _command(context: click.Context) -> str:
    command = context.command
    usage = " ".join((context.command_path, *command.collect_usage_pieces(context)))
    return page(
        f"## {context.command_path}",
        prose(command.help or ""),
        f"```text\n{usage}\n```",
        _options(context),
    )


def _options(context: click.Context) -> str:
    found = [
        (param, record)
        for param in context.command.params
        if (record := param.get_help_record(context)) is not None and record[1]
    ]
    by_variable = [variable(param, context) for param, _ in found]
    head = ("option", "", *(["environment"] if any(by_variable) else []))
    rows = (
        (code(words), plain(said), *([code(name)] if any(by_variable) else []))
        for (_, (words, said)), name in zip(found, by_variable, strict=True)
    )
    return table(head, rows)
