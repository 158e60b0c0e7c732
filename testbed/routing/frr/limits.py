"""Features that FRR, as used here, does not support. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from hpn.testbed.fabric.architectures import ARCHITECTURES
from hpn.testbed.fabric.architectures.architecture import Problem
from hpn.testbed.fabric.spec import BgpSpec, FabricSpec


def contradictions(spec: FabricSpec) -> Iterator[Problem]:
    """Yield the parts of a specification that it cannot honour, with a remedy."""
    if spec.bgp.bfd is not None:
        yield ("bgp", "bfd"), "bgp.bfd runs beside BIRD alone here; leave it out, or write daemon: bird"
    usual = BgpSpec()
    for key in ("connect_delay_s", "error_wait_min_s", "error_wait_max_s"):
        if getattr(spec.bgp, key) != getattr(usual, key):
            yield ("bgp", key), f"bgp.{key} means nothing to frr, whose waits are its own; leave it out"
    core_ports = ARCHITECTURES[spec.architecture].core_ports if spec.core_ports == "auto" else spec.core_ports
    if spec.pods > 1 and spec.cores and core_ports == "preset":
        text = "FRR does not fill the tables of the Cores' preset ports; write core_ports: hash, or bgp: {daemon: bird}"
        yield ("bgp", "daemon"), text
