"""Phases after an edge: detect, switch, converge, path control, recover.

Changes when the lab reports a new kind of event. A phase that did not happen is None with its reason, never 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from hpn.failover.analysis.model import Edge, EdgeKind, EdgeResult, FlowEdgeResult, HitLink, Phase, Phases
from hpn.failover.analysis.protocol_events import ProtocolEvent
from hpn.testbed.events import Event, EventKind
from hpn.testbed.routing.pathcontrol.actions import REBOUND, STEERING

_NOTICED: Mapping[EdgeKind, Mapping[EventKind, frozenset[str]]] = {
    EdgeKind.FAILURE: {
        EventKind.LINK: frozenset({"carrier-down"}),
        EventKind.LACP: frozenset({"expired", "defaulted", "attached", "detached"}),
        EventKind.LAG: frozenset({"active"}),
        EventKind.BFD: frozenset({"down"}),
        EventKind.BGP: frozenset({"down"}),
    },
    EdgeKind.REPAIR: {
        EventKind.LINK: frozenset({"carrier-up"}),
        EventKind.LACP: frozenset({"partner-changed", "current", "selected", "collecting", "distributing"}),
        EventKind.LAG: frozenset({"active"}),
        EventKind.BFD: frozenset({"up"}),
        EventKind.BGP: frozenset({"established"}),
    },
}
"""Events by which an affected port, LAG or session detects an edge: its carrier, or an expired protocol timer."""


RECHOSEN = "rechosen"
"""Why a queue pair is rehomed: paths were chosen again as an ECMP group changed (``source_ports: link-disjoint``)."""
_DONE = frozenset({"moved", REBOUND, *STEERING})
"""Events of path control's actions: a queue pair moved, a destination steered or released."""


def phases_of(
    edge: Edge,
    events: Iterable[Event],
    flows: Sequence[FlowEdgeResult],
    pause_ms: float = 0.0,
    *,
    path_control: bool = True,
) -> Phases:
    """Return the phases of one edge. ``events`` may be the whole timeline; ``flows`` are all results of this edge.

    A recovery is stamped up to ``pause_ms`` late, the longest planned pause of a flow. ``path_control``: it is on.
    """
    inside = sorted(
        (event for event in events if edge.inject_before_ns <= event.at_ns < edge.window_end_ns),
        key=lambda event: event.at_ns,
    )
    detect = _detect(edge, inside)
    moved = [event for event in inside if event.kind is EventKind.PATH and _is_done(event)]
    nothing_moved = "path control moved no queue pair" if path_control else "path control is off"
    return Phases(
        detect=detect,
        switch=_switch(edge, inside, detect),
        converge=_converge(edge, inside),
        path_first=_since(edge, moved[:1], nothing_moved),
        path_last=_since(edge, moved[-1:], nothing_moved),
        recover=_recover(edge, flows, pause_ms),
    )


def _is_done(event: Event) -> bool:
    """Return True for an action of path control; a queue pair that a new choice of paths moves has a new home port."""
    return event.what in _DONE or (event.what == "rehomed" and event.detail.get("why") == RECHOSEN)


def converged(result: EdgeResult, validation_s: float) -> Phase:
    """Return the time from injection to the last change of any protocol's state (RFC 6412's terms, for the control
    plane).

    If both ``reason`` and ``ms`` are set, the lab was not quiet for the validation time after it: it took longer than
    that.
    """
    of_protocols = [marked for marked in result.marks if marked.mark is not ProtocolEvent.DIED]
    if not of_protocols:
        return Phase(None, reason="no protocol changed its state")
    last = max(of_protocols, key=lambda marked: marked.last_ns)
    quiet = result.edge.window_end_ns - last.last_ns >= validation_s * 1e9
    reason = "" if quiet else f"no {validation_s:g} s of quiet after the last change"
    return Phase((last.last_ns - result.edge.inject_before_ns) / 1e6, last.last_ns, last.last_by, reason)


def _since(edge: Edge, events: Sequence[Event], reason: str) -> Phase:
    """Return the time from injection to the first event given, or None with the reason."""
    if not events:
        return Phase(None, reason=reason)
    first = events[0]
    return Phase((first.at_ns - edge.inject_before_ns) / 1e6, first.at_ns, _name(first), "", *_stamped(first))


def _stamped(event: Event) -> tuple[float, float]:
    """Return how late and how early the time stamp may be at most, in ms, according to its source."""
    return float(event.detail.get("late_ms", 0.0)), float(event.detail.get("early_ms", 0.0))


def _name(event: Event) -> str:
    return f"{event.node} {event.subject} {event.what}"


def _is_port(label: str) -> Callable[[Event], bool]:
    """Return a matcher of events about one port; sources may write the subject with or without the node."""
    node, _, interface = label.partition(":")
    return lambda event: event.node == node and event.subject in (label, interface)


def _detect(edge: Edge, events: Sequence[Event]) -> Phase:
    noticed = _NOTICED[edge.kind]
    signs = [event for event in events if event.what in noticed.get(event.kind, frozenset())]
    ports = [_is_port(label) for link in edge.links for label in (link.lower, link.upper)]
    ports += [_is_lag(link) for link in edge.links if link.lag is not None]
    found = [event for event in signs if event.node in edge.nodes or any(is_port(event) for is_port in ports)]
    # Either end counts, also the one whose interface the lab sets down to remove the carrier: the time is that of the
    # notification to the daemon there.
    return _since(edge, found[:1], "nothing that was hit noticed: no link, LACP, LAG, BFD or BGP event there")


def _switch(edge: Edge, events: Sequence[Event], detect: Phase) -> Phase:
    hit = [link for link in edge.links if link.lag is not None]
    if not hit:
        return Phase(None, reason="no LAG is hit")
    rewrites = [event for event in events if event.kind is EventKind.LAG and event.what == "active"]
    firsts = [event for link in hit if (event := _first_rewrite(link, rewrites)) is not None]
    if not firsts:
        return Phase(None, reason="no hit host rewrote its LAG")
    if detect.at_ns is None:
        return Phase(None, reason=f"cannot be told from detect: {detect.reason}")
    last = max(firsts, key=lambda event: event.at_ns)
    missing = len(hit) - len(firsts)
    reason = f"{missing} of {len(hit)} hit LAGs were not rewritten" if missing else ""
    return Phase((last.at_ns - detect.at_ns) / 1e6, last.at_ns, _name(last), reason, *_stamped(last))


def _first_rewrite(link: HitLink, rewrites: Iterable[Event]) -> Event | None:
    return next(filter(_is_lag(link), rewrites), None)


def _is_lag(link: HitLink) -> Callable[[Event], bool]:
    """Return a matcher of events about the LAG that a link belongs to."""
    subjects = (link.nic, link.lag, f"{link.host}:{link.lag}")
    return lambda event: event.node == link.host and event.subject in subjects


def _converge(edge: Edge, events: Sequence[Event]) -> Phase:
    """Return the last change of the affected NICs' host routes; above the ToRs, of any route in the window."""
    routes = [event for event in events if event.kind is EventKind.ROUTE]
    prefixes = {f"{link.ip}/32" for link in edge.links if link.ip is not None}
    if prefixes:
        routes = [event for event in routes if event.subject in prefixes]
    return _since(edge, routes[-1:], "no route of a hit NIC changed" if prefixes else "no route changed")


def _recover(edge: Edge, flows: Sequence[FlowEdgeResult], pause_ms: float) -> Phase:
    hit = [flow for flow in flows if flow.relation.is_touched]
    lossy = [flow for flow in hit if flow.outages]
    if hit and not any(flow.sent for flow in hit):
        return Phase(None, reason="no flow that is hit sent anything")
    if not lossy:
        return Phase(None, reason="no flow that is hit lost anything")
    stuck = [flow for flow in lossy if not flow.recovered]
    if stuck:
        return Phase(None, reason=f"{len(stuck)} of {len(lossy)} flows did not recover, first {stuck[0].name}")
    last = max(lossy, key=lambda flow: flow.recovered_at_ns or 0)
    return Phase(last.convergence_ms, last.recovered_at_ns, f"flow {last.name}", late_ms=pause_ms)
