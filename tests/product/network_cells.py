"""Drills of the table network x fault: one fault each, the same for streams and for a job on every network. Pure.

Everything that decides a figure of the table is in this module: change it, and the runs are made again. Targets are
the parts that the first NIC of the fabric uses, so that rank 0 of the job is hit everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.load import topology_in
from hpn.testbed.fabric.model import Fabric, Role
from hpn.testbed.files.document import parse

HEALTHY_S, BROKEN_S, SETTLE_S = 2, 2, 5
IB_TIMEOUT = 20
"""NCCL's default: with seven retries a queue pair outlives every fault here."""
HOSTS, SIZE = 4, "2 MB"
"""Of the job, a GPU on each host; neighbours of its ring are in different racks."""


@dataclass(frozen=True, slots=True)
class Network:
    """A network at the size of a lab; ``topology``: keys of a topology file, ``job``: of a job there."""

    key: str
    title: str
    topology: str
    job: str = ""


_ONE_PORT = "lag: nft, lacp: {aggregate_wait_ms: 0}"
"""Of a NIC with one port, which in reality has no LAG: Linux bonding would wait 2 s whenever its port returns."""
_TRIMMING = (
    "switch: {buffer: 1 MB, classes: [{priority: 3, dscp: [3], weight: 15, limit: 150 KB,"
    " ecn: {kmin: 30 KB, kmax: 120 KB, pmax: 1}, trim: yes}]}"
)
"""Of MRC's switches; 150 KB are 12 ms of a port of 100G at 1:1000."""
NETWORKS = (
    Network("hpn", "HPN, two planes", "preset: tiny"),
    Network("four-planes", "four planes (Oracle)", "preset: tiny-four-planes"),
    Network(
        "eight-planes",
        "eight planes; jobs by multipath (MRC)",
        f"planes: 8, nic_port_rate: 100G, uplink_rate: 100G, srv6: {{}}, {_TRIMMING}",
        ", transport: multipath, congestion: nscc",
    ),
    Network("clos", "dual-ToR Clos", "preset: tiny, architecture: dual-tor-clos"),
    Network("dcn-plus", "DCN+", "preset: tiny-dcn-plus"),
    Network("stacked", "stacked dual-ToR", "preset: tiny-stacked"),
    Network("same-rail", "same-rail (Astral)", "preset: tiny-same-rail"),
    Network("megascale", "MegaScale", f"preset: tiny-megascale, {_ONE_PORT}"),
    Network("spine-leaf", "spine-leaf (Meta)", f"preset: tiny-spine-leaf, {_ONE_PORT}"),
    Network("superpod", "SuperPOD, Spectrum-X", f"preset: tiny-superpod, {_ONE_PORT}"),
    Network("rail-only", "rail-only (DeepSeek's planes)", f"preset: tiny-rail-only, {_ONE_PORT}"),
    Network("zones", "two zones (Fire-Flyer)", f"preset: tiny-zones, {_ONE_PORT}"),
    Network("fat-tree", "fat-tree", f"preset: tiny-fat-tree, {_ONE_PORT}"),
    Network("single-tor", "single-ToR", f"preset: tiny, architecture: single-tor, {_ONE_PORT}"),
    Network("torus", "torus (TPU v4)", f"preset: tiny-torus, {_ONE_PORT}"),
    Network("full-mesh", "full mesh (UB-Mesh)", f"preset: tiny-ub-mesh, {_ONE_PORT}"),
    Network("dragonfly", "Dragonfly", f"preset: tiny-dragonfly, {_ONE_PORT}"),
    Network("slim-fly", "Slim Fly", f"preset: tiny-slim-fly, {_ONE_PORT}"),
)


def _cut(fabric: Fabric) -> str:
    return next(link.name for link in fabric.links if link.lower.node == fabric.nics[0].host)


def _tor(fabric: Fabric) -> str:
    return fabric.link(_cut(fabric)).upper.node


def _onward(fabric: Fabric) -> str:
    """Return the first link from that ToR to another switch: to an Agg, or in direct networks to a ToR."""
    tor = _tor(fabric)
    return next(link.name for link in fabric.links_of(tor) if link.is_routed)


def _agg(fabric: Fabric) -> str | None:
    above = fabric.link(_onward(fabric)).upper.node
    return above if fabric.node(above).role is Role.AGG else None


@dataclass(frozen=True, slots=True)
class Fault:
    """``target``: the part of a fabric that fails; None where it has no such part."""

    key: str
    title: str
    kind: str
    target: Callable[[Fabric], str | None]


FAULTS = (
    Fault("cut", "NIC-ToR link", "link-down", _cut),
    Fault("tor", "ToR crash", "tor-crash", _tor),
    Fault("uplink", "link between switches", "link-down", _onward),
    Fault("agg", "Agg crash", "agg-crash", _agg),
)
TRAFFIC: Mapping[str, str] = {
    "streams": f"workload: {{pattern: permutation, queue_pairs: 4, load: 20 %, ib_timeout: {IB_TIMEOUT}",
    "job": f"job: {{collective: {{kind: all-reduce, algorithm: ring, size: {SIZE}, slices: 8}}, hosts: {HOSTS},"
    f" gpus: 1, order: interleaved, ib_timeout: {IB_TIMEOUT}",
}


@cache
def fabric_of(network: Network) -> Fabric:
    """Return the network's fabric."""
    return build(topology_in(parse(f"{{name: {network.key}, {network.topology}}}\n", network.key), network.key))


@dataclass(frozen=True, slots=True)
class Trial:
    """One fault on one network, under streams or a job."""

    network: Network
    fault: Fault
    traffic: str

    @property
    def name(self) -> str:
        """The drill's."""
        return f"{self.network.key}-{self.fault.key}-{self.traffic}"

    @property
    def drill(self) -> str:
        """Its file: that the lab is restored is all that it expects."""
        target = self.fault.target(fabric_of(self.network))
        return f"""\
drill: {self.name}
summary: {self.fault.title}, {self.network.title}
topology: {{{self.network.topology}}}
{TRAFFIC[self.traffic]}{self.network.job if self.traffic == "job" else ""}}}
timeline:
  healthy: {HEALTHY_S} s
  faults:
    - {{id: {self.fault.key}, fault: {self.fault.kind}, target: {target}, at: {HEALTHY_S} s, for: {BROKEN_S} s}}
  settle: {SETTLE_S} s
expect:
  - state_restored: yes
"""


def trials() -> Iterator[Trial]:
    """Yield the table's trials, fault by fault."""
    for traffic in TRAFFIC:
        for fault in FAULTS:
            for network in NETWORKS:
                if fault.target(fabric_of(network)) is not None:
                    yield Trial(network, fault, traffic)


def switches(network: Network) -> int:
    """Return how many switches the lab's network has."""
    return sum(node.role is not Role.HOST for node in fabric_of(network).nodes)
