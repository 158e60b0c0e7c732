"""Traffic and injections of the self-test: outages of known length, and pauses of the senders near some. Pure.

Changes when other outages or pauses are measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

MS = 1_000_000


@dataclass(frozen=True, slots=True)
class Pause:
    """Pause of the senders: begins ``from_ns`` after the start of an outage (negative: before) and lasts ``for_ns``."""

    where: str  # in words, relative to the outage
    from_ns: int
    for_ns: int


@dataclass(frozen=True, slots=True)
class Cut:
    """One outage: its start, relative to that of traffic, and length in ns; and a pause of the senders near it."""

    at_ns: int
    for_ns: int
    pause: Pause | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """Plan of the self-test: every outage at every phase of the slow flows' period, then one with pauses.

    A sender paused by a busy machine must not falsify the measurement. So pauses of every length lie inside, across
    either end of, and after an outage of ``paused_us``. Each of two NICs sends one fast flow and ``slow_flows`` slow
    ones to the other.
    """

    tick_ns: int
    fast_pps: float = 10_000
    slow_pps: float = 1_000
    slow_flows: int = 7
    phases: int = 3
    healthy_ns: int = 1000 * MS
    outages_us: tuple[int, ...] = (
        *(1_000, 2_500, 5_000, 7_300, 10_000, 15_550, 20_000, 35_900, 50_000, 75_050, 100_000, 150_000, 300_000),
    )

    pauses_us: tuple[int, ...] = (1_000, 2_000, 5_000, 10_000, 15_000, 20_000)
    paused_us: int = 55_000

    @property
    def spacing_ns(self) -> int:
        """Traffic between two outages in ns: enough to separate both, in packets and in bins."""
        return max(50 * MS, round(20e9 / self.slow_pps))

    def cuts(self) -> Iterator[Cut]:
        """Yield each outage, in order of time."""
        at = self.healthy_ns
        for phase in range(self.phases):
            for outage_us in self.outages_us:
                yield Cut(at + round(phase * 1e9 / self.slow_pps / self.phases), outage_us * 1000)
                at += outage_us * 1000 + self.spacing_ns
        for pause in self._pauses():
            yield Cut(at, self.paused_us * 1000, pause)
            at += self.paused_us * 1000 + self.spacing_ns

    def _pauses(self) -> Iterator[Pause]:
        """Yield the pauses; a pause across an end has a third, half, or two thirds of its length before it."""
        length_ns = self.paused_us * 1000
        for number, pause_us in enumerate(self.pauses_us):
            pause_ns = pause_us * 1000
            before_ns = pause_ns * (2 + number % 3) // 6
            yield Pause("inside", length_ns // 3, pause_ns)
            yield Pause("across the start", -before_ns, pause_ns)
            yield Pause("across the end", length_ns - before_ns, pause_ns)
            yield Pause("outside", length_ns + self.spacing_ns // 4, pause_ns)
