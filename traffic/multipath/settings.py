"""Settings of the multipath transport, as both ends of a queue pair know them. PURE, without numpy.

What MRC's summaries say, second hand: 128 to 256 entropy values for each queue pair, equally over the planes. A lost
packet retires its path at once, and the path is probed. A mark or a trimmed packet means congestion only. How often
paths are probed and how long a congested one is skipped is not published: both are ours, for the lab's rates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

FEWEST_PATHS, MOST_PATHS = 2, 256
MOST_WINDOW = 2048
"""Largest window in packets: an acknowledgement has a bit for each."""


class EntropyValue(NamedTuple):
    """An entropy value: the UDP source port that chooses a path, and the port of its NIC that it leaves by now.

    ``via``: IPv4 address whose route puts packets on a static path, and ``mark`` of their socket, which picks the port;
    '' and 0: the source port chooses. ``back``: number of the acknowledgements' value that leads back over the same
    links; -1: unknown, any that leaves by the same port.
    """

    sport: int
    port: int
    via: str = ""
    mark: int = 0
    back: int = -1


@dataclass(frozen=True, slots=True)
class Multipath:
    """Settings of a queue pair's paths.

    ``paths``: entropy values. A marked path is skipped for ``skip_for_ns``. A path is denied after ``deny_after`` lost
    packets without an arrival in between. Denied paths are probed every ``probe_interval_ns``, at most
    ``probes_at_once`` of each port. After ``dark_after`` denied paths of a port that nothing came back from in between,
    its other paths are assumed bad. ``trimmed_dscp``: of packets that a switch cut to their headers; None: none does.
    """

    paths: int = 128
    probe_interval_ns: int = 20_000_000
    skip_for_ns: int = 10_000_000
    deny_after: int = 1
    dark_after: int = 4
    probes_at_once: int = 4
    trimmed_dscp: int | None = None
