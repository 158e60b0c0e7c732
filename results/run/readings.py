"""Port readings as stored in the files of a run. Imports numpy.

Changes when something more of a port is read. ``failover.analysis.port_sampling`` explains their meaning.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hpn.failover.analysis.port_sampling import Sampled, Sampling, Series, Watched
from hpn.traffic.streams.columns import InMemory, Records, Table

READING = np.dtype(
    [(name, "<u8") for name in ("at_ns", "backlog_bytes", "drops", "sent_bytes", "sent_packets", "rate_bps", "marked")]
)
"""A row of ``failover.analysis.port_sampling.Series``. ``marked``: packets marked plus one; 0 where nothing marks."""


@dataclass(frozen=True, slots=True)
class SampledPorts:
    """Samples; ``readings`` gives the number of rows of each port, in order."""

    sampling: Sampling
    cpu_ns: int
    watched: tuple[Watched, ...]
    readings: tuple[int, ...]

    def adds_up(self, rows: int | None) -> bool:
        """Return True if the number of rows matches these counts."""
        counts = self.readings
        return len(self.watched) == len(counts) and min(counts, default=0) >= 0 and sum(counts) == rows


def ports_of(sampled: Sampled) -> tuple[SampledPorts, Table]:
    """Return the description of the samples, and all rows concatenated."""
    series = sampled.series
    found = SampledPorts(
        sampled.sampling, sampled.cpu_ns, tuple(each.port for each in series), tuple(len(each) for each in series)
    )
    content = b"".join(series.packed() for series in sampled.series)
    return found, InMemory(np.frombuffer(content, READING))


def sampled_from(ports: SampledPorts, rows: Records) -> Sampled:
    """Return the samples of ports for which ``adds_up`` is true: the inverse of ``ports_of``."""
    ends = np.cumsum(ports.readings, dtype=np.int64)
    parts = np.split(rows, ends[:-1]) if len(ends) else []
    series = [Series.unpacked(port, part.tobytes()) for port, part in zip(ports.watched, parts, strict=True)]
    return Sampled(ports.sampling, series, ports.cpu_ns)
