"""Definition of an architecture. To add one, write a module alongside this and list it in the package. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.spec import CorePorts, FabricSpec

Problem = tuple[tuple[str | int, ...], str]
"""Location in a specification (keys from the top), and one line with the problem and its fix."""


@dataclass(frozen=True, slots=True)
class Preset:
    """A named ``FabricSpec`` and one line about its purpose."""

    summary: str
    spec: FabricSpec

    @property
    def name(self) -> str:
        """Name by which users select it."""
        return self.spec.name


def nothing_more(_spec: FabricSpec) -> Iterable[Problem]:
    """Return no contradictions: for an architecture without constraints of its own."""
    return ()


@dataclass(frozen=True, slots=True)
class Architecture:
    """A way to wire a fabric.

    ``meaningless``: keys that it cannot honour ('lacp.rate'), each with the remedy. ``contradictions``: conflicts
    between values that are valid elsewhere, each with the number to write. ``build`` only gets specifications without
    any.
    """

    name: str
    summary: str
    meaningless: Mapping[str, str]
    build: Callable[[FabricSpec], Fabric]
    contradictions: Callable[[FabricSpec], Iterable[Problem]] = nothing_more
    cores: bool = True  # Cores can join several pods; False: only one pod, and more are an error
    core_ports: CorePorts = "preset"  # how Cores pick a next hop, unless the topology sets it
    direct: bool = False  # its switches are joined with each other, without tiers above, in any number of pods
    own_keys: tuple[str, ...] = ()  # keys that mean something to the architectures that list them, and to no other
    presets: tuple[Preset, ...] = ()

    def presets_ports(self, spec: FabricSpec) -> bool:
        """Return True if Cores between pods pick next hops by preset ports, on a fabric of ``spec``."""
        chosen = self.core_ports if spec.core_ports == "auto" else spec.core_ports
        return spec.has_cores and chosen == "preset"
