"""Conversion of rates, times and bytes from real links to a lab whose links are slower.

Let the lab send ``slower`` times more slowly, and let everything there take ``longer`` times as long. A queue then
changes by (sum of rates - link rate) x time, that is by ``longer / slower`` times the bytes of the real one. So:

    rates                                  real / slower
    times: timers, intervals, delays, RTT  real x longer
    bytes: thresholds, byte counters       real x longer / slower
    gains, probabilities, stages           unchanged

Every equation of a congestion control has those dimensions and no others. With all three rules the lab's rates and
queues follow the real ones exactly, for any ``longer``. With one rule broken they do not. For example, multiply
thresholds by the rate's factor *and* divide timers by it (``bytes / slower`` with ``longer = slower``). That models
another network: its queue is a thousandth of what its timers were made for. Either thresholds shrink and timers stay,
or timers grow and thresholds stay.

Packets decide between the two. They are 4 KiB here as there, and a marker, a byte counter and a token bucket count
complete packets. With ``longer = slower`` bytes stay unchanged: 300 KB are 73 packets in both networks, and a CNP
interval spans as many packets as before. That is the default (``similar``). With ``longer = 1`` a threshold of 300 KB
becomes 300 bytes at 1/1000. An interval of 50 us is a third of one packet's time. No behaviour is preserved. Values in
between give a shorter experiment with coarser packets.

Some things do not scale by themselves. A lab has next to no propagation delay, only serialisation (which does scale),
and the interrupts and ticks of its machine. The messages and computing times of a job follow the same rule if its
congestion is to be meaningful: sizes x longer / slower, times x longer. If a job's sizes shrink while its times stay
(``longer = 1``), its messages end before timers of ``longer = slower`` have expired once.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    """Scale of a lab: its rates are the real ones divided by ``slower``, its times the real ones times ``longer``."""

    slower: float = 1.0
    longer: float = 1.0

    @staticmethod
    def similar(slower: float) -> Scale:
        """Return the scale at which bytes and packets stay unchanged; ``slower`` is a topology file's ``scale``."""
        return Scale(slower, slower)

    def rate_bps(self, real: float) -> float:
        """Return the lab's rate for a real one."""
        return real / self.slower

    def ns(self, real: float) -> int:
        """Return the lab's time for a real one; at least 1 ns unless that is 0."""
        return max(round(real * self.longer), 1) if real else 0

    def bytes_(self, real: float) -> int:
        """Return the lab's bytes for real ones."""
        return round(real * self.longer / self.slower)
