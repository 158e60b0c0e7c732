"""What a requester sends again: on a NAK, on a timeout, and when there is progress after one. PURE."""

from __future__ import annotations

from typing import Protocol

from hpn.traffic.transport.ranges import Ranges
from hpn.traffic.transport.work import Recovery


class Gaps(Protocol):
    """Puts into ``again`` what is to be sent again; all PSNs are absolute, ``sent`` is the first that never was."""

    nak_acknowledges: bool  # a NAK says that all before it is there

    def on_nak(self, missing: int, sent: int, again: Ranges) -> None:
        """The other end misses a packet that was sent."""

    def on_timeout(self, oldest: int, sent: int, again: Ranges) -> None:
        """Nothing was heard of packets from ``oldest`` on."""

    def on_progress(self, acknowledged: int, again: Ranges) -> None:
        """All below ``acknowledged`` is there."""


class GoBackN:
    """Everything from the missing packet on (IBTA vol. 1, 9.7.5.1.1: the responder kept nothing behind it)."""

    def __init__(self) -> None:
        self.nak_acknowledges = True
        self._answered = -1  # the highest PSN whose NAK was acted upon

    def on_nak(self, missing: int, sent: int, again: Ranges) -> None:
        """Go back, once for each missing packet: another NAK of it is the network's copy."""
        if missing > self._answered:
            self._answered = missing
            again.add(missing, sent)

    def on_timeout(self, oldest: int, sent: int, again: Ranges) -> None:
        """Go back to the oldest."""
        again.add(oldest, sent)

    def on_progress(self, acknowledged: int, again: Ranges) -> None:
        """Nothing: all behind is on its way already."""


class SelectiveRepeat:
    """Just the packets that are missing.

    Acknowledgements are cumulative, so after a timeout only the oldest is known to be missing, and only it is sent. If
    that brings progress that ends before what had been sent at the timeout, the packet there is missing too: it is sent
    at once, and where the receiver had nothing beyond what was sent again, twice as many as the last time (all that was
    under way was lost, as in an outage). Otherwise every packet of an outage would cost a timeout of its own.
    """

    def __init__(self) -> None:
        self.nak_acknowledges = False
        self._answered: set[int] = set()  # packets whose NAK was acted upon
        self._before = -1  # PSNs below were sent before the last timeout
        self._edge = -1  # all below that were missing were sent again since
        self._burst = 1

    def on_nak(self, missing: int, sent: int, again: Ranges) -> None:
        """That packet, once: another NAK of it is the network's copy."""
        if missing not in self._answered:
            self._answered.add(missing)
            again.add(missing, missing + 1)
            self._edge += missing == self._edge

    def on_timeout(self, oldest: int, sent: int, again: Ranges) -> None:
        """The oldest alone."""
        self._before, self._edge, self._burst = sent, oldest + 1, 1
        again.add(oldest, oldest + 1)

    def on_progress(self, acknowledged: int, again: Ranges) -> None:
        """What is missing of the packets sent before the last timeout, as far as it is known."""
        if self._answered:
            self._answered = {psn for psn in self._answered if psn >= acknowledged}
        if not self._edge <= acknowledged < self._before:
            return
        self._burst = 2 * self._burst if acknowledged == self._edge else 1
        self._edge = min(acknowledged + self._burst, self._before)
        again.add(acknowledged, self._edge)


def gaps(recovery: Recovery) -> Gaps:
    """The way to recover by its name."""
    return GoBackN() if recovery is Recovery.GO_BACK_N else SelectiveRepeat()
