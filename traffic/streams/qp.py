"""Queue pair logic of a reliable connection, both ends. PURE: no sockets, time is an argument.

The flows are constant-rate measurement streams (RFC 6413), not transfers. A lost packet is counted and never
retransmitted, and no sequence number is used twice. An acknowledgement carries the highest PSN received, whatever is
missing below it. The model has the parts of RC (IBTA vol. 1, 9.7) that matter to failover. These are PSNs, coalesced
acknowledgements, one NAK for each gap, the retry timer, and the error after too many expiries.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hpn.traffic.flows.flow import FlowSpec

PSN_MASK = 0xFFFFFF
_HALF = 1 << 23
_TIMER_UNIT_NS = 4096  # IBTA 9.7.6.1.3: 4.096 us x 2^timeout
_MOST_ACK_DELAY_NS = 4_000_000


class QpState(StrEnum):
    """The states that matter to a requester that has been connected."""

    READY = "ready-to-send"
    ERROR = "error"
    CLOSED = "closed"  # by its owner


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """``ib_timeout`` as InfiniBand exponent (0: never) and ``retry_count``, as in NCCL's variables.

    The standard lets a device wait up to four times as long for each try; this one waits exactly the configured time.
    """

    ib_timeout: int
    retry_count: int

    @classmethod
    def of(cls, flow: FlowSpec) -> RetryPolicy:
        """Return the policy of a flow's queue pair."""
        return cls(flow.ib_timeout, flow.retry_count)

    @property
    def timeout_ns(self) -> int:
        """Nanoseconds of one try."""
        return _TIMER_UNIT_NS << self.ib_timeout

    @property
    def patience_ns(self) -> int:
        """Nanoseconds without progress after which the queue pair errors: the first try and all retries."""
        return self.timeout_ns * (self.retry_count + 1)


class Requester:
    """The sending end: what was sent, what is acknowledged, and when to give up."""

    def __init__(self, policy: RetryPolicy) -> None:
        self._policy = policy
        self.state = QpState.READY
        self.sent = 0  # sequence numbers 0 .. sent - 1 are used
        self.acknowledged = 0  # 0 .. acknowledged - 1 are
        self.naks = 0
        self.timeouts = 0  # tries that ended without progress
        self._progress_ns = 0  # the retry timer's start
        self._tries = 0  # timeouts in the present stall

    @property
    def outstanding(self) -> int:
        """Number of packets sent and not acknowledged."""
        return self.sent - self.acknowledged

    def on_sent(self, count: int, now_ns: int) -> None:
        """Count ``count`` packets as sent. The timer starts if none was outstanding."""
        if self.sent == self.acknowledged:
            self._progress_ns, self._tries = now_ns, 0
        self.sent += count

    def on_ack(self, psn: int, now_ns: int) -> bool:
        """Handle an acknowledgement of everything up to ``psn``. Return True if it is progress, which restarts the
        timer.

        Old acknowledgements, and those of packets that were never sent, are ignored.
        """
        ahead = (psn + 1 - self.acknowledged) & PSN_MASK
        if self.state is not QpState.READY or not 0 < ahead < _HALF or ahead > self.outstanding:
            return False
        self.acknowledged += ahead
        self._progress_ns, self._tries = now_ns, 0
        return True

    def on_nak(self, expected_psn: int, now_ns: int) -> bool:
        """Handle a PSN sequence error: count it, retransmit nothing. It acknowledges everything before
        ``expected_psn``."""
        self.naks += 1
        return self.on_ack((expected_psn - 1) & PSN_MASK, now_ns)

    def close(self) -> None:
        """Close the queue pair for its owner; outstanding packets no longer cause an error. An error state stays."""
        if self.state is QpState.READY:
            self.state = QpState.CLOSED

    def deadline_ns(self) -> int | None:
        """Return the time at which the queue pair errors unless there is progress; None if nothing is outstanding."""
        if self.state is not QpState.READY or not self.outstanding or self._policy.ib_timeout == 0:
            return None
        return self._progress_ns + self._policy.patience_ns

    def on_timer(self, now_ns: int) -> bool:
        """Advance time; return True if the queue pair has just errored (retry exceeded)."""
        deadline = self.deadline_ns()
        if deadline is None:
            return False
        tries = min((now_ns - self._progress_ns) // self._policy.timeout_ns, self._policy.retry_count + 1)
        self.timeouts += max(tries - self._tries, 0)
        self._tries = max(tries, self._tries)
        if now_ns < deadline:
            return False
        self.state = QpState.ERROR
        return True


@dataclass(frozen=True, slots=True)
class AckPolicy:
    """Acknowledgement rule of a responder: after ``packets``, or ``delay_ns`` after the first unacknowledged packet."""

    packets: int = 16
    delay_ns: int = 2_000_000


def ack_delay_ns(policies: Iterable[RetryPolicy]) -> int:
    """Return how long acknowledgements may wait: far less than the retry budget of any queue pair, and at most 4 ms."""
    return min([_MOST_ACK_DELAY_NS, *(policy.patience_ns // 32 for policy in policies if policy.ib_timeout)])


@dataclass(frozen=True, slots=True)
class Reply:
    """A responder's reply: an acknowledgement up to ``psn``, or a NAK that expected ``psn``."""

    psn: int
    nak: bool = False


class Responder:
    """The receiving end: which PSN is expected, and when to acknowledge."""

    def __init__(self, policy: AckPolicy) -> None:
        self._policy = policy
        self.expected = 0  # the next sequence number when nothing is lost
        self._waiting = 0  # packets not yet acknowledged
        self._since_ns = 0  # arrival of the first of them

    @property
    def waiting(self) -> int:
        """Number of packets received and not yet acknowledged."""
        return self._waiting

    def on_data(self, lowest: int, highest: int, count: int, now_ns: int) -> list[Reply]:
        """Handle ``count`` packets with sequence numbers within ``lowest`` .. ``highest``; return the replies due at
        once.

        A gap is NAKed once; the stream then continues behind it, as nothing is retransmitted. Late packets and
        duplicates are acknowledged with the state already known.
        """
        replies: list[Reply] = []
        if highest >= self.expected:
            if count < highest - max(lowest, self.expected) + 1 or lowest > self.expected:
                replies.append(Reply(self.expected & PSN_MASK, nak=True))
            self.expected = highest + 1
        if self._waiting == 0:
            self._since_ns = now_ns
        self._waiting += count
        if self._waiting >= self._policy.packets:
            replies.append(self._acknowledge())
        return replies

    def on_timer(self, now_ns: int) -> Reply | None:
        """Return the acknowledgement whose delay is over, or None."""
        if self._waiting == 0 or now_ns < self._since_ns + self._policy.delay_ns:
            return None
        return self._acknowledge()

    def _acknowledge(self) -> Reply:
        self._waiting = 0
        return Reply((self.expected - 1) & PSN_MASK)
