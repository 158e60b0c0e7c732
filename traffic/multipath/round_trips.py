"""Time that a round trip may take before a packet counts as lost, by RFC 6298's estimator. PURE."""

from __future__ import annotations


class RoundTrips:
    """Estimate of round trips; ``slack_ns``: what an acknowledgement may be late by, and a tick of both ends.

    Until the first one is known a round trip may take ``first_ns``, and never longer.
    """

    def __init__(self, slack_ns: int, first_ns: int) -> None:
        self._slack_ns = slack_ns
        self._first_ns = first_ns
        self._smooth_ns = self._varies_ns = 0.0
        self._known = False
        self._expiries = 0
        self.patience_ns = first_ns

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
        self._expiries = 0
        self._work_out()

    def on_expiry(self) -> None:
        """Handle packets that nothing was heard of: the next ones have twice the time until a round trip is known."""
        self._expiries += 1
        self._work_out()

    def _work_out(self) -> None:
        if self._known:
            patience_ns = self._smooth_ns + 4 * self._varies_ns + self._slack_ns
            self.patience_ns = min(int(patience_ns) << min(self._expiries, 6), self._first_ns)
