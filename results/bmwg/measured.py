"""Quantities of the draft as one run has them: the offered collective, steady iterations, uplinks, queues, strategy.

Changes when a run folder gives a quantity in another way. Times are those of the lab. A run's first iteration is its
warm-up and belongs to nothing here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hpn.failover.analysis.edge import EdgeKind
from hpn.failover.analysis.job import Iteration, SpanResult
from hpn.results.bmwg.formulas import ALGO_FACTORS, algo_factor, busbw, roofline
from hpn.results.judge.repeats.spread import nearest_rank
from hpn.results.run.reading import Run
from hpn.testbed.fabric.model import Fabric, LinkKind, Role

EVER = 2**63
"""Later than any reading."""

_WORK = "CollectiveWork"
_STRATEGIES = {
    "spray": "packet spray",
    "adaptive": "packet spray, shortest queue",
    "flowlet": "DLB (flowlet)",
    "adaptive-flowlet": "DLB (flowlet), shortest queue",
    "resilient": "ECMP, resilient",
}


@dataclass(frozen=True, slots=True)
class Collective:
    """A collective that a job repeats. ``participants``: of one group; ``line_rate`` (B_acc): of an accelerator."""

    kind: str
    algorithm: str
    size_bytes: int
    participants: int
    groups: int
    compute_s: float
    line_rate: float

    @property
    def factor(self) -> float:
        """The draft's algo_factor."""
        return algo_factor(self.kind, self.participants)

    @property
    def roofline_s(self) -> float:
        """Roofline JCT of an iteration."""
        return roofline(self.compute_s, self.size_bytes, self.factor, self.line_rate)

    @property
    def data_roofline_s(self) -> float:
        """The communication term of the roofline."""
        return self.roofline_s - self.compute_s

    def busbw(self, seconds: float) -> float:
        """Return BusBW of a collective that took so long."""
        return busbw(self.size_bytes, self.factor, seconds)


def collective(run: Run) -> Collective | None:
    """Return the collective of a job that does nothing else; None for other work."""
    work = _work(run)
    span = _span(run)
    job = run.metrics.job if run.metrics else None
    if work is None or span is None or job is None or run.fabric is None:
        return None
    if span.kind not in ALGO_FACTORS or span.ranks < 2:
        return None
    return Collective(
        span.kind,
        str(work.get("algorithm") or "as the job chooses"),
        span.size_bytes,
        span.ranks,
        job.ranks // span.ranks,
        _number(work.get("pause_ns")) / 1e9,
        line_rate(run.fabric),
    )


def _work(run: Run) -> Mapping[str, object] | None:
    """Return what a drill's job asks for, if it is one collective at the lab's own sizes and times."""
    job = (run.drill.asks if run.drill else {}).get("job")
    work = job.get("work") if isinstance(job, dict) else None
    found = work.get(_WORK) if isinstance(work, dict) else None
    return found if isinstance(found, dict) and run.manifest.job.get("sizes") == "lab" else None


def _span(run: Run) -> SpanResult | None:
    job = run.metrics.job if run.metrics else None
    return next((span for span in job.spans if span.size_bytes), None) if job else None


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def line_rate(fabric: Fabric) -> float:
    """Return B_acc: the ports of one NIC together, in bit/s."""
    return float(sum(link.rate_bps for link in fabric.nics[0].links))


def oversubscription(fabric: Fabric) -> float | None:
    """Return a ToR's bandwidth down to hosts over that up to Aggs; None without Aggs."""
    tor = next(node for node in fabric.switches if node.role is Role.TOR)
    links = fabric.links_of(tor.name)
    down = sum(link.rate_bps for link in links if link.kind is LinkKind.ACCESS)
    up = sum(link.rate_bps for link in links if link.kind is LinkKind.FABRIC)
    return down / up if up else None


def steady(run: Run) -> Sequence[Iteration]:
    """Return the iterations after the warm-up that ended before the first fault."""
    job = run.metrics.job if run.metrics else None
    edges = run.metrics.edges if run.metrics else ()
    first = min((each.edge.inject_before_ns for each in edges), default=None)
    found = job.iterations[1:] if job else ()
    return [each for each in found if first is None or each.end_ns <= first]


def hit(run: Run) -> Sequence[Iteration]:
    """Return the iterations that a failure fell into, one for each failure that hit one."""
    job, edges = (run.metrics.job, run.metrics.edges) if run.metrics else (None, ())
    at = [each.edge.inject_before_ns for each in edges if each.edge.kind is EdgeKind.FAILURE]
    return [each for each in (job.iterations if job else ()) if any(each.begin_ns <= ns < each.end_ns for ns in at)]


def seconds(iterations: Sequence[Iteration]) -> Sequence[float]:
    """Return their durations (JCT of each)."""
    return [(each.end_ns - each.begin_ns) / 1e9 for each in iterations]


def collective_seconds(run: Run) -> Sequence[float]:
    """Return the time of the collective in each steady iteration: of the slowest rank, from its own begin."""
    span = _span(run)
    wanted = {each.number for each in steady(run)}
    slowest: dict[int, int] = {}
    for each in run.spans or ():
        if span is not None and each.kind == span.kind and each.iteration in wanted:
            slowest[each.iteration] = max(slowest.get(each.iteration, 0), each.end_ns - each.begin_ns)
    return [ns / 1e9 for _, ns in sorted(slowest.items())]


def strategy(run: Run) -> str:
    """Return how the fabric spreads load, in the draft's words, and how the hosts choose source ports."""
    spec = run.fabric.spec if run.fabric else None
    balancing = spec.switch.balancing if spec and spec.switch else None
    found = "ECMP (5-tuple)" if balancing is None else _STRATEGIES.get(balancing.policy, balancing.policy)
    ports = run.manifest.job.get("source_ports")
    return f"{found}; source ports {ports}" if ports and balancing is None else found


def uplink_bytes(run: Run) -> Sequence[int]:
    """Return the bytes of each uplink of the ToRs that sent some; empty where uplinks were not sampled.

    A ToR counts with a hundredth of the busiest one's bytes or more: routing protocols alone are no load.
    """
    ports = run.metrics.ports.ports if run.metrics and run.metrics.ports else ()
    of: dict[str, list[int]] = {}
    for port in ports:
        if port.tier == "tor up":
            of.setdefault(port.port.partition(":")[0], []).append(port.sent_bytes)
    most = max(map(sum, of.values()), default=0)
    return [sent for uplinks in of.values() if 100 * sum(uplinks) >= most for sent in uplinks]


def uplink_flows(run: Run) -> tuple[float, float] | None:
    """Return MMR and JFI of queue pairs over ToR uplinks, as routed before any fault; None where that is unknown."""
    job = run.metrics.job if run.metrics else None
    tiers = job.placements[0].tiers if job and job.placements else ()
    return next(((each.imbalance, each.fairness) for each in tiers if each.tier == "tor up"), None)


def queues(run: Run) -> tuple[str, int, int] | None:
    """Return the port with the deepest P95 queue, that P95 and the largest queue of all, in bytes."""
    sampled = run.series.ports.series if run.series and run.series.ports else ()
    found = [(series.port.port, [each.backlog_bytes for each in series.until(EVER)]) for series in sampled]
    ranked = [(int(nearest_rank(depths, 95)), port) for port, depths in found if depths]
    if not ranked:
        return None
    deepest, port = max(ranked)
    return port, deepest, max(max(depths) for _, depths in found if depths)


@dataclass(frozen=True, slots=True)
class Marking:
    """Thresholds of ECN as set, in bytes."""

    kmin: int
    kmax: int
    pmax: float


def marking(run: Run) -> Marking | None:
    """Return the thresholds of the class that carries RDMA; None where it has none."""
    spec = run.fabric.spec if run.fabric else None
    if spec is None:
        return None
    if spec.switch is None:
        return Marking(spec.ecn.kmin_bytes, spec.ecn.kmax_bytes, spec.ecn.pmax) if spec.ecn else None
    switch = spec.switch
    ecn = next((each.ecn for each in switch.in_force if switch.rdma_dscp in each.dscp), None)
    return Marking(ecn.kmin, ecn.kmax, ecn.pmax) if ecn else None


def traffic_s(run: Run) -> float:
    """Return the length of the traffic, in seconds. ValueError without a drill."""
    if run.drill is None:
        raise ValueError(f"{run.path} does not say how long its traffic was")
    return run.drill.end_ns / 1e9


def tier_of(run: Run, node: str) -> str:
    """Return the role of a node: host, tor, agg or core."""
    return str(run.fabric.node_by_name[node].role) if run.fabric else ""


def marked_share(run: Run) -> float | None:
    """Return the share of packets at sampled ports that were marked, in per cent; None where nothing marks."""
    ports = [
        each for each in (run.metrics.ports.ports if run.metrics and run.metrics.ports else ()) if each.sent_packets
    ]
    counted = [each for each in ports if each.marked is not None]
    sent = sum(each.sent_packets for each in counted)
    return 100 * sum(each.marked or 0 for each in counted) / sent if sent else None


def pause_frames(run: Run) -> int | None:
    """Return PFC frames with a non-zero time, as sent by all ports; None on a fabric without ``switch:``."""
    return sum(each.xoff_sent for each in run.metrics.buffers) if run.metrics and run.metrics.buffers else None
