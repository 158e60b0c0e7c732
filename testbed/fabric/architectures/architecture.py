"""What an architecture says of itself. A new one is one module beside this, and one line in the list of them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.spec import CorePorts, FabricSpec

Problem = tuple[tuple[str, ...], str]
"""Where in a specification it stands (the keys from the top), and one line with the way out."""


@dataclass(frozen=True, slots=True)
class Preset:
    """A named ``FabricSpec`` and one line saying what it is good for."""

    summary: str
    spec: FabricSpec

    @property
    def name(self) -> str:
        """The name it is asked for by."""
        return self.spec.name


def nothing_more(_spec: FabricSpec) -> Iterable[Problem]:
    """Of an architecture that takes any numbers."""
    return ()


@dataclass(frozen=True, slots=True)
class Architecture:
    """A way to wire a fabric.

    ``meaningless``: keys that it cannot honour ('lacp.rate'), each with the way out. ``contradictions``: what is wrong
    between values that are fine elsewhere, each with the number to write. Only what has neither is given to ``build``.
    """

    name: str
    summary: str
    meaningless: Mapping[str, str]
    build: Callable[[FabricSpec], Fabric]
    contradictions: Callable[[FabricSpec], Iterable[Problem]] = nothing_more
    cores: bool = True  # several pods can be joined by Cores; False: one pod, and whoever writes more is told
    core_ports: CorePorts = "preset"  # how Cores pick a next hop, unless a topology says
    presets: tuple[Preset, ...] = ()
