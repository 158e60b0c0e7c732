"""Checks of faults across the sections of a drill file: targets that exist, times that fit. Pure.

Each check yields the place of a mistake and its text.
"""

from __future__ import annotations

from hpn.failover.analysis.model import EdgeKind
from hpn.failover.faults import PlannedFault
from hpn.failover.faults.compose import clash
from hpn.scenarios.drill.parts import Found, Parts
from hpn.scenarios.drill.targets import settling_problem, target_problem
from hpn.testbed.files.check import dotted
from hpn.testbed.files.document import Where
from hpn.testbed.files.units import format_duration

LONGEST_NS = 3600 * 10**9


def target_problems(parts: Parts) -> Found:
    """Yield faults whose target does not exist or cannot break so."""
    if parts.fabric is None:
        return
    for planned, where in parts.faults:
        if problem := planned.fault.misfit(parts.fabric):
            yield (*where, "fault"), f"{dotted((*where, 'fault'))}: {problem}"
        elif problem := target_problem(parts.fabric, planned.fault):
            yield (*where, "target"), f"{dotted((*where, 'target'))}: {problem}"
        elif problem := settling_problem(parts.fabric, planned.fault):
            yield where, f"{dotted(where)}: {problem}"


def id_problems(parts: Parts) -> Found:
    """Yield faults with the id of another."""
    seen: dict[str, Where] = {}
    for planned, where in parts.faults:
        if planned.id in seen:
            yield (
                (*where, "id"),
                f"{dotted(where)} has id {planned.id!r}, as {dotted(seen[planned.id])} has; choose another",
            )
        seen.setdefault(planned.id, where)


def timing_problems(parts: Parts) -> Found:
    """Yield times that leave no healthy phase, no time to recover, or too long a run."""
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


def step_problems(parts: Parts) -> Found:
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


def overlap_problems(parts: Parts) -> Found:
    """Yield faults that contradict each other at one time and place; others may overlap."""
    if parts.fabric is None:
        return
    held: list[tuple[PlannedFault, Where]] = []
    for planned, where in parts.faults:
        if planned.fault.misfit(parts.fabric) or target_problem(parts.fabric, planned.fault):
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
