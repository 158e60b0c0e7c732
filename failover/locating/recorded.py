"""Records of a run that a source may use. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hpn.failover.analysis.job import SpanTime
from hpn.failover.analysis.metrics.series import MessageSeries, StreamSeries
from hpn.failover.analysis.metrics.stamps import StampSeries
from hpn.failover.analysis.port_sampling import Sampled
from hpn.failover.analysis.series import Bins
from hpn.failover.locating.known import KnownPaths


@dataclass(frozen=True, slots=True, eq=False)
class Recorded:
    """Paths and records of a run; None or empty: it had nothing of that kind. ``hosts``: of a job's ranks."""

    known: KnownPaths
    bins: Bins
    streams: StreamSeries | None = None
    messages: MessageSeries | None = None
    stamps: StampSeries | None = None
    spans: Sequence[SpanTime] = ()
    hosts: Mapping[int, str] | None = None
    ports: Sampled | None = None

    @property
    def usual_source(self) -> str:
        """Name of the source that tells most of its traffic: losses of streams, or a job's retransmissions."""
        return "retries" if self.streams is None and self.messages is not None else "loss"
