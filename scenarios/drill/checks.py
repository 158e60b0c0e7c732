"""Checks across the sections of a drill file, such as faults that exist and fit in time, expectations that apply.

Each check is one function that notes its mistakes. Parts that could not be read are None; checks that need them are
skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from hpn.failover.analysis.model import EdgeKind
from hpn.failover.analysis.phrases import plain
from hpn.failover.analysis.port_sampling import Sampling
from hpn.failover.faults import FAULTS, PlannedFault
from hpn.failover.faults.compose import clash
from hpn.scenarios.drill.capture import Captures
from hpn.scenarios.drill.capture import problem as capture_problem
from hpn.scenarios.drill.checks_flows import busy_problems, flow_problems
from hpn.scenarios.drill.checks_sample import expectation_problem, period_problem
from hpn.scenarios.drill.checks_scope import scope_problem
from hpn.scenarios.drill.checks_soft_roce import port_problem
from hpn.scenarios.drill.checks_transfers import expectation_problems, workload_problems
from hpn.scenarios.drill.fault_schedule import course
from hpn.scenarios.drill.job import JOB_HEADERS, JobSpec
from hpn.scenarios.drill.model import PATH_MTUS, Profile, Timeline, Workload
from hpn.scenarios.drill.targets import settling_problem, target_problem
from hpn.scenarios.drill.workload import mtu_needed, packet_period_ns
from hpn.scenarios.expect.expectation import Expectation
from hpn.scenarios.expect.metric import Shape, Traffic
from hpn.scenarios.expect.selection import At, Flows, Whose
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.files.check import Mistakes, did_you_mean, dotted
from hpn.testbed.files.document import Where, shorten
from hpn.testbed.files.units import format_duration
from hpn.traffic.flows.flow import FlowSpec

LONGEST_NS = 3600 * 10**9

Found = Iterator[tuple[Where, str]]


@dataclass(frozen=True, slots=True)
class Parts:
    """Readable sections of a drill file; faults and expectations come with their place in the file."""

    fabric: Fabric | None
    workload: Workload | None  # None also for a job, and for a client that runs alone
    job: JobSpec | None
    profile: Profile
    timeline: Timeline | None
    faults: Sequence[tuple[PlannedFault, Where]]
    expectations: Sequence[tuple[Expectation, Where]]
    faults_complete: bool  # no fault of the file was refused
    flows: tuple[FlowSpec, ...]  # empty when they could not be computed
    line: Callable[[Where], int]  # line of a place in the file
    sample: Sampling | None
    captures: Captures | None
    client: bool  # True if one is named; not alongside a job that could not be read
    soft_roce: bool  # True if every NIC has an RDMA device, for the topology or the client


def check_drill(mistakes: Mistakes, parts: Parts) -> None:
    """Note every mistake across sections."""
    for check in _CHECKS:
        for where, text in check(parts):
            written = where[0] in mistakes.document.data  # an omitted section has valid defaults, so blame the fabric
            mistakes.add(where if written else ("topology",), text)
    if not mistakes and parts.fabric is not None and parts.flows and parts.faults:
        steps = course(parts.fabric, [planned for planned, _ in parts.faults], parts.flows)
        for where, text in chain(
            busy_problems(steps, parts.faults), flow_problems(steps, parts.expectations, parts.flows)
        ):
            mistakes.add(where, text)


def _sample(parts: Parts) -> Found:
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


def _captures(parts: Parts) -> Found:
    if parts.fabric is not None and parts.captures is not None and parts.faults_complete:
        key, text = capture_problem(parts.captures, parts.fabric, [planned for planned, _ in parts.faults])
        if text:
            where = ("capture", key) if key else ("capture",)
            yield where, f"{dotted(where)}{text}"


def _targets(parts: Parts) -> Found:
    if parts.fabric is None:
        return
    for planned, where in parts.faults:
        problem = target_problem(parts.fabric, planned.fault)
        if problem:
            yield (*where, "target"), f"{dotted((*where, 'target'))}: {problem}"
        elif problem := settling_problem(parts.fabric, planned.fault):
            yield where, f"{dotted(where)}: {problem}"


def _ids(parts: Parts) -> Found:
    seen: dict[str, Where] = {}
    for planned, where in parts.faults:
        if planned.id in seen:
            yield (
                (*where, "id"),
                f"{dotted(where)} has id {planned.id!r}, as {dotted(seen[planned.id])} has; choose another",
            )
        seen.setdefault(planned.id, where)


def _timing(parts: Parts) -> Found:
    timeline, needed_ns = parts.timeline, parts.profile.validation_ns
    if timeline is None:
        return
    needed = format_duration(needed_ns)
    for planned, where in parts.faults:
        if planned.at_ns < timeline.healthy_ns:
            healthy = format_duration(timeline.healthy_ns)
            yield (
                (*where, "at"),
                f"{dotted((*where, 'at'))} is {format_duration(planned.at_ns)}, before the healthy phase ends;"
                f" write {healthy} or later, or shorten timeline.healthy",
            )
    if parts.faults and timeline.settle_ns < needed_ns:
        yield (
            ("timeline", "settle"),
            f"timeline.settle is {format_duration(timeline.settle_ns)}, but the {parts.profile} profile needs {needed}"
            f" without loss to call a flow recovered; write settle: {needed} or more",
        )
    if timeline.end_ns > LONGEST_NS:
        text = f"traffic would run for {format_duration(timeline.end_ns)}; write times that add up to at most"
        yield ("timeline",), f"{text} {format_duration(LONGEST_NS)}"


def _steps(parts: Parts) -> Found:
    """Yield faults of several steps that are repaired before their last step."""
    for planned, where in parts.faults:
        if planned.for_ns is None:
            continue
        steps = (edge.at_ns for edge in planned.edges if edge.kind is EdgeKind.FAILURE or edge.part is not None)
        last_ns = max(steps)
        if planned.at_ns + planned.for_ns <= last_ns:
            needed = format_duration(last_ns - planned.at_ns)
            yield (
                (*where, "for"),
                f"{dotted((*where, 'for'))} ends {planned.id} before its last step, {needed} after the first;"
                f" write for: more than {needed}",
            )


def _overlaps(parts: Parts) -> Found:
    """Yield faults that contradict each other at one time and place; others may overlap."""
    if parts.fabric is None:
        return
    held: list[tuple[PlannedFault, Where]] = []
    for planned, where in parts.faults:
        if target_problem(parts.fabric, planned.fault):
            continue
        for other, other_where in held:
            why = clash(other, planned, parts.fabric)
            if why:
                what = f"{dotted(where)} ({planned.fault.KIND} of {planned.fault.target})"
                shown = f"{dotted(other_where)} in line {parts.line(other_where)}"
                yield where, f"{what} overlaps {shown}: {why}; {_way_out(planned, other)}"
                break
        held.append((planned, where))


def _way_out(one: PlannedFault, other: PlannedFault) -> str:
    first, second = sorted((one, other), key=lambda fault: fault.at_ns)
    end_ns = first.over_at_ns
    later = f"give {first.id} a 'for'" if end_ns is None else f"start {second.id} after {format_duration(end_ns)}"
    return f"{later} or choose another target"


def _path_mtu(parts: Parts) -> Found:
    section, traffic = ("workload", parts.workload) if parts.job is None else ("job", parts.job)
    if parts.fabric is None or traffic is None:
        return
    more = 0 if parts.job is None else JOB_HEADERS  # extra headers compared with a stream's packet of that path MTU
    needed = mtu_needed(traffic.path_mtu) + more
    if parts.fabric.spec.mtu < needed:
        smaller = [size for size in PATH_MTUS if mtu_needed(size) + more <= parts.fabric.spec.mtu]
        way_out = f"write path_mtu: {smaller[-1]} or mtu: {needed}" if smaller else f"write mtu: {needed} or more"
        text = f"{section}.path_mtu {traffic.path_mtu} needs an mtu of {needed}"
        yield (section, "path_mtu"), f"{text}, the topology has {parts.fabric.spec.mtu}; {way_out}"


def _soft_roce(parts: Parts) -> Found:
    if parts.soft_roce:
        yield from port_problem(job=parts.job is not None, streams=parts.workload is not None, client=parts.client)


def _traffic(parts: Parts) -> Found:
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
    instead = {Traffic.STREAMS: "workload:", Traffic.JOB: "job:", Traffic.RANKS: "job:, or workload.client"}
    if parts.job is not None:
        return {Traffic.JOB, Traffic.RANKS}, "a job and a client" if parts.client else "a job", instead
    if not parts.client:
        return {Traffic.STREAMS}, "a workload of streams", {**instead, Traffic.RANKS: "job:"}
    if parts.workload is None:
        streams = "streams beside it, such as workload.pattern"
        return {Traffic.RANKS}, "a client", {**instead, Traffic.STREAMS: streams}
    return {Traffic.RANKS, Traffic.STREAMS}, "a client and streams", instead


def _spares(parts: Parts) -> Found:
    """Yield a mistake if the job needs more spare hosts than the fabric has."""
    policy = parts.job.restart if parts.job is not None else None
    if parts.fabric is None or policy is None:
        return
    there = sum(host.spare for host in parts.fabric.hosts)
    if policy.spares > there:
        text = f"job.restart.spares is {policy.spares} and the fabric has {there} spare hosts"
        way_out = "write fewer, or raise spare_hosts in the topology" if there else "write spare_hosts: 1 in it"
        yield ("job", "restart", "spares"), f"{text}; {way_out}"


def _known_faults(parts: Parts) -> Found:
    if not parts.faults_complete:
        return
    ids = list(dict.fromkeys(planned.id for planned, _ in parts.faults))
    for expectation, where in parts.expectations:
        if expectation.fault is not None and expectation.fault not in ids:
            hint = did_you_mean(expectation.fault, ids, "write one of") if ids else "the timeline has no faults"
            yield (*where[:-1], "fault"), f"{dotted(where[:-1])} is about fault {shorten(expectation.fault)}; {hint}"


def _edges(parts: Parts) -> Found:
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


def _resolution(parts: Parts) -> Found:
    period_ns = packet_period_ns(parts.flows)
    for expectation, where in parts.expectations:
        if not expectation.metric.needs.period:
            continue
        if expectation.bound.is_upper and expectation.limit < period_ns:
            text = f"a queue pair sends one packet every {plain(period_ns / 1e6)} ms and nothing shorter can be seen"
            way_out = f"write at least {-(-period_ns // 10**6)} ms, raise workload.load, or expect packets_lost"
            yield where, f"{dotted(where)} is {expectation.limit_text}, but {text}; {way_out}"


def _transfers(parts: Parts) -> Found:
    if parts.workload is None or not parts.flows:
        return
    yield from workload_problems(parts.workload, parts.timeline, parts.flows)
    if parts.timeline is not None:
        faults = [planned for planned, _ in parts.faults]
        yield from expectation_problems(parts.expectations, parts.flows, faults, parts.timeline.end_ns)


def _scopes(parts: Parts) -> Found:
    if parts.fabric is None:
        return
    for expectation, where in parts.expectations:
        key, problem = scope_problem(parts.fabric, parts.flows, bool(parts.faults), expectation)
        if problem:
            yield (*where[:3], key), f"{dotted((*where[:3], key))} {problem}"


_CHECKS = (
    _targets,
    _ids,
    _timing,
    _steps,
    _overlaps,
    _path_mtu,
    _soft_roce,
    _traffic,
    _spares,
    _known_faults,
    _edges,
    _resolution,
    _scopes,
    _sample,
    _captures,
    _transfers,
)
