"""Configurations of switches and hosts that a wiring names: read once, when the topology file is.

The text becomes part of the topology, so that a sandbox, a guest or another machine needs no file.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.wired.config_words import SwitchConfig, kind_of, words_of
from hpn.testbed.fabric.wired.host_configs import is_part
from hpn.testbed.fabric.wired.wiring_spec import ConfigFile, WiringSpec
from hpn.testbed.files.check import Mistakes
from hpn.testbed.files.document import Plain, Where, shorten

_MOST_BYTES, _MOST_FILES = 1_000_000, 256


ReadConfig = Callable[[str], str | dict[str, str]]
"""Reader of a configuration by the path that a topology file has: a file's text, or a folder's texts by name.

InputError for one that cannot be read.
"""


def below(folder: Path) -> ReadConfig:
    """Return a reader of files below a folder."""
    return partial(_content, folder)


def with_texts(mistakes: Mistakes, at: Where, data: dict[str, Plain], read_config: ReadConfig) -> dict[str, Plain]:
    """Return a topology's data with the text of each configuration in place of its path.

    A file that cannot be read is noted as a mistake.
    """
    wiring = data.get("wiring")
    nodes = wiring.get("nodes") if isinstance(wiring, dict) else None
    if not isinstance(wiring, dict) or not isinstance(nodes, dict):
        return data
    read: dict[str, Plain] = {}
    for name, node in nodes.items():
        read[name] = node
        if isinstance(node, dict) and isinstance(given := node.get("config"), str):
            try:
                found = read_config(given)
                parts: dict[str, Plain] = dict(found) if isinstance(found, dict) else {}
                text: dict[str, Plain] = {"text": found} if isinstance(found, str) else {"parts": parts}
                read[name] = {**node, "config": {"file": given.rstrip("/"), **text}}
            except InputError as error:
                mistakes.add_all((*at, "wiring", "nodes", name, "config"), error)
    return {**data, "wiring": {**wiring, "nodes": read}}


def _content(folder: Path, given: str) -> str | dict[str, str]:
    """Return a file's text, or those of a folder that a host's configuration may have. InputError for any other."""
    try:
        if (folder / given).is_dir() and (folder / given).resolve().is_relative_to(folder.resolve()):
            return _folder(folder, given)
    except (OSError, ValueError):
        pass  # reading it as a file tells why
    return _text(folder, given)


def _folder(folder: Path, given: str) -> dict[str, str]:
    """Return texts by their names below a folder, which may have folders of files itself."""
    return folder_texts(given, names_in(folder / given), lambda name: _text(folder, f"{given}/{name}"))


def names_in(folder: Path) -> list[str]:
    """Return the names of a host's files below its folder. OSError if it cannot be read."""
    found: list[str] = []
    for path in sorted(folder.iterdir()):
        below = sorted(path.iterdir()) if path.is_dir() else [path]
        found += [each.relative_to(folder).as_posix() for each in below]
    return [name for name in found if is_part(name)]


def folder_texts(given: str, names: Iterable[str], read: Callable[[str], str]) -> dict[str, str]:
    """Return the texts of those files that a host's configuration may have. InputError for too many or too much."""
    found: dict[str, str] = {}
    left = _MOST_BYTES
    for name in (each for each in names if is_part(each)):
        found[name] = read(name)
        left -= len(found[name])
        if left < 0 or len(found) > _MOST_FILES:
            limit = f"{_MOST_FILES} files or {_MOST_BYTES:,} characters"
            raise InputError(f"{shorten(given)} holds more than {limit}; write the folder of one host's configuration")
    if not found:
        raise InputError(f"{shorten(given)} is a folder without a host's configuration; write the path of a file")
    return found


def _text(folder: Path, given: str) -> str:
    """Return the content of a file below the folder. InputError for any other file."""
    path, shown = folder / given, shorten(given)
    try:
        if not path.resolve(strict=True).is_relative_to(folder.resolve()):
            raise InputError(f"{shown} leads out of the topology file's folder; copy it there")
        found = path.stat()
        if not stat.S_ISREG(found.st_mode) or found.st_size > _MOST_BYTES:
            raise InputError(f"{shown} is no file of at most {_MOST_BYTES:,} bytes; write the path of a configuration")
        return path.read_text()
    except OSError as error:
        raise InputError(f"{shown}: {error.strerror}; write a path from the topology file's folder") from None
    except (UnicodeDecodeError, ValueError):
        raise InputError(f"{shown} is no text; write the path of a configuration") from None


def configs_of(wiring: WiringSpec | None) -> Mapping[str, SwitchConfig]:
    """Return what the own configurations of switches say, by switch; those of a kind that hpn knows."""
    nodes = {} if wiring is None else wiring.nodes
    return {
        name: words_of(node.config.file, node.config.text)
        for name, node in nodes.items()
        if isinstance(node.config, ConfigFile) and kind_of(node.config.file) is not None
    }


def own_configs(fabric: Fabric) -> Mapping[str, SwitchConfig]:
    """Return the same for the switches of a fabric; empty where hpn configures all of them."""
    return configs_of(fabric.spec.wiring)
