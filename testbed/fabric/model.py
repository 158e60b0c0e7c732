"""The fabric as data: nodes, ports, links and NICs, all frozen.

It defines everything that the lab sets up. ``testbed.fabric.build`` creates it from a ``FabricSpec``;
one module per architecture defines the wiring.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from functools import cached_property
from ipaddress import IPv4Address, ip_interface
from typing import TypeVar

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.bonding import Bonding, of_lacp
from hpn.testbed.fabric.spec import CorePorts, FabricSpec

T = TypeVar("T")


class Role(StrEnum):
    """Role of a node."""

    HOST = "host"
    TOR = "tor"
    AGG = "agg"
    CORE = "core"


class LinkKind(StrEnum):
    """Tier of a link."""

    ACCESS = "access"  # NIC port - ToR
    FABRIC = "fabric"  # ToR - Agg
    CORE = "core"  # Agg - Core
    PEER = "peer"  # between the two ToRs of a stack
    MESH = "mesh"  # between two switches of a direct network


@dataclass(frozen=True, slots=True)
class Node:
    """A host or switch. ``plane`` is None on hosts; ``segment`` and ``rail`` are None where they have no meaning.

    ``rail`` is that of a switch which serves one rail only.
    """

    name: str
    role: Role
    pod: int
    index: int
    segment: int | None = None
    rail: int | None = None
    plane: int | None = None
    spare: bool = False
    router_id: str | None = None  # switches: BGP router ID, dotted quad
    asn: int | None = None  # switches: one per tier and plane, of Aggs per pod too, unless each has its own
    ecmp_seed: int = 0  # switches: net.ipv4.fib_multipath_hash_seed
    lacp_system: str | None = None  # ToRs: LACP system ID, shared by the ToRs of a set

    @property
    def is_switch(self) -> bool:
        """True for ToR, Agg and Core."""
        return self.role is not Role.HOST

    @property
    def actor_system(self) -> str:
        """LACP system ID of a ToR. ValueError for a node without an LACP speaker of its own."""
        if self.lacp_system is None:
            raise ValueError(f"{self.name} is no ToR and has no LACP system ID")
        return self.lacp_system


@dataclass(frozen=True, slots=True)
class Port:
    """One end of a link: an interface of ``node``. ``address`` is 'a.b.c.d/len'.

    LAG member ports have none, nor has a link between switches that speak BGP unnumbered.
    """

    node: str
    name: str  # interface name, at most 15 characters
    ifindex: int  # unique in the whole lab: devices keep it when they move between namespaces
    mac: str
    address: str | None = None
    port_id: int = 0  # LACP port number; ToR ports carry HPN's offset (300, 600)
    key: int = 0  # LACP key of a ToR's access port: one per NIC, so that no other NIC's port joins its LAG

    @property
    def label(self) -> str:
        """'node:interface', unique in the fabric."""
        return f"{self.node}:{self.name}"

    @property
    def ip(self) -> str:
        """Address without its prefix length. ValueError for a port without one."""
        if self.address is None:
            raise ValueError(f"{self.label} has no address")
        return self.address.partition("/")[0]

    @property
    def gateway_order(self) -> tuple[int, int]:
        """Place of a route's next hop by this port among equal ones: by address; link-local ones, by MAC, come last."""
        if self.address is None:
            return 1, int(self.mac.replace(":", ""), 16)
        return 0, int(IPv4Address(self.ip))


@dataclass(frozen=True, slots=True)
class Link:
    """A cable. ``rate_bps`` is scaled.

    ``lower`` is the end nearer to the hosts, on a peer link the secondary's, on a mesh link that of the earlier switch.

    ``mtu``: bytes of an IP packet; None: the topology's.
    """

    name: str  # access: 'p0.s1.h3.r2.0'; above: 'p0.s1.t2.0-p0.a0.7', '...-p0.a0.7.1' when it is one of several
    kind: LinkKind
    plane: int
    rate_bps: int
    lower: Port
    upper: Port
    mtu: int | None = None

    def end_at(self, node: str) -> Port:
        """Return the end on ``node``."""
        return self.lower if self.lower.node == node else self.upper

    def far_end(self, node: str) -> Port:
        """Return the end that is not on ``node``."""
        return self.upper if self.lower.node == node else self.lower

    @property
    def is_routed(self) -> bool:
        """True between switches that speak BGP with each other. A peer link only carries the stack's own messages."""
        return self.kind not in {LinkKind.ACCESS, LinkKind.PEER}


@dataclass(frozen=True, slots=True)
class Nic:
    """One NIC of a host: a LAG over ``links`` (one per port), with one IP and one MAC."""

    name: str  # 'p0.s1.h3.r2'
    host: str
    rail: int
    lag: str  # the LAG interface: 'bond2'
    lag_ifindex: int
    inner: str  # nft datapath only, the far end of the LAG's veth: 'bond2i'
    inner_ifindex: int
    mac: str
    ip: str
    prefix_len: int
    gateway: str
    gateway_mac: str
    rail_network: str  # 'a.b.c.d/len': every NIC of this rail, reached through ``gateway``
    links: tuple[Link, ...]  # index = port; port k is of plane k modulo the number of planes
    bonding: Bonding | None = None  # by its host's own configuration; None: by the topology's lacp

    @property
    def subnet(self) -> str:
        """Subnet of the NIC, announced by its ToRs as the fallback: 'a.b.c.0/len'."""
        return str(ip_interface(f"{self.ip}/{self.prefix_len}").network)

    @property
    def rdma(self) -> str:
        """Name of its RDMA device, where the lab has Soft-RoCE: 'rxe-p0.s1.h3.r2', shown in all namespaces."""
        return f"rxe-{self.name}"


@dataclass(frozen=True, slots=True)
class Stack:
    """A stacked dual-ToR set, by names. The primary's control plane decides for both (paper section 4).

    The control planes hear each other over an out-of-band network, the data planes tell their state over the peer link.
    """

    primary: str
    secondary: str
    peer_link: str
    primary_version: str  # of the switch software; a stack of two versions may not hold
    secondary_version: str

    def other(self, tor: str) -> str:
        """Return the set's other ToR."""
        return self.secondary if tor == self.primary else self.primary


@dataclass(frozen=True)
class Fabric:
    """A complete fabric; ``links`` and ``nics`` include those of spare hosts."""

    spec: FabricSpec
    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    nics: tuple[Nic, ...]
    planes: int  # number of forwarding planes that share nothing, one per port of a NIC
    stacks: tuple[Stack, ...] = ()
    rails_meet: bool = True  # False: no switch leads from one rail to another
    core_ports: CorePorts = "preset"  # how Cores, where there are any, pick a next hop

    @cached_property
    def node_by_name(self) -> Mapping[str, Node]:
        """Name to node."""
        return {n.name: n for n in self.nodes}

    @cached_property
    def link_by_name(self) -> Mapping[str, Link]:
        """Name to link."""
        return {link.name: link for link in self.links}

    @cached_property
    def nic_by_name(self) -> Mapping[str, Nic]:
        """Name to NIC."""
        return {n.name: n for n in self.nics}

    @cached_property
    def nic_by_ip(self) -> Mapping[str, Nic]:
        """IP to NIC."""
        return {n.ip: n for n in self.nics}

    @cached_property
    def _bonding(self) -> Bonding:
        return of_lacp(self.spec.lacp)

    def bonding(self, nic: Nic) -> Bonding:
        """Return the options of a NIC's LAG."""
        return nic.bonding or self._bonding

    @cached_property
    def tors_of_subnet(self) -> Mapping[str, frozenset[str]]:
        """ToRs that announce each NIC subnet: all those with a NIC in it."""
        found: dict[str, set[str]] = {}
        for nic in self.nics:
            found.setdefault(nic.subnet, set()).update(link.upper.node for link in nic.links)
        return {subnet: frozenset(tors) for subnet, tors in found.items()}

    @cached_property
    def tor_port_by_lacp(self) -> Mapping[tuple[str | None, int, int], Port]:
        """ToR access port by its LACP system ID, key and port number."""
        ends = (link.upper for link in self.links if link.kind is LinkKind.ACCESS)
        return {(self.node_by_name[end.node].lacp_system, end.key, end.port_id): end for end in ends}

    @cached_property
    def stack_of(self) -> Mapping[str, Stack]:
        """Stack by ToR name; only ToRs that are stacked."""
        return {tor: stack for stack in self.stacks for tor in (stack.primary, stack.secondary)}

    @cached_property
    def pods(self) -> int:
        """Number of pods that have hosts."""
        return len({host.pod for host in self.hosts})

    @cached_property
    def segments(self) -> int:
        """Most segments of a pod."""
        return max(Counter(pod for pod, _ in {(host.pod, host.segment) for host in self.hosts}).values(), default=0)

    @cached_property
    def hosts_of_a_segment(self) -> int:
        """Most hosts of a segment, spare ones left out."""
        active = (host for host in self.hosts if not host.spare)
        return max(Counter((host.pod, host.segment) for host in active).values(), default=0)

    @cached_property
    def rails(self) -> int:
        """Most NICs of a host."""
        return max(map(len, self._nics_of.values()), default=0)

    @cached_property
    def hosts(self) -> tuple[Node, ...]:
        """Hosts, spare ones included."""
        return tuple(n for n in self.nodes if n.role is Role.HOST)

    @cached_property
    def active_nics(self) -> tuple[Nic, ...]:
        """NICs of hosts that are no spares."""
        return tuple(nic for nic in self.nics if not self.node(nic.host).spare)

    @cached_property
    def switches(self) -> tuple[Node, ...]:
        """ToRs, Aggs and Cores."""
        return tuple(n for n in self.nodes if n.is_switch)

    @cached_property
    def _links_of(self) -> Mapping[str, tuple[Link, ...]]:
        found: dict[str, list[Link]] = {n.name: [] for n in self.nodes}
        for link in self.links:
            found[link.lower.node].append(link)
            found[link.upper.node].append(link)
        return {name: tuple(links) for name, links in found.items()}

    @cached_property
    def _nics_of(self) -> Mapping[str, tuple[Nic, ...]]:
        found: dict[str, list[Nic]] = {}
        for nic in self.nics:
            found.setdefault(nic.host, []).append(nic)
        return {name: tuple(nics) for name, nics in found.items()}

    @cached_property
    def _nic_of_link(self) -> Mapping[str, Nic]:
        return {link.name: nic for nic in self.nics for link in nic.links}

    def node(self, name: str) -> Node:
        """Return the node of that name. InputError with the nearest names otherwise."""
        return _look_up(self.node_by_name, name, "node")

    @cached_property
    def _link_at(self) -> Mapping[str, Link]:
        return {end.label: link for link in self.links for end in (link.lower, link.upper)}

    def link(self, name: str) -> Link:
        """Return the link of that name, or at that port ('node:interface'). InputError with the nearest names."""
        return self._link_at.get(name) or _look_up(self.link_by_name, name, "link")

    def named(self, text: str) -> str:
        """Return the name of the link at a port ('node:interface'); any other text as it is."""
        link = self._link_at.get(text)
        return text if link is None else link.name

    @cached_property
    def _nic_at(self) -> Mapping[str, Nic]:
        """NICs by host where it has one, and by host and LAG: 'gpu-a', 'gpu-a:bond0'."""
        only = {host: nics[0] for host, nics in self._nics_of.items() if len(nics) == 1}
        return {**only, **{f"{nic.host}:{nic.lag}": nic for nic in self.nics}}

    def nic(self, name: str) -> Nic:
        """Return the NIC of that name, of that host if it has one, or 'host:lag'. InputError with the nearest names."""
        return self.nic_by_name.get(name) or self._nic_at.get(name) or _look_up(self.nic_by_name, name, "NIC")

    def part(self, name: str) -> Node | Nic | Link:
        """Return the node, NIC or link of that name. InputError with the nearest names otherwise."""
        parts: dict[str, Node | Nic | Link] = {
            **self._nic_at,
            **self._link_at,
            **self.link_by_name,
            **self.nic_by_name,
            **self.node_by_name,
        }
        return _look_up(parts, name, "node, NIC or link")

    def links_in(self, name: str) -> tuple[Link, ...]:
        """Return the link of that name, or all links of a NIC or node. InputError with the nearest names otherwise."""
        match part := self.part(name):
            case Link():
                return (part,)
            case Nic():
                return part.links
            case Node():
                return self.links_of(name)

    def links_of_all(self, names: Iterable[str]) -> list[Link]:
        """Return the union of ``links_in`` over ``names``, each link once."""
        return list(dict.fromkeys(link for name in names for link in self.links_in(name)))

    def links_of(self, node: str) -> tuple[Link, ...]:
        """Return every link with an end on ``node``."""
        return self._links_of[node]

    def nics_of(self, host: str) -> tuple[Nic, ...]:
        """Return the NICs of a host, in rail order (empty for a switch)."""
        return self._nics_of.get(host, ())

    def nic_of_link(self, link: str) -> Nic:
        """Return the NIC an access link belongs to (KeyError for links above the ToRs)."""
        return self._nic_of_link[link]


def _look_up(table: Mapping[str, T], name: str, what: str) -> T:
    if name in table:
        return table[name]
    near = get_close_matches(name, table, n=3) or list(table)[:3]
    raise InputError(f"no {what} {name!r} in this fabric; did you mean {', '.join(near)}?")
