"""Port recovery: how a failed queue pair detects that its port works again. PURE; time is an argument (ns).

NCCL's port recovery (NCCL_IB_RESILIENCY_PORT_RECOVERY, off by default; src/transport/net_ib/p2p_resiliency_recovery.cc
of NCCL 2.30) uses a separate queue pair on the failed device. The sender posts "alive" messages. A receiver that has
received enough of them (``probe_transport``) restores its queue pairs and acknowledges. The sender then restores its
own and acknowledges that. A batch that is not acknowledged in time is a failed attempt, and the next batch follows. The
10 ms of port failover are something else: the sender's wait before it asks the receiver which data has arrived.

No release of NCCL has a back-off; NVIDIA/nccl issue 2323 asks for one, with a longest wait of 1 h. Here every failed
attempt lengthens the next wait by a factor. Its jitter, and receivers that give up too, are not modelled.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from hpn.traffic.transport.probe_transport import PROBE_TRANSPORTS

_MS = 1_000_000
_HOUR = 3_600_000 * _MS


@dataclass(frozen=True, slots=True)
class PortRecovery:
    """Port recovery parameters; defaults as NCCL's START_DELAY, ALIVE_MSG_SEQUENCE_SIZE, ACK_TIMEOUT, ATTEMPTS_MAX.

    ``over``: key of PROBE_TRANSPORTS. ``backoff`` multiplies the wait for an acknowledgement after each failed attempt,
    up to ``longest_ns``.
    """

    start_delay_ns: int = 200 * _MS
    sequence: int = 5
    ack_timeout_ns: int = 5000 * _MS
    attempts: int = 5
    backoff: float = 1.0
    longest_ns: int = _HOUR
    over: str = "uc"


class ProberState(Enum):
    """States of the sending end: before a batch, after one, and its two final states."""

    WAITING = auto()
    ASKED = auto()
    RESTORED = auto()
    FAILED = auto()


class Prober:
    """The sending end, from the failure on; each batch of alive messages is an attempt."""

    def __init__(self, policy: PortRecovery, now_ns: int) -> None:
        self.state = ProberState.WAITING
        self._policy = policy
        self._due_ns = now_ns + policy.start_delay_ns
        self._wait_ns = policy.ack_timeout_ns
        self._sent = self._failed = 0

    def deadline_ns(self) -> int | None:
        """Return the time at which ``on_timer`` is due, or None."""
        return self._due_ns if self.state in {ProberState.WAITING, ProberState.ASKED} else None

    def on_timer(self, now_ns: int) -> range:
        """Advance time; return the numbers of the alive messages to send now."""
        deadline_ns = self.deadline_ns()
        if deadline_ns is None or now_ns < deadline_ns:
            return range(0)
        if self.state is ProberState.ASKED:
            self._failed += 1
            if self._failed >= self._policy.attempts:
                self.state = ProberState.FAILED
                return range(0)
            self._wait_ns = min(round(self._wait_ns * self._policy.backoff), self._policy.longest_ns)
        self.state, self._due_ns = ProberState.ASKED, now_ns + self._wait_ns
        first, self._sent = self._sent, self._sent + self._policy.sequence
        return range(first, self._sent)

    def on_acknowledged(self) -> bool:
        """Handle the receiver's acknowledgement of its restore; return True if this end is to be restored now."""
        if self.state is not ProberState.ASKED:
            return False
        self.state = ProberState.RESTORED
        return True


class Answerer:
    """The receiving end: counts alive messages, whenever they begin."""

    def __init__(self, policy: PortRecovery) -> None:
        self._policy = policy
        self._count = PROBE_TRANSPORTS[policy.over].count(policy.sequence)
        self._acknowledged_ns: int | None = None

    def on_alive(self, number: int, now_ns: int) -> bool:
        """Handle an alive message; return True if this end is to be restored and an acknowledgement sent.

        After that it waits for the sender's confirmation. If that does not come in time, it counts from zero. It does
        the same when numbers restart: the confirmation was lost, and the sender has failed again (NCCL keeps waiting).
        """
        if self._acknowledged_ns is not None:
            if number < self._count.following:
                self.on_done()
            elif now_ns - self._acknowledged_ns <= self._policy.ack_timeout_ns:
                return False
            else:
                self._acknowledged_ns = None
                self._count.restart()
        if not self._count.completes(number):
            return False
        self._acknowledged_ns = now_ns
        return True

    def on_done(self) -> None:
        """Handle the sender's confirmation of its restore: the next failure begins at number 0."""
        self._count = PROBE_TRANSPORTS[self._policy.over].count(self._policy.sequence)
        self._acknowledged_ns = None
