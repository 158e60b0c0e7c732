"""Expectations in a shape of their own, and the scope of the others: which part of the fabric, which events."""

from __future__ import annotations

from collections.abc import Mapping

from failover.analysis.marks import Mark
from scenarios.drill.schema import OrderExpectation, UntouchedExpectation
from scenarios.expect.expectation import At, Bound, Expectation
from scenarios.expect.metric import Metric
from scenarios.expect.scope import Scope
from testbed.files.check import Mistakes, did_you_mean, dotted
from testbed.files.document import Plain, Where, shorten

Found = list[tuple[Expectation, Where]]


def scope_of(values: Mapping[str, object]) -> Scope:
    """The scope that ``plane``, ``rail``, ``nic`` and ``peer`` of an expectation set."""
    plane, rail, nic, peer = (values.get(key) for key in ("plane", "rail", "nic", "peer"))
    return Scope(
        planes=(plane,) if isinstance(plane, int) else (),
        rails=(rail,) if isinstance(rail, int) else (),
        nics=(nic,) if isinstance(nic, str) else (),
        peer=peer if isinstance(peer, str) else "",
    )


def untouched(mistakes: Mistakes, where: Where, metric: Metric, given: Plain) -> Found:
    """Parts of the fabric that feel nothing; nothing, with the mistakes noted, when it is not right."""
    section = mistakes.check(UntouchedExpectation, given, where)
    if section is None:
        return []
    scope = Scope(tuple(section.planes), tuple(section.rails), tuple(section.nics), tuple(section.hosts))
    if not scope:
        mistakes.add(where, f"{dotted(where)} names nothing; write planes, rails, nics or hosts, such as rails: [1]")
        return []
    line = mistakes.document.line(where)
    edge = At(section.edge)
    found = Expectation(metric, Bound.AT_MOST, 0, edge=edge, fault=section.fault, line=line, scope=scope)
    return [(found, (*where, metric.key))]


def order(mistakes: Mistakes, where: Where, metric: Metric, given: Plain) -> Found:
    """Events that follow each other; nothing, with the mistakes noted, when it is not right."""
    section = mistakes.check(OrderExpectation, given, where)
    if section is None:
        return []
    here = (*where, "events")
    unknown = [name for name in section.events if name not in list(Mark)]
    for name in unknown:
        hint = did_you_mean(name, [mark.value for mark in Mark], "events are")
        mistakes.add(here, f"unknown event {shorten(name)} in {dotted(here)}; {hint}")
    few = len(section.events) < 2 or len(set(section.events)) < len(section.events)
    if few:
        mistakes.add(here, f"{dotted(here)} is no order; write two different events or more, such as [carrier, lag]")
    if unknown or few:
        return []
    events, edge = tuple(Mark(name) for name in section.events), At(section.edge)
    line, fault = mistakes.document.line(where), section.fault
    found = Expectation(metric, Bound.AT_LEAST, 0, edge=edge, fault=fault, line=line, events=events)
    return [(found, here)]
