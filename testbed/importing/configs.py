"""Configurations that imported switches bring along: taken where the topology file can name them.

A topology file names configurations below its own folder only. So others are left, with the reason.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from hpn.testbed.fabric.wired.wiring_spec import WiredNode
from hpn.testbed.importing.found import Left
from hpn.testbed.importing.importer import Imported

_MISSING = "no such file; hpn writes the configuration of these switches"
_OUTSIDE = "not below the folders of the network's file and of --out; copy them there, or write --out beside the file"


def with_configs(result: Imported, source: Path, out: Path) -> Imported:
    """Return the import with paths of configurations as the topology file in folder ``out`` has them.

    ``source`` is the folder of the network's file. It follows symlinks, and leaves what they lead out of.
    """
    nodes: dict[str, WiredNode] = {}
    left: dict[str, list[str]] = {}
    for name, node in result.wiring.nodes.items():
        nodes[name] = node
        if isinstance(node.config, str):
            path = source / node.config
            why = _refused(path, source, out)
            config = None if why else Path(os.path.relpath(path, out)).as_posix()
            nodes[name] = node.model_copy(update={"config": config})
            if why:
                left.setdefault(why, []).append(f"{name} {node.config}")
    wiring = result.wiring.model_copy(update={"nodes": nodes})
    more = (Left("configurations", why, tuple(names)) for why, names in left.items())
    return replace(result, wiring=wiring, left=(*result.left, *more))


def _refused(path: Path, source: Path, out: Path) -> str:
    real = Path(os.path.realpath(path))
    if not all(real.is_relative_to(os.path.realpath(folder)) for folder in (source, out)):
        return _OUTSIDE
    return "" if real.is_file() else _MISSING
