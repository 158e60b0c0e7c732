"""Retransmission rules of a requester: on a NAK, on a timeout, and on progress after one. PURE."""

from __future__ import annotations

from typing import Protocol

from hpn.traffic.transport.ranges import Ranges
from hpn.traffic.transport.work import Recovery


class Gaps(Protocol):
    """Retransmission rule: adds packets to ``again``. All PSNs are absolute; ``sent`` is the first never sent."""

    nak_acknowledges: bool  # a NAK acknowledges all packets before it

    def on_nak(self, missing: int, sent: int, again: Ranges) -> None:
        """Handle a NAK of a packet that was sent."""

    def on_timeout(self, oldest: int, sent: int, again: Ranges) -> None:
        """Handle a retry timeout: no reply about packets from ``oldest`` on."""

    def on_progress(self, acknowledged: int, again: Ranges) -> None:
        """Handle progress: everything below ``acknowledged`` has arrived."""


class GoBackN:
    """Go-back-N: all packets from the missing one on (IBTA vol. 1, 9.7.5.1.1: the responder stores none after it)."""

    def __init__(self) -> None:
        self.nak_acknowledges = True
        self._answered = -1  # the highest PSN whose NAK was acted upon

    def on_nak(self, missing: int, sent: int, again: Ranges) -> None:
        """Go back once for each missing packet; ignore duplicate NAKs."""
        if missing > self._answered:
            self._answered = missing
            again.add(missing, sent)

    def on_timeout(self, oldest: int, sent: int, again: Ranges) -> None:
        """Go back to the oldest."""
        again.add(oldest, sent)

    def on_progress(self, acknowledged: int, again: Ranges) -> None:
        """No-op: all packets after it are already queued."""


class SelectiveRepeat:
    """Selective repeat: only the missing packets.

    Acknowledgements are cumulative, so after a timeout only the oldest packet is known to be missing, and only it is
    retransmitted. Suppose that brings progress that ends before what had been sent at the timeout. Then the packet
    there is missing too, and is retransmitted at once. If the receiver had nothing beyond the retransmission, all
    packets in flight were lost, as in an outage: twice as many follow as the last time. Otherwise every packet of an
    outage would cost its own timeout.
    """

    def __init__(self) -> None:
        self.nak_acknowledges = False
        self._answered: set[int] = set()  # packets whose NAK was acted upon
        self._before = -1  # PSNs below were sent before the last timeout
        self._edge = -1  # all missing packets below were retransmitted since
        self._burst = 1

    def on_nak(self, missing: int, sent: int, again: Ranges) -> None:
        """Retransmit the NAKed packet once; ignore duplicate NAKs."""
        if missing not in self._answered:
            self._answered.add(missing)
            again.add(missing, missing + 1)
            self._edge += missing == self._edge

    def on_timeout(self, oldest: int, sent: int, again: Ranges) -> None:
        """Retransmit only the oldest packet."""
        self._before, self._edge, self._burst = sent, oldest + 1, 1
        again.add(oldest, oldest + 1)

    def on_progress(self, acknowledged: int, again: Ranges) -> None:
        """Retransmit the packets known to be missing of those sent before the last timeout."""
        if self._answered:
            self._answered = {psn for psn in self._answered if psn >= acknowledged}
        if not self._edge <= acknowledged < self._before:
            return
        self._burst = 2 * self._burst if acknowledged == self._edge else 1
        self._edge = min(acknowledged + self._burst, self._before)
        again.add(acknowledged, self._edge)


def gaps(recovery: Recovery) -> Gaps:
    """Return the retransmission rule by its name."""
    return GoBackN() if recovery is Recovery.GO_BACK_N else SelectiveRepeat()
