"""Job of a drill in the model: paths of its queue pairs, its iterations, and their analysis. PURE."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from hpn.failover.analysis.job import DeathFact, JobFacts, SpanFact
from hpn.failover.analysis.metrics.job import job_metrics
from hpn.failover.analysis.model import DrillMetrics, Settings
from hpn.scenarios.model.figures import without_flows
from hpn.scenarios.model.jobrun import JobRun
from hpn.scenarios.model.paths_over_time import PathsOverTime
from hpn.testbed.errors import InputError
from hpn.traffic.collectives.program import Program, Send, Spend, Stream
from hpn.traffic.fluid.links import Links
from hpn.traffic.jobengine.plan import JobPlan
from hpn.traffic.jobengine.records import MESSAGE

MOST_MESSAGES = 1_000_000
"""Limit of messages in a run."""
SECONDS_A_MESSAGE = 0.2e-3
"""CPU time of a message, as measured."""
_PORTS = 2
"""Maximum number of ports of a NIC."""


@dataclass(frozen=True, eq=False)
class JobModelled:
    """Result of a modelled job."""

    metrics: DrillMetrics
    doubts: tuple[str, ...]  # reasons not to trust its figures


def run_job(
    links: Links,
    plan: JobPlan,
    ways: PathsOverTime,
    settings: Settings,
    times_ns: tuple[int, int],
    heard: Callable[[float], None] | None = None,
) -> JobModelled:
    """Run a job on these paths; ``times_ns``: the end of the healthy time and of the run.

    InputError, before it starts, when the job has too many messages.
    """
    healthy_ns, end_ns = times_ns
    _check_size(plan, end_ns)
    run = JobRun(links, plan, ways, end_ns, heard)
    run.run()
    facts = JobFacts(
        spans={
            program.rank: tuple(SpanFact(s.label, s.kind, s.size_bytes, s.ranks) for s in program.spans)
            for program in plan.programs
            if program.rank not in plan.background
        },
        queue_pairs=len(plan.queue_pairs),
        tick_ns=plan.tick_ns,
        packets=0,
        packets_again=0,
        counters={},
        deaths=() if run.died is None else (DeathFact(run.died[1], plan.queue_pairs[run.died[0]].flow.name),),
        samples=plan.samples,
    )
    job = job_metrics(facts, run.spans, np.empty(0, MESSAGE), ways.edges, (0, end_ns), settings)
    empty = without_flows(ways, settings, healthy_ns)
    return JobModelled(replace(empty, job=job), tuple(_doubts(links, run)))


def _doubts(links: Links, run: JobRun) -> list[str]:
    crowded = sorted(run.crowded.items(), key=lambda each: -each[1])
    if not crowded:
        return []
    link, times = crowded[0]
    more = f" (and {len(crowded) - 1} more links)" if len(crowded) > 1 else ""
    return [
        f"{links.names[link]}{more} is asked for {times:.2g} times its rate by queue pairs without congestion control:"
        " they lose packets and send them again, which is not modelled; a lab says what it costs"
    ]


def _check_size(plan: JobPlan, end_ns: int) -> None:
    """Raise InputError for too many messages."""
    messages = messages_at_most(plan, end_ns)
    if messages > MOST_MESSAGES:
        raise InputError(
            f"{messages:,.0f} messages in this drill, and the model goes through {MOST_MESSAGES:,} at"
            " most; take a shorter timeline, larger messages or fewer hosts"
        )


def messages_at_most(plan: JobPlan, end_ns: int) -> float:
    """Return the number of messages, from the largest number of iterations that fit.

    An iteration takes at least its longest sending or its longest computing.
    """
    sent = {
        program.rank: sum(op.piece.size_bytes for op in program.ops if isinstance(op, Send) and op.rail is not None)
        for program in plan.programs
    }
    messages = sum(isinstance(op, Send) and op.rail is not None for program in plan.programs for op in program.ops)
    fastest = max(pair.flow.goodput_bps for pair in plan.queue_pairs)
    computed = max(_computed_ns(program) for program in plan.programs)
    least_s = max(max(sent.values()) * 8 / (_PORTS * fastest), computed / 1e9, plan.tick_ns / 1e9)
    return messages * end_ns / 1e9 / least_s


def _computed_ns(program: Program) -> int:
    """Return the minimum duration of an iteration in ns: each resource stream works on one item at a time."""
    spent = dict.fromkeys((Stream.COMPUTE, Stream.NVLINK), 0)
    for op in program.ops:
        if isinstance(op, Spend) and op.stream in spent:
            spent[op.stream] += op.ns
    return max(spent.values())
