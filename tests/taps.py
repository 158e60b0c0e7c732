"""Where a test's own packets really go: a tap in every node, and a sender of packets that taps know."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable, Mapping

from hpn.testbed.kernel.ns import NetNs

_PAYLOAD = b"where do I go"
_OUTGOING = 4  # PACKET_OUTGOING


class Taps:
    """Hears every IPv4 packet that comes into a node, and tells ours (also from the ICMP errors that quote them)."""

    def __init__(self, spaces: Mapping[str, NetNs]) -> None:
        kind = socket.SOCK_DGRAM | socket.SOCK_NONBLOCK
        self._taps = {
            name: space.socket(socket.AF_PACKET, kind, socket.htons(0x0800)) for name, space in spaces.items()
        }

    def seen(self, node: str) -> list[str]:
        """Ports by which our packets came into ``node`` since last asked."""
        ports: list[str] = []
        while True:
            try:
                payload, address = self._taps[node].recvfrom(2048)
            except BlockingIOError:
                return ports
            if payload[9] == socket.IPPROTO_UDP and payload.endswith(_PAYLOAD) and address[2] != _OUTGOING:
                ports.append(address[0])

    async def arrival(self, node: str, timeout_s: float = 5.0) -> None:
        """Wait until one of our packets comes into ``node``. TimeoutError when none does."""
        loop, tap = asyncio.get_running_loop(), self._taps[node]
        async with asyncio.timeout(timeout_s):
            while not self.seen(node):
                readable = asyncio.Event()
                loop.add_reader(tap, readable.set)
                try:
                    await readable.wait()
                finally:
                    loop.remove_reader(tap)

    def seen_by(self, nodes: Iterable[str]) -> set[tuple[str, str]]:
        """(node, port) by which our packets came into any of ``nodes`` since last asked."""
        return {(node, port) for node in nodes for port in self.seen(node)}


def send(space: NetNs, src: str, sport: int, dst: str, dport: int = 4791) -> None:
    """One UDP packet with these addresses and ports."""
    with space.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        out.bind((src, sport))
        out.sendto(_PAYLOAD, (dst, dport))
