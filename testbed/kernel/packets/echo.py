"""ICMP echo from inside namespaces: reachability between many pairs at once (RFC 792, RFC 1122 3.2.2.6).

The kernel of the destination host replies, whatever runs there.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from hpn.testbed.kernel.ns import NetNs

_HEAD = struct.Struct("!BBHHH")  # type, code, checksum, identifier, sequence
_REQUEST, _REPLY = 8, 0
_IDENTIFIER = 0x6870
_ICMP_FILTER, _ONLY_REPLIES = 1, ~(1 << _REPLY) & 0xFFFFFFFF
_LONGEST_IP_HEADER = 60


@dataclass(frozen=True, slots=True)
class Asker:
    """A source address and its namespace."""

    space: NetNs
    ip: str


async def answered(asking: Sequence[tuple[Asker, str]], rounds: int, every_s: float) -> set[int]:
    """Return the indexes of the (source, destination) pairs that got a reply; takes ``rounds * every_s``.

    Each round repeats all requests without a reply. A request that cannot be sent counts as unanswered. OSError when a
    socket cannot be created; at most 65,536 pairs.
    """
    loop = asyncio.get_running_loop()
    sockets: dict[Asker, socket.socket] = {}
    found: set[int] = set()
    try:
        for asker, _ in asking:
            if asker not in sockets:
                sockets[asker] = sock = _open(asker)
                loop.add_reader(sock.fileno(), _take, sock, asking, found)
        for _ in range(rounds):
            for number, (asker, ip) in enumerate(asking):
                if number not in found:
                    _ask(sockets[asker], ip, number)
            await asyncio.sleep(every_s)
    finally:
        for sock in sockets.values():
            loop.remove_reader(sock.fileno())
            sock.close()
    return found


def _open(asker: Asker) -> socket.socket:
    kind = socket.SOCK_RAW | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
    sock = asker.space.socket(socket.AF_INET, kind, socket.IPPROTO_ICMP)
    sock.setsockopt(socket.IPPROTO_RAW, _ICMP_FILTER, struct.pack("=I", _ONLY_REPLIES))
    sock.bind((asker.ip, 0))
    return sock


def _ask(sock: socket.socket, ip: str, number: int) -> None:
    bare = _HEAD.pack(_REQUEST, 0, 0, _IDENTIFIER, number)
    try:
        sock.sendto(_HEAD.pack(_REQUEST, 0, _checksum(bare), _IDENTIFIER, number), (ip, 0))
    except OSError:  # no carrier, no route: as on a link that is gone
        return


def _take(sock: socket.socket, asking: Sequence[tuple[Asker, str]], found: set[int]) -> None:
    """Read replies. Every socket of the namespace gets every reply: sender and number identify the request."""
    while True:
        try:
            packet, (source, _) = sock.recvfrom(_LONGEST_IP_HEADER + _HEAD.size)
        except OSError:  # nothing left, or an error caused by an earlier request
            return
        body = packet[(packet[0] & 0xF) * 4 :]
        if len(body) < _HEAD.size:
            continue
        kind, _, _, identifier, number = _HEAD.unpack_from(body)
        if (kind, identifier) == (_REPLY, _IDENTIFIER) and number < len(asking) and asking[number][1] == source:
            found.add(number)


def _checksum(data: bytes) -> int:
    """Return the Internet checksum (RFC 1071) of an even number of bytes."""
    total = sum(int(word) for (word,) in struct.iter_unpack("!H", data))
    total = (total & 0xFFFF) + (total >> 16)
    return ~(total + (total >> 16)) & 0xFFFF
