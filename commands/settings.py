"""Options from outside the command line: environment, ``hpn.toml`` here, and the user's own file.

Changes when options may come from somewhere else. The command line has priority. Then come HPN_<COMMAND>_<OPTION>,
``hpn.toml`` in the working folder, the user's ``config.toml``, and the option's default. A file that another user owns,
or that is world-writable, is ignored with a warning. Nothing here imports a command.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from hpn.testbed.errors import InputError

Table = Mapping[str, Any]

_LIMIT_BYTES = 256 * 1024
_OWN_ONLY = {"plugin", "yes", "force"}
"""Options that run code or delete data: entering a folder with ``hpn.toml`` must not enable them."""
_NEVER = {"help", "version"}


@dataclass(frozen=True, slots=True)
class File:
    """A settings file: its content, and why it is not read ('' if it is)."""

    path: Path
    own: bool  # the user's, not the working folder's
    state: str
    tables: Table

    @property
    def is_read(self) -> bool:
        """True if its settings apply."""
        return not self.state


def files() -> tuple[File, ...]:
    """Return both files, the one with priority last. InputError for invalid TOML."""
    home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    own = Path(os.path.expanduser(home), "hpn", "config.toml")
    return _file(own, own=True), _file(Path("hpn.toml"), own=False)


def _file(path: Path, *, own: bool) -> File:
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            why = _distrust(os.fstat(file.fileno()))
            if why:
                return File(path, own, why, {})
            return File(path, own, "", _tables(path, file.read(_LIMIT_BYTES)))
    except FileNotFoundError:
        return File(path, own, "not there", {})
    except OSError as error:
        return File(path, own, f"ignored: {error.strerror}", {})


def _distrust(found: os.stat_result) -> str:
    """Return why a file cannot be trusted; '' if it can."""
    if not stat.S_ISREG(found.st_mode):
        return "ignored: it is no regular file"
    if found.st_uid not in (os.geteuid(), 0):
        return "ignored: it is neither yours nor root's; take it over with chown, or remove it"
    if found.st_mode & stat.S_IWOTH:
        return "ignored: anybody may write it; chmod o-w it"
    if found.st_size >= _LIMIT_BYTES:
        return f"ignored: it is larger than {_LIMIT_BYTES >> 10} KiB"
    return ""


def _tables(path: Path, content: bytes) -> Table:
    import tomllib  # needed only if there is a file

    try:
        return tomllib.loads(content.decode())
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is no text in UTF-8; rewrite it") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        line = re.search(r" \(at line (\d+), column \d+\)", str(error))
        text = re.sub(r" \(at .*\)$", "", str(error))
        raise InputError(
            f'{path}:{line[1] if line else 1}: {text}; write TOML: [drill.run], then engine = "uml"'
        ) from error


def key_of(option: click.Option) -> str:
    """Return an option's key in files: its command-line name without dashes."""
    return max(option.opts, key=len).lstrip("-")


def options_of(command: click.Command) -> dict[str, click.Option]:
    """Return the options that may come from elsewhere, by ``key_of``."""
    found = (param for param in command.params if isinstance(param, click.Option))
    return {key_of(option): option for option in found if key_of(option) not in _NEVER}


def name_variables(command: click.Command, path: Sequence[str]) -> None:
    """Give every option of a command and its subcommands its environment variable: HPN_<COMMAND>_<OPTION>."""
    for key, option in options_of(command).items():
        if option.envvar is None:
            option.envvar = "_".join(("HPN", *path, key)).replace("-", "_").upper()
    for name, below in getattr(command, "commands", {}).items():
        name_variables(below, (*path, name))


def defaults(command: click.Command, path: Sequence[str], found: Sequence[File]) -> dict[str, Any]:
    """Return the files' settings for a command and its subcommands, as click's default map. InputError as ``_said``."""
    merged: dict[str, Any] = {}
    for file in found:
        table: Any = file.tables
        for name in path:
            table = table.get(name, {}) if isinstance(table, Mapping) else table
        _merge(merged, _said(command, path, table, file))
    return merged


def check_commands(known: Sequence[str], root: click.Command, found: Sequence[File]) -> None:
    """Raise InputError if a file names an unknown command, or an unknown option of hpn itself."""
    for file in found:
        for key in file.tables:
            if key not in known and key not in options_of(root):
                raise _unknown(file, (), key, [*known, *options_of(root)])


def root_defaults(root: click.Command, found: Sequence[File]) -> dict[str, Any]:
    """Return the files' settings for hpn's own options only."""
    merged: dict[str, Any] = {}
    for file in found:
        own = {key: value for key, value in file.tables.items() if key in options_of(root)}
        _merge(merged, _said(root, (), own, file))
    return merged


def _said(command: click.Command, path: Sequence[str], table: Any, file: File) -> dict[str, Any]:
    """Return one file's settings. InputError for an unknown key, and for a value that the option rejects."""
    if not isinstance(table, Mapping):
        raise InputError(f"{file.path}: {'.'.join(path)} is no table; write [{'.'.join(path)}] and its options below")
    below: Mapping[str, click.Command] = getattr(command, "commands", {})
    options, found = options_of(command), {}
    was: Mapping[str, str] = getattr(command, "WAS", {})
    for key, value in table.items():
        name = was.get(key, key)
        if name in below:
            found[name] = _said(below[name], (*path, key), value, file)
        elif key not in options:
            raise _unknown(file, path, key, [*below, *options])
        elif key in _OWN_ONLY and not file.own:
            raise InputError(
                f"{file.path}: {_place(path, key)} may only stand in your own {files()[0].path}; "
                "whoever enters a folder has not asked for that"
            )
        else:
            option = options[key]
            found[str(option.name)] = _value(command, option, value, f"{file.path}: {_place(path, key)}")
    return found


def _value(command: click.Command, option: click.Option, value: Any, where: str) -> Any:
    """Return a value of a file in the form of the command line. InputError if the option rejects it."""
    if option.is_flag:
        if not isinstance(value, bool):
            raise InputError(f"{where} is {value!r}; write true or false")
        return value
    many = option.multiple or option.nargs != 1
    given = value if isinstance(value, list) and many else [value]
    if not all(isinstance(each, str | int | float) and not isinstance(each, bool) for each in given):
        raise InputError(f"{where} is no {'list of texts or numbers' if many else 'text or number'}; write it so")
    texts = [str(each) for each in given]
    wanted: Any = texts if many else texts[0]
    try:
        option.type_cast_value(click.Context(command, resilient_parsing=False), wanted)
    except click.BadParameter as error:
        raise InputError(f"{where}: {error.message}") from error
    return wanted


def _place(path: Sequence[str], key: str) -> str:
    return f"[{'.'.join(path)}] {key}" if path else key


def _unknown(file: File, path: Sequence[str], key: str, known: Sequence[str]) -> InputError:
    from hpn.testbed.files.check import did_you_mean  # pydantic, which is needed only for mistakes
    from hpn.testbed.files.document import shorten

    what = "an option" if path else "a command or an option of hpn"
    hint = did_you_mean(key, known, "there are")
    return InputError(f"{file.path}: {_place(path, shorten(key, quoted=False))} is not {what}; {hint}")


def _merge(below: dict[str, Any], over: Mapping[str, Any]) -> None:
    for key, value in over.items():
        if isinstance(value, dict) and isinstance(below.get(key), dict):
            _merge(below[key], value)
        else:
            below[key] = value


def as_run() -> tuple[str, ...]:
    """Return the command line that repeats this command elsewhere, with options from outside the command line."""
    return (*sys.argv[1:], *_from_elsewhere(click.get_current_context(silent=True)))


def _from_elsewhere(context: click.Context | None) -> Iterator[str]:
    if context is None:
        return
    for option in options_of(context.command).values():
        name = str(option.name)
        source = context.get_parameter_source(name)
        if source not in (ParameterSource.ENVIRONMENT, ParameterSource.DEFAULT_MAP):
            continue
        value = context.params.get(name)
        flag = f"--{key_of(option)}"
        if value is True:
            yield flag
        elif isinstance(value, str | int | float | Path) and not isinstance(value, bool):
            yield from (flag, str(value))
