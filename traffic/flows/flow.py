"""What one measurement stream is: its ends, rate and names on the wire. No numpy: the supervisor imports it."""

from __future__ import annotations

from dataclasses import dataclass

ROCE_PORT = 4791
"""UDP destination port of RoCEv2 (IANA)."""

SPORT_MIN, SPORT_MAX = 0xC000, 0xFFFF
"""Source ports a RoCEv2 sender uses (IBTA annex A17.9.1.1; linux/include/rdma/ib_verbs.h)."""

MAX_FLOWS = 1 << 20

_FIRST_QPN = 0x12  # 0 and 1 are the management queue pairs; low numbers are what a fresh driver gives out
_LIVES = 7
"""So many times the queue pairs of all flows fit into 24 bits."""
MAX_RECOVERING = 1 << 19
"""Flows that may have a connection beside them; their numbers are what is left."""


def requester_qpn(flow: int, life: int = 0) -> int:
    """The queue pair number (24 bit) at the requester's end of flow ``flow``: acknowledgements go to it.

    ``life``: how often its job was started again, each time with new queue pairs; numbers come back after 7 times.
    """
    return _FIRST_QPN + 2 * (flow + life % _LIVES * (MAX_FLOWS + _FIRST_QPN))


def responder_qpn(flow: int, life: int = 0) -> int:
    """The queue pair number (24 bit) at the responder's end of flow ``flow``: data goes to it. ``life`` as above."""
    return requester_qpn(flow, life) + 1


def recovery_qpns(flow: int) -> tuple[int, int]:
    """Requester's and responder's numbers of the unreliable connection that tells whether flow ``flow`` has a path.

    They stand behind those of all lives: there are fewer, MAX_RECOVERING.
    """
    first = requester_qpn(0) + 2 * _LIVES * (MAX_FLOWS + _FIRST_QPN) + 2 * flow
    return first, first + 1


def default_sport(local_qpn: int, remote_qpn: int) -> int:
    """The UDP source port a RoCEv2 stack picks when the flow label is 0, as NCCL leaves it.

    ``rdma_calc_flow_label`` followed by ``rdma_flow_label_to_udp_sport`` (linux/include/rdma/ib_verbs.h).
    """
    label = local_qpn * remote_qpn
    label ^= label >> 20
    label ^= label >> 40
    label &= 0xFFFFF
    return (label & 0x03FFF) ^ (label >> 14) | SPORT_MIN


def default_sports(flow: int) -> tuple[int, int]:
    """The source ports that a RoCEv2 stack picks for the data of flow ``flow`` and for its acknowledgements."""
    here, there = requester_qpn(flow), responder_qpn(flow)
    return default_sport(here, there), default_sport(there, here)


@dataclass(frozen=True, slots=True)
class Transfers:
    """Sending by plan: ``packets`` at the flow's rate, a pause, and again ``every_ns`` after the first of them."""

    packets: int
    every_ns: int


@dataclass(frozen=True, slots=True)
class FlowSpec:
    """One queue pair's data direction, from requester to responder.

    ``rate_pps`` packets per second of ``path_mtu`` payload bytes each, all the time or, with ``transfers``, in each of
    them; sequence number ``n`` then belongs to transfer ``n // packets``. ``ib_timeout`` is the InfiniBand exponent
    (4.096 us x 2^n per try) and ``retry_count`` the number of retries before the queue pair errors.
    """

    id: int  # 0 .. MAX_FLOWS - 1, unique in the lab: the queue pair numbers follow from it
    name: str  # 'p0.s0.h0.r0>p0.s1.h0.r0#0'
    src_nic: str
    dst_nic: str
    src_ip: str
    dst_ip: str
    sport: int  # requester's UDP source port (data)
    ack_sport: int  # responder's UDP source port (acknowledgements)
    rate_pps: float
    path_mtu: int = 4096
    ib_timeout: int = 14
    retry_count: int = 7
    replaces: int | None = None  # a stand-in: the flow whose work it takes on; it does not send before it is told to
    transfers: Transfers | None = None  # None: an even stream

    @property
    def goodput_bps(self) -> float:
        """Payload bits per second while it sends, when nothing is lost."""
        return self.rate_pps * self.path_mtu * 8

    @property
    def sending_ns(self) -> int:
        """How long a transfer takes to be sent; 0 for an even stream."""
        return round(self.transfers.packets * 1e9 / self.rate_pps) if self.transfers is not None else 0

    @property
    def pause_ns(self) -> int:
        """How long it sends nothing between two transfers; 0 for an even stream."""
        return self.transfers.every_ns - self.sending_ns if self.transfers is not None else 0
