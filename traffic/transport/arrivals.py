"""What a batch of received packets is, once read: runs of writes, and replies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hpn.traffic.transport.inbox import Packets
from hpn.traffic.transport.packets import Packet


class ArrivedRun(NamedTuple):
    """Intact packets with consecutive PSNs for one queue pair, in the order they arrived.

    ``owner`` is that of the batch; ``psn`` (24 bits) of the first packet; ``ack_requested`` by any of them; ``marked``
    of them by a switch (CE); ``rows`` are their places in the batch.
    """

    owner: int
    qpn: int
    psn: int
    ack_requested: bool
    marked: int
    rows: Sequence[int]
    packets: Packets


class Arrivals(NamedTuple):
    """What a batch brought."""

    runs: list[ArrivedRun]
    replies: list[tuple[int, Packet]]  # acknowledgements and CNPs, intact, each with its place in the batch
    damaged: int  # packets with a wrong ICRC
    foreign: int  # of no kind known here
