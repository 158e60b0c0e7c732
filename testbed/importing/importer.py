"""Types of importing: the file's text, an importer of one format, and the result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hpn.testbed.fabric.wired.wiring_spec import WiringSpec
from hpn.testbed.importing.found import Found, Left


@dataclass(frozen=True, slots=True)
class SourceText:
    """One file: its name for messages, and its text."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Importer:
    """One format. ``recognises`` tells from name and text; ``read`` raises InputError with every mistake."""

    name: str
    summary: str
    recognises: Callable[[SourceText], bool]
    read: Callable[[Sequence[SourceText]], Found]


@dataclass(frozen=True, slots=True)
class Renamed:
    """An interface that Linux cannot have by that name."""

    node: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Imported:
    """A network as hpn can have it, and how it differs from the files."""

    wiring: WiringSpec
    left: tuple[Left, ...]
    renamed: tuple[Renamed, ...]
    notes: tuple[str, ...]
    name: str | None = None

    @property
    def roles(self) -> Mapping[str, int]:
        """Number of nodes by role."""
        return Counter(node.role for node in self.wiring.nodes.values())

    @property
    def has_asns(self) -> bool:
        """True if a switch has an ASN or a configuration of its own: the topology needs ``bgp: {asn: per-switch}``."""
        return any(node.asn is not None or node.config is not None for node in self.wiring.nodes.values())
