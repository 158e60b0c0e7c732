"""One probe down each SRv6 path between two NICs: sent as an adapter does, counted where it is received.

The sender's host has no IPv6 routes: whole packets leave through the port where a path begins. The receiver's kernel
removes the outer header and delivers the datagram, whose payload names the path.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Collection, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.model import Nic
from hpn.testbed.kernel.packets.packet import PacketSocket
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.srv6 import Srv6
from hpn.testbed.routing.srv6.packet import Datagram, encapsulated
from hpn.testbed.routing.srv6.plan import UsidPath

ETHERTYPE_IPV6 = 0x86DD
_SOURCE_PORT = 0xC000
_PATIENCE_S = 1.0
"""Longer than a frame waits in any queue of a lab."""
_NUMBER = struct.Struct("!I")


@dataclass(frozen=True, slots=True)
class Probed:
    """A path, and whether its probe arrived."""

    path: UsidPath
    arrived: bool


def srv6_of(lab: Lab) -> Srv6:
    """Return the SRv6 of a lab. InputError if it has none."""
    if lab.srv6 is None:
        raise InputError("this lab has no SRv6; write srv6: {} in its topology file")
    return lab.srv6


async def probe(lab: Lab, src: str, dst: str) -> tuple[Probed, ...]:
    """Send a datagram down every path, and return which arrived, in the order of the paths. InputError as ``paths``."""
    found = srv6_of(lab).plan.paths(src, dst)
    source, target = lab.fabric.nic(src), lab.fabric.nic(dst)
    with ExitStack() as closing:
        receiver = closing.enter_context(
            lab.wiring.namespaces[target.host].socket(socket.AF_INET6, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        )
        receiver.bind((srv6_of(lab).plan.inner[target.name], 0))
        _send(lab, (source, target), receiver.getsockname()[1], found, closing)
        arrived = await _arrived(receiver, range(len(found)))
    return tuple(Probed(path, number in arrived) for number, path in enumerate(found))


def _send(lab: Lab, ends: tuple[Nic, Nic], dport: int, found: Sequence[UsidPath], closing: ExitStack) -> None:
    inner, (source, target) = srv6_of(lab).plan.inner, ends
    opened: dict[int, PacketSocket] = {}
    for number, path in enumerate(found):
        link = source.links[path.port]
        if path.port not in opened:
            port = PacketSocket(lab.wiring.namespaces[source.host], link.lower.name, ETHERTYPE_IPV6)
            closing.callback(port.close)
            opened[path.port] = port
        datagram = Datagram(inner[source.name], inner[target.name], _SOURCE_PORT, dport, _NUMBER.pack(number))
        opened[path.port].send(encapsulated(datagram.packet(), datagram.src, path.carrier), link.upper.mac)


async def _arrived(receiver: socket.socket, expected: Collection[int]) -> set[int]:
    """Return the numbers that arrive; wait for those that do not."""
    found: set[int] = set()
    loop = asyncio.get_running_loop()
    with suppress(TimeoutError):
        async with asyncio.timeout(_PATIENCE_S):
            while len(found) < len(expected):
                payload = await loop.sock_recv(receiver, _NUMBER.size)
                found.add(_NUMBER.unpack(payload)[0])
    return found
