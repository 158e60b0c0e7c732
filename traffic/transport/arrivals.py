"""Result of reading a batch of received packets: runs of writes, and replies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hpn.traffic.transport.inbox import Packets
from hpn.traffic.transport.packets import Packet


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


class Arrivals(NamedTuple):
    """Contents of a batch."""

    runs: list[ArrivedRun]
    replies: list[tuple[int, Packet]]  # acknowledgements and CNPs, intact, each with its place in the batch
    damaged: int  # packets with a wrong ICRC
    foreign: int  # of no kind known here
