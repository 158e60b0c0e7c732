"""Path of every flow over time: where failover has put it, and when it had none. PURE.

Paths change only at the listed times. Failover durations are drawn from the lab's times (``measured``). The final paths
follow from hashes, BGP and path control alone (``placing``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hpn.failover.analysis.edges import hit_links
from hpn.failover.analysis.model import Edge
from hpn.failover.faults.moments import Moment
from hpn.scenarios.drill.blast_radius import transit_flows
from hpn.scenarios.model.calibrating import side_of
from hpn.scenarios.model.failover_times import Case, Drawn, Draws, FailoverStep
from hpn.scenarios.model.fault_stages import FaultStage
from hpn.scenarios.model.path_assignment import AssignedPath, PathAssignment
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.model import Fabric
from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.fluid.solve import padded

Row = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Outage:
    """Outage of a flow's data.

    ``edge``: index of the edge that began it. ``end_ns``: None if it was not over.
    """

    flow: int  # index
    edge: int
    begin_ns: int
    end_ns: int | None
    least_ms: float  # range in the lab's runs of such cases, end to end
    most_ms: float


@dataclass(frozen=True, eq=False)
class Piece:
    """Paths of all flows from ``begin_ns`` until the next piece."""

    begin_ns: int
    links: NDArray[np.int32]  # (flows, hops), directed; -1: none
    arrives: NDArray[np.bool_]
    answers: NDArray[np.int32]  # links of their acknowledgements
    slow: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class PathsOverTime:
    """Paths of all flows over time; times are relative to the start of traffic."""

    edges: tuple[Edge, ...]
    pieces: tuple[Piece, ...]
    outages: tuple[Outage, ...]

    @cached_property
    def outages_of(self) -> Mapping[int, Sequence[Outage]]:
        """Outages of each flow that had any, in order."""
        found: dict[int, list[Outage]] = {}
        for outage in self.outages:
            found.setdefault(outage.flow, []).append(outage)
        return found


@dataclass(frozen=True, slots=True)
class _Pending:
    """Future path of a flow; ``pause_ns``: start and end of a second loss."""

    at_ns: int
    links: Row
    edge: int  # number of the edge that caused it
    pause_ns: tuple[int, int] | None = None
    arrives: bool = True


class _Walk:
    """Walk through the stages.

    Acknowledgements have no times of their own: they change paths together with the last of the data.
    """

    def __init__(self, fabric: Fabric, flows: Sequence[FlowSpec], draws: Draws, first: AssignedPath) -> None:
        self._fabric, self._flows, self._draws = fabric, flows, draws
        self._links, self._arrives = first.links.copy(), first.arrives.copy()
        self._answers, self._next_answers = first.answers, first.answers
        self._pending: dict[int, _Pending] = {}
        self._open: dict[int, int] = {}  # index of the open outage by flow
        self._slow: Mapping[str, float] = {}
        self.outages: list[Outage] = [
            Outage(int(flow), -1, 0, None, 0.0, 0.0) for flow in np.flatnonzero(~first.arrives)
        ]
        self._open = {outage.flow: at for at, outage in enumerate(self.outages)}
        self.pieces = [self._piece(0)]

    def until(self, end_ns: int) -> None:
        """Apply the pending changes up to a time."""
        while self._pending and (at_ns := min(due.at_ns for due in self._pending.values())) <= end_ns:
            for flow in [flow for flow, due in self._pending.items() if due.at_ns == at_ns]:
                self._happen(flow, self._pending.pop(flow))
            if not self._pending:
                self._answers = self._next_answers
            self.pieces.append(self._piece(at_ns))

    def _happen(self, flow: int, due: _Pending) -> None:
        """Give a flow its path, or take it away again for a while."""
        self._put(flow, due.links if due.arrives else (), arrives=due.arrives)
        if due.arrives:
            self._close(flow, due.at_ns)
            if due.pause_ns is not None:
                self._pending[flow] = replace(due, at_ns=due.pause_ns[0], arrives=False)
        elif due.pause_ns is not None:
            begin_ns, end_ns = due.pause_ns
            ms = (end_ns - begin_ns) / 1e6
            self._open[flow] = len(self.outages)
            self.outages.append(Outage(flow, due.edge, begin_ns, None, ms, ms))
            self._pending[flow] = _Pending(end_ns, due.links, due.edge)

    def edge(self, number: int, edge: Edge, stage: FaultStage, placed: AssignedPath, kinds: Mapping[str, str]) -> None:
        """Apply a failure or a repair."""
        self._slow = stage.slow
        dead = {at for at, link in enumerate(self._fabric.links) if link.name in stage.down}
        nics, groups = edge.nics, dict[Case, list[int]]()
        for flow, spec in enumerate(self._flows):
            step = self._step(flow, stage, placed, dead, number)
            if step is not None:
                side = side_of(spec.src_nic, spec.dst_nic, nics)
                groups.setdefault(Case(kinds[edge.fault], edge.kind, side, step), []).append(flow)
        for case, members in groups.items():
            drawn = self._draws.draw(case, [self._shares(flow, case.step, placed) for flow in members])
            if drawn is None:
                raise InputError(_unmeasured(case))
            for flow, ms, pause in zip(members, drawn.ms, drawn.pauses, strict=True):
                pause_ns = (
                    None
                    if pause is None
                    else (stage.at_ns + round(pause[0] * 1e6), stage.at_ns + round(pause[1] * 1e6))
                )
                row = _row(placed.links[flow])
                self._pending[flow] = _Pending(stage.at_ns + round(ms * 1e6), row, number, pause_ns)
                self._say_range(flow, stage.at_ns, drawn)
        self._next_answers = placed.answers
        if not self._pending:
            self._answers = placed.answers
        self.pieces.append(self._piece(stage.at_ns))

    def _step(
        self, flow: int, stage: FaultStage, placed: AssignedPath, dead: set[int], number: int
    ) -> FailoverStep | None:
        """Return the effect of an edge on a flow, and remove its path if broken; None if nothing takes time."""
        before, after = _row(self._links[flow]), _row(placed.links[flow])
        broken = any(link // 2 in dead for link in before)
        has_way = bool(placed.arrives[flow])
        pending = self._pending.get(flow)
        if pending is not None:
            if not any(link // 2 in dead for link in pending.links) and not self._arrives[flow]:
                return None  # it is about to get a path that still works
            del self._pending[flow]
        if not self._arrives[flow]:
            if not has_way:
                self._put(flow, after, arrives=False)
            return FailoverStep.RESUMED if has_way else None
        if broken or not has_way:
            self._put(flow, () if has_way else after, arrives=False)
            self._open[flow] = len(self.outages)
            self.outages.append(Outage(flow, number, stage.at_ns, None, 0.0, 0.0))
            return FailoverStep.OUTAGE if has_way else None
        return FailoverStep.MOVED if before != after else None

    def _shares(self, flow: int, step: FailoverStep, placed: AssignedPath) -> Row:
        """Return a key for flows that share a time: flows moved to the same links, as these come up at one moment."""
        if step is not FailoverStep.MOVED:
            return (flow,)
        before = _row(self._links[flow])
        return tuple(link for link in _row(placed.links[flow]) if link not in before)

    def _say_range(self, flow: int, at_ns: int, drawn: Drawn) -> None:
        """Store the range of the lab's runs, end to end, in the open outage of a flow."""
        outage = self._open.get(flow)
        if outage is not None:
            began = self.outages[outage]
            before_ms = (at_ns - began.begin_ns) / 1e6
            ends = before_ms + drawn.least, before_ms + drawn.most
            self.outages[outage] = replace(began, least_ms=ends[0], most_ms=ends[1])

    def _close(self, flow: int, at_ns: int) -> None:
        outage = self._open.pop(flow, None)
        if outage is not None:
            self.outages[outage] = replace(self.outages[outage], end_ns=at_ns)

    def _put(self, flow: int, row: Row, *, arrives: bool) -> None:
        self._links = padded(self._links, len(row))  # a way around a fault may be longer
        self._links[flow] = (*row, *(-1,) * (self._links.shape[1] - len(row)))
        self._arrives[flow] = arrives

    def _piece(self, at_ns: int) -> Piece:
        return Piece(at_ns, self._links.copy(), self._arrives.copy(), self._answers, self._slow)


def ways_of(
    fabric: Fabric,
    flows: Sequence[FlowSpec],
    course: Sequence[FaultStage],
    placing: PathAssignment,
    draws: Draws,
    end_ns: int,
) -> PathsOverTime:
    """Return the paths of ``flows`` through the stages of a drill. InputError when no run has a required time."""
    walk = _Walk(fabric, flows, draws, placing.settle(course[0].down))
    edges = tuple(_edges(fabric, flows, course, end_ns))
    kinds = {due.planned.id: due.planned.fault.KIND for stage in course[1:] for due in _moment(stage).due}
    for number, (stage, edge) in enumerate(zip(course[1:], edges, strict=True)):
        walk.until(stage.at_ns)
        walk.edge(number, edge, stage, placing.settle(stage.down), kinds)
    walk.until(end_ns)
    return PathsOverTime(edges, tuple(walk.pieces), tuple(walk.outages))


def _edges(fabric: Fabric, flows: Sequence[FlowSpec], course: Sequence[FaultStage], end_ns: int) -> Iterator[Edge]:
    """Yield the moments of the stages as edges for the analysis; the injection takes no time."""
    ends = [*(stage.at_ns for stage in course[2:]), end_ns][: len(course) - 1]
    for stage, window_end_ns in zip(course[1:], ends, strict=True):
        moment = _moment(stage)
        ids = tuple(dict.fromkeys(due.planned.id for due in moment.due))
        links = dict.fromkeys(link.name for fault in moment.faults for link in fault.links_hit(fabric))
        yield Edge(
            fault=ids[0],
            kind=moment.kind,
            index=moment.due[0].edge.index,
            inject_before_ns=stage.at_ns,
            inject_after_ns=stage.at_ns,
            window_end_ns=window_end_ns,
            links=hit_links(fabric, links),
            nodes=tuple(dict.fromkeys(node for fault in moment.faults for node in fault.nodes_hit())),
            transit_flows=transit_flows(fabric, moment.faults, flows),
            together_with=ids[1:],
        )


def _moment(stage: FaultStage) -> Moment:
    if stage.moment is None:
        raise ValueError("only the first stage begins without a moment")
    return stage.moment


def _row(links: NDArray[np.int32]) -> Row:
    return tuple(int(link) for link in links if link >= 0)


def _unmeasured(case: Case) -> str:
    return (
        f"no run in the lab has shown how long this takes: {case.text}; make one (hpn drill run DRILL --engine"
        " uml-virtual-time) and give it: hpn model --calibrate RUN... --times FILE"
    )
