"""A rack in real namespaces: one host whose NIC has two ports, each cabled to a ToR of its own.

host: bond0 =veth= bond0i; eth0 -- tor0:down0, eth1 -- tor1:down0
"""

from __future__ import annotations

import select
import socket
import struct
import time
from dataclasses import dataclass
from pathlib import Path
from socket import inet_aton

from hpn.testbed.kernel import ns
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.rtnetlink import rtnl
from hpn.testbed.kernel.rtnetlink.netlink import Netlink
from tests.traffic.nets import until_running

NIC_MAC = "02:00:00:00:00:0a"
GATEWAY_MAC = "02:00:00:00:00:fe"
PORTS = ("eth0", "eth1")
MTU = 4200
ETH_P_ALL, ETH_P_ARP = 0x0003, 0x0806
PATIENCE_S, QUIET_S = 5.0, 0.2


@dataclass(frozen=True)
class Rack:
    """The namespaces; interfaces are named as in the drawing."""

    host: NetNs
    tors: tuple[NetNs, NetNs]
    links: dict[NetNs, Netlink]

    def set_link(self, where: NetNs, interface: str, up: bool) -> None:
        """Administrative state; the far end sees carrier."""
        ifindex = next(link.ifindex for link in self.links[where].links() if link.name == interface)
        self.links[where].run([rtnl.set_link(ifindex, up=up)])

    def received(self, where: NetNs, interface: str) -> int:
        """Packets the interface has received, by its own counter."""
        with where.entered():
            lines = Path("/proc/thread-self/net/dev").read_text().splitlines()
        return next(int(line.split(":")[1].split()[1]) for line in lines if line.strip().startswith(f"{interface}:"))

    def received_by_tors(self, expected: int) -> list[int]:
        """Packets each ToR has received, once they are ``expected`` in all or no more come."""
        before = -1
        while True:
            counts = [self.received(tor, "down0") for tor in self.tors]
            if sum(counts) in (expected, before):
                return counts
            before = sum(counts)
            time.sleep(QUIET_S)


def wire(where: NetNs, interface: str, ethertype: int = ETH_P_ALL) -> socket.socket:
    """A raw socket on an interface."""
    with where.entered():
        raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ethertype))
        raw.bind((interface, ethertype))
    raw.setblocking(False)
    return raw


def arrivals(wires: list[socket.socket], expected: int, quiet_s: float = 0) -> list[tuple[int, bytes]]:
    """(index of the wire, frame) of what arrives: ``expected`` frames, and any more within ``quiet_s``."""
    found: list[tuple[int, bytes]] = []
    while ready := select.select(wires, [], [], PATIENCE_S if len(found) < expected else quiet_s)[0]:
        found += [(wires.index(raw), raw.recv(65535)) for raw in ready]
    return found


def build() -> Rack:
    """Everything up, no addresses. IPv6 is off, so that only what a test sends is counted."""
    host, tors = ns.create("host"), (ns.create("tor0"), ns.create("tor1"))
    spaces = (host, *tors)
    for space in spaces:
        with space.entered():
            for scope in ("all", "default"):
                setting = Path(f"/proc/sys/net/ipv6/conf/{scope}/disable_ipv6")
                if setting.exists():
                    setting.write_text("1")
    links = {space: Netlink(space) for space in spaces}
    inner = "02:00:00:00:00:0b"
    requests = [rtnl.add_veth("bond0", 10, host, "bond0i", 11, host, mac=NIC_MAC, peer_mac=inner, mtu=MTU)]
    for index, tor in enumerate(tors):
        ends = (PORTS[index], 20 + index, host, "down0", 30 + index, tor)
        requests.append(rtnl.add_veth(*ends, mac=NIC_MAC, peer_mac=f"02:00:00:00:01:0{index}", mtu=MTU))
    links[host].run(requests)
    links[host].run([rtnl.set_link(11, up=True)])
    for index, tor in enumerate(tors):
        links[tor].run([rtnl.set_link(30 + index, up=True)])
    until_running(*spaces)
    return Rack(host, tors, links)


def ipv4_frame(src: str, dst: str, proto: int, payload: bytes, *, destination: str = GATEWAY_MAC) -> bytes:
    """An Ethernet frame from the NIC."""
    header = struct.pack(
        "!BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), 0, 0, 64, proto, 0, inet_aton(src), inet_aton(dst)
    )
    return rtnl.mac_bytes(destination) + rtnl.mac_bytes(NIC_MAC) + b"\x08\x00" + header + payload


def udp_frame(src: str, dst: str, sport: int, dport: int, data: bytes, *, destination: str = GATEWAY_MAC) -> bytes:
    """The same with UDP, without checksum."""
    datagram = struct.pack("!HHHH", sport, dport, 8 + len(data), 0) + data
    return ipv4_frame(src, dst, 17, datagram, destination=destination)
