"""Small fabrics that the routing tests share."""

from __future__ import annotations

from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.fabric.spec import BgpSpec, CorePorts, FabricSpec


def hpn(*, hosts: int = 1, aggs: int = 2, daemon: str = "bird") -> Fabric:
    """Two segments, one rail, two planes."""
    return build(FabricSpec(hosts=hosts, aggs=aggs, bgp=BgpSpec(daemon=daemon)))


def clos(*, hosts: int = 1, aggs: int = 2, daemon: str = "bird") -> Fabric:
    """Two segments, one rail, both ToRs of a set in one plane."""
    return build(FabricSpec(architecture="dual-tor-clos", hosts=hosts, aggs=aggs, bgp=BgpSpec(daemon=daemon)))


def pods(*, core_ports: CorePorts = "preset", daemon: str = "bird") -> Fabric:
    """Two pods under a core tier."""
    bgp = BgpSpec(daemon=daemon)
    return build(FabricSpec(pods=2, segments=1, hosts=1, aggs=2, cores=2, core_ports=core_ports, bgp=bgp))


def stacked() -> Fabric:
    """Stacked dual ToRs with a peer link per set, below one plane."""
    return build(PRESETS["tiny-stacked"].spec)


def dcn() -> Fabric:
    """Three tiers, all NICs of a host on one ToR set, parallel uplinks."""
    return build(PRESETS["tiny-dcn-plus"].spec)


def rails() -> Fabric:
    """Two rails that no switch joins."""
    return build(PRESETS["tiny-rail-only"].spec)
