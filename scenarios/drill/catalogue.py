"""Drills that come with hpn, and lookup by name or path."""

from __future__ import annotations

from pathlib import Path

from hpn.scenarios.drill.load import load_drill
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.drill.on_fabric import document_on, on_fabric, with_keys
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.files.check import did_you_mean
from hpn.testbed.files.document import Document, read, shorten

LIBRARY = Path(__file__).parent.parent / "library"


def names() -> list[str]:
    """Return the names of the library's drills, in order."""
    return sorted(path.stem for path in LIBRARY.glob("*.yaml"))


def ls() -> list[Drill]:
    """Return every drill of the library, read and checked."""
    return [load_drill(LIBRARY / f"{name}.yaml") for name in names()]


def find(name: str) -> Path:
    """Return the file of a library drill, or the given path. InputError with similar names for an unknown drill."""
    if "/" in name or name.endswith((".yaml", ".yml")):
        return Path(name)
    if name in names():
        return LIBRARY / f"{name}.yaml"
    raise InputError(
        f"no drill {shorten(name)} in the library; {did_you_mean(name, names(), 'it has')} (a file ends in .yaml)"
    )


def load(name: str, topology: FabricSpec | None = None, profile: str | None = None) -> Drill:
    """Return the drill of that name or path, on its own fabric or on ``topology``. InputError with every mistake.

    ``profile``: of its hosts, else as the topology says.
    """
    file = find(name)
    if topology is None:
        drill = load_drill(file)
        if profile in {None, drill.topology.profile}:
            return drill
        topology = drill.topology
    return on_fabric(
        read(file), file.parent, topology if profile is None else with_keys(topology, {"profile": profile})
    )


def document_of(name: str, loaded: Drill) -> Document:
    """Return the file of a drill that ``load`` has loaded, as it is on its topology. InputError as ``load``."""
    file = find(name)
    return read(file) if loaded.other_fabric is None else document_on(read(file), file.parent, loaded.topology)
