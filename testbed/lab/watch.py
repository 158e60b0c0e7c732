"""Kernel monitor of the lab: every link, neighbour and host-route change of every node, stamped on one clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hpn.testbed.events import Event, EventKind, EventSink, now_ns
from hpn.testbed.fabric.core_ports import preset_tables
from hpn.testbed.fabric.model import Fabric, Role
from hpn.testbed.fabric.wired.configs import own_configs
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.rtnetlink.netlink import Monitor, Netlink, OverrunError
from hpn.testbed.kernel.rtnetlink.rtnl import PROTO_HOST_ROUTE, RT_TABLE_MAIN, RTN_UNICAST
from hpn.testbed.kernel.rtnetlink.rtnl_events import LinkEvent, NeighbourEvent, RouteEvent

Message = LinkEvent | NeighbourEvent | RouteEvent
_NO_HOLDERS: dict[tuple[int, int], int] = {}


@dataclass(frozen=True, slots=True)
class Listeners:
    """Callbacks besides the timeline.

    ``on_messages`` gets all messages of one read of a node's monitor, ``on_link`` only changes. ``on_route`` gets the
    switch whose routes to NICs changed; ``on_resync`` is called when messages were lost.
    """

    on_messages: Callable[[str, list[Message]], None]
    on_link: Callable[[str, LinkEvent], None]
    on_route: Callable[[str], None]
    on_resync: Callable[[str], None]


class Watcher:
    """One monitor per namespace on the running event loop, and the current links and host routes."""

    def __init__(self, fabric: Fabric, spaces: Mapping[str, NetNs], sink: EventSink, listeners: Listeners) -> None:
        self._fabric = fabric
        self._spaces = spaces
        self._sink = sink
        self._listeners = listeners
        self._monitors: dict[str, Monitor] = {}
        self._links: dict[tuple[str, int], tuple[bool, bool]] = {}
        self._host_addresses = {f"{nic.ip}/32" for nic in fabric.nics}
        self._subnets = {nic.subnet for nic in fabric.nics}
        # Two daemons may briefly hold a route to one host: the prefix is gone when the last of them is.
        self._routes: dict[str, dict[str, dict[tuple[int, int], int]]] = {node.name: {} for node in fabric.switches}
        self._preset_tables = {n.name: {t.number for t in preset_tables(fabric, n)} for n in fabric.switches}
        self._presets: dict[str, dict[tuple[int, str], int]] = {node.name: {} for node in fabric.switches}
        self._changed: dict[str, set[str]] = {node.name: set() for node in fabric.switches}
        self._detours = fabric.spec.bgp.valleys and not own_configs(fabric)
        self._ports: dict[tuple[str, str], frozenset[int]] = {}

    def start(self) -> None:
        """Subscribe everywhere, then read the existing state."""
        loop = asyncio.get_running_loop()
        for node in self._fabric.nodes:
            monitor = Monitor(self._spaces[node.name], link=True, neighbour=node.role is Role.TOR, route=node.is_switch)
            self._monitors[node.name] = monitor
            loop.add_reader(monitor.fileno(), self._readable, node.name)
            self._resync(node.name)

    def stop(self) -> None:
        """Unsubscribe."""
        loop = asyncio.get_running_loop()
        for monitor in self._monitors.values():
            loop.remove_reader(monitor.fileno())
            monitor.close()
        self._monitors.clear()

    def carrier(self, node: str, ifindex: int) -> bool:
        """Return True if that interface was last reported up and with carrier."""
        return self._links.get((node, ifindex), (False, False)) == (True, True)

    def routes(self, node: str) -> dict[str, int]:
        """Return next hop counts of a switch's routes to hosts ('a.b.c.d/32') and NIC subnets."""
        return {prefix: max(holders.values()) for prefix, holders in self._routes[node].items()}

    def next_hops(self, node: str, prefix: str) -> int:
        """Return the next hop count of a switch's route to a host or NIC subnet, 0 when it has none."""
        return max(self._routes[node].get(prefix, _NO_HOLDERS).values(), default=0)

    def ports(self, node: str, prefix: str) -> frozenset[int] | None:
        """Return the next hops of the last route reported; None where only shortest paths, or nobody's, are routes.

        They are decoded only where BGP may hold a longer path while it converges.
        """
        return self._ports.get((node, prefix), frozenset()) if self._detours else None

    def changed_routes(self, node: str) -> set[str]:
        """Return the prefixes whose route on a switch came, went or changed since the last call."""
        changed, self._changed[node] = self._changed[node], set()
        return changed

    def has_host_route(self, node: str, prefix: str) -> bool:
        """Return True if a ToR has its own host route, by ARP, not only one from BGP."""
        return any(protocol == PROTO_HOST_ROUTE for protocol, _ in self._routes[node].get(prefix, ()))

    def presets(self, node: str) -> Mapping[tuple[int, str], int]:
        """Return a Core's host routes by preset ports: (table, prefix) to egress interface."""
        return self._presets[node]

    def reread(self, node: str) -> None:
        """Read the whole state of a node: the kernel does not report IPv4 routes that vanish with their interface."""
        self._resync(node)

    def _readable(self, node: str) -> None:
        try:
            messages = self._monitors[node].read()
        except OverrunError:
            self._resync(node)
            self._listeners.on_resync(node)
            return
        for message in messages:
            self._handle(node, message)
        self._listeners.on_messages(node, messages)

    def _resync(self, node: str) -> None:
        """Read the whole state again; missed changes are reported with the time of this reading."""
        link = Netlink(self._spaces[node])
        try:
            for event in link.links():
                self._handle(node, event)
            if node in self._routes:
                self._resync_routes(node, link.routes())
        finally:
            link.close()

    def _resync_routes(self, node: str, present: list[RouteEvent]) -> None:
        for route in present:
            self._handle(node, route)
        kept = {(route.prefix, route.protocol, route.metric) for route in present if route.table == RT_TABLE_MAIN}
        for prefix, holders in list(self._routes[node].items()):
            for protocol, metric in list(holders):
                if (prefix, protocol, metric) not in kept:
                    lost = RouteEvent(now_ns(), prefix, RT_TABLE_MAIN, protocol, RTN_UNICAST, (), True, metric)
                    self._handle(node, lost)
        preset = {(route.table, route.prefix) for route in present}
        for key in self._presets[node].keys() - preset:
            del self._presets[node][key]

    def _handle(self, node: str, event: Message) -> None:
        if isinstance(event, LinkEvent):
            self._handle_link(node, event)
        elif isinstance(event, RouteEvent) and self._is_ours(event):
            self._handle_route(node, event)
        elif isinstance(event, RouteEvent) and event.table in self._preset_tables.get(node, ()):
            self._handle_preset(node, event)

    def _handle_link(self, node: str, event: LinkEvent) -> None:
        key = (node, event.ifindex)
        state = (event.up and not event.gone, event.carrier and not event.gone)
        before = self._links.get(key)
        if before == state:
            return
        self._links[key] = state
        self._listeners.on_link(node, event)
        if before is None:
            return
        words = ("admin-up" if state[0] else "admin-down") if before[0] != state[0] else ""
        carrier = ("carrier-up" if state[1] else "carrier-down") if before[1] != state[1] else ""
        for what in filter(None, (words, carrier)):
            self._sink(Event(event.at_ns, EventKind.LINK, node, event.name, what))

    def _is_ours(self, route: RouteEvent) -> bool:
        if route.table != RT_TABLE_MAIN:
            return False
        return route.prefix in self._host_addresses or route.prefix in self._subnets

    def _handle_preset(self, node: str, route: RouteEvent) -> None:
        key = (route.table, route.prefix)
        if route.gone:
            self._presets[node].pop(key, None)
        else:
            self._presets[node][key] = route.oifs[0]
        self._listeners.on_route(node)

    def _handle_route(self, node: str, route: RouteEvent) -> None:
        known = self._routes[node]
        self._changed[node].add(route.prefix)
        holders = known.setdefault(route.prefix, {})
        was_there = bool(holders)
        if route.gone or route.kind != RTN_UNICAST:  # a blackhole in its place also ends a host route
            holders.pop((route.protocol, route.metric), None)
        else:
            holders[route.protocol, route.metric] = len(route.oifs)
            if self._detours:
                self._ports[node, route.prefix] = frozenset(route.oifs)
        is_there = bool(holders)
        if not is_there:
            del known[route.prefix]
        self._listeners.on_route(node)
        if was_there != is_there and route.prefix in self._host_addresses:
            what = "host-route-added" if is_there else "host-route-removed"
            detail = {"paths": len(route.oifs)} if is_there else {}
            self._sink(Event(route.at_ns, EventKind.ROUTE, node, route.prefix, what, detail))
