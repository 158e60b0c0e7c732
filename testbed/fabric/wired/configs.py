"""Configurations of switches that a wiring names: read once, when the topology file is.

The text becomes part of the topology, so that a sandbox, a guest or another machine needs no file.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.wired.config_words import KINDS, SwitchConfig, words_of
from hpn.testbed.fabric.wired.wiring_spec import ConfigFile, WiringSpec
from hpn.testbed.files.check import Mistakes
from hpn.testbed.files.document import Plain, Where, shorten

_MOST_BYTES = 1_000_000


ReadConfig = Callable[[str], str]
"""Reader of a configuration by the path that a topology file has. InputError for one that cannot be read."""


def below(folder: Path) -> ReadConfig:
    """Return a reader of files below a folder."""
    return partial(_text, folder)


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
                read[name] = {**node, "config": {"file": given, "text": read_config(given)}}
            except InputError as error:
                mistakes.add_all((*at, "wiring", "nodes", name, "config"), error)
    return {**data, "wiring": {**wiring, "nodes": read}}


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
        if isinstance(node.config, ConfigFile) and Path(node.config.file).name in KINDS
    }


def own_configs(fabric: Fabric) -> Mapping[str, SwitchConfig]:
    """Return the same for the switches of a fabric; empty where hpn configures all of them."""
    return configs_of(fabric.spec.wiring)
