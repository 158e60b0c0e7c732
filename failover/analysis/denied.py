"""Paths that multipath queue pairs denied, and how many round trips each went on losing before. Pure.

MRC's papers (second hand) tell such a time as tens of microseconds, at 800G. In a lab with scaled rates a round trip is
longer by the scale, and so is the time: their quotient is what carries over.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hpn.failover.analysis.budget import Interval
from hpn.failover.analysis.edge import Edge


@dataclass(frozen=True, slots=True)
class DeniedPath:
    """Denial of one path by a queue pair of ``nic``, whose port ``port`` the path leaves by.

    ``sent_ns``: its first lost packet left; ``at_ns``: nothing left by the path from then on. ``rtt_ns``: smoothed
    round trip of the queue pair as known at ``sent_ns``; 0: none was known.
    """

    nic: str
    port: int
    sent_ns: int
    at_ns: int
    rtt_ns: int

    def is_of(self, edge: Edge) -> bool:
        """Return True if the first lost packet left in the window of an edge."""
        return edge.inject_before_ns <= self.sent_ns < edge.window_end_ns

    @property
    def ms(self) -> float:
        """Time from the first lost packet to the denial."""
        return (self.at_ns - self.sent_ns) / 1e6

    @property
    def round_trips(self) -> float:
        """The same in round trips. ZeroDivisionError if none was known."""
        return (self.at_ns - self.sent_ns) / self.rtt_ns

    def within(self, tick_ms: float) -> Interval:
        """Return the ends of ``round_trips``: both times are late by up to a tick, the round trip is as measured."""
        rtt_ms = self.rtt_ns / 1e6
        return Interval(max(0.0, self.ms - tick_ms) / rtt_ms, (self.ms + tick_ms) / rtt_ms)


def denied_at(denied: Iterable[DeniedPath], edges: Iterable[Edge]) -> list[tuple[Edge, DeniedPath]]:
    """Return the denials of known round trip whose first lost packet left at one of these edges, each with its edge."""
    known = [each for each in denied if each.rtt_ns]
    return [(edge, each) for edge in edges for each in known if each.is_of(edge)]
