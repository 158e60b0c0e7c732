"""Checks that expectations apply to the traffic, faults and sizes of a drill. Pure.

Each check yields the place of a mistake and its text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hpn.failover.analysis.phrases import plain
from hpn.failover.faults import FAULTS, PlannedFault
from hpn.scenarios.drill.checks_sample import expectation_problem, period_problem
from hpn.scenarios.drill.checks_scope import scope_problem
from hpn.scenarios.drill.parts import Found, Parts
from hpn.scenarios.drill.workload import packet_period_ns
from hpn.scenarios.expect.expectation import Expectation
from hpn.scenarios.expect.metric import Shape, Traffic
from hpn.scenarios.expect.selection import At, Flows, Whose
from hpn.testbed.files.check import did_you_mean, dotted
from hpn.testbed.files.document import shorten
from hpn.testbed.files.units import format_duration


def sample_problems(parts: Parts) -> Found:
    """Yield expectations that need other samples, and a period that the ports cannot be read at."""
    if parts.fabric is None:
        return
    for expectation, where in parts.expectations:
        problem = expectation_problem(expectation, parts.fabric, parts.sample)
        if problem:
            yield where[:3], f"{dotted(where[:3])} can never be judged: {problem}"
    if parts.sample is not None and parts.timeline is not None:
        problem = period_problem(parts.fabric, parts.sample, parts.timeline.end_ns)
        if problem:
            yield ("sample", "queues"), f"sample.queues {problem}"


def traffic_problems(parts: Parts) -> Found:
    """Yield expectations and faults that do not apply to the traffic: streams, job or client.

    No fault replaces a host of a job.
    """
    if parts.job is None and parts.workload is None and not parts.client:
        return  # the job could not be read
    told, runs, ways_out = _told_by(parts)
    for expectation, where in parts.expectations:
        wanted = expectation.metric.needs.traffic
        if wanted is not Traffic.EITHER and wanted not in told:
            text = f"{dotted(where[:3])} says nothing of {runs}, which this drill runs"
            yield where[:3], f"{text}; remove it, or write {ways_out[wanted]}"
        elif problem := _whose_problem(expectation, parts):
            yield where[:3], f"{dotted(where[:3])} {problem}"
    for planned, where in parts.faults if parts.job is not None or parts.client else ():
        if planned.fault.REPLACES_HOST and parts.job is not None:
            text = f"{dotted(where)}: a job finds out by itself which hosts it has lost"
            yield where, f"{text}; write fault: host-down, and spares: 1 in job.restart"
        elif planned.fault.REPLACES_HOST:
            yield where, f"{dotted(where)}: no spare goes on with the work of a client; write fault: host-down"


def _whose_problem(expectation: Expectation, parts: Parts) -> str:
    """Return the problem with ``whose`` of an expectation, or ''.

    It is required if both a job and a client run, and must name one that runs.
    """
    if expectation.metric.needs.traffic is not Traffic.RANKS:
        return ""
    runs = {Whose.JOB: parts.job is not None, Whose.CLIENT: parts.client}
    if expectation.whose is not None and not runs[expectation.whose]:
        return f"is about a {expectation.whose}, and this drill runs none; leave whose out"
    if expectation.whose is None and all(runs.values()):
        form = "{{is: yes, whose: {}}}" if expectation.metric.shape is Shape.YES_NO else "whose: {}"
        ways_out = " or ".join(map(form.format, Whose))
        return f"does not say whose, and a job and a client run; write {ways_out}"
    return ""


def _told_by(parts: Parts) -> tuple[set[Traffic], str, Mapping[Traffic, str]]:
    """Return whose metrics are available, the traffic that runs, and what to write to get others."""
    instead = {
        Traffic.STREAMS: "workload:",
        Traffic.JOB: "job:",
        Traffic.RANKS: "job:, or workload.client",
        Traffic.FLOWS: "workload.pattern, or job:",
    }
    if parts.job is not None:
        return {Traffic.JOB, Traffic.RANKS, Traffic.FLOWS}, "a job and a client" if parts.client else "a job", instead
    if not parts.client:
        return {Traffic.STREAMS, Traffic.FLOWS}, "a workload of streams", {**instead, Traffic.RANKS: "job:"}
    if parts.workload is None:
        streams = "streams beside it, such as workload.pattern"
        return {Traffic.RANKS}, "a client", {**instead, Traffic.STREAMS: streams}
    return {Traffic.RANKS, Traffic.STREAMS, Traffic.FLOWS}, "a client and streams", instead


def known_fault_problems(parts: Parts) -> Found:
    """Yield expectations of a fault that the timeline does not have."""
    if not parts.faults_complete:
        return
    ids = list(dict.fromkeys(planned.id for planned, _ in parts.faults))
    for expectation, where in parts.expectations:
        if expectation.fault is not None and expectation.fault not in ids:
            hint = did_you_mean(expectation.fault, ids, "write one of") if ids else "the timeline has no faults"
            yield (*where[:-1], "fault"), f"{dotted(where[:-1])} is about fault {shorten(expectation.fault)}; {hint}"


def edge_problems(parts: Parts) -> Found:
    """Yield expectations of edges that the faults do not have."""
    if not parts.faults_complete:
        return
    for expectation, where in parts.expectations:
        problem = _edge_problem(expectation, [planned for planned, _ in parts.faults], parts)
        if problem:
            yield where, f"{dotted(where[:3])} can never be judged: {problem}"


def _edge_problem(expectation: Expectation, faults: Sequence[PlannedFault], parts: Parts) -> str:
    if not faults:
        missing = "the drill has no faults; add one under timeline.faults, or remove the expectation"
        return missing if _is_about_a_fault(expectation) else ""
    needs = expectation.metric.needs
    chosen = [planned for planned in faults if expectation.fault in {None, planned.id}]
    if needs.takeover and parts.job is None and not any(planned.fault.REPLACES_HOST for planned in chosen):
        kinds = " or ".join(kind for kind, fault in FAULTS.items() if fault.REPLACES_HOST)
        return f"no spare takes over from a host; add a fault {kinds}, or name it"
    if expectation.edge is At.REPAIR and not any(planned.repaired_at_ns for planned in chosen):
        return "no fault is repaired within the drill; add 'for' to it, or write edge: failure"
    if needs.time and expectation.edge is At.FAILURE:
        return _too_short(chosen, parts.profile.validation_ns, needs.time)
    return ""


def _is_about_a_fault(expectation: Expectation) -> bool:
    of_edge = expectation.edge is not At.ANY or expectation.metric.needs.fault
    return of_edge or expectation.flows not in {Flows.ALL, Flows.OTHERS}


def _too_short(chosen: Sequence[PlannedFault], needed_ns: int, time: str) -> str:
    """Return the fault whose repair or host replacement comes before ``time``, which takes ``needed_ns``, or ''."""
    short = [planned for planned in chosen if planned.for_ns is not None and planned.for_ns < needed_ns]
    replaced = [(planned, planned.fault.replacement) for planned in chosen]
    short += [planned for planned, by in replaced if by is not None and by.after_ns < needed_ns]
    if not short:
        return ""
    key = "after" if short[0].fault.REPLACES_HOST else "for"
    return f"{short[0].id} is repaired before {time}; write {key}: {format_duration(needed_ns)} or more"


def resolution_problems(parts: Parts) -> Found:
    """Yield limits shorter than the interval between two packets of a queue pair."""
    period_ns = packet_period_ns(parts.flows)
    for expectation, where in parts.expectations:
        if not expectation.metric.needs.period:
            continue
        if expectation.bound.is_upper and expectation.limit < period_ns:
            text = f"a queue pair sends one packet every {plain(period_ns / 1e6)} ms and nothing shorter can be seen"
            way_out = f"write at least {-(-period_ns // 10**6)} ms, raise workload.load, or expect packets_lost"
            yield where, f"{dotted(where)} is {expectation.limit_text}, but {text}; {way_out}"


def scope_problems(parts: Parts) -> Found:
    """Yield expectations of parts of the fabric that carry nothing or do not exist."""
    if parts.fabric is None:
        return
    for expectation, where in parts.expectations:
        key, problem = scope_problem(parts.fabric, parts.flows, bool(parts.faults), expectation)
        if problem:
            yield (*where[:3], key), f"{dotted((*where[:3], key))} {problem}"
