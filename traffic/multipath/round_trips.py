"""Time that a round trip may take before a packet counts as lost, by RFC 6298's estimator and the longest. PURE."""

from __future__ import annotations

from hpn.traffic.multipath.settings import MOST_PATHS

MOST_EXPIRIES = 6
_MEMORY = 2 * MOST_PATHS  # round trips, after which two thirds of a longer one's excess are forgotten


class RoundTrips:
    """Estimate of round trips; ``slack_ns``: what an acknowledgement may be late by, and a tick of both ends.

    Where few of many paths are congested, their round trips are far from the mean of all, and are no loss: the longest
    of late counts too, until the turn of each of ``MOST_PATHS`` has come twice. Until the first one is known a round
    trip may take ``first_ns``, and never longer. ``expiries``: how often packets were not heard of since the last one
    was known. A packet keeps the number of when it left: other packets that are lost say nothing of its path.
    """

    def __init__(self, slack_ns: int, first_ns: int) -> None:
        self._slack_ns = slack_ns
        self._first_ns = first_ns
        self._smooth_ns = self._varies_ns = self._most_ns = 0.0
        self._known = False
        self._once_ns = first_ns
        self.expiries = 0

    @property
    def smooth_ns(self) -> int:
        """Smoothed round trip; 0 until the first one is known."""
        return round(self._smooth_ns)

    def on_round_trip(self, rtt_ns: int) -> None:
        """Handle a round trip."""
        if self._known:
            self._varies_ns += (abs(self._smooth_ns - rtt_ns) - self._varies_ns) / 4
            self._smooth_ns += (rtt_ns - self._smooth_ns) / 8
        else:
            self._known, self._smooth_ns, self._varies_ns = True, rtt_ns, rtt_ns / 2
        self._most_ns = max(rtt_ns, self._most_ns - (self._most_ns - rtt_ns) / _MEMORY)
        usual_ns = max(self._smooth_ns + 4 * self._varies_ns, self._most_ns)
        self._once_ns = min(int(usual_ns + self._slack_ns), self._first_ns)
        self.expiries = 0

    def on_expiry(self, expiries: int) -> None:
        """Handle packets that left after so many expiries and were not heard of: the next have twice their time.

        Those that left before an earlier expiry are of its flight, and count once with it.
        """
        if expiries >= self.expiries:
            self.expiries = min(self.expiries + 1, MOST_EXPIRIES)

    def patience_ns(self, expiries: int) -> int:
        """Return how long a packet that left after so many expiries may take."""
        return min(self._once_ns << expiries, self._first_ns)
