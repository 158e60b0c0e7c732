"""The path control frames as bytes: a pure codec that returns None for anything it does not understand.

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
"""Number of refresh times after which unrefreshed information expires, on both sides."""

EPOCH_BITS = 32
"""Width of a number's lower part, which counts frames to one port; the upper part counts the agent's starts."""

EVERYTHING = "0.0.0.0"
"""INTEREST entry that requests all reachable destinations beyond those listed. No host has this address."""

MAX_PAYLOAD = 1500
"""Bytes; fits the smallest Ethernet MTU. Longer frames are not path control."""

_SUBTYPE = 0x4850
_INTEREST, _REACH = 1, 2
_HEADER = struct.Struct("!HBBHHQ")
_ADDRESS, _STATE = struct.Struct("!4s"), struct.Struct("!4sB")
MAX_ENTRIES = (MAX_PAYLOAD - _HEADER.size) // _STATE.size
"""Entries per frame: the answer to a full INTEREST is one frame."""


@dataclass(frozen=True, slots=True)
class Interest:
    """Host to ToR: request for reports about these destinations, for 3 x ``refresh_ms`` from now."""

    refresh_ms: int
    destinations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reach:
    """ToR to host: (destination, reachable) in the FIB when frame ``number`` was sent to this port.

    Numbers to one port increase by one with every frame, and by 2^32 or more when the agent starts. Empty states:
    the agent has just started and has no interest recorded.
    """

    number: int
    states: tuple[tuple[str, bool], ...]

    @property
    def epoch(self) -> int:
        """Start count of the sending agent."""
        return self.number >> EPOCH_BITS


def encode_interest(refresh_ms: int, destinations: Sequence[str]) -> list[bytes]:
    """Return as many INTEREST payloads as needed; none without destinations."""
    return [
        _HEADER.pack(_SUBTYPE, VERSION, _INTEREST, len(part), refresh_ms, 0) + b"".join(map(inet_aton, part))
        for part in (destinations[at : at + MAX_ENTRIES] for at in range(0, len(destinations), MAX_ENTRIES))
    ]


def encode_reach(number: int, states: Sequence[tuple[str, bool]]) -> list[bytes]:
    """Return as many REACH payloads as needed, numbered from ``number`` on; none without states."""
    parts = (states[at : at + MAX_ENTRIES] for at in range(0, len(states), MAX_ENTRIES))
    return [_reach(number + at, part) for at, part in enumerate(parts)]


def encode_hello(number: int) -> bytes:
    """Return the REACH without states."""
    return _reach(number, ())


def _reach(number: int, states: Sequence[tuple[str, bool]]) -> bytes:
    entries = b"".join(_STATE.pack(inet_aton(ip), reachable) for ip, reachable in states)
    return _HEADER.pack(_SUBTYPE, VERSION, _REACH, len(states), 0, number) + entries


def decode(payload: bytes) -> Interest | Reach | None:
    """Decode a message, or None if it is not exactly one of this version; bytes after the last entry are padding."""
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
