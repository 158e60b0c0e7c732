"""Selective acknowledgement of the multipath transport, and its bytes. PURE.

The format is ours: MRC's specification was not read. It travels as an RDMA READ response (opcode 0x10), which has an
AETH and a payload, so that tools which know RoCEv2 decode all around it. The BTH's PSN acknowledges everything up to
it, as in an ACK. The payload is ours: see ``_HEAD``, then the values whose packets were marked (2 bytes each, padded
to 4), then the bitmap. Bit ``n`` (lowest bit of a byte first) is packet PSN + 2 + n; PSN + 1 is missing.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

_HEAD = struct.Struct(">HBBI")  # value that the newest packet came by; what that was; marked values; wait, newest PSN
_WAIT_NS, _MOST_WAIT = 16_384, 0xFF  # unit of the wait, in the 8 bits above the PSN, and its limit
_PROBE, _TRIMMED = 1, 2
MOST_MARKED = 63


class Sack(NamedTuple):
    """Content of a selective acknowledgement.

    ``psn``: everything up to it has arrived; ``newest``: the last packet that came. Both are absolute at the receiver
    and have 24 bits on the wire. ``value``: entropy value of the newest packet. ``marked``: values of packets that came
    with a congestion mark since the last acknowledgement. ``trimmed``: the newest packet came without its payload.
    ``waited_ns``: from the newest packet's arrival to the acknowledgement, up to 4.2 ms, in steps of 16 us.
    """

    psn: int
    newest: int
    value: int
    probe: bool = False
    marked: tuple[int, ...] = ()
    bitmap: bytes = b""
    trimmed: bool = False
    waited_ns: int = 0


def pack_sack(sack: Sack) -> bytes:
    """Return the payload of an acknowledgement; its length is a multiple of 4."""
    marked = sack.marked[:MOST_MARKED]
    what = sack.probe * _PROBE | sack.trimmed * _TRIMMED
    wait = min(sack.waited_ns // _WAIT_NS, _MOST_WAIT)
    head = _HEAD.pack(sack.value, what, len(marked), wait << 24 | sack.newest & 0xFFFFFF)
    values = b"".join(value.to_bytes(2, "big") for value in marked)
    return head + values + bytes(-len(values) % 4) + sack.bitmap + bytes(-len(sack.bitmap) % 4)


def read_sack(psn: int, payload: bytes) -> Sack | None:
    """Return the acknowledgement with that PSN in its BTH; None if the payload is too short for what it says."""
    if len(payload) < _HEAD.size:
        return None
    value, what, count, newest = _HEAD.unpack_from(payload)
    begin = _HEAD.size + 2 * count
    bitmap_at = _HEAD.size + -(-2 * count // 4) * 4
    if len(payload) < bitmap_at:
        return None
    values = payload[_HEAD.size : begin]
    marked = tuple(int.from_bytes(values[at : at + 2], "big") for at in range(0, len(values), 2))
    bitmap, waited_ns = payload[bitmap_at:], (newest >> 24) * _WAIT_NS
    return Sack(psn, newest & 0xFFFFFF, value, bool(what & _PROBE), marked, bitmap, bool(what & _TRIMMED), waited_ns)
