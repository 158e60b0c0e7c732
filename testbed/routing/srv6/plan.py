"""SRv6 of a fabric: the static table of every switch and host, and every path with its carrier. Pure.

A path consumes one uSID for each link after the first. Where one link leads to the next switch, its uN picks the link
and the switch shifts it out (End). Where several do, the uA of this end picks one, and this switch shifts it out
(End.X). The last uSID is the NIC's, whose host removes the outer header (End.DT6). A host's kernel encapsulates its own
packets: the mark of a socket says by which port they leave.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.model import Fabric, Link, LinkKind, Nic, Port
from hpn.testbed.fabric.srv6_spec import Srv6Spec
from hpn.testbed.routing.srv6 import numbers
from hpn.testbed.routing.srv6.numbers import MOST_USIDS, Numbers
from hpn.testbed.routing.srv6.switch_paths import ROUTINGS, SwitchGraph, end_of

_FIRST_TABLE = 100_000  # after the tables of NICs


class Behaviour(StrEnum):
    """Treatment of a packet whose destination has an entry's prefix; names of RFC 8986."""

    END = "End"  # shift the uSID out, look up the next one
    END_X = "End.X"  # shift the uSID out, forward by a given link
    END_DT6 = "End.DT6"  # remove the outer header, deliver what is inside
    ROUTE = "route"  # forward


@dataclass(frozen=True, slots=True)
class Entry:
    """A route of a switch or host. ``port`` and ``mac``: where it sends; '' where it only shifts or delivers.

    ``nh6``: the next hop of End.X, which has an entry of its own. ``gateway``: next hop of a plain route. ``table``: of
    a host's port, looked up for sockets with that mark; 0 is the main table.
    """

    prefix: str
    behaviour: Behaviour
    port: str = ""
    ifindex: int = 0
    gateway: str = ""
    mac: str = ""
    nh6: str = ""
    table: int = 0


@dataclass(frozen=True, slots=True)
class UsidPath:
    """A path from ``port`` (index) of a NIC. ``links`` are names, in order; ``carrier`` is an IPv6 address."""

    port: int
    links: tuple[str, ...]
    usids: tuple[int, ...]
    carrier: str


class UsidPlan:
    """SRv6 of one fabric. Making it costs a pass over nodes and links; tables and paths are computed when asked for."""

    def __init__(self, fabric: Fabric) -> None:
        """Number the parts. InputError where 16 bits are too few."""
        self.fabric = fabric
        self.numbers: Numbers = numbers.numbered(fabric)
        self.graph = SwitchGraph(fabric)
        self._routing = ROUTINGS[(fabric.spec.srv6 or Srv6Spec()).routing]

    @cached_property
    def inner(self) -> Mapping[str, str]:
        """IPv6 address of each NIC, by name."""
        return numbers.inner_addresses(self.fabric)

    def table(self, node: str) -> tuple[Entry, ...]:
        """Return the entries of a switch or host; no prefix is twice in a table."""
        if not self.fabric.node(node).is_switch:
            ends = map(self._end_entry, self.fabric.nics_of(node))
            return (*ends, *(entry for link in self.fabric.links_of(node) for entry in self.entries_at(link, node)))
        own = Entry(self.numbers.prefix(self.numbers.node[node]), Behaviour.END)
        return (own, *(entry for link in self.fabric.links_of(node) for entry in self.entries_at(link, node)))

    def entries_at(self, link: Link, node: str) -> tuple[Entry, ...]:
        """Return the entries of a switch or host that send by its end of ``link``."""
        here, there = link.end_at(node), link.far_end(node)
        if link.kind is LinkKind.ACCESS and here is link.lower:
            out, table = (here.name, here.ifindex), port_table(here)
            return (Entry(self.numbers.whole, Behaviour.ROUTE, *out, numbers.gateway(there), there.mac, table=table),)
        if link.kind is LinkKind.PEER:
            return ()
        out, gateway = (here.name, here.ifindex), numbers.gateway(there)
        own = self.numbers.adjacency.get(here.label)
        if own is None:
            return (Entry(self.numbers.prefix(self._far_usid(link, node)), Behaviour.ROUTE, *out, gateway, there.mac),)
        nh6 = numbers.adjacent(there)
        return (
            Entry(f"{nh6}/128", Behaviour.ROUTE, *out, gateway, there.mac),
            Entry(self.numbers.prefix(own), Behaviour.END_X, *out, nh6=nh6),
        )

    def _end_entry(self, nic: Nic) -> Entry:
        return Entry(self.numbers.prefix(self.numbers.nic[nic.name]), Behaviour.END_DT6, nic.lag, nic.lag_ifindex)

    def _far_usid(self, link: Link, node: str) -> int:
        """Return the uSID of the far end: a switch's uN, or a NIC's."""
        if link.kind is LinkKind.ACCESS:
            return self.numbers.nic[self.fabric.nic_of_link(link.name).name]
        return self.numbers.node[link.far_end(node).node]

    def paths(self, src: str, dst: str) -> tuple[UsidPath, ...]:
        """Return every path from each port of NIC ``src`` to NIC ``dst``, in the order of ports and links.

        InputError for a NIC that does not exist, for one NIC twice, and for more uSIDs than a carrier holds.
        """
        source, target = self.fabric.nic(src), self.fabric.nic(dst)
        if source is target:
            raise InputError(f"{source.name} is at both ends; name two NICs")
        return tuple(
            self._path(port, (first, *links), target)
            for port, first in enumerate(source.links)
            for links in self._onward(first.upper.node, target)
        )

    def _onward(self, tor: str, target: Nic) -> Iterator[tuple[Link, ...]]:
        """Yield the paths from a ToR to a NIC."""
        for links in self._routing(self.graph, tor, tors_of(target), MOST_USIDS - 1 - self._last_usids(target)):
            end = end_of(tor, links)
            yield from ((*links, link) for link in target.links if link.upper.node == end)

    def _last_usids(self, target: Nic) -> bool:
        """Return True if the ToRs of a NIC pick one of several links to it."""
        return any(link.upper.label in self.numbers.adjacency for link in target.links)

    def longest(self) -> int:
        """Return the uSIDs of the longest of all shortest paths between two NICs."""
        tors = {link.upper.node for link in self.fabric.links if link.kind is LinkKind.ACCESS}
        found = 0
        for nic in self.fabric.nics:
            distance = self.graph.distances(tors_of(nic))
            found = max(found, max(distance.get(tor, 0) for tor in tors) + self._last_usids(nic) + 1)
        return found

    def _path(self, port: int, links: tuple[Link, ...], target: Nic) -> UsidPath:
        usids = self._usids(links, target)
        if len(usids) > MOST_USIDS:
            text = f"a path to {target.name} needs {len(usids)} uSIDs, and a carrier holds {MOST_USIDS}"
            raise InputError(f"srv6: {text}; take a network with shorter paths")
        return UsidPath(port, tuple(link.name for link in links), usids, self.numbers.carrier(usids))

    def _usids(self, links: tuple[Link, ...], target: Nic) -> tuple[int, ...]:
        """Return the uSIDs of a path; the first link, which the sender picks by its port, needs none."""
        node, found = links[0].upper.node, list[int]()
        for link in links[1:]:
            own = self.numbers.adjacency.get(link.end_at(node).label)
            if own is not None:
                found.append(own)
            elif link.is_routed:
                found.append(self._far_usid(link, node))
            node = link.far_end(node).node
        return (*found, self.numbers.nic[target.name])


def tors_of(nic: Nic) -> frozenset[str]:
    """Return the ToRs of a NIC."""
    return frozenset(link.upper.node for link in nic.links)


def port_table(port: Port) -> int:
    """Return the routing table of a host's port, and the mark of sockets that send by it."""
    return _FIRST_TABLE + port.ifindex


def paths(fabric: Fabric, src: str, dst: str) -> tuple[UsidPath, ...]:
    """Return every path between two NICs. For many pairs, make one ``UsidPlan`` and ask that."""
    return UsidPlan(fabric).paths(src, dst)
