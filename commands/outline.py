"""Outline of a command for completion: options, arguments and their completers, without its function.

Changes when a command or parameter has another property that completion depends on.
"""

from __future__ import annotations

from typing import Any

import click

from hpn.commands import completing
from hpn.commands.engine_option import OneOf
from hpn.commands.group import RenamedGroup

Outline = dict[str, Any]
"""Outline as JSON data."""


def outline(command: click.Command) -> Outline:
    """Return the outline of a command and its subcommands, for the cache."""
    below = getattr(command, "commands", {})
    return {
        "help": command.get_short_help_str(),
        "settings": dict(command.context_settings),
        "params": [_of(param) for param in command.params],
        "commands": {name: outline(found) for name, found in below.items()} if below else None,
    }


def command_of(name: str, told: Outline) -> click.Command:
    """Return a command made from its outline, for completion only; it does nothing."""
    params = [_param(each) for each in told["params"]]
    said: dict[str, Any] = {"params": params, "help": told["help"], "context_settings": told["settings"]}
    if told["commands"] is None:
        return click.Command(name, **said)
    return RenamedGroup(name, commands={each: command_of(each, of) for each, of in told["commands"].items()}, **said)


def _of(param: click.Parameter) -> Outline:
    completer = vars(param)["_custom_shell_complete"]
    own = completer is not None and vars(completing).get(completer.__name__) is completer
    found: Outline = {
        "name": param.name,
        "nargs": param.nargs,
        "completer": completer.__name__ if own else None,
        **_type_of(param.type),
    }
    if isinstance(param, click.Option):
        found |= {
            "opts": [*param.opts],
            "off": [*param.secondary_opts],
            "flag": param.is_flag,
            "bare": str(param.flag_value) if not param.is_flag and isinstance(param.flag_value, int | str) else None,
            "multiple": param.multiple,
            "hidden": param.hidden,
            "help": param.help,
        }
    return found


def _type_of(kind: click.ParamType[Any]) -> Outline:
    if isinstance(kind, click.Choice):
        return {"choices": [str(each) for each in kind.choices]}
    if isinstance(kind, OneOf):
        return {"choices": [*kind.words]}
    if isinstance(kind, click.Path):
        return {"path": [kind.file_okay, kind.dir_okay]}
    return {}


def _param(told: Outline) -> click.Parameter:
    completer = vars(completing)[told["completer"]] if told["completer"] else None
    shared: dict[str, Any] = {"nargs": told["nargs"], "shell_complete": completer, "type": _type(told)}
    if "opts" not in told:
        return click.Argument([told["name"]], required=False, **shared)
    names = [told["name"], "/".join(filter(None, [*told["opts"][:1], *told["off"][:1]])), *told["opts"][1:]]
    about = {"help": told["help"], "hidden": told["hidden"], "multiple": told["multiple"]}
    if told["flag"]:
        return click.Option(names, is_flag=True, **about)
    bare = {} if told["bare"] is None else {"is_flag": False, "flag_value": told["bare"]}
    return click.Option(names, **shared, **about, **bare)


def _type(told: Outline) -> click.ParamType[Any]:
    if "choices" in told:
        return click.Choice(told["choices"])
    if "path" in told:
        file_okay, dir_okay = told["path"]
        return click.Path(file_okay=file_okay, dir_okay=dir_okay)
    return click.STRING
