"""LLDP data units (IEEE 802.1AB-2016): a port says whose it is to the port at the other end of its cable. Pure."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

ETHERTYPE_LLDP = 0x88CC
NEAREST_BRIDGE = "01:80:c2:00:00:0e"
"""Destination address (7.1): no bridge forwards it. Linux bonding hands it to sockets of a member, even an idle one."""

_END, _CHASSIS, _PORT, _TTL, _SYSTEM_NAME = 0, 1, 2, 3, 5  # table 8-1
_LOCALLY_ASSIGNED, _INTERFACE_NAME = 7, 5  # subtypes: of a chassis ID (8.5.2.2), of a port ID (8.5.3.2)
_LENGTH_BITS = 9
_LONGEST = (1 << _LENGTH_BITS) - 1


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Sender of a data unit: its node, its interface, and for how many seconds that holds."""

    node: str
    port: str
    ttl_s: int

    @property
    def label(self) -> str:
        """'node:interface', as ports of a fabric are called."""
        return f"{self.node}:{self.port}"


def encode(sender: Neighbour) -> bytes:
    """Return the payload of a frame of ETHERTYPE_LLDP: chassis ID, port ID, TTL, system name, end."""
    chassis, port = sender.node.encode(), sender.port.encode()
    units = (
        (_CHASSIS, bytes([_LOCALLY_ASSIGNED]) + chassis),
        (_PORT, bytes([_INTERFACE_NAME]) + port),
        (_TTL, struct.pack("!H", sender.ttl_s)),
        (_SYSTEM_NAME, chassis),
        (_END, b""),
    )
    return b"".join(struct.pack("!H", kind << _LENGTH_BITS | len(value)) + value for kind, value in units)


def decode(payload: bytes) -> Neighbour | None:
    """Return the sender; None if the first three units are not chassis ID, port ID and TTL, in this order (9.2.7)."""
    found = list(_units(payload))[:3]
    if [kind for kind, _ in found] != [_CHASSIS, _PORT, _TTL]:
        return None
    (_, chassis), (_, port), (_, ttl) = found
    if len(chassis) < 2 or len(port) < 2 or len(ttl) < 2:
        return None
    return Neighbour(_text(chassis), _text(port), int.from_bytes(ttl[:2], "big"))


def _units(payload: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield type and value of each unit, up to the end or the first that is cut off."""
    at = 0
    while at + 2 <= len(payload):
        head = int.from_bytes(payload[at : at + 2], "big")
        kind, length = head >> _LENGTH_BITS, head & _LONGEST
        at += 2
        if kind == _END or at + length > len(payload):
            return
        yield kind, payload[at : at + length]
        at += length


def _text(value: bytes) -> str:
    """Return an ID without its subtype; other than printable characters, such as of a MAC address, in hexadecimal."""
    text = value[1:].decode(errors="replace")
    return text if text.isprintable() and "\ufffd" not in text else value[1:].hex(":")
