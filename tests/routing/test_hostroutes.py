"""When the ToR's host routes go to the kernel: the first of a turn of the loop at once, the others together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import cast

from hpn.testbed.events import Event
from hpn.testbed.fabric.build import build
from hpn.testbed.kernel.rtnetlink import rtnl
from hpn.testbed.kernel.rtnetlink.netlink import Netlink
from hpn.testbed.kernel.rtnetlink.rtnl_events import LinkEvent, NeighbourEvent, RouteEvent
from hpn.testbed.routing.hostroutes import HostRouteDaemon, access_ports
from tests.lab.running import tiny

FABRIC = build(tiny(hosts=6))
NODE = FABRIC.node("p0.s0.t0.0")
PORTS = access_ports(FABRIC, NODE)


class _Kernel:
    """A kernel where every access port has carrier, and nobody is known until he is told of; notes each request."""

    def __init__(self) -> None:
        self.batches: list[list[bytes]] = []
        self.dumps = 0

    def run(self, requests: Sequence[bytes]) -> None:
        self.batches.append(list(requests))

    def links(self) -> list[LinkEvent]:
        return [LinkEvent(0, port.ifindex, port.name, True, True, False) for port in PORTS]

    def neighbours(self) -> list[NeighbourEvent]:
        self.dumps += 1
        return []

    def routes(self) -> list[RouteEvent]:
        return []


def _heard() -> list[NeighbourEvent]:
    hosts = [nic for nic in FABRIC.nics if any(link.upper.node == NODE.name for link in nic.links)]
    return [
        NeighbourEvent(0, port.ifindex, nic.ip, nic.mac, rtnl.NUD_REACHABLE, False)
        for port, nic in zip(PORTS, hosts, strict=True)
    ]


async def test_ports_that_become_usable_in_one_turn_cost_two_requests_the_first_at_once() -> None:
    kernel, events = _Kernel(), list[Event]()
    daemon = HostRouteDaemon(FABRIC, NODE, cast(Netlink, kernel), events.append)
    daemon.resync()
    daemon.on_events(_heard())
    for port in PORTS:
        daemon.port_usable(port.ifindex, True)
        assert [len(batch) for batch in kernel.batches] == [1]
    assert len(events) == 1
    await asyncio.sleep(0)
    assert [len(batch) for batch in kernel.batches] == [1, len(PORTS) - 1]
    assert sorted(event.subject for event in events) == sorted(n.ip for n in _heard())
    daemon.port_usable(PORTS[0].ifindex, False)
    assert len(kernel.batches) == 3, "the first change of a turn waits for nothing"
    daemon.stop()


async def test_a_daemon_that_stops_leaves_nothing_undone() -> None:
    kernel = _Kernel()
    daemon = HostRouteDaemon(FABRIC, NODE, cast(Netlink, kernel), lambda _event: None)
    daemon.resync()
    daemon.on_events(_heard())
    for port in PORTS:
        daemon.port_usable(port.ifindex, True)
    daemon.stop()
    assert sum(map(len, kernel.batches)) == len(PORTS)


async def test_the_kernel_is_not_asked_about_a_port_where_nobody_ever_was() -> None:
    kernel = _Kernel()
    daemon = HostRouteDaemon(FABRIC, NODE, cast(Netlink, kernel), lambda _event: None)
    daemon.resync()
    before = kernel.dumps
    for port in PORTS:
        daemon.port_usable(port.ifindex, True)
    assert kernel.dumps == before
    daemon.on_events(_heard()[:1])
    daemon.port_usable(PORTS[0].ifindex, False)
    daemon.port_usable(PORTS[0].ifindex, True)
    assert kernel.dumps == before + 1
    daemon.stop()
