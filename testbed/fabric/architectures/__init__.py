"""One module per architecture; listed here, it can be written in topology files."""

from __future__ import annotations

from testbed.entries import Registry
from testbed.fabric.architectures import (
    dcn_plus,
    dual_tor_clos,
    fat_tree,
    hpn,
    rail_only,
    single_tor,
    stacked_dual_tor,
)
from testbed.fabric.architectures.architecture import Architecture

ARCHITECTURES: Registry[Architecture] = Registry(
    "architecture",
    lambda architecture: architecture.name,
    (
        hpn.ARCHITECTURE,
        dual_tor_clos.ARCHITECTURE,
        stacked_dual_tor.ARCHITECTURE,
        single_tor.ARCHITECTURE,
        dcn_plus.ARCHITECTURE,
        rail_only.ARCHITECTURE,
        fat_tree.ARCHITECTURE,
    ),
)
