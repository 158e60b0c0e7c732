"""Time that a round trip may take before a packet counts as lost, by RFC 6298's estimator. PURE."""

from __future__ import annotations

from copy import copy

MOST_EXPIRIES = 6


class RoundTrips:
    """Estimate of round trips; ``slack_ns``: what an acknowledgement may be late by, and a tick of both ends.

    Until the first one is known a round trip may take ``first_ns``, and never longer. ``expiries``: how often packets
    were not heard of since the last one was known. A packet keeps the number of when it left: other packets that are
    lost say nothing of its path.
    """

    def __init__(self, slack_ns: int, first_ns: int) -> None:
        self._slack_ns = slack_ns
        self._first_ns = first_ns
        self._smooth_ns = self._varies_ns = 0.0
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
        self._once_ns = min(int(self._smooth_ns + 4 * self._varies_ns + self._slack_ns), self._first_ns)
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


class PortRoundTrips:
    """Estimate for packets by one port of a NIC: what its round trips take, and at least what those by all ports do.

    A queue in one plane says nothing of others, but a queue at the receiver shows first in what came by any port.
    """

    def __init__(self, of_all: RoundTrips) -> None:
        self._all = of_all
        self._own: RoundTrips | None = None

    @property
    def smooth_ns(self) -> int:
        """Smoothed round trip by this port, or by all before its first; 0 until one is known."""
        return (self._own or self._all).smooth_ns

    @property
    def expiries(self) -> int:
        """Number of times that packets by any port were not heard of, as ``RoundTrips`` counts."""
        return self._all.expiries

    def on_round_trip(self, rtt_ns: int) -> None:
        """Handle a round trip by this port."""
        if self._own is None:
            self._own = copy(self._all)
        self._own.on_round_trip(rtt_ns)
        self._all.on_round_trip(rtt_ns)

    def on_expiry(self, expiries: int) -> None:
        """Handle packets by this port, as ``RoundTrips`` does."""
        self._all.on_expiry(expiries)

    def patience_ns(self, expiries: int) -> int:
        """Return how long a packet that left by this port after so many expiries may take."""
        of_all_ns = self._all.patience_ns(expiries)
        return of_all_ns if self._own is None else max(of_all_ns, self._own.patience_ns(expiries))
