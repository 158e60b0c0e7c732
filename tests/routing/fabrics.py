"""Small fabrics that the routing tests share."""

from __future__ import annotations

from testbed.fabric.build import build
from testbed.fabric.model import Fabric
from testbed.fabric.presets import PRESETS
from testbed.fabric.spec import FabricSpec


def hpn(*, hosts: int = 1, aggs: int = 2) -> Fabric:
    """Two segments, one rail, two planes."""
    return build(FabricSpec(hosts=hosts, aggs=aggs))


def clos(*, hosts: int = 1, aggs: int = 2) -> Fabric:
    """Two segments, one rail, both ToRs of a set in one plane."""
    return build(FabricSpec(architecture="dual-tor-clos", hosts=hosts, aggs=aggs))


def pods() -> Fabric:
    """Two pods under a core tier."""
    return build(FabricSpec(pods=2, segments=1, hosts=1, aggs=2, cores=2))


def stacked() -> Fabric:
    """Stacked dual ToRs with a peer link per set, below one plane."""
    return build(PRESETS["tiny-stacked"].spec)


def dcn() -> Fabric:
    """Three tiers, all NICs of a host on one ToR set, parallel uplinks."""
    return build(PRESETS["tiny-dcn-plus"].spec)


def rails() -> Fabric:
    """Two rails that no switch joins."""
    return build(PRESETS["tiny-rail-only"].spec)
