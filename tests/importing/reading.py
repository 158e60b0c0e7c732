"""Text of a file becomes a wiring, as the command does it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hpn.testbed.errors import InputError
from hpn.testbed.importing.importer import Imported, SourceText
from hpn.testbed.importing.importers import import_network
from hpn.testbed.importing.wishes import wishes_of


def read(
    *files: tuple[str, str], role: Sequence[str] = (), leave: Sequence[str] = (), nic: Sequence[str] = ()
) -> Imported:
    """Import files, each a name and a text."""
    sources = [SourceText(name, text) for name, text in files]
    return import_network(sources, wishes_of(role, leave, nic))


def problems(
    *files: tuple[str, str], role: Sequence[str] = (), leave: Sequence[str] = (), nic: Sequence[str] = ()
) -> Sequence[str]:
    """The mistakes of files that cannot be imported."""
    with pytest.raises(InputError) as caught:
        read(*files, role=role, leave=leave, nic=nic)
    return caught.value.problems


def links(result: Imported) -> list[str]:
    """Each link as 'node:port node:port'."""
    return [" ".join(link.ends) for link in result.wiring.links]


def roles(result: Imported) -> dict[str, str]:
    """Role by node."""
    return {name: node.role for name, node in result.wiring.nodes.items()}


def nics(result: Imported) -> dict[str, dict[str, list[str]]]:
    """Ports by LAG of each host that names them."""
    return {
        name: {lag: nic.ports for lag, nic in node.nics.items()}
        for name, node in result.wiring.nodes.items()
        if node.nics
    }


def left(result: Imported) -> dict[str, tuple[str, ...]]:
    """Names by what was left."""
    return {each.what: each.names for each in result.left}
