"""Runs that lack what a figure is made of: nothing ran, nothing was sent, it was cut off, or it has one side alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hpn.failover.analysis.denied import DeniedPath
from hpn.failover.analysis.downtime import Downtime
from hpn.failover.analysis.job import Done, Iteration, JobEdge, JobMetrics, MessageTimes, SpanResult
from hpn.failover.analysis.model import DrillMetrics, FlowResult, Goodput, NoiseFloor, Relation
from hpn.failover.analysis.offered import Offered
from hpn.failover.analysis.placement import Placement, TierSpread
from hpn.failover.analysis.ports import NicBalance, PortMetrics
from hpn.failover.analysis.protocol_events import EventSpan, ProtocolEvent
from hpn.failover.analysis.transfers import Fate, Transfer, TransferPlan, Transfers
from hpn.scenarios.expect.evidence import Evidence, RunFacts
from hpn.scenarios.expect.metric import Lack
from tests.results import sample

from .measured import FAILURE, MS, REPAIR, at_edge, flow, metrics

NIC = "p0.s0.h0.r0"
_NO_MESSAGES = MessageTimes(0, 0, 0.0, 0.0, 0.0)
_MESSAGES = MessageTimes(90, 90_000, 1.0, 2.0, 3.0, 0.1)
_PLAN = TransferPlan(10, 10.0, 100.0)
_CUT = Transfer(0, 0, 0, 5800 * MS, 10, 4, 4, 0, Fate.UNFINISHED, None, None, None, 0.0)
_TIER = TierSpread("tor up", 2, 4, 2, "a", 1.0, 1.0, None)


def lacking(what: Lack) -> list[Evidence]:
    """Runs of streams, and of a job, that lack that; each with everything else that a metric may read."""
    facts = RunFacts()
    with_streams = _with_parts(_STREAMS[what], what)
    return [Evidence(each, facts) for each in (with_streams, replace(with_streams, job=_JOBS[what]))]


def _stream(**of_both: object) -> FlowResult:
    """A flow that is hit, and is told the same of both edges."""
    failure, repair = (replace(at_edge("rx", Relation.RECEIVER), **of_both) for _ in range(2))  # type: ignore[arg-type]  # fields
    return flow("rx", failure, repair, src="a", dst=NIC)


def _idle(found: FlowResult, *edges: int) -> FlowResult:
    """The same flow, sending nothing at these edges."""
    still = Goodput(found.edges[0].goodput.before_bps, 0.0, 0.0)
    told = [replace(e, sent=0, goodput=still) if at in edges else e for at, e in enumerate(found.edges)]
    return replace(found, edges=tuple(told))


def _stuck() -> FlowResult:
    lost = at_edge("rx", Relation.RECEIVER, 400, recovered=False)
    late = replace(lost.impairment, packets=400, first_at_ns=1000 * MS, over=False, plbm_ms=400.0, low_ms=400.0)
    return flow("rx", replace(lost, impairment=late), replace(lost, impairment=late), src="a", dst=NIC)


_SILENT = replace(_idle(_stream(goodput=Goodput(0.0, 0.0, 0.0)), 0, 1), sent=0, received=0)
_EDGES = (FAILURE, REPAIR)
_STREAMS: Mapping[Lack, DrillMetrics] = {
    Lack.EMPTY: metrics(_EDGES, ()),
    Lack.IDLE: metrics(_EDGES, (_SILENT,)),
    Lack.CUT_OFF: metrics(_EDGES, (_stuck(),)),
    Lack.BEFORE: metrics(_EDGES, (_stream(goodput=Goodput(0.0, 100.0, 100.0)),)),
    Lack.AFTER: metrics(_EDGES, (_idle(_stream(), 0, 1),)),
}


def _with_parts(found: DrillMetrics, what: Lack) -> DrillMetrics:
    """Transfers, ports, marks and a takeover, as far as such a run has any."""
    ports = replace(sample.ports(), ports=tuple(replace(port, marked=3) for port in sample.ports().ports))
    still = replace(ports.ports[0], sent_packets=0, sent_bytes=0, drops=0, queue_max_bytes=0, marked=0, load=0.0)
    silent = replace(ports, ports=(still,), balance=(NicBalance(NIC, (0.0, 0.0), (0, 0)),))
    sampled: PortMetrics = {
        Lack.EMPTY: replace(ports, ports=(), balance=()),
        Lack.IDLE: silent,
        Lack.BEFORE: replace(ports, balance=silent.balance),
    }.get(what, ports)
    used = sample.buffers() if what not in {Lack.EMPTY, Lack.IDLE} else sample.buffers()[-1:] * (what is Lack.IDLE)
    transfers = Transfers(_PLAN, (_CUT,) if what is Lack.CUT_OFF else ())
    marks = (EventSpan(ProtocolEvent.LACP, 2, 1005 * MS, "a", 5999 * MS, "b"),) if what is Lack.CUT_OFF else ()
    waiting = Downtime(None, 1000 * MS, None, 2, "", 1.0, "not yet") if what is Lack.CUT_OFF else None
    quiet = NoiseFloor(0.0, 0.0, 0.0, 0.0, 0, 0, 0.0) if what in {Lack.EMPTY, Lack.IDLE, Lack.BEFORE} else found.noise
    edges = tuple(replace(edge, marks=marks, downtime=waiting) for edge in found.edges)
    parts = replace(found, edges=edges, noise=quiet, ports=sampled, transfers=transfers, offered=Offered((), (), 0))
    return replace(parts, buffers=used)


_COUNTERS = {"np_cnp_sent": 4, "rp_cnp_handled": 4, "path_packets_good": 100, "path_denials": 0}


def _job(
    iterations: int, open_ms: float, before: float, edge: JobEdge, *, did: bool = True, mean_ms: float = 100.0
) -> JobMetrics:
    ended = tuple(Iteration(n, n * 100 * MS, (n + 1) * 100 * MS, 0) for n in range(iterations))
    spans = (SpanResult("sum", "all-reduce", 1000, 2, 9, 100.0, 100.0, 100.0, 8e4, 8e4, 0),) if iterations else ()
    found = JobMetrics(
        2, 2, 0.5, ended, mean_ms if before else 0.0, spans, _MESSAGES if did else _NO_MESSAGES,
        (replace(edge, rate_before=before),) * 2, 100 * did, 0, (), 8,
        {"a": dict(_COUNTERS)} if did else {}, 0, open_ms, checked=2 * iterations,
    )  # fmt: skip
    denied = DeniedPath(NIC, 0, FAILURE.inject_before_ns + MS, FAILURE.inject_before_ns + 9 * MS, 2 * MS)
    looked = (Placement("settled", 2, 0, (), (_TIER,)),)
    return replace(found, placements=looked, denied=(denied,)) if did else found


_STILL = JobEdge(0.0, 0.0, 0.0, 0.0, False, 0.0)
_STOPPED = JobEdge(0.0, 0.5, 0.0, 4000.0, True, 9.0, Done(10.0, 0.0, 1.0), Done(10.0, 0.0, 1.0))
_RUNNING = JobEdge(0.0, 10.0, 10.0, 100.0, False, 0.0, Done(0.0, 10.0, 10.0), Done(0.0, 10.0, 10.0))
_JOBS: Mapping[Lack, JobMetrics] = {
    Lack.EMPTY: _job(0, 6000.0, 0.0, _STILL, did=False),
    Lack.IDLE: _job(0, 6000.0, 0.0, _STILL, did=False),
    Lack.CUT_OFF: _job(10, 4000.0, 10.0, _STOPPED),
    Lack.BEFORE: _job(10, 50.0, 0.0, _RUNNING),
    Lack.AFTER: _job(10, 4000.0, 10.0, _STOPPED),
}
