"""Reader of a drill's expectations: each entry under ``expect`` in the form of its metric."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from hpn.failover.analysis.protocol_events import ProtocolEvent
from hpn.results.judge.repeats.statistic import Statistic
from hpn.scenarios.drill.schema import (
    OrderExpectation,
    UntouchedExpectation,
    YesOrNoExpectation,
    expectation_model,
)
from hpn.scenarios.expect.expectation import Expectation
from hpn.scenarios.expect.metric import Metric, Shape, Traffic
from hpn.scenarios.expect.metrics import METRICS
from hpn.scenarios.expect.scope import Scope
from hpn.scenarios.expect.selection import At, Bound, Flows, Whose
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.files.check import Mistakes, did_you_mean, dotted
from hpn.testbed.files.document import Plain, Where, shorten

Found = list[tuple[Expectation, Where]]


def expectations_of(mistakes: Mistakes, fabric: Fabric | None) -> Found:
    """Return every valid expectation under ``expect`` with the place of its limit; mistakes are noted.

    ``fabric`` tells whose peers are local; None where it has mistakes of its own.
    """
    entries = mistakes.document.data.get("expect")
    found: Found = []
    for at, entry in enumerate(entries if isinstance(entries, list) else []):
        if isinstance(entry, dict):
            found += _expectation(mistakes, ("expect", at), entry)
    hosts = () if fabric is None else fabric.hosts
    segments = {host.name: (host.pod, host.segment or 0) for host in hosts}
    return [(_placed(expectation, segments), where) for expectation, where in found]


def _placed(expectation: Expectation, segments: Mapping[str, tuple[int, int]]) -> Expectation:
    """Return an expectation about peers with the segment of each host."""
    scope = expectation.scope
    return replace(expectation, scope=replace(scope, segments=segments)) if scope.peer else expectation


def _expectation(mistakes: Mistakes, where: Where, entry: dict[str, Plain]) -> Found:
    if len(entry) != 1:
        mistakes.add(where, f"{dotted(where)} holds {len(entry)} keys; write one '- metric: {{...}}' entry for each")
    found: Found = []
    for key, given in entry.items():
        inside = (*where, key)
        if key in METRICS:
            found += _READ[METRICS[key].shape](mistakes, inside, METRICS[key], given)
        else:
            hint = did_you_mean(key, METRICS, "metrics are")
            mistakes.add(inside, f"unknown metric {shorten(key)} in {dotted(where)}; {hint}")
    return found


def _yes_or_no(mistakes: Mistakes, where: Where, metric: Metric, given: Plain) -> Found:
    if isinstance(given, dict) and metric.needs.traffic is Traffic.RANKS:
        section = mistakes.check(YesOrNoExpectation, given, where)
        if section is None:
            return []
        limit, line = float(section.expected), mistakes.document.line(where)
        return [(Expectation(metric, Bound.AT_LEAST, limit, line=line, whose=_whose(section.whose)), where)]
    if not isinstance(given, bool):
        mistakes.add(where, f"{dotted(where)} is {shorten(given)}; write yes or no")
        return []
    return [(Expectation(metric, Bound.AT_LEAST, float(given), line=mistakes.document.line(where)), where)]


def _limits(mistakes: Mistakes, where: Where, metric: Metric, given: Plain) -> Found:
    section = mistakes.check(expectation_model(metric), given, where)
    if section is None:
        return []
    values = section.model_dump(exclude_none=True)
    bounds = [bound for bound in Bound if bound.value in values]
    if not bounds:
        keys = ", ".join(bound.value for bound in Bound)
        mistakes.add(where, f"{dotted(where)} has no limit; add one of {keys}")
    return [
        (
            Expectation(
                metric,
                bound,
                float(values[bound.value]),
                Flows(values.get("flows", "all")),
                At(values.get("edge", "any")),
                values.get("fault"),
                mistakes.document.line(where),
                _scope(values),
                over=Statistic(values["over_repeats"]),
                whose=_whose(values.get("whose")),
            ),
            (*where, bound.value),
        )
        for bound in bounds
    ]


def _whose(given: str | None) -> Whose | None:
    return None if given is None else Whose(given)


def _scope(values: Mapping[str, object]) -> Scope:
    """Return the scope from ``plane``, ``rail``, ``nic`` and ``peer`` of an expectation."""
    plane, rail, nic, peer = (values.get(key) for key in ("plane", "rail", "nic", "peer"))
    return Scope(
        planes=(plane,) if isinstance(plane, int) else (),
        rails=(rail,) if isinstance(rail, int) else (),
        nics=(nic,) if isinstance(nic, str) else (),
        peer=peer if isinstance(peer, str) else "",
    )


def _untouched(mistakes: Mistakes, where: Where, metric: Metric, given: Plain) -> Found:
    """Read an expectation of unaffected parts of the fabric."""
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


def _order(mistakes: Mistakes, where: Where, metric: Metric, given: Plain) -> Found:
    """Read an expectation of the order of events."""
    section = mistakes.check(OrderExpectation, given, where)
    if section is None:
        return []
    here = (*where, "events")
    unknown = [name for name in section.events if name not in list(ProtocolEvent)]
    for name in unknown:
        hint = did_you_mean(name, [mark.value for mark in ProtocolEvent], "events are")
        mistakes.add(here, f"unknown event {shorten(name)} in {dotted(here)}; {hint}")
    few = len(section.events) < 2 or len(set(section.events)) < len(section.events)
    if few:
        mistakes.add(here, f"{dotted(here)} is no order; write two different events or more, such as [carrier, lag]")
    if unknown or few:
        return []
    events, edge = tuple(ProtocolEvent(name) for name in section.events), At(section.edge)
    line, fault = mistakes.document.line(where), section.fault
    found = Expectation(metric, Bound.AT_LEAST, 0, edge=edge, fault=fault, line=line, events=events)
    return [(found, here)]


_READ: Mapping[Shape, Callable[[Mistakes, Where, Metric, Plain], Found]] = {
    Shape.LIMITS: _limits,
    Shape.YES_NO: _yes_or_no,
    Shape.PARTS: _untouched,
    Shape.EVENTS: _order,
}
"""Reader for each form of a metric; it notes mistakes and returns nothing for an invalid entry."""
