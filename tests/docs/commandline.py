"""A command line of a page held against the command itself, nothing executed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from hpn.cli import command_line
from hpn.scenarios.drill import catalogue
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.load import load_topology
from tests.docs.pages import ROOT

_SEPARATORS = {";", "&&", "||", "|", "&"}
_PLACEHOLDER = re.compile(r"[A-Z][A-Z_]*(\.\.\.)?|\.\.\.")
_OWN = ("/", ".yaml", ".yml")  # in the name of a file
_DRILLS: dict[tuple[str, ...], str] = {
    ("drill", "run"): "names",
    ("drill", "show"): "name",
    ("drill", "validate"): "names",
    ("drill", "compare"): "name",
    ("results", "trend"): "drill",
}
_TOPOLOGIES = {("plan",), ("up",), ("graph",), ("campaign", "run")}


def commands(shell: str) -> Iterator[list[str]]:
    """The commands in lines of shell, without comments; a backslash joins lines, ``sh -c`` is looked into."""
    for line in re.sub(r"\\\n\s*", " ", shell).splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        found: list[str] = []
        for word in (*lexer, ";"):
            if word not in _SEPARATORS:
                found.append(word)
                continue
            if found:
                yield found
            if found[-3:-1] == ["sh", "-c"]:
                yield from commands(found[-1])
            found = []


def targets() -> frozenset[str]:
    """What can be made."""
    return frozenset(re.findall(r"^([a-z][a-z-]*):(?!=)", (ROOT / "Makefile").read_text(), re.M))


def mistakes(words: Sequence[str], *, whole: bool = True) -> list[str]:
    """What is wrong with a command line of hpn or make; others have none.

    One that is not ``whole`` only mentions a command: arguments may be missing, or be words in capitals. What a plug-in
    brings is not known here.
    """
    name = Path(words[0]).name
    if name == "make":
        unknown = [word for word in words[1:] if "=" not in word and word not in targets()]
        return [f"no target {word} in the Makefile" for word in unknown]
    found = [f"no file {word}" for word in words if _is_of_ours(word) and not (ROOT / word).exists()]
    if name == "hpn":
        given = [word for word in words[1:] if whole or word != "..."]
        found += _of_command(command_line, given, click.Context(command_line, info_name="hpn"), whole=whole)
    return found


def _is_of_ours(word: str) -> bool:
    return re.fullmatch(r"(examples|scenarios|docs|tests|\.ci)/[\w./-]+", word) is not None


def _of_command(command: click.Command, words: list[str], context: click.Context, *, whole: bool) -> list[str]:
    try:
        given, rest, _ = command.make_parser(context).parse_args(list(words))
        context.params = given
        problems = [problem for param in command.params for problem in _of_param(param, given, context, whole=whole)]
    except click.BadOptionUsage as error:
        return [error.format_message()] if whole or not words[-1].startswith("--") else []
    except click.UsageError as error:
        return [error.format_message()]
    if isinstance(command, click.Group):
        return problems + _of_group(command, rest, context, whole=whole)
    if rest:
        problems.append(f"{context.command_path} takes no {' '.join(rest)}")
    return problems + list(_names(context, given, whole=whole))


def _of_group(group: click.Group, rest: list[str], context: click.Context, *, whole: bool) -> list[str]:
    if not rest:
        return [f"{context.command_path} alone does nothing"] if whole else []
    if context.parent is None and f'Command("{rest[0]}"' in _plugins():
        return []
    found = group.get_command(context, rest[0])
    if found is None:
        return [f"no command {context.command_path} {rest[0]}"]
    inner = click.Context(found, context, rest[0], **found.context_settings)
    return _of_command(found, rest[1:], inner, whole=whole)


def _plugins() -> str:
    return "".join(path.read_text() for path in (ROOT / "examples" / "plugins").glob("*.py"))


def _of_param(
    param: click.Parameter, given: dict[str, object], context: click.Context, *, whole: bool
) -> Iterator[str]:
    value = given.get(str(param.name))
    if not isinstance(value, (str, tuple, list)) or not value:
        if param.required and whole:
            yield f"{context.command_path} lacks {param.human_readable_name}"
        return
    values = [value] if isinstance(value, str) else list(value)
    if isinstance(param.type, (click.Path, click.File)) or (not whole and _are_placeholders(values)):
        return
    if context.find_root().params.get("plugin") is None:
        param.type_cast_value(context, value)


def _are_placeholders(values: Sequence[object]) -> bool:
    return all(_PLACEHOLDER.fullmatch(str(value)) for value in values)


def _names(context: click.Context, given: dict[str, object], *, whole: bool) -> Iterator[str]:
    """What is wrong with names of drills and presets; files are a reader's own."""
    path = tuple(context.command_path.split()[1:])
    key = _DRILLS.get(path) or ("topology" if path in _TOPOLOGIES else "")
    value = given.get(key)
    for name in [value] if isinstance(value, str) else value if isinstance(value, (tuple, list)) else ():
        if not isinstance(name, str) or any(mark in name for mark in _OWN) or (not whole and _are_placeholders([name])):
            continue
        try:
            load_topology(name) if key == "topology" else catalogue.find(name)
        except InputError as error:
            yield str(error)
