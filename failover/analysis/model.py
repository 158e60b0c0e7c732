"""Data model of a failover measurement: edges of faults, and the results per flow, edge and drill.

Changes when a figure is added or dropped. Every field name carries its unit, so ``results.run.folder`` writes these
dataclasses to JSON as they are. Terms: RFC 6412 (convergence), RFC 6414 (PLBM, TBM), RFC 4737 (reordering), RFC 5560
(duplicates). ``_ns`` fields are CLOCK_MONOTONIC; None always comes with a reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hpn.failover.analysis.budget import Interval, OutageBudget
from hpn.failover.analysis.buffers import ClassUse
from hpn.failover.analysis.congestion import Congestion, EdgeCongestion
from hpn.failover.analysis.downtime import Downtime
from hpn.failover.analysis.edge import Edge as Edge
from hpn.failover.analysis.edge import EdgeKind as EdgeKind
from hpn.failover.analysis.edge import HitLink as HitLink
from hpn.failover.analysis.edge import Relation as Relation
from hpn.failover.analysis.hostload import HostLoad
from hpn.failover.analysis.impairment import EdgeImpairment, Impairment
from hpn.failover.analysis.job import JobMetrics
from hpn.failover.analysis.location import Location
from hpn.failover.analysis.offered import Offered
from hpn.failover.analysis.ports import PortMetrics
from hpn.failover.analysis.protocol_events import EventSpan
from hpn.failover.analysis.settings import QUICK as QUICK
from hpn.failover.analysis.settings import Settings as Settings
from hpn.failover.analysis.transfers import Transfers


@dataclass(frozen=True, slots=True)
class Outage:
    """One run of missing packets of one flow; holes without M packets received in order between them are one outage.

    ``plbm_ms`` = missing / rate (RFC 6414). ``tbm_ms`` (RFC 6414) = send time of the first packet received
    after, minus send time of the last received before, minus one packet period for each packet received in
    between and one more. Both are lower bounds when ``open`` (nothing arrived after it within the record).
    """

    first_loss_at_ns: int  # send time of the first missing packet
    last_loss_at_ns: int  # send time of the last missing packet
    resumed_at_ns: int | None  # receive time of the first packet after it
    packets: int  # missing
    holes: int
    plbm_ms: float
    tbm_ms: float
    open: bool
    certain_ms: float  # ``failover.analysis.budget``: it lasted at least that long
    possible_ms: float  # and at most that long, when it is not ``open``


class LossPattern(StrEnum):
    """Shape of a flow's loss in one window."""

    NONE = "none"
    HOLE = "hole"  # one outage holds at least 90 % of it
    HOLES = "holes"  # several outages
    SCATTERED = "scattered"  # more than three outages, the largest holds less than half: rate loss


@dataclass(frozen=True, slots=True)
class Goodput:
    """Payload bits per second, by send time, of packets received unharmed.

    ``before``: up to 2 s before the edge. ``during``: the whole window, from injection on. ``after``: the last part of
    the window (2 s, at most half of it), when things have settled.
    """

    before_bps: float
    during_bps: float
    after_bps: float


@dataclass(frozen=True, slots=True)
class NicGoodput:
    """Goodput of all flows from or to one NIC."""

    nic: str
    direction: str  # 'up': from the NIC; 'down': to it
    goodput: Goodput


@dataclass(frozen=True, slots=True)
class FlowEdgeResult:
    """Effect of one edge on one flow.

    ``lost`` .. ``corrupted`` count packets *sent inside the window*, so they add up over edges. The outage figures
    follow each outage that began in the window to its true end, beyond the window if need be, and an outage already
    open at injection from the injection on; a flap faster than recovery can therefore not cut an outage short.
    """

    flow: int
    name: str
    relation: Relation
    control: bool  # untouched by this edge and every edge before: must lose nothing
    sent: int
    lost: int  # missing, no copy arrived at all
    corrupted: int  # missing, a copy with a wrong ICRC arrived: counts for the outage, not for ``lost``
    late: int  # delay above the forwarding delay threshold (RFC 6412)
    duplicated: int  # copies beyond the first (RFC 5560)
    reordered: int  # Type-P-Reordered: smaller than the largest sequence number already received (RFC 4737)
    outage_plbm_ms: float  # headline: all missing packets of this edge's outages / rate
    outage_tbm_ms: float
    worst_outage_ms: float  # the longest single outage (PLBM)
    methods_disagree: bool
    outages: int
    longest_hole_packets: int
    pattern: LossPattern
    first_loss_at_ns: int | None
    last_loss_at_ns: int | None
    in_outage_at_injection: bool
    recovered: bool  # K packets in order after the last outage, within the record; True when nothing was lost
    recovered_in_window: bool  # the same before the window ended; False with recovered: only the next edge healed it
    validated: bool  # and no loss for the validation time (RFC 6412: sustained convergence validation time)
    recovered_at_ns: int | None  # route-specific convergence recovery instant: receive time of the first of the K
    convergence_ms: float | None  # route-specific convergence time: recovered_at - injection
    convergence_reason: str  # why ``convergence_ms`` is None
    resolution_ms: float  # one packet period, or one burst interval when packets are sent in bursts
    send_gap_ms: float  # the sender's own largest gap from injection to recovery
    stopped_by_error: bool  # the queue pair errored in the window: unsent packets are not lost, goodput is 0
    goodput: Goodput
    budget: OutageBudget  # the interval of ``outage_plbm_ms``
    plane: int | None = None  # that carried its data as the edge came; None: the runner did not note it
    impairment: Impairment = Impairment()  # noqa: RUF009 - frozen
    congestion: Congestion | None = None  # None: it took nothing, or nobody knows the offered load


@dataclass(frozen=True, slots=True)
class FlowResult:
    """One flow over the whole record."""

    flow: int
    name: str
    src_nic: str
    dst_nic: str
    rate_pps: float
    sent_rate_pps: float  # what the sender really achieved
    sent: int
    received: int  # distinct, unharmed
    lost: int
    corrupted: int
    late: int
    duplicated: int
    reordered: int
    in_flight_at_end: int  # sent too late to tell: neither lost nor received
    unexplained_lost: int  # missing outside every edge window
    unknown: int  # received, never recorded as sent: the record is damaged when > 0
    largest_send_gap_ms: float
    resolution_ms: float
    stopped_at_ns: int | None  # queue pair error
    outage_count: int
    longest_outages: tuple[Outage, ...]  # at most 100, in order of time
    edges: tuple[FlowEdgeResult, ...]  # same order as DrillMetrics.edges
    replaces: int | None = None  # of a replacement flow: the flow whose work it took on
    patience_ms: float | None = None  # without an acknowledgement, until its queue pair errors; None: not known


@dataclass(frozen=True, slots=True)
class Phase:
    """One part of a failover. ``ms`` is None when it did not happen or cannot be told, and ``reason`` says why."""

    ms: float | None
    at_ns: int | None = None
    by: str = ""  # the event that ended it, 'node subject what'
    reason: str = ""
    late_ms: float = 0.0  # at most so long after what it tells of that event was stamped, by the event itself
    early_ms: float = 0.0  # ... and so long before


@dataclass(frozen=True, slots=True)
class Phases:
    """Injection to recovery in steps; all but ``switch`` count from the injection."""

    detect: Phase  # injection to the first sign that an affected node noticed
    switch: Phase  # detect to the last hit host's LAG being rewritten
    converge: Phase  # injection to the last attributable route change
    path_first: Phase  # injection to the first queue pair moved, or destination steered, by path control
    path_last: Phase  # injection to the last one
    recover: Phase  # injection to the last flow's recovery (RFC 6412: full convergence time)


@dataclass(frozen=True, slots=True)
class EdgeResult:
    """Effect of one edge on the whole run.

    The worst is over the flows that are hit (relation not 'none'), the median over those of them that lost something.
    """

    edge: Edge
    flows_hit: int
    flows_lossy: int  # of these, how many lost anything
    flows_unrecovered: int
    flows_died: int  # queue pairs that errored
    control_lost: int  # packets lost by flows of the control group
    lost: int
    worst_outage_plbm_ms: float
    worst_outage_tbm_ms: float
    median_outage_plbm_ms: float
    median_outage_tbm_ms: float
    worst_outage_interval_ms: Interval  # what the longest outage of a flow that is hit may have been
    median_outage_interval_ms: Interval  # when no flow lost anything, what all of them may have hidden
    worst_flow: str | None
    first_route_convergence_ms: float | None  # RFC 6412: the first flow that lost packets and recovered
    full_convergence_ms: float | None  # RFC 6412: the last flow; None when one never recovered or none lost
    resolution_ms: float
    send_gap_ms: float
    methods_disagree: int  # number of flows
    goodput: Goodput  # all flows
    nics: tuple[NicGoodput, ...]
    phases: Phases
    marks: tuple[EventSpan, ...] = ()  # what the protocols of the whole lab did in the window
    downtime: Downtime | None = None  # of a takeover: how long the job stood still
    impairment: EdgeImpairment = EdgeImpairment()  # noqa: RUF009 - frozen
    congestion: EdgeCongestion | None = None  # None: it took nothing, or nobody knows the offered load

    @property
    def never_over(self) -> bool:
        """True if a flow had not recovered when the record ended: its outage is a lower bound."""
        return self.flows_unrecovered > 0 or self.flows_died > 0


@dataclass(frozen=True, slots=True)
class NoiseFloor:
    """Figures that the method reports when nothing is wrong, from the healthy phase."""

    noise_floor_ms: float  # the largest outage (PLBM or TBM) reported at a pseudo-edge
    send_gap_max_ms: float
    send_gap_p99_ms: float
    delay_variation_ms: float  # largest minus smallest receive-minus-send time of a flow (RFC 3393)
    lost: int  # machine-caused
    pseudo_edges: int
    window_s: float


@dataclass(frozen=True, slots=True)
class DrillMetrics:
    """Everything measured in one drill.

    ``inconclusive`` lists what makes the measurement unusable, ``unexplained`` loss that no fault explains, one line
    each: if the machine dropped packets that loss is its own, otherwise the fabric's, which metrics cannot tell.
    """

    settings: Settings
    flow_count: int  # replacement flows not counted: they send when others no longer do
    few_flows: bool  # fewer than the 16 that RFC 6414 asks for
    noise: NoiseFloor
    resolution_ms: float
    flows: tuple[FlowResult, ...]
    edges: tuple[EdgeResult, ...]
    unexplained_lost: int
    host: HostLoad | None
    inconclusive: tuple[str, ...]
    unexplained: tuple[str, ...]
    ports: PortMetrics | None = None  # when the drill asked for samples
    transfers: Transfers | None = None  # when the workload has any; then all times of outages leave planned pauses out
    job: JobMetrics | None = None  # when a job or a client ran; streams run beside a client only
    beside: JobMetrics | None = None  # of a client that ran beside a job
    offered: Offered | None = None  # of streams
    buffers: tuple[ClassUse, ...] | None = None  # where the topology has ``switch:``
    location: Location | None = None  # where the drill expects its faults to be located

    @property
    def has_streams(self) -> bool:
        """True if there were flows to measure."""
        return self.job is None or (self.job.client is not None and self.flow_count > 0)

    def edge(self, fault: str, kind: EdgeKind, index: int = 0) -> EdgeResult:
        """Return the result of one edge. KeyError when there is none."""
        for result in self.edges:
            if fault in result.edge.faults and (result.edge.kind, result.edge.index) == (kind, index):
                return result
        raise KeyError(f"{fault} {kind} {index}")

    def worst_began_before(self, edge: EdgeResult) -> bool:
        """Return True if the longest outage of an edge had begun before it: the earlier edge reports it."""
        return any(flow.name == edge.worst_flow and flow.in_outage_at_injection for flow in self.flows_at(edge))

    def dead_before(self, edge: EdgeResult) -> int:
        """Return how many of the flows that an edge hits had died before it."""
        at = self.edges.index(edge)
        stopped = [flow.stopped_at_ns for flow in self.flows if flow.edges[at].relation.is_touched]
        return sum(each is not None and each < edge.edge.inject_before_ns for each in stopped)

    def all_dead_before(self, edge: EdgeResult) -> bool:
        """Return True if every flow that an edge hits had died before it: there is no outage to measure."""
        return 0 < edge.flows_hit == self.dead_before(edge)

    def flows_at(self, edge: EdgeResult) -> tuple[FlowEdgeResult, ...]:
        """Return the per-flow results of one edge, control group included."""
        at = self.edges.index(edge)
        return tuple(flow.edges[at] for flow in self.flows)


def settled_window_ns(edge: Edge, settings: Settings) -> int:
    """Return the length of the last part of an edge's window, from which goodput 'after' is taken."""
    return min(int(settings.goodput_window_s * 1e9), (edge.window_end_ns - edge.inject_before_ns) // 2)
