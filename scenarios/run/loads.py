"""Offered load of a run: the paths of its flows, as far as known, times their rates.

Changes when another source tells a path. Between two edges the path is what the switches reported. Without a report it
follows from source port and routes, provided that the model supports all present faults; else it is unknown. After an
edge each flow keeps its path until something moves it. Imports numpy.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hpn.failover.analysis.model import EdgeKind
from hpn.failover.analysis.offered import NO_PATH, Offered
from hpn.failover.analysis.paths import PathAt, Paths, Step
from hpn.failover.faults import Fault
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.drill.planned import PlannedRun
from hpn.scenarios.model.fault_stages import FaultStage, stages
from hpn.scenarios.model.offered import Going, offered_load
from hpn.scenarios.run.load_pieces import Links32, differ, pieces_after
from hpn.scenarios.run.observation import Observation
from hpn.testbed.events import Event, EventKind
from hpn.testbed.fabric.buffers import balances
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.routing.pathcontrol.policies import OFF
from hpn.traffic.flows.flow import FlowSpec, answering
from hpn.traffic.fluid.forwarding import Forwarding
from hpn.traffic.fluid.links import Links

_NO_PORT = "its NIC has no port left"
_NOT_REJOINED = "its NIC has carrier, but LACP has no port of it in the LAG"
_ENDS = "no route to it is left on its path"
_ASKED = frozenset({"begin", "looked"})


@dataclass(frozen=True, slots=True)
class _Path:
    """Path of a flow at the end of a span; ``links`` are directed."""

    links: Sequence[int]
    arrives: bool
    why: str = ""  # reason that packets do not arrive


@dataclass(frozen=True, slots=True)
class _Between:
    """Span of time between two edges, and the state of the fabric in it."""

    begin_ns: int
    end_ns: int
    after: str
    stage: FaultStage

    @property
    def repairs(self) -> bool:
        """True if the span begins with a repair: old paths work until something is moved back."""
        return self.stage.moment is not None and self.stage.moment.kind is EdgeKind.REPAIR


def offered_in(planned: PlannedRun, observed: Observation, events: Sequence[Event]) -> Offered | None:
    """Return the offered load of a run's streams; None for a job, without streams, or where switches balance."""
    begin = observed.paths
    if begin is None or planned.drill.job is not None or not observed.flows or balances(planned.drill.topology):
        return None
    return _Run(planned, observed, events).offered(planned.drill)


class _Run:
    def __init__(self, planned: PlannedRun, observed: Observation, events: Sequence[Event]) -> None:
        fabric = planned.fabric
        self._fabric, self._observed, self._known = fabric, observed, planned.drill.workload.path_control
        self._links, self._flows = Links.of(fabric), observed.flows
        self._forwardings: dict[frozenset[str], Forwarding] = {}
        span_ns = observed.start_ns, observed.end_ns
        steps: list[Step] = [*events, *observed.edges, *observed.looked]
        if observed.paths is None:
            raise ValueError("a run without paths has no offered load")
        self._data = _by_flow(Paths(fabric, observed.paths).over(steps, span_ns))
        self._acks = _by_flow(Paths(fabric, observed.paths, acks=True).over(steps, span_ns))
        self._dead_ns = {
            event.subject: event.at_ns for event in events if event.kind is EventKind.QP and event.what == "error"
        }
        self._looked = sorted({each.at_ns for each in observed.looked})
        self._routes_ns = [event.at_ns for event in events if event.kind is EventKind.ROUTE]

    def offered(self, drill: Drill) -> Offered:
        """Return the offered load, span by span."""
        found = stages(drill.timeline.faults, self._fabric)
        edges = sorted(self._observed.edges, key=lambda edge: edge.inject_before_ns)
        bounds = [self._observed.start_ns, *(edge.inject_before_ns for edge in edges), self._observed.end_ns]
        labels = ["", *(edge.label for edge in edges)]
        spans = [
            _Between(begin, end, label, stage)
            for (begin, end), label, stage in zip(pairwise(bounds), labels, found, strict=False)
        ]
        pieces: list[Going] = []
        for span in spans:
            before = pieces[-1] if pieces else None
            pieces += pieces_after(self._links, before, self._going(span, before))
        return offered_load(self._links, self._flows, pieces, drill.tick_ns)

    def _going(self, span: _Between, before: Going | None) -> Going:
        """Return the paths at the end of a span."""
        rows = [_last(self._data[flow.id], span.end_ns) for flow in self._flows]
        acks = [_last(self._acks[flow.id], span.end_ns) for flow in self._flows]
        asked = span.begin_ns == self._observed.start_ns or self._was_asked(span)
        told = [_told(row, flow, self._links) if asked else None for row, flow in zip(rows, self._flows, strict=True)]
        computed = self._computed(span, rows, told, data=True)
        paths = [first if first is not None else then for first, then in zip(told, computed, strict=True)]
        answers = self._computed(span, acks, [None] * len(acks), data=False)
        present = [row.sport is not None for row in rows]
        dead = [self._dead(flow, span.begin_ns) for flow in self._flows]
        harmful = (fault for fault in span.stage.unmodelled if fault.reaches_data)
        marring = self._of(link.name for fault in harmful for link in fault.links_hit(self._fabric))
        data = _array(paths)
        since_ns, moved = self._since(span, data, before)
        return Going(
            begin_ns=span.begin_ns,
            end_ns=span.end_ns,
            after=span.after,
            data=data,
            answers=_array(answers),
            sends=np.array([here and not gone for here, gone in zip(present, dead, strict=True)], dtype=np.bool_),
            arrives=np.array([path is not None and path.arrives for path in paths], dtype=np.bool_),
            known=np.array([path is not None for path in paths], dtype=np.bool_),
            marred=np.array(
                [path is not None and not marring.isdisjoint(path.links) for path in paths], dtype=np.bool_
            ),
            why=[self._why(flow, path, span) for flow, path in zip(self._flows, paths, strict=True)],
            unanswered={
                at: why
                for at, (flow, path) in enumerate(zip(self._flows, answers, strict=True))
                if (why := self._why(answering(flow), path, span))
            },
            since_ns=since_ns,
            moved=moved,
            down=span.stage.down,
            slow=span.stage.slow,
        )

    def _since(
        self, span: _Between, data: Links32, before: Going | None
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return when each flow took its path, and True for flows that moved.

        The time is that of the last move or route change. After a failure the switches may reroute at once. After a
        repair the old path works until they have rerouted.
        """
        own = [_last_move_ns(self._data[flow.id], span) for flow in self._flows]
        moved = np.zeros(len(own), dtype=np.bool_) if before is None else differ(before.data, data)
        routed_ns = span.begin_ns
        if span.repairs:
            routed_ns = max((at for at in self._routes_ns if span.begin_ns <= at < span.end_ns), default=routed_ns)
        unseen = np.where(moved, routed_ns, span.begin_ns)
        return np.array([unseen[n] if at is None else at for n, at in enumerate(own)], dtype=np.int64), moved

    def _why(self, flow: FlowSpec, path: _Path | None, span: _Between) -> str:
        """Return why a flow's packets do not arrive: no path is left, or nothing moves the flow to a working one."""
        if path is None or path.arrives:
            return ""
        src, dst = self._fabric.nic(flow.src_nic), self._fabric.nic(flow.dst_nic)
        dead = span.stage.down.union(*(_names(fault, self._fabric) for fault in span.stage.unmodelled))
        if path.why == _NO_PORT:
            lit = any(link.name not in dead for link in src.links)
            return f"{NO_PATH} ({_NOT_REJOINED if lit else _NO_PORT})"
        forwarding = self._forwarding(dead)
        used = self._fabric.links[path.links[0] // 2].name if path.links else ""
        others = [link for link in src.links if link.name not in dead and link.name != used]
        if not any(forwarding.reaches(link.upper.node, dst) for link in others):
            return f"{NO_PATH} ({path.why})" if path.why else NO_PATH
        return f"another port's path works, and {self._unmoved(flow)} ({path.why})"

    def _unmoved(self, flow: FlowSpec) -> str:
        """Return why path control leaves a flow on a path that does not work."""
        policy = self._fabric.spec.path_control.chosen
        if policy.name == OFF or not self._known:
            return "path control is off"
        if flow.port is not None and not policy.binds:
            return "no source port moves a queue pair that its adapter binds to a port"
        return "path control has not moved it"

    def _forwarding(self, dead: frozenset[str]) -> Forwarding:
        """Return the forwarding while these links are down; cached, as it remembers its answers."""
        if dead not in self._forwardings:
            self._forwardings[dead] = Forwarding(self._fabric, dead)
        return self._forwardings[dead]

    def _was_asked(self, span: _Between) -> bool:
        """Return True if the switches were queried in a span."""
        first = bisect_left(self._looked, span.begin_ns)
        return first < len(self._looked) and self._looked[first] < span.end_ns

    def _dead(self, flow: FlowSpec, at_ns: int) -> bool:
        return any(self._dead_ns.get(name, at_ns) < at_ns for name in (flow.name, str(flow.id)))

    def _computed(
        self, span: _Between, rows: Sequence[PathAt], told: Sequence[_Path | None], *, data: bool
    ) -> list[_Path | None]:
        """Return the paths computed from source ports and routes, for flows without a reported path.

        ``data``: True for data, False for acknowledgements.
        """
        found: list[_Path | None] = [None] * len(rows)
        if span.stage.unmodelled:
            return found
        wanted = [at for at, row in enumerate(rows) if told[at] is None and row.sport is not None]
        going = [at for at in wanted if rows[at].port is not None]
        for at in wanted:
            found[at] = _Path((), arrives=False, why=_NO_PORT)
        ends = [(self._flows[at].src_nic, self._flows[at].dst_nic)[:: 1 if data else -1] for at in going]
        routed = self._forwarding(span.stage.down).walk(
            [self._fabric.nic(src) for src, _ in ends],
            [self._fabric.nic(dst) for _, dst in ends],
            [port for at in going if (port := rows[at].port) is not None],
            [sport for at in going if (sport := rows[at].sport) is not None],
        )
        for at, links, arrives in zip(going, routed.links.tolist(), routed.arrives.tolist(), strict=True):
            found[at] = _Path([link for link in links if link >= 0], arrives, "" if arrives else _ENDS)
        return found

    def _of(self, names: Iterable[str]) -> frozenset[int]:
        return frozenset(self._links.of_parts(names).tolist())


def _by_flow(rows: Iterable[PathAt]) -> Mapping[int, Sequence[PathAt]]:
    found: dict[int, list[PathAt]] = {}
    for row in rows:
        found.setdefault(row.flow, []).append(row)
    return found


def _last(rows: Sequence[PathAt], before_ns: int) -> PathAt:
    """Return the last row before a time, or the first row if all are later."""
    return rows[max(bisect_left(rows, before_ns, key=lambda row: row.at_ns) - 1, 0)]


def _last_move_ns(rows: Sequence[PathAt], span: _Between) -> int | None:
    """Return when a flow last changed its path by itself in a span, or None."""
    own = (row.at_ns for row in rows if span.begin_ns <= row.at_ns < span.end_ns and row.why not in _ASKED)
    return max(own, default=None)


def _names(fault: Fault, fabric: Fabric) -> frozenset[str]:
    return frozenset(link.name for link in fault.links_hit(fabric))


def _told(row: PathAt, flow: FlowSpec, links: Links) -> _Path | None:
    """Return the path that the switches reported, in directed links; None if not queried since it changed."""
    if not row.links:
        return None
    node, found = links.fabric.nic(flow.src_nic).host, []
    for name in row.links:
        link = links.fabric.link(name)
        found.append(links.out_of(node, link.end_at(node).name))
        node = link.far_end(node).node
    return _Path(found, row.dropped is None, row.dropped or "")


def _array(paths: Sequence[_Path | None]) -> Links32:
    width = max((len(path.links) for path in paths if path is not None), default=0)
    found = np.full((len(paths), max(width, 1)), -1, dtype=np.int32)
    for at, path in enumerate(paths):
        if path is not None:
            found[at, : len(path.links)] = path.links
    return found
