"""A fabric's switches in real namespaces, with their BGP and host-route daemons; hosts are one plain port per plane.

h0 r0p0 --- ToR 0 --- Aggs of plane 0 --- ToR 0' --- r0p0 h0'
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path

from hpn.testbed.events import Event, now_ns
from hpn.testbed.fabric.model import Fabric, Link, LinkKind, Nic, Port, Role
from hpn.testbed.kernel import ns
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.rtnetlink import rtnl
from hpn.testbed.kernel.rtnetlink.netlink import Monitor, Netlink
from hpn.testbed.routing.bgp import BgpDaemon
from hpn.testbed.routing.daemons import DAEMONS
from hpn.testbed.routing.ecmp import Sysctl, namespace_sysctls, port_sysctls
from hpn.testbed.routing.hostroutes import HostRouteDaemon
from hpn.testbed.routing.pathcontrol.agent_io import AgentIo
from hpn.testbed.routing.pathcontrol.tor_agent import TorAgent

SECOND = 10**9


class MiniLab:
    """Everything of one fabric, to be made inside a sandbox and never taken down."""

    def __init__(self, fabric: Fabric) -> None:
        assert os.getpid() == 1, "outside a sandbox its namespaces would stay: mark the test 'kernel'"
        self.fabric = fabric
        self.events: list[Event] = []
        self.spaces: dict[str, NetNs] = {}
        for node in fabric.nodes:
            self.spaces[node.name] = ns.create(node.name)
            if node.is_switch:
                self._write(node.name, namespace_sysctls(node))
        self.netlinks = {name: Netlink(space) for name, space in self.spaces.items()}
        Netlink(ns.current("home")).run([self._veth(link) for link in fabric.links])
        for node in fabric.nodes:
            self._set_up(node.name)
            self._write(node.name, port_sysctls(fabric, node) if node.role is Role.TOR else ())
        kind = DAEMONS[fabric.spec.bgp.daemon]
        kind.folder.mkdir(parents=True)
        self.bgp: dict[str, BgpDaemon] = {
            node.name: kind.make(fabric, node, self.spaces[node.name], self.events.append) for node in fabric.switches
        }
        self.monitors: dict[str, Monitor] = {}
        self.daemons: dict[str, HostRouteDaemon] = {}
        self.agents: dict[str, tuple[TorAgent, AgentIo]] = {}

    def _write(self, node: str, settings: tuple[Sysctl, ...]) -> None:
        with self.spaces[node].entered():
            for setting in settings:
                try:
                    Path("/proc/sys", setting.path).write_text(setting.value)
                except FileNotFoundError:
                    assert not setting.required, setting

    def _veth(self, link: Link) -> bytes:
        low, high = link.lower, link.upper
        return rtnl.add_veth(
            low.name, low.ifindex, self.spaces[low.node], high.name, high.ifindex, self.spaces[high.node],
            mac=low.mac, peer_mac=high.mac, mtu=1500,
        )  # fmt: skip

    def _set_up(self, node: str) -> None:
        requests = [rtnl.set_link(1, up=True)]
        for link in self.fabric.links_of(node):
            near, far = (link.lower, link.upper) if link.lower.node == node else (link.upper, link.lower)
            requests.append(rtnl.set_link(near.ifindex, up=True))
            if near.address is not None:
                requests.append(rtnl.add_address(near.ifindex, near.address))
            if link.kind is not LinkKind.ACCESS and far.address is not None:
                requests.append(rtnl.add_neighbour(near.ifindex, far.address.split("/")[0], far.mac))
        self.netlinks[node].run(requests)

    def home(self, nic: Nic, plane: int) -> None:
        """Give a host's port of one plane the NIC's address, and a route to its rail through the gateway."""
        port = nic.links[plane].lower.ifindex
        self.netlinks[nic.host].run(
            [
                rtnl.add_address(port, f"{nic.ip}/32"),
                rtnl.add_route(f"{nic.gateway}/32", oif=port),
                rtnl.add_route(nic.rail_network, oif=port, gateway=nic.gateway),
            ]
        )

    def greet(self, nic: Nic, plane: int) -> None:
        """The host announces itself on one port with gratuitous ARP."""
        port = nic.links[plane].lower
        with self.spaces[nic.host].entered(), socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as out:
            out.bind((port.name, 0x0806))
            mac, ip = rtnl.mac_bytes(nic.mac), socket.inet_aton(nic.ip)
            body = bytes.fromhex("0001080006040001") + mac + ip + bytes(6) + ip
            out.send(b"\xff" * 6 + mac + b"\x08\x06" + body)

    async def start(self) -> None:
        """All daemons that do not run yet, until every BGP session is established."""
        for daemon in self.bgp.values():
            if not daemon.running:
                daemon.start()
        loop = asyncio.get_running_loop()
        for node in self.fabric.switches:
            if node.role is Role.TOR:
                self._start_tor(node.name, loop)
        for daemon in self.bgp.values():
            await self.until(partial(self._stands, daemon))

    def _stands(self, daemon: BgpDaemon) -> bool:
        assert daemon.trouble is None
        return len(daemon.established) == sum(link.is_routed for link in self.fabric.links_of(daemon.node.name))

    def _start_tor(self, name: str, loop: asyncio.AbstractEventLoop) -> None:
        monitor = Monitor(self.spaces[name], link=True, neighbour=True, route=True)
        daemon = HostRouteDaemon(self.fabric, self.fabric.node(name), self.netlinks[name], self.events.append)
        daemon.resync()
        ports = {link.upper.name: link.upper.ifindex for link in self._access(name)}
        agent = TorAgent(ports, epoch=1)
        io = AgentIo(name, self.spaces[name], agent, tuple(ports), self.events.append)
        io.start()
        io.perform(agent.resync(self.netlinks[name].links(), self.netlinks[name].routes(), now_ns()))
        for ifindex in ports.values():
            daemon.port_usable(ifindex, True)

        def readable() -> None:
            events = monitor.read()
            daemon.on_events(events)
            io.perform(agent.on_events(events, now_ns()))

        loop.add_reader(monitor.fileno(), readable)
        self.monitors[name], self.daemons[name], self.agents[name] = monitor, daemon, (agent, io)

    def _access(self, node: str) -> list[Link]:
        return [link for link in self.fabric.links_of(node) if link.kind is LinkKind.ACCESS]

    async def until(
        self, condition: Callable[[], bool], seconds: float = 60.0, *, again: Callable[[], None] = lambda: None
    ) -> None:
        """Wait for a condition, doing something ``again`` in between; fails the test at the deadline."""
        deadline = now_ns() + int(seconds * SECOND)
        while not condition():
            assert now_ns() < deadline, "condition not met in time"
            again()
            await asyncio.sleep(0.002)

    def routes(self, node: str, prefix: str) -> set[str]:
        """Names of the interfaces that a switch's routes to exactly ``prefix`` use; 'drop' for a blackhole."""
        names = {link.end_at(node).ifindex: link.end_at(node).name for link in self.fabric.links_of(node)}
        found: set[str] = set()
        for route in self.netlinks[node].routes():
            if route.prefix == prefix and route.table == rtnl.RT_TABLE_MAIN:
                found |= {names[oif] for oif in route.oifs} or {"drop"}
        return found

    def cut(self, port: Port) -> None:
        """Take a port down: the other end loses carrier."""
        self.netlinks[port.node].run([rtnl.set_link(port.ifindex, up=False)])

    def mend(self, port: Port) -> None:
        """Take it up again."""
        self.netlinks[port.node].run([rtnl.set_link(port.ifindex, up=True)])
