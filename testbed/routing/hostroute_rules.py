"""Rules for a ToR's /32 host routes, as a pure state machine over input from its kernel and its LACP.

An address has a host route through a port if and only if all of these hold. The port has carrier and is usable (LACP
collects), and its kernel neighbour entry is valid. The address lies in the NIC subnet of the port and is not the
gateway, and no other such port claimed it earlier. So no host can take an address over from a live one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

from hpn.testbed.kernel.rtnetlink.rtnl import NUD_DELAY, NUD_PERMANENT, NUD_PROBE, NUD_REACHABLE, NUD_STALE
from hpn.testbed.kernel.rtnetlink.rtnl_events import LinkEvent, NeighbourEvent

VALID = NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT
"""Neighbour states in which the kernel would send to the entry's MAC."""


@dataclass(frozen=True, slots=True)
class AccessPort:
    """A ToR port towards a NIC: ``subnet`` contains its possible hosts, ``gateway`` is the ToR's own address there."""

    ifindex: int
    name: str
    subnet: IPv4Network
    gateway: str

    def accepts(self, ip: str) -> bool:
        """Return True for a usable host address of the subnet."""
        address = IPv4Address(ip)
        edges = (self.subnet.network_address, self.subnet.broadcast_address)
        return address in self.subnet and ip != self.gateway and address not in edges


@dataclass(frozen=True, slots=True)
class Change:
    """Add (``install``) or remove the route ``ip``/32 through ``ifindex``; ``reason`` is the cause."""

    ip: str
    ifindex: int
    install: bool
    reason: str


class HostRouteTable:
    """Host state of one ToR. Every method returns the route changes that its input causes, in order."""

    def __init__(self, ports: Iterable[AccessPort]) -> None:
        self._ports: Mapping[int, AccessPort] = {port.ifindex: port for port in ports}
        self._carrier: set[int] = set()
        self._usable: set[int] = set()
        self._claims: dict[str, list[int]] = {}  # address to ports with a valid entry, oldest claim first
        self._installed: dict[str, int] = {}
        self._accepted: dict[tuple[int, str], bool] = {}

    def claimed(self, ifindex: int) -> bool:
        """Return True if any host has a valid neighbour entry behind this port."""
        return any(ifindex in claims for claims in self._claims.values())

    @property
    def installed(self) -> Mapping[str, int]:
        """Port by address of every host route requested so far."""
        return self._installed

    def missing(self, ifindex: int, addresses: Iterable[str]) -> list[str]:
        """Return those of ``addresses`` without a valid neighbour entry behind this port; none if it is not live."""
        if not self._live(ifindex):
            return []
        return sorted(ip for ip in addresses if ifindex not in self._claims.get(ip, ()))

    def name_of(self, ifindex: int) -> str:
        """Return the name of an access port."""
        return self._ports[ifindex].name

    def on_link(self, event: LinkEvent) -> list[Change]:
        """Handle carrier or administrative state of an interface; only access ports count."""
        carrier = event.up and event.carrier and not event.gone
        return self._set_port(self._carrier, event.ifindex, carrier, "carrier")

    def on_usable(self, ifindex: int, usable: bool) -> list[Change]:
        """Set whether LACP collects on the port. A port is not usable before the first call."""
        return self._set_port(self._usable, ifindex, usable, "LACP")

    def on_neighbour(self, event: NeighbourEvent) -> list[Change]:
        """Handle a change of a neighbour entry. It counts while the kernel would send to it."""
        return self._settle((event.ip,), "neighbour") if self._note(event) else []

    def resync(
        self, links: Iterable[LinkEvent], neighbours: Iterable[NeighbourEvent], present: Mapping[str, int]
    ) -> list[Change]:
        """Start over from dumps; ``present`` is address to port of the host routes in the kernel now."""
        self._carrier = {e.ifindex for e in links if e.ifindex in self._ports and e.up and e.carrier and not e.gone}
        earlier, self._claims = self._claims, {}
        for event in neighbours:
            self._note(event)
        for ip, claims in self._claims.items():
            order = earlier.get(ip, [])
            claims.sort(key=lambda port: order.index(port) if port in order else len(order))
        self._installed = dict(present)
        return self._settle(sorted({*self._claims, *present}), "resync")

    def _note(self, event: NeighbourEvent) -> bool:
        """Record or drop a claim; True if that changed anything."""
        if not self._accepts(event.ifindex, event.ip):
            return False
        claims = self._claims.setdefault(event.ip, [])
        claimed = event.ifindex in claims
        valid = not event.gone and event.mac is not None and bool(event.state & VALID)
        if valid and not claimed:
            claims.append(event.ifindex)
        elif claimed and not valid:
            claims.remove(event.ifindex)
        if not claims:
            del self._claims[event.ip]
        return valid != claimed

    def _accepts(self, ifindex: int, ip: str) -> bool:
        """Return True if the port accepts the address; cached, because every event needs it."""
        known = self._accepted.get((ifindex, ip))
        if known is None:
            port = self._ports.get(ifindex)
            known = self._accepted[ifindex, ip] = port is not None and port.accepts(ip)
        return known

    def _set_port(self, which: set[int], ifindex: int, good: bool, reason: str) -> list[Change]:
        if ifindex not in self._ports or good == (ifindex in which):
            return []
        if good:
            which.add(ifindex)
        else:
            which.remove(ifindex)
        return self._settle([ip for ip, claims in self._claims.items() if ifindex in claims], reason)

    def _owner(self, ip: str) -> int | None:
        return next(filter(self._live, self._claims.get(ip, ())), None)

    def _live(self, ifindex: int) -> bool:
        return ifindex in self._carrier and ifindex in self._usable

    def _settle(self, addresses: Iterable[str], reason: str) -> list[Change]:
        changes = []
        for ip in addresses:
            now, wanted = self._installed.get(ip), self._owner(ip)
            if now == wanted:
                continue
            if now is not None:
                del self._installed[ip]
                changes.append(Change(ip, now, False, reason))
            if wanted is not None:
                self._installed[ip] = wanted
                changes.append(Change(ip, wanted, True, reason))
        return changes
