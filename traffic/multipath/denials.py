"""Denials of paths, and how long each path went on losing before. PURE, without numpy.

Times are CLOCK_MONOTONIC in ns, as the sender reads it once a tick.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

MOST_DENIALS = 4096
"""Denials that a queue pair remembers; the counter goes on."""


class Loss(NamedTuple):
    """Lost packets of a path. ``sent_ns``: when the first left; ``rtt_ns``: the round trip known then, or 0."""

    path: int
    sent_ns: int
    rtt_ns: int


@dataclass(frozen=True, slots=True)
class Denial:
    """A path that was denied: nothing left by it from ``at_ns`` on.

    ``sent_ns`` and ``rtt_ns`` are of the first packet that it lost since its last arrival. ``port``: of the NIC.
    """

    port: int
    sent_ns: int
    at_ns: int
    rtt_ns: int
