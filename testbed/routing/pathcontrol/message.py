"""The path control frames as bytes: a pure codec that answers None to anything it does not understand.

Payload of an Ethernet frame, big-endian: subtype 'HP' (2 bytes), version (1), kind (1), count (2), refresh_ms (2),
number (8), then ``count`` entries: INTEREST an IPv4 address (4), REACH an IPv4 address and 0 or 1 (5). Subtype and
version come first because the EtherType is an experimental one that others may use too (IEEE 802-2014 clause 9.2.4).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from socket import inet_aton, inet_ntoa

ETHERTYPE = 0x88B5
"""IEEE Std 802 Local Experimental EtherType 1."""

GROUP_MAC = "01:80:c2:00:00:0e"
"""Individual LAN Scope (nearest bridge) group address: no bridge forwards it (IEEE 802.1Q table 8-1)."""

VERSION = 2
LIFETIME_REFRESHES = 3
"""What was not refreshed for this many refresh times has expired, on both sides."""

EPOCH_BITS = 32
"""The upper bits of a number count the starts of the ToR's agent, the lower ones its frames to one port."""

EVERYTHING = "0.0.0.0"
"""In an INTEREST: tell me also of every destination you can reach and I did not ask about. No host has this address."""

MAX_PAYLOAD = 1500
"""Bytes; fits the smallest Ethernet MTU. A longer frame is not ours."""

_SUBTYPE = 0x4850
_INTEREST, _REACH = 1, 2
_HEADER = struct.Struct("!HBBHHQ")
_ADDRESS, _STATE = struct.Struct("!4s"), struct.Struct("!4sB")
MAX_ENTRIES = (MAX_PAYLOAD - _HEADER.size) // _STATE.size
"""Entries per frame: the answer to a full INTEREST is one frame."""


@dataclass(frozen=True, slots=True)
class Interest:
    """Host to ToR: tell me about these destinations, for 3 x ``refresh_ms`` from now."""

    refresh_ms: int
    destinations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reach:
    """ToR to host: (destination, reachable) as my FIB had it when I sent frame ``number`` to this port.

    Numbers to one port grow by one with every frame, and by 2^32 or more when the agent starts. No states at all:
    the agent has just started and knows of no interest.
    """

    number: int
    states: tuple[tuple[str, bool], ...]

    @property
    def epoch(self) -> int:
        """The start of the agent that sent it."""
        return self.number >> EPOCH_BITS


def encode_interest(refresh_ms: int, destinations: Sequence[str]) -> list[bytes]:
    """As many INTEREST payloads as it takes; none for no destination."""
    return [
        _HEADER.pack(_SUBTYPE, VERSION, _INTEREST, len(part), refresh_ms, 0) + b"".join(map(inet_aton, part))
        for part in (destinations[at : at + MAX_ENTRIES] for at in range(0, len(destinations), MAX_ENTRIES))
    ]


def encode_reach(number: int, states: Sequence[tuple[str, bool]]) -> list[bytes]:
    """As many REACH payloads as it takes, numbered from ``number`` on; none for no state."""
    parts = (states[at : at + MAX_ENTRIES] for at in range(0, len(states), MAX_ENTRIES))
    return [_reach(number + at, part) for at, part in enumerate(parts)]


def encode_hello(number: int) -> bytes:
    """The REACH without states."""
    return _reach(number, ())


def _reach(number: int, states: Sequence[tuple[str, bool]]) -> bytes:
    entries = b"".join(_STATE.pack(inet_aton(ip), reachable) for ip, reachable in states)
    return _HEADER.pack(_SUBTYPE, VERSION, _REACH, len(states), 0, number) + entries


def decode(payload: bytes) -> Interest | Reach | None:
    """The message, or None when it is not exactly one of this version; bytes after the last entry are padding."""
    if not _HEADER.size <= len(payload) <= MAX_PAYLOAD:
        return None
    subtype, version, kind, count, refresh_ms, number = _HEADER.unpack_from(payload)
    if (subtype, version) != (_SUBTYPE, VERSION) or count > MAX_ENTRIES:
        return None
    body = payload[_HEADER.size :]
    if kind == _INTEREST and count and refresh_ms > 0 and len(body) >= count * _ADDRESS.size:
        addresses = _ADDRESS.iter_unpack(body[: count * _ADDRESS.size])
        return Interest(refresh_ms, tuple(inet_ntoa(raw) for (raw,) in addresses))
    if kind == _REACH and len(body) >= count * _STATE.size:
        pairs = list(_STATE.iter_unpack(body[: count * _STATE.size]))
        if all(state <= 1 for _, state in pairs):
            return Reach(number, tuple((inet_ntoa(raw), state == 1) for raw, state in pairs))
    return None
