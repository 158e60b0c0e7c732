"""One module per architecture; each registers itself by being listed here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from testbed.fabric.architectures import dcn_plus, dual_tor_clos, hpn, rail_only, single_tor, stacked_dual_tor
from testbed.fabric.model import Fabric
from testbed.fabric.spec import FabricSpec


@dataclass(frozen=True, slots=True)
class Architecture:
    """A way to wire a fabric. ``meaningless``: keys that it cannot honour ('lacp.rate'), each with the way out."""

    name: str
    summary: str
    meaningless: Mapping[str, str]
    build: Callable[[FabricSpec], Fabric]


ARCHITECTURES: Mapping[str, Architecture] = {
    module.NAME: Architecture(module.NAME, module.SUMMARY, module.MEANINGLESS, module.build)
    for module in (hpn, dual_tor_clos, stacked_dual_tor, single_tor, dcn_plus, rail_only)
}
