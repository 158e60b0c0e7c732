"""One module per architecture; each registers itself by being listed here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from testbed.fabric.architectures import dual_tor_clos, hpn, single_tor
from testbed.fabric.model import Fabric
from testbed.fabric.spec import FabricSpec


@dataclass(frozen=True, slots=True)
class Architecture:
    """A way to wire a fabric."""

    name: str
    summary: str
    build: Callable[[FabricSpec], Fabric]


ARCHITECTURES: Mapping[str, Architecture] = {
    module.NAME: Architecture(module.NAME, module.SUMMARY, module.build) for module in (hpn, dual_tor_clos, single_tor)
}
