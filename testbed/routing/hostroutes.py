"""The ToR's ARP-to-host-route daemon (paper section 4.2): every learned neighbour becomes a /32, announced by BGP.

It reads nothing itself: the lab's monitor of the ToR feeds it, and LACP reports which ports are usable. When carrier
is lost the kernel also forgets the neighbours behind the port (arp_evict_nocarrier). So after carrier returns there is
no host route until the host is heard again: by ARP of its own, or by the gratuitous ARP it sends on a new port. Known
hosts that are missing behind a usable port are solicited repeatedly, with back-off.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Sequence
from functools import partial
from ipaddress import IPv4Network

from hpn.testbed.events import Event, EventKind, EventSink, now_ns
from hpn.testbed.fabric.model import Fabric, LinkKind, Node
from hpn.testbed.kernel.rtnetlink import rtnl
from hpn.testbed.kernel.rtnetlink.netlink import Netlink, NetlinkError
from hpn.testbed.kernel.rtnetlink.rtnl import NUD_DELAY, NUD_PROBE, NUD_STALE, PROTO_HOST_ROUTE
from hpn.testbed.kernel.rtnetlink.rtnl_events import LinkEvent, NeighbourEvent, RouteEvent
from hpn.testbed.routing.hostroute_rules import VALID, AccessPort, Change, HostRouteTable
from hpn.testbed.routing.retry import Retry

# The kernel drops the routes of a port that is taken down.
_HARMLESS = (errno.ESRCH, errno.ENETDOWN, errno.ENODEV)


class HostRouteDaemon:
    """Maintainer of one ToR's /32 routes; emits NEIGHBOUR learned and lost (ROUTE events come from the FIB monitor).

    It runs inside a loop. The first change in a turn of the loop is applied at once; the turn's further changes follow
    in one batch. A request waits for a lock shared by all of the machine's namespaces, for milliseconds when many
    switches learn routes. One request per port would delay the loop, and with it LACP, until its partners time out.
    """

    def __init__(self, fabric: Fabric, node: Node, netlink: Netlink, emit: EventSink) -> None:
        self.node = node
        self._netlink = netlink
        self._emit = emit
        ports = access_ports(fabric, node)
        self._table = HostRouteTable(ports)
        self._retries = {port.ifindex: Retry(partial(self._ask, port.ifindex)) for port in ports}
        self._known: dict[int, set[str]] = {}  # port to all addresses ever seen behind it
        self._waiting: list[Change] | None = None  # changes of this turn of the loop after its first

    def resync(self) -> None:
        """Read links, neighbours and our routes from the kernel: at the start, and after the monitor lost messages."""
        self._turn_over()
        present = {
            route.prefix.partition("/")[0]: route.oifs[0]
            for route in self._netlink.routes()
            if route.protocol == PROTO_HOST_ROUTE and route.oifs
        }
        self._apply(self._table.resync(self._netlink.links(), self._netlink.neighbours(), present))
        self._seek()

    def stop(self) -> None:
        """Stop soliciting; ``resync`` starts again."""
        self._turn_over()
        for retry in self._retries.values():
            retry.stop()

    def on_events(self, events: Sequence[LinkEvent | NeighbourEvent | RouteEvent]) -> None:
        """Handle messages of one read of the ToR's monitor; all route changes leave in one batch."""
        changes: list[Change] = []
        for event in events:
            if isinstance(event, LinkEvent):
                changes += self._table.on_link(event)
            elif isinstance(event, NeighbourEvent):
                changes += self._table.on_neighbour(event)
        self._apply(changes)
        if not all(isinstance(event, RouteEvent) for event in events):
            self._seek()

    def port_usable(self, ifindex: int, usable: bool) -> None:
        """Set whether LACP collects on this access port. It is unusable before the first call."""
        if usable:
            self._refresh(ifindex)
        self._apply(self._table.on_usable(ifindex, usable))
        self._seek()

    def _seek(self) -> None:
        """Keep soliciting on ports with missing hosts only."""
        for ifindex, retry in self._retries.items():
            if self._missing(ifindex):
                retry.start()
            else:
                retry.stop()

    def _missing(self, ifindex: int) -> list[str]:
        return self._table.missing(ifindex, self._known.get(ifindex, ()))

    def _ask(self, ifindex: int) -> None:
        """Make the kernel send ARP for missing hosts: up to three requests, a second apart."""
        try:
            self._netlink.run([rtnl.solicit_neighbour(ifindex, ip) for ip in self._missing(ifindex)])
        except NetlinkError as error:
            if error.errno not in _HARMLESS:  # the port went down, which the monitor will report
                raise

    def _refresh(self, ifindex: int) -> None:
        """Make the kernel verify the neighbours of a port that is back.

        Probes lost in a silent fault would remove a route just when the port is back, so they are restarted. Hosts that
        lost carrier too briefly to notice will not announce themselves, so they are solicited.
        """
        if not (self._known.get(ifindex) or self._table.claimed(ifindex)):
            return
        here = {n.ip: n for n in self._netlink.neighbours() if n.ifindex == ifindex and n.state & VALID}
        probed = [n for n in here.values() if n.state & (NUD_DELAY | NUD_PROBE)]
        requests = [rtnl.add_neighbour(ifindex, n.ip, n.mac, NUD_STALE) for n in probed if n.mac is not None]
        requests += [
            rtnl.solicit_neighbour(ifindex, ip) for ip in sorted(self._known.get(ifindex, set()) - here.keys())
        ]
        if requests:
            self._netlink.run(requests)

    def _apply(self, changes: Sequence[Change]) -> None:
        if not changes:
            return
        if self._waiting is not None:
            self._waiting += changes
            return
        self._waiting = []
        asyncio.get_running_loop().call_soon(self._turn_over)
        self._carry_out(changes)

    def _turn_over(self) -> None:
        """Apply the waiting changes; the next change is the first of its turn."""
        waiting, self._waiting = self._waiting, None
        if waiting:
            self._carry_out(waiting)

    def _carry_out(self, changes: Sequence[Change]) -> None:
        try:
            self._netlink.run([_request(change) for change in changes])
        except NetlinkError:
            for change in changes:
                self._insist(change)
        at = now_ns()
        for change in changes:
            if change.install:
                self._known.setdefault(change.ifindex, set()).add(change.ip)
            what = "learned" if change.install else "lost"
            detail = {"port": self._table.name_of(change.ifindex), "reason": change.reason}
            self._emit(Event(at, EventKind.NEIGHBOUR, self.node.name, change.ip, what, detail))

    def _insist(self, change: Change) -> None:
        """Apply one change that may have been overtaken by its port going down."""
        try:
            self._netlink.run([_request(change)])
        except NetlinkError as error:
            if error.errno not in _HARMLESS:
                raise
            if not change.install:
                self._netlink.run(_obituary(change))


def access_ports(fabric: Fabric, node: Node) -> tuple[AccessPort, ...]:
    """Return the access ports of a ToR, with the possible hosts of each."""
    return tuple(
        AccessPort(link.upper.ifindex, link.upper.name, IPv4Network(nic.subnet), nic.gateway)
        for link in fabric.links_of(node.name)
        if link.kind is LinkKind.ACCESS and link.upper.node == node.name
        for nic in (fabric.nic_of_link(link.name),)
    )


def _request(change: Change) -> bytes:
    make = rtnl.add_route if change.install else rtnl.delete_route
    return make(f"{change.ip}/32", oif=change.ifindex, protocol=PROTO_HOST_ROUTE)


def _obituary(change: Change) -> list[bytes]:
    """Return requests that publish the loss of a host route removed silently, as when a port is taken down.

    BIRD would notice a second later. A blackhole takes the dead route's place (BIRD's filter refuses it, so the /32 is
    withdrawn at once) and is removed again; meanwhile it drops packets that the subnet's blackhole would drop too.
    """
    prefix = f"{change.ip}/32"
    return [
        make(prefix, kind=rtnl.RTN_BLACKHOLE, protocol=PROTO_HOST_ROUTE) for make in (rtnl.add_route, rtnl.delete_route)
    ]
