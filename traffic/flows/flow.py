"""Description of one measurement stream: endpoints, rate and wire identifiers. No numpy: the supervisor imports it."""

from __future__ import annotations

from dataclasses import dataclass, replace

ROCE_PORT = 4791
"""UDP destination port of RoCEv2 (IANA)."""

SPORT_MIN, SPORT_MAX = 0xC000, 0xFFFF
"""Source ports that a RoCEv2 sender uses (IBTA annex A17.9.1.1; linux/include/rdma/ib_verbs.h)."""

MAX_FLOWS = 1 << 20

_FIRST_QPN = 0x12  # 0 and 1 are the management queue pairs; a fresh driver assigns low numbers
_LIVES = 7
"""Number of times that the queue pairs of all flows fit into 24 bits."""
MAX_RECOVERING = 1 << 19
"""Flows that may have an auxiliary recovery connection; its queue pair numbers are the remaining ones."""


def requester_qpn(flow: int, life: int = 0) -> int:
    """Return the requester's queue pair number (24 bit) of flow ``flow``: acknowledgements go to it.

    ``life``: number of restarts of its job, each with new queue pairs; numbers repeat after 7 restarts.
    """
    return _FIRST_QPN + 2 * (flow + life % _LIVES * (MAX_FLOWS + _FIRST_QPN))


def responder_qpn(flow: int, life: int = 0) -> int:
    """Return the responder's queue pair number (24 bit) of flow ``flow``: data goes to it. ``life`` as above."""
    return requester_qpn(flow, life) + 1


def recovery_qpns(flow: int) -> tuple[int, int]:
    """Return requester's and responder's numbers of the unreliable connection that probes whether flow ``flow`` has a
    path.

    They follow the numbers of all incarnations of a job. There are fewer of them: MAX_RECOVERING.
    """
    first = requester_qpn(0) + 2 * _LIVES * (MAX_FLOWS + _FIRST_QPN) + 2 * flow
    return first, first + 1


def default_sport(local_qpn: int, remote_qpn: int) -> int:
    """Return the UDP source port that a RoCEv2 stack picks when the flow label is 0, as NCCL leaves it.

    ``rdma_calc_flow_label`` followed by ``rdma_flow_label_to_udp_sport`` (linux/include/rdma/ib_verbs.h).
    """
    label = local_qpn * remote_qpn
    label ^= label >> 20
    label ^= label >> 40
    label &= 0xFFFFF
    return (label & 0x03FFF) ^ (label >> 14) | SPORT_MIN


def default_sports(flow: int) -> tuple[int, int]:
    """Return the source ports that a RoCEv2 stack picks for data of flow ``flow`` and for its acknowledgements."""
    here, there = requester_qpn(flow), responder_qpn(flow)
    return default_sport(here, there), default_sport(there, here)


@dataclass(frozen=True, slots=True)
class Transfers:
    """Periodic transfers: ``packets`` at the flow's rate, a pause, and again ``every_ns`` after the first packet."""

    packets: int
    every_ns: int


@dataclass(frozen=True, slots=True)
class FlowSpec:
    """One queue pair's data direction, from requester to responder.

    ``rate_pps``: packets per second with ``path_mtu`` payload bytes each, all the time or, with ``transfers``, during
    each transfer. Sequence number ``n`` then belongs to transfer ``n // packets``. ``ib_timeout`` is the InfiniBand
    exponent (4.096 us x 2^n per try). ``retry_count`` is the number of retries before the queue pair errors.
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
    replaces: int | None = None  # a replacement flow: the flow it takes over from; it does not send until it is started
    transfers: Transfers | None = None  # None: an even stream
    port: int | None = None  # queue affinity: port of the NIC that the requester is bound to; None: the LAG hashes
    ack_port: int | None = None  # and the responder, of its own NIC

    @property
    def goodput_bps(self) -> float:
        """Payload bits per second while it sends, if nothing is lost."""
        return self.rate_pps * self.path_mtu * 8

    @property
    def sending_ns(self) -> int:
        """Duration of a transfer in ns; 0 for an even stream."""
        return round(self.transfers.packets * 1e9 / self.rate_pps) if self.transfers is not None else 0

    @property
    def pause_ns(self) -> int:
        """Pause between two transfers in ns; 0 for an even stream."""
        return self.transfers.every_ns - self.sending_ns if self.transfers is not None else 0


def answering(flow: FlowSpec) -> FlowSpec:
    """Return the acknowledgements of a flow, as a separate flow back to its source."""
    return replace(
        flow,
        src_nic=flow.dst_nic,
        dst_nic=flow.src_nic,
        src_ip=flow.dst_ip,
        dst_ip=flow.src_ip,
        sport=flow.ack_sport,
        ack_sport=flow.sport,
        port=flow.ack_port,
        ack_port=flow.port,
    )
