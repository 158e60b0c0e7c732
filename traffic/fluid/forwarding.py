"""Forwarding of packets in a fabric with some failed links, as its switches would do it. PURE.

The routes are those of BGP (``testbed.routing.bird.config``). A NIC's host route is at every ToR with a live link to
it. An Agg learns it from those ToRs, or else through a Core from an Agg with another ASN, which is of another pod. A
ToR takes the shortest of the routes that its Aggs offer. With an ASN per switch, each takes the links to neighbours one
step nearer to those ToRs. Without a host route a packet follows the subnet's, to a ToR that drops it. Equal next hops
are in the order of their gateways' addresses, as BIRD passes them to the kernel (nest/rt-attr.c, nexthop_compare_node).
``hashes`` computes which of them a packet takes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpn.testbed.fabric.core_ports import preset_tables
from hpn.testbed.fabric.model import Fabric, Link, LinkKind, Nic, Node, Role
from hpn.testbed.routing.bird.config import ECMP_LIMIT
from hpn.testbed.routing.distances import Adjacency, Reach
from hpn.traffic.flows.flow import ROCE_PORT
from hpn.traffic.fluid.hashes import addresses, chosen, multipath_hash, words

Numbers = NDArray[np.int64]
Owners = frozenset[str]

MOST_HOPS = 6
"""Links of the longest path without a valley: host, ToR, Agg, Core, Agg, ToR, host."""
_NONE = -1
_Class = tuple[Owners, Owners]  # the ToRs that have a NIC's host route, and those that have its subnet's


@dataclass(frozen=True, eq=False)
class Routed:
    """The paths of packets: ``links`` are directed links as ``traffic.fluid.links`` numbers them, -1 for none.

    A packet that does not arrive was dropped after the last of its links, or on it if that has failed.
    """

    links: NDArray[np.int32]  # (packets, hops): MOST_HOPS, or more where paths have valleys
    arrives: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _Hop:
    link: int  # directed
    node: int  # that it leads to


class Forwarding:
    """The fabric's forwarding while the links named ``down`` have failed, after BGP has converged."""

    def __init__(self, fabric: Fabric, down: Collection[str] = ()) -> None:
        """Compute the forwarding. InputError when the fabric has no link of such a name."""
        self.fabric = fabric
        self.down = frozenset(fabric.link(name).name for name in down)
        self._number = {node.name: at for at, node in enumerate(fabric.nodes)}
        self._nic_number = {nic.name: at for at, nic in enumerate(fabric.nics)}
        self._link_number = {link.name: at for at, link in enumerate(fabric.links)}
        self._seeds = words(node.ecmp_seed for node in fabric.nodes)
        self._ips = addresses(nic.ip for nic in fabric.nics)
        self._classes: dict[_Class, int] = {}
        self._class_of = np.array([self._class(nic) for nic in fabric.nics], dtype=np.int64)
        self._class_at = tuple(self._classes)
        self._offers: dict[tuple[str, Owners], bool] = {}
        self._reached: dict[tuple[str, Owners], bool] = {}
        self._hops: dict[tuple[int, int, int], tuple[_Hop, ...]] = {}
        self._presets = {core.name: preset_tables(fabric, core) for core in fabric.switches if core.role is Role.CORE}
        self._adjacency = Adjacency(fabric, self.down)
        self._reaches: dict[Owners, Reach] = {}
        self._tors, self._towards = self._last_hops()

    def owners(self, nic: Nic) -> Owners:
        """Return the ToRs that have the host route of a NIC by a live link to it."""
        return frozenset(link.upper.node for link in nic.links if link.name not in self.down)

    def reaches(self, tor: str, nic: Nic) -> bool:
        """Return True if a ToR has the host route of a NIC, which it reports to hosts
        (``testbed.routing.pathcontrol``)."""
        key = (tor, self.owners(nic))
        if key not in self._reached:
            self._reached[key] = tor in key[1] or bool(self._links(self.fabric.node(tor), key[1]))
        return self._reached[key]

    def walk(self, src: Sequence[Nic], dst: Sequence[Nic], ports: Sequence[int], sports: Sequence[int]) -> Routed:
        """Return the paths of RoCE packets from NIC to NIC, one each, that leave by these ports of the sender."""
        targets = np.fromiter((self._nic_number[nic.name] for nic in dst), np.int64, len(dst))
        first = [nic.links[port] for nic, port in zip(src, ports, strict=True)]
        sources = np.fromiter((self._nic_number[nic.name] for nic in src), np.int64, len(src))
        hashed = (self._ips[sources], self._ips[targets], words(sports))
        most = self._most_hops(targets)
        links = np.full((len(src), most), _NONE, dtype=np.int32)
        links[:, 0] = [2 * self._link_number[link.name] for link in first]
        at = np.array([self._number[link.upper.node] for link in first], dtype=np.int64)
        arrives = np.zeros(len(src), dtype=np.bool_)
        going = np.flatnonzero(np.array([link.name not in self.down for link in first], dtype=np.bool_))
        for hop in range(1, most):
            going = self._deliver(going, at, targets, links, arrives, hop)
            if not len(going):
                break
            going = self._forward(going, at, targets, links, hashed, hop)
        return Routed(links, arrives)

    def _most_hops(self, targets: Numbers) -> int:
        """Return the links of the longest path to any of these NICs."""
        if not self.fabric.spec.bgp.valleys:
            return MOST_HOPS
        groups = [self._class_at[group] for group in np.unique(self._class_of[targets]).tolist()]
        far = (max(self._reach(tors).distance.values(), default=0) for group in groups for tors in group)
        return 2 + max(far, default=0)

    def _deliver(
        self,
        going: Numbers,
        at: Numbers,
        targets: Numbers,
        links: NDArray[np.int32],
        arrives: NDArray[np.bool_],
        hop: int,
    ) -> Numbers:
        """Deliver packets that are at a ToR of their target; return the rest."""
        towards = np.full(len(going), _NONE, dtype=np.int64)
        for port in range(self._tors.shape[1]):
            there = self._tors[targets[going], port] == at[going]
            towards[there] = self._towards[targets[going], port][there]
        done = towards != _NONE
        links[going[done], hop] = towards[done]
        arrives[going[done]] = True
        rest: Numbers = going[~done]
        return rest

    def _forward(
        self,
        going: Numbers,
        at: Numbers,
        targets: Numbers,
        links: NDArray[np.int32],
        hashed: tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64]],
        hop: int,
    ) -> Numbers:
        """Send each packet one switch further; return those for which the switch has a route."""
        ingress = np.where(self._is_preset(at[going]), links[going, hop - 1], _NONE)
        keys = np.stack((at[going], self._class_of[targets[going]], ingress), axis=1)
        unique, which = np.unique(keys, axis=0, return_inverse=True)
        which = which.reshape(-1)
        found = [self._hops_of(int(node), int(group), int(port)) for node, group, port in unique]
        many = np.array([len(hops) for hops in found], dtype=np.uint64)
        width = max(1, int(many.max()))
        table = np.full((len(found), width, 2), _NONE, dtype=np.int64)
        for row, equal in enumerate(found):
            for column, each in enumerate(equal):
                table[row, column] = each.link, each.node
        hops = many[which]
        src, dst, sports = (each[going] for each in hashed)
        taken = np.zeros(len(going), dtype=np.int64)
        choice = np.flatnonzero(hops > 1)
        if len(choice):
            dport = np.full(len(choice), ROCE_PORT, dtype=np.uint64)
            found_hash = multipath_hash(self._seeds[at[going[choice]]], src[choice], dst[choice], sports[choice], dport)
            taken[choice] = chosen(found_hash, hops[choice]).astype(np.int64)
        routed = hops > 0
        links[going[routed], hop] = table[which[routed], taken[routed], 0]
        at[going[routed]] = table[which[routed], taken[routed], 1]
        rest: Numbers = going[routed]
        return rest

    def _is_preset(self, nodes: Numbers) -> NDArray[np.bool_]:
        preset = np.zeros(len(self._number), dtype=np.bool_)
        preset[[self._number[name] for name, tables in self._presets.items() if tables]] = True
        found: NDArray[np.bool_] = preset[nodes]
        return found

    def _last_hops(self) -> tuple[Numbers, Numbers]:
        """Return, by NIC and port, the ToR's number and the directed link from it; -1 if that has failed or does not
        exist."""
        ports = max((len(nic.links) for nic in self.fabric.nics), default=1)
        tors, towards = (np.full((len(self.fabric.nics), ports), _NONE, dtype=np.int64) for _ in range(2))
        for at, nic in enumerate(self.fabric.nics):
            for port, link in enumerate(nic.links):
                if link.name not in self.down:
                    tors[at, port] = self._number[link.upper.node]
                    towards[at, port] = 2 * self._link_number[link.name] + 1
        return tors, towards

    def _class(self, nic: Nic) -> int:
        key = (self.owners(nic), self.fabric.tors_of_subnet[nic.subnet])
        return self._classes.setdefault(key, len(self._classes))

    def _hops_of(self, node: int, group: int, ingress: int) -> tuple[_Hop, ...]:
        """Return the next hops of a switch towards NICs of a class; ``ingress``: the directed link, at preset Cores."""
        key = (node, group, ingress)
        if key not in self._hops:
            here, (owners, wired) = self.fabric.nodes[node], self._class_at[group]
            preset = self._preset(here, owners, ingress) if ingress != _NONE else None
            links = [preset] if preset is not None else self._links(here, owners)
            if not links and here.name not in wired:
                links = self._links(here, wired)
            self._hops[key] = tuple(self._hop(here, link) for link in links)
        return self._hops[key]

    def _links(self, node: Node, owners: Owners) -> list[Link]:
        """Return the equal-cost links of a switch, in the kernel's order."""
        offered = list(self._offered(node, owners))
        least = min((length for _, length in offered), default=0)
        best = [link for link, length in offered if length == least]
        best.sort(key=lambda link: link.far_end(node.name).gateway_order)
        return best[:ECMP_LIMIT]

    def _offered(self, node: Node, owners: Owners) -> Iterator[tuple[Link, int]]:
        """Yield the links by which a switch learns the host route, with the length of the AS path."""
        if self.fabric.spec.bgp.valleys:
            yield from self._nearer(node, owners)
            return
        for link in self.fabric.links_of(node.name):
            if link.name in self.down or not link.is_routed:
                continue
            far, above = link.far_end(node.name).node, link.lower.node == node.name
            if not above:
                if far in owners or (node.role is Role.CORE and self._direct(far, owners)):
                    yield link, 1 if far in owners else 2
            elif node.role is Role.TOR:
                length = 2 if self._direct(far, owners) else 4
                if length == 2 or self._by_core(far, owners):
                    yield link, length
            elif self._serves(far, owners, node.asn):
                yield link, 3

    def _nearer(self, node: Node, owners: Owners) -> Iterator[tuple[Link, int]]:
        """Yield the same where every switch announces its best routes to all: the links to switches one step nearer."""
        reach = self._reach(owners)
        for link in self.fabric.links_of(node.name):
            live = link.is_routed and link.name not in self.down
            if live and reach.leads(node.name, link.far_end(node.name).node):
                yield link, reach.distance[node.name]

    def _reach(self, tors: Owners) -> Reach:
        if tors not in self._reaches:
            self._reaches[tors] = self._adjacency.reach(tors)
        return self._reaches[tors]

    def _direct(self, agg: str, owners: Owners) -> bool:
        """Return True if an Agg learns the host route from one of the ToRs that have it."""
        key = (agg, owners)
        if key not in self._offers:
            self._offers[key] = any(
                link.lower.node in owners and link.name not in self.down
                for link in self.fabric.links_of(agg)
                if link.kind is LinkKind.FABRIC
            )
        return self._offers[key]

    def _by_core(self, agg: str, owners: Owners) -> bool:
        asn = self.fabric.node(agg).asn
        return any(
            link.name not in self.down and self._serves(link.upper.node, owners, asn)
            for link in self.fabric.links_of(agg)
            if link.kind is LinkKind.CORE
        )

    def _serves(self, core: str, owners: Owners, asn: int | None) -> bool:
        """Return True if a Core offers the route to Aggs of ``asn``: not if it has it from such, whose ASN it has."""
        return any(
            link.name not in self.down
            and self.fabric.node(link.lower.node).asn != asn
            and self._direct(link.lower.node, owners)
            for link in self.fabric.links_of(core)
        )

    def _preset(self, core: Node, owners: Owners, ingress: int) -> Link | None:
        """Return the preset link for packets that enter there, if there is one and its Agg has the route."""
        entered = self.fabric.links[ingress // 2].end_at(core.name)
        pods = {self.fabric.node(tor).pod for tor in owners}
        for table in self._presets[core.name]:
            if entered in table.ingress.values():
                for pod in pods & set(table.egress):
                    link = self._link_at(core, table.egress[pod].name)
                    if link.name not in self.down and self._direct(link.lower.node, owners):
                        return link
        return None

    def _link_at(self, node: Node, port: str) -> Link:
        return next(link for link in self.fabric.links_of(node.name) if link.end_at(node.name).name == port)

    def _hop(self, node: Node, link: Link) -> _Hop:
        up = link.lower.node == node.name
        return _Hop(2 * self._link_number[link.name] + (not up), self._number[link.far_end(node.name).node])
