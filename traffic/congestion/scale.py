"""What becomes of rates, times and bytes where a lab's links are slower than the ones that parameters were written for.

Let the lab send ``slower`` times more slowly and let all that happens there take ``longer`` times as long. A queue then
changes by (sum of rates - link rate) x time, that is by ``longer / slower`` times the bytes of the real one. So:

    rates                                  real / slower
    times: timers, intervals, delays, RTT  real x longer
    bytes: thresholds, byte counters       real x longer / slower
    gains, probabilities, stages           as they are

Every equation of a congestion control has those dimensions and no others, so with all three rules kept the lab's rates
and queues follow the real ones exactly, whatever ``longer`` is. With one rule broken they do not: thresholds multiplied
by the rate's factor *and* timers divided by it (``bytes / slower`` with ``longer = slower``) is another network, with a
queue of a thousandth of what its timers were made for. Either thresholds shrink and timers stay, or timers grow and
thresholds stay.

Packets decide between the two. They are of 4 KiB here as there, and a marker, a byte counter and a token bucket count
whole packets. With ``longer = slower`` bytes stay as they are: 300 KB are 73 packets in both networks, and a CNP
interval spans as many packets as it did. That is the default (``similar``). With ``longer = 1`` a threshold of 300 KB
becomes 300 bytes at 1/1000 and an interval of 50 us is a third of one packet's time; nothing of that is left. What lies
between buys a shorter experiment with coarser packets.

What does not scale by itself: a lab has next to no propagation delay, only serialisation (which does scale), and the
interrupts and ticks of its machine. The messages and computing times of a job follow the same rule when its congestion
is to mean something: sizes x longer / slower, times x longer. A job of which the sizes shrink while the times stay
(``longer = 1``) has messages that are over before timers of ``longer = slower`` have run once.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    """A lab's rates are the real ones divided by ``slower``, its times the real ones multiplied by ``longer``."""

    slower: float = 1.0
    longer: float = 1.0

    @staticmethod
    def similar(slower: float) -> Scale:
        """The scale at which bytes and packets stay as they are; ``slower`` is a topology file's ``scale``."""
        return Scale(slower, slower)

    def rate_bps(self, real: float) -> float:
        """The lab's rate for a real one."""
        return real / self.slower

    def ns(self, real: float) -> int:
        """The lab's time for a real one; at least 1 ns unless that is 0."""
        return max(round(real * self.longer), 1) if real else 0

    def bytes_(self, real: float) -> int:
        """The lab's bytes for real ones."""
        return round(real * self.longer / self.slower)
