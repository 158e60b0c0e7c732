"""Effect of delay on a flow: late packets count as impaired, and the gaps at the receiver are timed.

Changes when a figure of impairment is added. RFC 6412: a packet is impaired when it is lost, corrupted or exceeds the
forwarding delay threshold. (It counts duplicates and reordering too; these have their own figures.)
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Impairment:
    """Effect of one edge on one flow, late packets counted as missing. It equals the loss when none was late.

    ``plbm_ms`` and ``tbm_ms`` are as those of an outage, over runs of impaired packets; ``low_ms`` and ``high_ms`` are
    the ends of the interval. ``receive_gap_ms`` is TBM by the receiver's stamps (RFC 6414): the longest time between
    two packets that arrived, less one period, from the injection on when it had begun before.
    """

    packets: int = 0  # sent in the window, and lost, corrupted or late
    doubtful: int = 0  # of the late ones: as their sender stood still, it may have held them back itself
    plbm_ms: float = 0.0  # impaired packets / rate
    tbm_ms: float = 0.0
    low_ms: float = 0.0
    high_ms: float = 0.0
    first_at_ns: int | None = None  # send time of the first impaired packet
    over: bool = True  # K packets came in time and order after it, within the record
    receive_gap_ms: float = 0.0
    sender_pause_ms: float = 0.0  # the sender's own largest gap within the receive gap, beyond what pacing makes


@dataclass(frozen=True, slots=True)
class EdgeImpairment:
    """The same over all flows: packets of all, the worst of those that are hit."""

    packets: int = 0
    late: int = 0
    worst_ms: float = 0.0
    worst_receive_gap_ms: float = 0.0
