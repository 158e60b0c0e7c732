"""How a queue pair whose port was given up finds out that the port carries again. PURE; time is an argument (ns).

NCCL's port recovery (NCCL_IB_RESILIENCY_PORT_RECOVERY, off by default; src/transport/net_ib/p2p_resiliency_recovery.cc
of NCCL 2.30): over an unreliable connection of its own on the failed device the sender posts "alive" messages; the
receiver that has heard more of them in a row than a batch has restores its queue pairs and acknowledges; the sender
restores its own and acknowledges that. So a return takes two batches at least, and the second follows when the first
one's acknowledgement has not come in time: 5.2 s after the failure. The 10 ms of port failover are something else: the
sender's wait before it asks the receiver which data has arrived.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class PortRecovery:
    """The defaults are NCCL's: its _START_DELAY, _ALIVE_MSG_SEQUENCE_SIZE, _ACK_TIMEOUT and _ATTEMPTS_MAX."""

    start_delay_ns: int = 200 * _MS
    sequence: int = 5
    ack_timeout_ns: int = 5000 * _MS
    attempts: int = 5


class ProberState(Enum):
    """Where the sending end is: before a batch, after one, and at its two ends."""

    WAITING = auto()
    ASKED = auto()
    RESTORED = auto()
    FAILED = auto()


class Prober:
    """The sending end, from the failure on; each batch of alive messages is a try."""

    def __init__(self, policy: PortRecovery, now_ns: int) -> None:
        self.state = ProberState.WAITING
        self._policy = policy
        self._due_ns = now_ns + policy.start_delay_ns
        self._sent = self._failed = 0

    def deadline_ns(self) -> int | None:
        """When ``on_timer`` is due."""
        return self._due_ns if self.state in {ProberState.WAITING, ProberState.ASKED} else None

    def on_timer(self, now_ns: int) -> range:
        """Let time pass: the numbers of the alive messages that leave now."""
        deadline_ns = self.deadline_ns()
        if deadline_ns is None or now_ns < deadline_ns:
            return range(0)
        if self.state is ProberState.ASKED:
            self._failed += 1
            if self._failed >= self._policy.attempts:
                self.state = ProberState.FAILED
                return range(0)
        self.state, self._due_ns = ProberState.ASKED, now_ns + self._policy.ack_timeout_ns
        first, self._sent = self._sent, self._sent + self._policy.sequence
        return range(first, self._sent)

    def on_acknowledged(self) -> bool:
        """The receiver has restored its end; whether this one is to be restored now."""
        if self.state is not ProberState.ASKED:
            return False
        self.state = ProberState.RESTORED
        return True


class Answerer:
    """The receiving end: counts what it hears, whenever that begins."""

    def __init__(self, policy: PortRecovery) -> None:
        self._policy = policy
        self._next = self._in_order = 0
        self._acknowledged_ns: int | None = None

    def on_alive(self, number: int, now_ns: int) -> bool:
        """An alive message; whether to restore this end and acknowledge.

        Having done so, it waits for the sender's word; when that has not come in time, it counts from nothing. So it
        does when numbers begin anew: the sender's word was lost, and it has failed again (NCCL waits on).
        """
        if self._acknowledged_ns is not None:
            if number < self._next:
                self.on_done()
            elif now_ns - self._acknowledged_ns <= self._policy.ack_timeout_ns:
                return False
            self._acknowledged_ns, self._in_order = None, 0
        self._in_order = self._in_order + 1 if number == self._next else 0
        self._next = number + 1
        if self._in_order <= self._policy.sequence:
            return False
        self._acknowledged_ns = now_ns
        return True

    def on_done(self) -> None:
        """The sender has restored its end: the next failure begins at number 0."""
        self._next = self._in_order = 0
        self._acknowledged_ns = None
