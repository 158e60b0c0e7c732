"""Netlink messages taken apart: header, attributes and errors, which all families share. Pure.

Changes when the kernel's format does (linux/netlink.h).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

HEADER = struct.Struct("=IHHII")
ATTR = struct.Struct("=HH")
ATTR_TYPE = 0x3FFF
"""Mask of an attribute's type, without the bits that describe its layout."""
_NLM_F_CAPPED, _NLM_F_ACK_TLVS = 0x100, 0x200


def flags_of(message: bytes) -> int:
    """Return nlmsg_flags."""
    return int(struct.unpack_from("=H", message, 6)[0])


def renumber(message: bytes, flags: int, sequence: int) -> bytes:
    """Return the same message with other flags and sequence number."""
    return message[:6] + struct.pack("=HI", flags, sequence) + message[12:]


def split(data: bytes) -> Iterator[tuple[int, int, int, bytes]]:
    """Yield (type, sequence, flags, body) of each message in a datagram."""
    at = 0
    while at + 16 <= len(data):
        size, kind, flags, sequence, _ = HEADER.unpack_from(data, at)
        if size < 16:
            return
        yield kind, sequence, flags, data[at + 16 : at + size]
        at += size + 3 & ~3


def attributes(data: bytes) -> dict[int, bytes]:
    """Return attribute values by type; nested-flag bits are cleared."""
    found: dict[int, bytes] = {}
    at = 0
    while at + 4 <= len(data):
        size, kind = ATTR.unpack_from(data, at)
        if size < 4:
            break
        found[kind & ATTR_TYPE] = data[at + 4 : at + size]
        at += size + 3 & ~3
    return found


def extended_ack(body: bytes, flags: int) -> str:
    """Return the kernel's explanation in an error message, '' when it gave none."""
    if not flags & _NLM_F_ACK_TLVS:
        return ""
    offset = 20
    if not flags & _NLM_F_CAPPED:
        offset = 4 + struct.unpack_from("=I", body, 4)[0]
    return attributes(body[offset:]).get(1, b"").rstrip(b"\0").decode(errors="replace")
