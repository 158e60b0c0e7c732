"""The exact path of one flow: each switch's kernel, hop by hop, reports the next hop of that very packet.

With hash policy 3 the kernel's answer to RTM_GETROUTE (in interface, addresses, ports) is the packet's actual next hop
(FACTS trap 1). So no hash is re-implemented here. Nothing is sent.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.model import Fabric, Link, LinkKind, Nic
from hpn.testbed.kernel.rtnetlink.netlink import Hop, NetlinkError

_UDP = 17
_WHY = {
    errno.EINVAL: "blackhole: only the subnet route is left, its host route is gone",
    errno.EHOSTUNREACH: "unreachable: every next hop is down, or the route says so",
    errno.ENETUNREACH: "no route",
    errno.EACCES: "prohibited",
}


class RouteLookup(Protocol):
    """The part of ``testbed.kernel.rtnetlink.netlink.Netlink`` that a trace needs."""

    def route_get(
        self, dst: str, *, src: str | None = None, iif: int = 0, sport: int = 0, dport: int = 0, proto: int = _UDP
    ) -> Hop:
        """Return the next hop of a packet; NetlinkError with the kernel's errno when it would be dropped."""


@dataclass(frozen=True, slots=True)
class Flow:
    """A UDP flow between two NICs, by name."""

    src_nic: str
    dst_nic: str
    sport: int
    dport: int = 4791


@dataclass(frozen=True, slots=True)
class TraceHop:
    """A node the packet visits. ``in_port`` is '' at the source, ``out_port`` and ``link`` are '' where it ends."""

    node: str
    in_port: str
    out_port: str
    link: str


@dataclass(frozen=True, slots=True)
class Path:
    """Path of a packet. ``dropped`` is None when it arrives, otherwise the reason; the last step is the place."""

    steps: tuple[TraceHop, ...]
    dropped: str | None

    @property
    def links(self) -> tuple[str, ...]:
        """Names of the links crossed or tried, in order."""
        return tuple(step.link for step in self.steps if step.link)


def trace(
    fabric: Fabric,
    flow: Flow,
    port: int | None,
    lookup: Callable[[str], RouteLookup],
    link_up: Callable[[str], bool],
) -> Path:
    """Follow ``flow`` from its source NIC's member port ``port``, the LAG's choice (None: no active port).

    ``lookup`` returns a switch's route look-up, ``link_up`` True if a link is up. InputError for unknown NICs.
    """
    source, target = fabric.nic(flow.src_nic), fabric.nic(flow.dst_nic)
    if port is None:
        return Path((TraceHop(source.host, "", "", ""),), "no active port in the source NIC's LAG")
    if not 0 <= port < len(source.links):
        raise InputError(f"{source.name} has ports 0 to {len(source.links) - 1}, not {port}")
    return _walk(fabric, flow, source, target, source.links[port], lookup, link_up)


def _walk(
    fabric: Fabric,
    flow: Flow,
    source: Nic,
    target: Nic,
    link: Link,
    lookup: Callable[[str], RouteLookup],
    link_up: Callable[[str], bool],
) -> Path:
    node, in_port = source.host, ""
    steps: list[TraceHop] = []
    visited: set[str] = set()
    while True:
        steps.append(TraceHop(node, in_port, link.end_at(node).name, link.name))
        visited.add(node)
        if not link_up(link.name):
            return Path(tuple(steps), f"link {link.name} is down")
        far = link.far_end(node)
        node, in_port = far.node, far.name
        if link.kind is LinkKind.ACCESS and far is link.lower:
            return _arrive(fabric, target, link, tuple(steps))
        if node in visited:
            return Path((*steps, TraceHop(node, in_port, "", "")), f"loop: back at {node}")
        try:
            hop = lookup(node).route_get(
                target.ip, src=source.ip, iif=far.ifindex, sport=flow.sport, dport=flow.dport, proto=_UDP
            )
        except NetlinkError as error:
            reason = _WHY.get(error.errno or 0, error.strerror or str(error))
            return Path((*steps, TraceHop(node, in_port, "", "")), reason)
        onward = _link_by_ifindex(fabric, node, hop.oif)
        if onward is None:
            return Path((*steps, TraceHop(node, in_port, "", "")), f"route leaves the fabric by interface {hop.oif}")
        link = onward


def _arrive(fabric: Fabric, target: Nic, link: Link, steps: tuple[TraceHop, ...]) -> Path:
    nic = fabric.nic_of_link(link.name)
    end = TraceHop(link.lower.node, link.lower.name, "", "")
    return Path(
        (*steps, end), None if nic.name == target.name else f"delivered to {nic.name}, which does not own {target.ip}"
    )


def _link_by_ifindex(fabric: Fabric, node: str, ifindex: int) -> Link | None:
    return next((link for link in fabric.links_of(node) if link.end_at(node).ifindex == ifindex), None)
