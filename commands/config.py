"""Options with a value from outside the command line, and its source."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import click

from hpn.commands import settings
from hpn.commands.group import LazyGroup
from hpn.commands.page import as_json_option, show
from hpn.results.text.tables import rows_table
from hpn.testbed.variables import VARIABLES


@dataclass(frozen=True, slots=True)
class _Setting:
    """An option with a value; ``source`` is a variable or a file."""

    command: str
    option: str
    value: str
    source: str


@click.command()
@click.pass_context
@as_json_option
def config(context: click.Context, as_json: bool) -> None:
    """Show which options have a value from the environment or a file, and from which.

    What is written on the command line goes first, then the variable HPN_<COMMAND>_<OPTION>, then hpn.toml in the
    working folder, then ~/.config/hpn/config.toml; docs/writing-drills.md.
    """
    root = context.find_root()
    found = settings.files()
    settings.check_commands(root.command.list_commands(root), root.command, found)  # type: ignore[attr-defined]
    rows = [*_settings(root, found)]
    read = [{"file": str(file.path), "state": file.state or "read"} for file in reversed(found)]
    unread = sorted(_unknown_variables(root))
    if as_json:
        click.echo(json.dumps({"files": read, "options": [asdict(row) for row in rows], "unknown": unread}, indent=2))
        return
    show(rows_table("files, the first goes before the second", read))
    empty = "no option has a value from the environment or a file; HPN_<COMMAND>_<OPTION> or hpn.toml gives one"
    show(rows_table("options", [asdict(row) for row in rows], empty))
    for name in unread:
        click.echo(f"nothing reads {name}; its option is spelt otherwise, or belongs to another version")


def _settings(root: click.Context, found: tuple[settings.File, ...]) -> Iterator[_Setting]:
    for path, command in _commands(root):
        said = [(file, settings.defaults(command, path, [file])) for file in reversed(found)] if path else []
        if not path:
            said = [(file, settings.root_defaults(command, [file])) for file in reversed(found)]
        for key, option in settings.options_of(command).items():
            value, source = _in_force(option, said)
            if source:
                yield _Setting(" ".join(("hpn", *path)), f"--{key}", value, source)


def _in_force(option: click.Option, said: list[tuple[settings.File, dict[str, Any]]]) -> tuple[str, str]:
    """Return the value of an option and its source; ('', '') if it has its default."""
    variable = option.envvar if isinstance(option.envvar, str) else ""
    if os.environ.get(variable):
        return os.environ[variable], variable
    for file, values in said:
        if option.name in values:
            return _text(values[str(option.name)]), str(file.path)
    return "", ""


def _text(value: object) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _commands(context: click.Context, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command with its path, groups before their commands."""
    command = context.command
    yield path, command
    below: Mapping[str, click.Command] = getattr(command, "commands", {})
    names = command.list_commands(context) if isinstance(command, LazyGroup) else sorted(below)
    for name in names:
        found = command.get_command(context, name)  # type: ignore[attr-defined]
        if found is not None:
            yield from _commands(click.Context(found, context, name), (*path, name))


def _unknown_variables(root: click.Context) -> set[str]:
    """Return variables that start with HPN_ but that no option reads."""
    ours = {str(option.envvar) for _, command in _commands(root) for option in settings.options_of(command).values()}
    return {name for name in os.environ if name.startswith("HPN_")} - ours - set(VARIABLES)
