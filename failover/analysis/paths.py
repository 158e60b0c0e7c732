"""Source port, NIC port and plane of each flow over time, reconstructed from the timeline after the run. Pure.

Changes when another mechanism moves a flow. The timeline has every move, every LAG change and every steered
destination. A LAG itself computes its choice among its active ports. Links are known at the times when the switches
were queried. That is when source ports were chosen. For jobs, and where a query takes no time, it is also shortly
before each edge and before the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from hpn.failover.analysis.edge import Edge
from hpn.failover.analysis.phases import RECHOSEN
from hpn.testbed.events import Event, EventKind
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.routing.pathcontrol.actions import REBOUND, RELEASED, STEERED
from hpn.traffic.flows.flow import ROCE_PORT, FlowSpec, answering

Chosen = Callable[[str, int, str, int, Sequence[str]], str]
"""Function that returns the port a NIC's LAG chooses: NIC, source port, destination address, port, active ports."""


@dataclass(frozen=True, slots=True)
class PathAt:
    """Path of a flow's data from ``at_ns`` (CLOCK_MONOTONIC) on: a line of ``paths.jsonl``.

    ``why``: 'begin', 'moved' by path control, 'rechosen' with all paths, 'rehomed' after marks or a timeout, 'LAG',
    'steered', 'released', 'rebound' by path control, 'remapped' by the adapter, 'taken over', 'replaced', 'looked': the
    links are others than told last, or were not known.
    ``sport`` None: it is not there, or another host does its work. ``port`` None: its NIC has no active port.
    ``links``: as the switches' kernels said at that moment; empty: nobody asked. ``dropped``: why what crosses these
    does not arrive.
    """

    at_ns: int
    flow: int
    why: str
    sport: int | None
    port: int | None
    plane: int | None
    links: tuple[str, ...] = ()
    dropped: str | None = None


@dataclass(frozen=True, slots=True)
class Looked:
    """A switch query's result: the path of a flow at a moment."""

    at_ns: int
    flow: int
    links: tuple[str, ...]
    dropped: str | None


Step = Event | Edge | Looked


@dataclass(frozen=True)
class PathsAtBegin:
    """Flows at the begin, the links of their paths by flow id, and the LAGs' choice function."""

    flows: tuple[FlowSpec, ...]
    links: Mapping[int, Sequence[str]]
    chosen: Chosen


@dataclass(slots=True)
class _State:
    """State at a moment of the timeline."""

    active: dict[str, tuple[str, ...]]  # by NIC: names of ports
    instead: dict[tuple[str, str], str]  # host and port: the port by which its bound queue pairs leave
    bound: dict[int, str]  # by flow: the port that path control bound it to
    steered: dict[tuple[str, str, str], str]  # host, address and port: the port instead
    sports: dict[int, int | None]  # by flow
    told: dict[int, PathAt]  # by flow


class Paths:
    """The paths of flows on a fabric, from their ``begin`` on: of data, or of ``acks``, whose links are not queried."""

    def __init__(self, fabric: Fabric, begin: PathsAtBegin, *, acks: bool = False) -> None:
        self._nics = fabric.nic_by_name
        self._lags = {(nic.host, nic.lag): nic.name for nic in fabric.nics}
        self._flows = {flow.id: answering(flow) if acks else flow for flow in begin.flows}
        self._begin = replace(begin, links={}) if acks else begin
        self._acks = acks

    def over(self, steps: Iterable[Step], span_ns: tuple[int, int]) -> Iterator[PathAt]:
        """Yield every flow at the begin of ``span_ns``, and every change until its end; ``steps`` in any order."""
        start_ns, end_ns = span_ns
        sports = {number: flow.sport if flow.replaces is None else None for number, flow in self._flows.items()}
        state = _State({}, {}, {}, {}, sports, {})
        ordered = sorted(steps, key=_at_ns)
        first = next((at for at, step in enumerate(ordered) if _at_ns(step) >= start_ns), len(ordered))
        for step in ordered[:first]:
            self._take(step, state)
        for number, flow in self._flows.items():
            links = tuple(self._begin.links.get(number, ()))
            yield self._tell(replace(self._path(state, flow, "begin", start_ns), links=links), state)
        for step in ordered[first:]:
            if _at_ns(step) > end_ns:
                return
            yield from self._changed(step, state)

    def _changed(self, step: Step, state: _State) -> Iterator[PathAt]:
        """Yield the path changes of a step."""
        if isinstance(step, Looked):
            if self._acks:
                return
            before = state.told.get(step.flow)
            if before is not None and (before.links, before.dropped) != (step.links, step.dropped):
                seen = replace(before, at_ns=step.at_ns, why="looked", links=step.links, dropped=step.dropped)
                yield self._tell(seen, state)
            return
        why, touched = self._take(step, state)
        for number in touched:
            found = self._path(state, self._flows[number], why, _at_ns(step))
            before = state.told[number]
            if (before.sport, before.port) != (found.sport, found.port):
                yield self._tell(found, state)

    def _tell(self, path: PathAt, state: _State) -> PathAt:
        state.told[path.flow] = path
        return path

    def _path(self, state: _State, flow: FlowSpec, why: str, at_ns: int) -> PathAt:
        sport, nic = state.sports[flow.id], self._nics[flow.src_nic]
        active = state.active.get(nic.name, ())
        if sport is None or not active:
            return PathAt(at_ns, flow.id, why, sport, None, None)
        if flow.port is None:
            name = self._begin.chosen(nic.name, sport, flow.dst_ip, ROCE_PORT, active)
            name = state.steered.get((nic.host, flow.dst_ip, name), name)
        else:
            name = state.bound.get(flow.id, nic.links[flow.port].lower.name)
            name = state.instead.get((nic.host, name), name)
        port = next((at for at, link in enumerate(nic.links) if link.lower.name == name), None)
        return PathAt(at_ns, flow.id, why, sport, port, None if port is None else nic.links[port].plane)

    def _take(self, step: Step, state: _State) -> tuple[str, Sequence[int]]:
        """Apply one step; return its name, and the flows that it may have moved."""
        if isinstance(step, Looked):
            return "", ()
        if isinstance(step, Edge):
            return self._present(step, state)
        if step.kind is EventKind.LAG and step.what == "active":
            return "LAG", self._of_lag(step, state)
        if step.kind is EventKind.LAG and step.what == "remapped":
            state.instead[step.node, str(step.detail["port"])] = str(step.detail["to_port"])
            nic = self._lags.get((step.node, step.subject))
            return "remapped", [number for number, flow in self._flows.items() if flow.src_nic == nic]
        if step.kind is EventKind.JOB and step.what == "replaced":
            gone = [n for n, flow in self._flows.items() if step.subject in self._hosts(flow)]
            state.sports.update(dict.fromkeys(gone))
            return "replaced", gone
        if step.kind is EventKind.PATH and step.what in (STEERED, RELEASED):
            at = (step.node, step.subject, str(step.detail["from_port"]))
            state.steered.pop(at, None)
            if step.what == STEERED:
                state.steered[at] = str(step.detail["to_port"])
            return step.what, [n for n, flow in self._flows.items() if flow.dst_ip == step.subject]
        if step.kind is EventKind.PATH and step.what == REBOUND and step.subject.isdecimal():
            flow, is_ack = divmod(int(step.subject), 2)
            if is_ack == self._acks and flow in self._flows:
                state.bound[flow] = str(step.detail["to_port"])
                return step.what, [flow]
        if step.kind is EventKind.PATH and step.what in ("moved", "rehomed") and step.subject.isdecimal():
            flow, is_ack = divmod(int(step.subject), 2)
            if is_ack == self._acks and state.sports.get(flow) is not None:
                state.sports[flow] = int(step.detail["sport"])
                return RECHOSEN if step.detail.get("why") == RECHOSEN else step.what, [flow]
        return "", ()

    def _of_lag(self, event: Event, state: _State) -> Sequence[int]:
        nic = self._lags.get((event.node, event.subject))
        if nic is None:
            return ()
        state.active[nic] = tuple(filter(None, str(event.detail["ports"]).split(",")))
        return [number for number, flow in self._flows.items() if flow.src_nic == nic]

    def _present(self, edge: Edge, state: _State) -> tuple[str, Sequence[int]]:
        """Close the queue pairs of a dead host at a takeover, and begin those of its spare."""
        absent = set(edge.absent)
        for number, flow in self._flows.items():
            if number in absent:
                state.sports[number] = None
            elif state.sports[number] is None and flow.replaces is not None:
                state.sports[number] = flow.sport
        return "taken over", list(self._flows)

    def _hosts(self, flow: FlowSpec) -> tuple[str, str]:
        return self._nics[flow.src_nic].host, self._nics[flow.dst_nic].host


def _at_ns(step: Step) -> int:
    return step.inject_after_ns if isinstance(step, Edge) else step.at_ns
