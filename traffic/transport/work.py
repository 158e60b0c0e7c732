"""Work requests, completions, and connection parameters of a queue pair. PURE."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hpn.traffic.multipath.settings import Multipath
from hpn.traffic.transport.timers import RETRY_TIMERS, RetryTimer

NCCL_TIMER = RETRY_TIMERS["ib"].make(20)
"""NCCL_IB_TIMEOUT of NCCL 2.30; older ones have 18 or 14."""

NCCL_RETRY_COUNT = 7
"""NCCL_IB_RETRY_CNT."""


@dataclass(frozen=True, slots=True)
class WorkRequest:
    """An RDMA WRITE of ``size_bytes`` (1 to 2^31) to a remote virtual ``address``, with a 32-bit immediate if any.

    ``id`` is unique on its queue pair and ascending.
    """

    id: int
    size_bytes: int
    address: int
    immediate: int | None = None


class Status(StrEnum):
    """Result of a work request (ibv_wc_status)."""

    SUCCESS = "success"
    RETRY_EXCEEDED = "retry-exceeded"
    INVALID_REQUEST = "remote-invalid-request"
    ACCESS_ERROR = "remote-access-error"
    OPERATION_ERROR = "remote-operational-error"
    FLUSHED = "flushed"


@dataclass(frozen=True, slots=True)
class Completion:
    """The end of a work request: each posted request has exactly one, in the order of posting."""

    request: WorkRequest
    status: Status
    posted_ns: int
    completed_ns: int


class Recovery(StrEnum):
    """Retransmission after a missing packet: it and everything after it, or only it."""

    GO_BACK_N = "go-back-n"
    SELECTIVE_REPEAT = "selective-repeat"


@dataclass(frozen=True, slots=True)
class Transport:
    """Connection parameters of a queue pair, known to both ends.

    ``window_packets``: most packets in flight (fewer than 2^23). Every ``ack_every``-th packet of a message and its
    last request an acknowledgement. ``reorder_packets``: with selective repeat a packet counts as missing when more
    than this many later ones have arrived. It is 0 if a queue pair's packets take one path, more if they are sprayed
    over several (RFC 8985 has the idea for TCP). The retry timer finds missing packets with fewer successors.
    ``multipath``: settings of the multipath transport, which has no use for the two; None: a reliable connection.
    """

    path_mtu: int = 4096
    recovery: Recovery = Recovery.GO_BACK_N
    timer: RetryTimer = NCCL_TIMER
    retry_count: int = NCCL_RETRY_COUNT
    window_packets: int = 256
    ack_every: int = 16
    reorder_packets: int = 0
    multipath: Multipath | None = None

    @property
    def patience_ns(self) -> int:
        """Nanoseconds without progress after which a requester gives up."""
        return self.timer.patience_ns(self.retry_count)

    def packets(self, size_bytes: int) -> int:
        """Return the number of packets of a message of that size."""
        return -(-size_bytes // self.path_mtu)
