"""Contents of a series of flows: the flows, and the time, divided into bins. Pure, no numpy.

Changes when a reader of a series needs more data of a flow. ``failover.analysis.metrics.series`` computes them from
records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hpn.traffic.flows.flow import FlowSpec

BIN_NS = 10_000_000


@dataclass(frozen=True, slots=True)
class Bins:
    """``count`` bins of ``width_ns`` from ``start_ns`` (CLOCK_MONOTONIC) on."""

    start_ns: int
    width_ns: int
    count: int

    @property
    def end_ns(self) -> int:
        """End of the last bin."""
        return self.start_ns + self.count * self.width_ns


@dataclass(frozen=True, slots=True)
class SeriesFlow:
    """A flow as far as a picture needs it; ``packet_bytes``: payload of each of its packets."""

    flow: int
    name: str
    src_nic: str
    dst_nic: str
    packet_bytes: int
    replaces: int | None = None  # of a replacement flow: the flow whose work it took on


def bins_of(start_ns: int, end_ns: int, width_ns: int = BIN_NS) -> Bins:
    """Return bins that cover [start, end): the last may reach beyond it."""
    return Bins(start_ns, width_ns, max(0, -(-(end_ns - start_ns) // width_ns)))


def series_flows(flows: Sequence[FlowSpec]) -> tuple[SeriesFlow, ...]:
    """Return the series data of flows as they ran."""
    return tuple(
        SeriesFlow(flow.id, flow.name, flow.src_nic, flow.dst_nic, flow.path_mtu, flow.replaces) for flow in flows
    )
