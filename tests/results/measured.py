"""Metrics with every part that a run can have: streams, transfers, ports, a job and a client beside it."""

from __future__ import annotations

from dataclasses import replace

from hpn.failover.analysis.client import ClientFacts, ClientMetrics, RankEnd, RankLog
from hpn.failover.analysis.job import Death, Done, Iteration, JobEdge, JobMetrics, MessageTimes, SpanResult
from hpn.failover.analysis.model import DrillMetrics
from hpn.failover.analysis.offered import Crossing, Offered, OfferedLink, StablePeriod, UndeliveredFlow
from hpn.failover.analysis.placement import DataPath, Placement, TierSpread
from hpn.failover.analysis.transfers import Fate, Transfer, TransferPlan, Transfers
from hpn.traffic.job.standby import Replaced
from tests.failover.synthetic import MS, S
from tests.results.sample import buffers, metrics, ports

NIC = "p0.s0.h0.r0"
TRANSFERS = Transfers(
    TransferPlan(20, 20.0, 250.0),
    (
        Transfer(0, 0, None, S, 20, 20, 20, 0, Fate.COMPLETE, 21.5, 21.25, 22.0, -0.5),
        Transfer(0, 1, 0, 4 * S, 20, 20, 12, 8, Fate.INCOMPLETE, None, None, None, 0.0),
        Transfer(1, 0, 1, 8 * S, 20, 4, 4, 0, Fate.UNFINISHED, None, None, None, 0.0),
    ),
)
_OFFERED = Offered(
    (
        StablePeriod(S, 4 * S, "", (), 0),
        StablePeriod(
            4 * S,
            9 * S,
            "link failure 0",
            (Crossing(0, 4 * S, 4 * S),),
            1,
            (UndeliveredFlow(1, "no path left"),),
            (2,),
            (UndeliveredFlow(2, "x"),),
        ),
    ),
    (OfferedLink("a-b", "a", "b", True, False, 10**8, (0.5, None)),),
    3,
)
_TIER = TierSpread("host up", 4, 8, 3, NIC, 1.5, 0.9, None)
_PLACEMENT = Placement(
    "settled", 1, 5 * S, (DataPath(0, "a>b#0", (f"{NIC}.0",), None), DataPath(1, "b>a#0", (), "dead")), (_TIER,)
)


def job() -> JobMetrics:
    """Iterations of 1 s; the failure at 4 s stops the fourth until 5.5 s, and the run cuts off the one of 6.5 s."""
    ended = [(0, S, 2 * S), (1, 2 * S, 3 * S), (2, 3 * S, 5 * S + 500 * MS), (3, 5 * S + 500 * MS, 6 * S + 500 * MS)]
    failed = JobEdge(1.0, 0.5, 1.0, 2500.0, False, 1.5, Done(6.0, 4.25, 4.75, 0.001), Done(2.0, 2.0, 2.0), undone=1)
    stands = JobEdge(1.0, 0.25, 0.0, 2400.0, True, 3.0, Done(4.0, 0.5, 1.5), Done(2.0, 0.0, 1.0))
    return JobMetrics(
        ranks=2,
        queue_pairs=2,
        tick_ms=0.5,
        iterations=tuple(Iteration(*each, wrong=0) for each in ended),
        mean_ms=1000.0,
        spans=(SpanResult("sum", "all-reduce", 4096, 2, 4, 900.0, 800.5, 2400.0, 36_408.0, 36_408.0, 0),),
        messages=MessageTimes(8, 32_768, 1.5, 2.5, 2400.0, 0.25),
        edges=(failed, stands),
        packets=100,
        packets_again=3,
        deaths=(Death(4 * S + 1, "a>b#0", 3 * S, 5 * S, 1, (Replaced("p0.s0.h0", "p0.s0.h9", (0,)),), final=False),),
        samples=8,
        counters={NIC: {"np_cnp_sent": 4, "out_of_sequence": 7}},
        wrong=0,
        open_ms=2400.0,
        exposed_ms=12.5,
        late_pct=0.125,
        placements=(_PLACEMENT,),
        period_ms=1000.0,
        checked=8,
    )


def client(*, done: bool = False) -> JobMetrics:
    """The same of a client of two ranks, of which the second died; ``done``: both had done their work."""
    first = RankEnd(0, "p0.s0.h0", NIC, 4, "done" if done else "", 8 * S if done else None, False, "step 4")
    second = RankEnd(1, "p0.s0.h1", "p0.s0.h1.r0", 4, "ended with exit code 1", 5 * S, not done, "Timeout")
    facts = ClientFacts("mpi", (first, second), 2, True, 1, "step x", (RankLog(0, 10, 2**31),), 4)
    return replace(job(), deaths=(), counters={}, client=ClientMetrics(facts, ("a doubt",)))


def everything() -> DrillMetrics:
    """All of it at once, which no run has."""
    found = metrics()
    parts = replace(found, ports=ports(), transfers=TRANSFERS, buffers=buffers(), offered=_OFFERED)
    return replace(parts, job=job(), beside=client())
