"""Check that transfers fit their time, and which expectations apply to flows that pause between them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hpn.failover.analysis.phrases import plain
from hpn.failover.faults import PlannedFault
from hpn.failover.faults.moments import moments
from hpn.scenarios.drill.model import Timeline, Workload
from hpn.scenarios.expect.expectation import Expectation
from hpn.scenarios.expect.metric import Pauses
from hpn.scenarios.expect.selection import At
from hpn.testbed.files.check import dotted
from hpn.testbed.files.document import Where
from hpn.testbed.files.units import format_duration, format_size
from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.flows.patterns import PATTERNS
from hpn.traffic.streams.qp import RetryPolicy

Found = Iterator[tuple[Where, str]]

LEAST_PAUSE_NS = 25_000_000
"""Minimum pause: a sender on a slow kernel looks at its schedule every 20 ms and must see the pause."""

_TO_BE_HEARD_NS = 100_000_000
"""Maximum time from a packet's due time to its acknowledgement, with queues and delayed acknowledgements."""

_MS = 1_000_000


def workload_problems(workload: Workload, timeline: Timeline | None, flows: Sequence[FlowSpec]) -> Found:
    """Yield mistakes of packets and transfers; ``flows`` are those of the workload."""
    if workload.payload_bytes is not None and workload.payload_bytes > workload.path_mtu:
        text = f"workload.payload {workload.payload_bytes} is more than path_mtu {workload.path_mtu}"
        yield ("workload", "payload"), f"{text}; write path_mtu: {workload.payload_bytes} or less payload"
    if not PATTERNS[workload.pattern].timed:
        timed = " or ".join(pattern.name for pattern in PATTERNS.values() if pattern.timed)
        for key, given in (("size", workload.size_bytes), ("every", workload.every_ns)):
            if given is not None:
                text = f"workload.{key} means nothing to {workload.pattern}, which sends evenly"
                yield ("workload", key), f"{text}; leave it out, or write pattern: {timed}"
    yield from _plan_problems([flow for flow in flows if flow.transfers is not None], timeline)


def _plan_problems(timed: Sequence[FlowSpec], timeline: Timeline | None) -> Found:
    """Yield mistakes of timing.

    The pause is too short, or so long that a queue pair fails in it, or the first fault comes after too few transfers.
    """
    if not timed:
        return
    tight = min(timed, key=lambda flow: flow.pause_ns)
    idle = max(timed, key=lambda flow: flow.pause_ns)
    every_ns = max(_every_ns(flow) for flow in timed)
    if tight.pause_ns < LEAST_PAUSE_NS:
        size = format_size(round(tight.sending_ns * tight.goodput_bps / 8e9))
        text = f"workload.every is {format_duration(_every_ns(tight))}, but {size} at that load take"
        text = f"{text} {plain(tight.sending_ns / _MS, 4)} ms and a pause of 25 ms has to follow"
        needed = _up(tight.sending_ns + LEAST_PAUSE_NS)
        yield ("workload", "every"), f"{text}; write every: {needed} or more, a smaller size, or more load"
    patience = RetryPolicy.of(idle)
    if not _lives(patience, idle.pause_ns):
        text = f"a queue pair pauses for {plain(idle.pause_ns / _MS, 4)} ms between transfers, but dies after"
        text = f"{text} {plain(patience.patience_ns / _MS, 4)} ms without an acknowledgement:"
        text = f"{text} one lost packet would kill it"
        yield ("workload", "ib_timeout"), f"{text} in a pause; {_patient(idle)}"
    if timeline is not None and timeline.healthy_ns < 2 * every_ns:
        text = f"timeline.healthy is {format_duration(timeline.healthy_ns)}, less than two transfers take"
        yield ("timeline", "healthy"), f"{text}; write healthy: {format_duration(2 * every_ns)} or more"


def _every_ns(flow: FlowSpec) -> int:
    return flow.sending_ns + flow.pause_ns


def _patient(flow: FlowSpec) -> str:
    """Return the solution: a timeout that is longer than the pause."""
    enough = (n for n in range(flow.ib_timeout, 32) if _lives(RetryPolicy(n, flow.retry_count), flow.pause_ns))
    return f"write ib_timeout: {next(enough, 31)} or more, or a shorter every"


def _lives(policy: RetryPolicy, pause_ns: int) -> bool:
    return pause_ns + _TO_BE_HEARD_NS <= policy.patience_ns


def expectation_problems(
    expectations: Sequence[tuple[Expectation, Where]],
    flows: Sequence[FlowSpec],
    faults: Sequence[PlannedFault],
    end_ns: int,
) -> Found:
    """Yield expectations that do not apply to flows with pauses, or to flows without."""
    timed = [flow for flow in flows if flow.transfers is not None]
    every_ns = max((_every_ns(flow) for flow in timed), default=0)
    sending_ns = max((flow.sending_ns for flow in timed), default=0)
    for expectation, where in expectations:
        name, needs = dotted(where[:3]), expectation.metric.needs
        if not timed:
            if needs.transfers:
                text = f"{name} can never be judged: nobody sends transfers"
                yield where[:3], f"{text}; write workload: {{pattern: bursts, size: 1 MB, every: 500 ms}}"
        elif problem := _problem(expectation, every_ns, faults, end_ns):
            yield where[:3], f"{name} can never be judged: {problem}"
        elif needs.sending and expectation.bound.is_upper and expectation.limit < sending_ns:
            text = f"{dotted(where)} is {expectation.limit_text}, but sending alone takes"
            yield where, f"{text} {plain(sending_ns / _MS, 4)} ms; write at least {_up(sending_ns)}"


def _problem(expectation: Expectation, every_ns: int, faults: Sequence[PlannedFault], end_ns: int) -> str:
    pauses = expectation.metric.needs.pauses
    if pauses is Pauses.BLIND:
        instead = "expect packets_lost, transfers_incomplete or transfer_time, or write pattern: permutation"
        return f"queue pairs pause between transfers, and nobody can tell what the network does then; {instead}"
    if pauses is Pauses.SPANNED:
        shortest_ns = _shortest_window_ns(expectation, faults, end_ns)
        if shortest_ns is not None and shortest_ns < 2 * every_ns:
            text = f"{format_duration(shortest_ns)} from an edge to the next hold less than two transfers"
            needed = format_duration(2 * every_ns)
            return f"{text}; leave {needed} or more between edges (for, settle), or write a shorter every"
    return ""


def _shortest_window_ns(expectation: Expectation, faults: Sequence[PlannedFault], end_ns: int) -> int | None:
    """Return the shortest time from an edge of the expectation to the next edge or the end."""
    due = moments(faults)
    ends_ns = [*(moment.at_ns for moment in due[1:]), end_ns]
    return min(
        (
            end - moment.at_ns
            for moment, end in zip(due, ends_ns, strict=False)
            if expectation.edge in {At.ANY, At(moment.kind.value)}
            and expectation.fault in {None, *(each.planned.id for each in moment.due)}
        ),
        default=None,
    )


def _up(ns: int) -> str:
    """Return whole milliseconds, rounded up, as text."""
    return format_duration(-(-ns // _MS) * _MS)
