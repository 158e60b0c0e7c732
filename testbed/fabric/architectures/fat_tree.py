"""Fat tree: k pods of k/2 ToRs and k/2 Aggs below (k/2)^2 Cores, all links alike (Al-Fares, Loukissas, Vahdat, 2008).

A scalable, commodity data center network architecture, SIGCOMM 2008, doi 10.1145/1402958.1402967. Every switch has k
ports. Agg i of every pod reaches the i-th group of k/2 Cores, so that each Core has one link to each pod. A ToR is a
segment, and a host has one NIC with one port. That paper routes by two tables of prefixes and suffixes; here it is ECMP
by the 5-tuple, as in every fat tree that is built today.
"""

from __future__ import annotations

from collections.abc import Iterator

from hpn.testbed.fabric.architectures.architecture import Architecture, Preset, Problem
from hpn.testbed.fabric.architectures.wiring import NOT_STACKED, ONE_PLANE, ONE_PORT, ONE_TOR, clos, racks
from hpn.testbed.fabric.builder import Builder
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.spec import FabricSpec


def _build(spec: FabricSpec) -> Fabric:
    """Build one ToR per segment; the NIC has one port of twice the port rate, as in single-ToR."""
    builder = Builder(spec)
    clos(builder, racks(builder, tors=1, planes=1), planes=1)
    return builder.finish(planes=1, core_ports=ARCHITECTURE.core_ports)


def _contradictions(spec: FabricSpec) -> Iterator[Problem]:
    """Yield the numbers and rates that differ from those that k, the number of pods, implies."""
    k, half = spec.pods, spec.pods // 2
    if k % 2:
        yield ("pods",), f"pods is {k}, which is the k of a fat tree and must be even; write {k + 1}"
        return
    counts = {
        "segments": (half, "k/2 ToRs per pod"),
        "hosts": (half, "k/2 hosts per ToR"),
        "spare_hosts": (0, "no port left for spare hosts"),
        "rails": (1, "one NIC per host"),
        "aggs": (half, "k/2 Aggs per pod"),
        "uplinks": (1, "one link from ToR to Agg"),
        "cores": (half * half, "(k/2)^2 Cores"),
        "core_groups": (half, "k/2 groups of Cores, one for each Agg of a pod"),
    }
    for key, (count, why) in counts.items():
        given = getattr(spec, key)
        if given != count:
            yield (key,), f"{key} is {given}, but a fat tree of {k} pods has {why}; write {count}"
    rate = 2 * spec.nic_port_rate
    for key in ("uplink_rate", "core_rate"):
        given = getattr(spec, key)
        if given != rate:
            text = f"{key} is {given / 1e9:g}G, but all links of a fat tree are alike and a NIC's one port has"
            yield (key,), f"{text} twice nic_port_rate; write {rate / 1e9:g}G"


ARCHITECTURE = Architecture(
    "fat-tree",
    "k-ary fat tree: k pods of k/2 ToRs and k/2 Aggs below (k/2)^2 Cores, all links alike",
    {"planes": ONE_PLANE, "nic_ports": ONE_PORT, "stack": NOT_STACKED, "lacp.port_id_offset": ONE_TOR, "nic": ONE_PORT},
    _build,
    _contradictions,
    core_ports="hash",
    presets=(
        Preset(
            "16 hosts in a fat tree of 4-port switches: 4 pods, 8 ToRs, 8 Aggs, 4 Cores, 4 paths between pods",
            FabricSpec(
                name="tiny-fat-tree",
                architecture="fat-tree",
                pods=4,
                segments=2,
                hosts=2,
                aggs=2,
                cores=4,
                core_groups=2,
            ),
        ),
    ),
)
