"""Switches whose ports have buffers, and the hosts around them; traffic that is counted where it arrives.

TREE: h1, h2, hv === s1 --- s2 === h3, h4    all links 100 Mbit/s, s1 - s2 300 Mbit/s
RING: h1 - s1 - s2 - s3 - s1, h2 at s2, h3 at s3, all 100 Mbit/s; every packet goes round clockwise
FORK: h1, h2 === s1 === s2, s3 === s4 === h3, h4: hosts 200 Mbit/s, links between switches 100 Mbit/s
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import pytest

from hpn.testbed.kernel import linkwatch, ns
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.rtnetlink import mmu, rtnl
from hpn.testbed.kernel.rtnetlink.mmu import ClassCounters, PortClass, PortOptions
from hpn.testbed.kernel.rtnetlink.netlink import Netlink

RATE, TRUNK, PAYLOAD = 100_000_000, 300_000_000, 1400
FRAME = PAYLOAD + 42  # Ethernet, IP, UDP
BURST = 2 * FRAME
LOSSLESS, OTHER, DSCP, OTHER_DSCP = 3, 1, 3, 0
_BOX = 64 << 20


@dataclass(frozen=True)
class Shape:
    """Links (end, end, rate, network of two addresses), and the gateway of each switch; hosts have one link."""

    links: tuple[tuple[str, str, int, str], ...]
    gateways: dict[str, str]

    @property
    def nodes(self) -> list[str]:
        """Names of all nodes."""
        return sorted({end for a, b, *_ in self.links for end in (a, b)})

    def network(self, host: str) -> str:
        """First three bytes of a host's address; the host is .1, its switch .0."""
        return next(net for a, b, _, net in self.links if host in (a, b))


TREE = Shape(
    (
        ("h1", "s1", RATE, "10.1.0."), ("h2", "s1", RATE, "10.2.0."), ("hv", "s1", RATE, "10.5.0."),
        ("s1", "s2", TRUNK, "10.9.0."), ("s2", "h3", RATE, "10.3.0."), ("s2", "h4", RATE, "10.4.0."),
    ),
    {"s1": "10.9.0.1", "s2": "10.9.0.0"},
)  # fmt: skip
RING = Shape(
    (
        ("h1", "s1", RATE, "10.1.0."), ("h2", "s2", RATE, "10.2.0."), ("h3", "s3", RATE, "10.3.0."),
        ("s1", "s2", RATE, "10.11.0."), ("s2", "s3", RATE, "10.12.0."), ("s3", "s1", RATE, "10.13.0."),
    ),
    {"s1": "10.11.0.1", "s2": "10.12.0.1", "s3": "10.13.0.1"},
)  # fmt: skip
FORK = Shape(
    (
        ("h1", "s1", 2 * RATE, "10.1.0."), ("h2", "s1", 2 * RATE, "10.2.0."),
        ("s1", "s2", RATE, "10.11.0."), ("s1", "s3", RATE, "10.12.0."),
        ("s2", "s4", RATE, "10.13.0."), ("s3", "s4", RATE, "10.14.0."),
        ("h3", "s4", 2 * RATE, "10.3.0."), ("h4", "s4", 2 * RATE, "10.4.0."),
    ),
    {"s1": "10.11.0.1", "s2": "10.13.0.1", "s3": "10.14.0.1", "s4": "10.13.0.0"},
)  # fmt: skip


def class_of() -> bytes:
    """DSCP 3 and CS6 have classes of their own."""
    return bytes(LOSSLESS if dscp == DSCP else 6 if dscp == 48 else OTHER for dscp in range(64))


def lossless(**changed: object) -> PortClass:
    """A class that stops its senders above 40 kB, with headroom enough for a cable without length."""
    values = {"lossless": True, "limit": 40_000, "xon_offset": 20_000, "headroom": 2 * FRAME + BURST, "quantum": FRAME}
    return PortClass(**(values | changed))  # type: ignore[arg-type]


def lossy(**changed: object) -> PortClass:
    """A class whose tail is dropped above 40 kB."""
    return PortClass(**({"limit": 40_000, "quantum": FRAME} | changed))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Offer:
    """One flow: saturated where ``rate_bps`` is None."""

    src: str
    dst: str
    dscp: int = DSCP
    rate_bps: int | None = None
    ecn: int = 2  # ECT(0)


@dataclass
class Count:
    """What became of a flow."""

    sent: int = 0
    got: int = 0
    sizes: list[int] = field(default_factory=list)
    tos: list[int] = field(default_factory=list)

    def mbps(self, seconds: float) -> float:
        """Frames that arrived, as a rate."""
        return self.got * FRAME * 8 / seconds / 1e6


class BufferNet:
    """The network; skips where the kernel lacks the discipline."""

    def __init__(
        self, classes: dict[int, PortClass], react_ns: int = 0, shape: Shape = TREE, **options: object
    ) -> None:
        """Build it with these classes at every switch port; ``options`` of ``PortOptions`` too."""
        self.shape = shape
        self.spaces: dict[str, NetNs] = {}
        self.ports: dict[tuple[str, str], int] = {}
        self._classes, self._react_ns, self._options = classes, react_ns, options
        for name in shape.nodes:
            self.spaces[name] = ns.create(name)
            with self.spaces[name].entered():
                for path, value in (("ipv4/ip_forward", "1"), ("ipv6/conf/all/disable_ipv6", "1")):
                    with open(f"/proc/sys/net/{path}", "w") as file:
                        file.write(value)
        self.links = {name: Netlink(space) for name, space in self.spaces.items()}
        for number, (a, b, rate, net) in enumerate(shape.links):
            self._join(number, a, b, rate, net)
        for (node, _), port in self.ports.items():
            linkwatch.carry_out(self.links[node], [port])  # nothing leaves before the kernel knows the carrier
        for name in shape.nodes:
            gateway = shape.gateways.get(name) or shape.network(name) + "0"
            self.links[name].run([rtnl.add_route("0.0.0.0/0", gateway=gateway)])

    def address(self, host: str) -> str:
        """Address of a host."""
        return self.shape.network(host) + "1"

    def options(self, node: str, rate_bps: int, **changed: object) -> PortOptions:
        """The options of a port of a node."""
        is_switch = node.startswith("s")
        host = PortClass(limit=_BOX, quantum=FRAME)
        default = PortClass(limit=400_000) if is_switch else PortClass(limit=_BOX)
        classes = tuple(
            (self._classes.get(n, default) if is_switch else self._host(n, host, default)) for n in range(mmu.CLASSES)
        )
        values: dict[str, object] = {"buffer": 2_000_000 if is_switch else _BOX, "is_switch": is_switch}
        values |= {"rate_kbps": rate_bps // 1000, "quantum_ns": 512 * 10**9 // rate_bps}
        values |= {"react_ns": self._react_ns, "classes": classes}
        values |= {"class_of": class_of()} | self._options | changed
        return PortOptions(**values)  # type: ignore[arg-type]

    def _host(self, priority: int, host: PortClass, default: PortClass) -> PortClass:
        known = self._classes.get(priority)
        return default if known is None else replace(host, lossless=known.lossless)

    def _join(self, number: int, a: str, b: str, rate_bps: int, net: str) -> None:
        upper = a if a.startswith("s") else b
        lower = b if upper == a else a
        low, high = 100 + 2 * number, 101 + 2 * number
        self.ports[upper, lower], self.ports[lower, upper] = low, high
        home = Netlink(ns.current("test"))
        home.run(
            [
                rtnl.add_veth(
                    f"to-{lower}", low, self.spaces[upper], f"to-{upper}", high, self.spaces[lower],
                    mac=f"02:00:00:00:{number:02x}:00", peer_mac=f"02:00:00:00:{number:02x}:01", mtu=1500,
                )
            ]
        )  # fmt: skip
        home.close()
        for node, port, host in ((upper, low, 0), (lower, high, 1)):
            try:
                self.links[node].run(
                    [
                        rtnl.set_link(port, up=True),
                        rtnl.add_address(port, f"{net}{host}/31"),
                        rtnl.add_neighbour(port, f"{net}{1 - host}", f"02:00:00:00:{number:02x}:{1 - host:02x}"),
                        rtnl.add_tbf(port, rate_bps, BURST, 40_000),
                        mmu.add_mmu(port, self.options(node, rate_bps)),
                    ]
                )
            except OSError as error:
                pytest.skip(f"no discipline mmu in this kernel: {error}")

    def change(self, node: str, to: str, **changed: object) -> None:
        """Change options of the port of ``node`` towards ``to``."""
        rate = next(rate for a, b, rate, _ in self.shape.links if {a, b} == {node, to})
        self.links[node].run([mmu.add_mmu(self.ports[node, to], self.options(node, rate, **changed))])

    def counters(self, node: str, to: str, priority: int = LOSSLESS) -> ClassCounters:
        """Counters of a class at the port of ``node`` towards ``to``."""
        return self.links[node].queues().classes[self.ports[node, to]][priority]

    def all_counters(self) -> Iterator[ClassCounters]:
        """Counters of every class of every port."""
        for link in self.links.values():
            for classes in link.queues().classes.values():
                yield from classes

    def backlogs(self) -> set[int]:
        """Bytes in the token buckets of all ports."""
        return {bucket.backlog_bytes for link in self.links.values() for bucket in link.queues().buckets}

    def offer(self, offers: Sequence[Offer], seconds: float = 1.0, drain: float = 0.5) -> list[Count]:
        """Offer these flows for so long; return what was sent, and what had arrived ``drain`` later."""
        counts = [Count() for _ in offers]
        senders = [self._sender(offer) for offer in offers]
        receivers = [self._receiver(offer, 5000 + n) for n, offer in enumerate(offers)]
        begin = time.monotonic()
        while (now := time.monotonic() - begin) < seconds + drain:
            for n, (offer, sender, count) in enumerate(zip(offers, senders, counts, strict=True)):
                if now < seconds:
                    _send(sender, offer, (self.address(offer.dst), 5000 + n), count, now)
                _receive(receivers[n], count)
            time.sleep(0.001)
        for sock in (*senders, *receivers):
            sock.close()
        return counts

    def _sender(self, offer: Offer) -> socket.socket:
        sock = self.spaces[offer.src].socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, offer.dscp << 2 | offer.ecn)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 60_000)
        return sock

    def _receiver(self, offer: Offer, port: int) -> socket.socket:
        sock = self.spaces[offer.dst].socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
        sock.setsockopt(socket.SOL_SOCKET, 33, 8 << 20)  # SO_RCVBUFFORCE
        sock.bind((self.address(offer.dst), port))
        return sock


def _send(sock: socket.socket, offer: Offer, to: tuple[str, int], count: Count, now: float) -> None:
    due = 10**9 if offer.rate_bps is None else int(now * offer.rate_bps / 8 / FRAME) - count.sent
    for _ in range(due):
        try:
            sock.sendto(bytes(PAYLOAD), to)
        except BlockingIOError:
            return
        count.sent += 1


def _receive(sock: socket.socket, count: Count) -> None:
    while True:
        try:
            data, control, _, _ = sock.recvmsg(2000, 64)
        except BlockingIOError:
            return
        count.got += 1
        count.sizes.append(len(data))
        count.tos += [data[0] for level, kind, data in control if (level, kind) == (socket.IPPROTO_IP, socket.IP_TOS)]
