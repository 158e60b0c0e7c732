"""Result of reading a batch of received packets: runs of writes, and replies."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from hpn.traffic.flows.framing import BTH_BYTES
from hpn.traffic.streams import wire
from hpn.traffic.transport.inbox import Packets
from hpn.traffic.transport.packets import WRITES, Packet

NUMBERS = struct.Struct(">II")
"""QPN and PSN of a BTH, each with its flags, from byte 4 on."""


class ArrivedRun(NamedTuple):
    """Intact packets with consecutive PSNs for one queue pair, in the order they arrived.

    ``owner`` is that of the batch. ``psn`` (24 bits) is that of the first packet. ``ack_requested``: by any of the
    packets. ``marked``: number of packets marked by a switch (CE). ``rows``: their indexes in the batch. If packets
    take many paths: ``values``, the UDP source port of each, and ``marks``, those of marked packets.
    """

    owner: int
    qpn: int
    psn: int
    ack_requested: bool
    marked: int
    rows: Sequence[int]
    packets: Packets
    values: Sequence[int] = ()
    marks: Sequence[int] = ()


class Trimmed(NamedTuple):
    """A write that a switch cut to its headers: nothing vouches for these but the checksum of the IP header."""

    owner: int
    qpn: int
    psn: int  # 24 bits
    value: int  # UDP source port


class Arrivals(NamedTuple):
    """Contents of a batch."""

    runs: list[ArrivedRun]
    replies: list[tuple[int, Packet]]  # acknowledgements and CNPs, intact, each with its place in the batch
    damaged: int  # packets with a wrong ICRC
    foreign: int  # of no kind known here
    trimmed: Sequence[Trimmed] = ()


def read_trimmed(udp_payload: bytes, owner: int, source: bytes) -> Trimmed | None:
    """Return what is left of a trimmed write; None if that was no write. ``source``: address as in a batch."""
    if len(udp_payload) < BTH_BYTES or udp_payload[0] not in WRITES:
        return None
    qpn, psn = NUMBERS.unpack_from(udp_payload, 4)
    return Trimmed(owner, qpn & wire.QPN_MASK, psn & wire.PSN_MASK, int.from_bytes(source[:2], "big"))
