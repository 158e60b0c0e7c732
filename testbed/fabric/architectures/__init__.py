"""One module per architecture; those listed here can be used in topology files."""

from __future__ import annotations

from hpn.testbed.entries import Registry
from hpn.testbed.fabric.architectures import (
    dcn_plus,
    dragonfly,
    dual_tor_clos,
    fat_tree,
    full_mesh,
    hpn,
    rail_only,
    same_rail,
    single_tor,
    slim_fly,
    stacked_dual_tor,
    torus,
    wired,
)
from hpn.testbed.fabric.architectures.architecture import Architecture, Preset


class Architectures(Registry[Architecture]):
    """Architectures by name, and their presets."""

    def __init__(self, *entries: Architecture) -> None:
        """Register ``entries`` and their presets. TypeError as ``add``."""
        self.presets: Registry[Preset] = Registry("preset", lambda preset: preset.name, ())
        super().__init__("architecture", lambda architecture: architecture.name, entries, of=Architecture)

    def add(self, entry: Architecture) -> None:
        """Append an architecture and its presets. TypeError when a name is taken."""
        super().add(entry)
        for preset in entry.presets:
            self.presets.add(preset)


ARCHITECTURES = Architectures(
    hpn.ARCHITECTURE,
    dual_tor_clos.ARCHITECTURE,
    stacked_dual_tor.ARCHITECTURE,
    single_tor.ARCHITECTURE,
    dcn_plus.ARCHITECTURE,
    rail_only.ARCHITECTURE,
    fat_tree.ARCHITECTURE,
    same_rail.ARCHITECTURE,
    torus.ARCHITECTURE,
    full_mesh.ARCHITECTURE,
    dragonfly.ARCHITECTURE,
    slim_fly.ARCHITECTURE,
    wired.ARCHITECTURE,
)
