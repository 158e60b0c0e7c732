"""In-band network telemetry (INT) on the wire: the trailer of a probe, which each switch fills in as the probe passes.

    BTH | send time (8 bytes) | ICRC | hops (1), room (1), zero (2) | ``room`` records of 24 bytes

A record is the port's time, bytes sent, queue in bytes and rate in kbit/s, big-endian. A switch writes record number
``hops`` and adds 1 to it; a full trailer passes unchanged. The ICRC ends before the trailer, as if that were not there.
It holds what HPCC's header holds (SIGCOMM 2019, figure 7), in an opcode of the manufacturer's range (IBTA, table 38).
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from hpn.traffic.congestion.hop import Hop

ROOM = 8
"""Records of a probe of ours, and the most that any may have; the longest path here has five switches."""

_COUNTS = struct.Struct(">BBH")
_RECORD = struct.Struct(">QQII")
TRAILER_BYTES = _COUNTS.size + ROOM * _RECORD.size
_BPS = 1_000  # in the unit of a record's rate


class Telemetry(NamedTuple):
    """Content of a probe or of its echo."""

    sent_ns: int  # by the clock of the probe's sender
    hops: tuple[Hop, ...]
    trailer: bytes  # as it came: an echo copies it


EMPTY = _COUNTS.pack(0, ROOM, 0) + bytes(ROOM * _RECORD.size)
"""Trailer of a probe that no switch has passed."""


def read_trailer(trailer: bytes) -> tuple[Hop, ...] | None:
    """Return the records of a trailer; None if its counts are impossible or it is not as long as they say."""
    if len(trailer) < _COUNTS.size:
        return None
    hops, room, _ = _COUNTS.unpack_from(trailer)
    if not hops <= room <= ROOM or len(trailer) != _COUNTS.size + room * _RECORD.size:
        return None
    records = (_RECORD.unpack_from(trailer, _COUNTS.size + number * _RECORD.size) for number in range(hops))
    return tuple(Hop(time_ns, sent, queue, rate * _BPS) for time_ns, sent, queue, rate in records)


def write_trailer(hops: tuple[Hop, ...]) -> bytes:
    """Return the trailer that these ports leave, at most ``ROOM`` of them; switches do so, and tests."""
    records = b"".join(_RECORD.pack(hop.time_ns, hop.sent_bytes, hop.queue_bytes, hop.rate_bps // _BPS) for hop in hops)
    return _COUNTS.pack(len(hops), ROOM, 0) + records + bytes((ROOM - len(hops)) * _RECORD.size)
