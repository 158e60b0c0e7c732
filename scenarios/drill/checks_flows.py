"""Check that flows exist for every takeover and every expectation of an otherwise valid drill. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hpn.failover.analysis.model import Relation
from hpn.failover.faults import PlannedFault
from hpn.failover.faults.moments import Moment
from hpn.scenarios.drill.checks_scope import may_have
from hpn.scenarios.drill.fault_schedule import ScheduleStep
from hpn.scenarios.drill.spares import ends
from hpn.scenarios.expect.choose import RELATIONS
from hpn.scenarios.expect.expectation import Expectation
from hpn.scenarios.expect.selection import At, Flows
from hpn.testbed.files.check import dotted
from hpn.testbed.files.document import Where
from hpn.traffic.flows.flow import FlowSpec

Found = Iterator[tuple[Where, str]]


def busy_problems(steps: Sequence[ScheduleStep], faults: Sequence[tuple[PlannedFault, Where]]) -> Found:
    """Yield faults whose host has no queue pair when its spare takes over."""
    where_of = {planned.id: (planned, where) for planned, where in faults}
    for step in steps:
        busy = {host for flow in step.change.closes for host in ends(flow)}
        for due in step.moment.due:
            if due.fault.takes_over is None or due.fault.takes_over[0] in busy:
                continue
            planned, where = where_of[due.planned.id]
            at = (*where, "target")
            text = f"{dotted(at)}: no queue pair is left at {planned.fault.target} when its spare takes over"
            yield at, f"{text}; choose a host that carries traffic"


def flow_problems(
    steps: Sequence[ScheduleStep], expectations: Sequence[tuple[Expectation, Where]], flows: Sequence[FlowSpec]
) -> Found:
    """Yield expectations of flows that match no flow, each with what to write instead."""
    for expectation, where in expectations:
        if not expectation.metric.by_flow or _chooses_any(expectation, steps, flows):
            continue
        anywhere = _is_about_any(expectation, [(step.moment, step.relations) for step in steps])
        why = _nobody_there(expectation) if anywhere else _nobody(expectation.flows)
        yield (*where[:-1], "flows"), f"{dotted(where[:-1])} can never be judged: {why}"


def _chooses_any(expectation: Expectation, steps: Sequence[ScheduleStep], flows: Sequence[FlowSpec]) -> bool:
    """Return True if any flow of the expectation's scope has the expected relation to the faults."""
    inside = {flow.id for flow in flows if may_have(expectation.scope, flow)}
    scoped = [(step.moment, {flow: how for flow, how in step.relations.items() if flow in inside}) for step in steps]
    return _is_about_any(expectation, scoped)


def _is_about_any(expectation: Expectation, stands: Sequence[tuple[Moment, Mapping[int, Relation]]]) -> bool:
    """Return True if the expectation matches any flow; ``stands``: relations by flow id at each moment."""
    chosen = [at for at, (moment, _) in enumerate(stands) if _is_about(expectation, moment)]
    wanted = RELATIONS[expectation.flows]
    if expectation.flows is not Flows.OTHERS:
        return any(how in wanted for at in chosen for how in stands[at][1].values())
    upto = len(stands) if expectation.over_record else min(chosen, default=0) + 1
    return any(all(stand[flow] in wanted for _, stand in stands[:upto]) for flow in stands[0][1])


def _is_about(expectation: Expectation, moment: Moment) -> bool:
    ids = {due.planned.id for due in moment.due}
    return expectation.fault in {None, *ids} and expectation.edge in {At.ANY, At(moment.kind.value)}


def _nobody_there(expectation: Expectation) -> str:
    where = ", ".join(expectation.scope.words)
    if expectation.flows is Flows.ALL:  # its flows are closed by then or have not started
        return f"no flow of {where} is there at such an edge; write another part or edge"
    return f"no {expectation.flows} flow in {where}; write another part, or flows: all"


def _nobody(flows: Flows) -> str:
    if flows is Flows.OTHERS:
        return "every flow is inside the blast radius; write flows: hit, or take a larger topology"
    if flows is Flows.TRANSIT:
        return "no fault is above the ToRs, or all flows are hit themselves; write flows: hit"
    return f"no {flows} flow: the faults hit no NIC that carries traffic; write another target or flows: all"
