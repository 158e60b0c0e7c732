"""A pretended lab for exploration: each run has a course of events that depends on its faults alone.

A cut of the link takes four events, its return three. ``breaks`` says of which drills the state is not restored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from hpn.failover.analysis.edge import Edge, EdgeKind
from hpn.failover.analysis.paths import PathAt
from hpn.failover.faults.moments import moments
from hpn.results.judge.verdict import decide, holds
from hpn.results.run.folder import RunFolder, create
from hpn.scenarios.batch.pool.task import Task
from hpn.scenarios.drill.model import Drill
from hpn.testbed.events import Event, EventKind
from tests.results.sample import MANIFEST, metrics
from tests.scenarios.pool.pretended import asked

START_NS, LATENCY_NS = 4_900_000_000, 40_000
HOST, PORT, TOR, TOR_PORT = "p0.s0.h0", "r0p0", "p0.s0.t0.0", "h0r0"
FAILURE = (
    (2_560, EventKind.LINK, HOST, PORT, "carrier-down"),
    (5_120, EventKind.LAG, HOST, "bond0", "active"),
    (7_680, EventKind.ROUTE, TOR, "10.0.0.1/32", "host-route-removed"),
    (211_000_000, EventKind.LACP, HOST, PORT, "attached"),
)
REPAIR = (
    (2_560, EventKind.LINK, HOST, PORT, "carrier-up"),
    (100_000_000, EventKind.LACP, HOST, PORT, "expired"),
    (2_500_000_000, EventKind.LAG, HOST, "bond0", "active"),
)
Breaks = Callable[[Drill], bool]


def events_of(drill: Drill) -> Iterator[Event]:
    """The events of every edge, from its injection on."""
    for moment in moments(drill.timeline.faults):
        at_ns = START_NS + moment.at_ns + LATENCY_NS
        told = ("inject", FAILURE) if moment.kind is EdgeKind.FAILURE else ("restore", REPAIR)
        for due in moment.due:
            yield Event(at_ns, EventKind.FAULT, due.fault.target, due.planned.id, told[0])
            for late_ns, kind, node, subject, what in told[1]:
                of = "" if due.fault.target == "p0.s0.h0.r0.0" else f" {due.fault.target}"
                ports = {"ports": "r0p1" if told[0] == "inject" else "r0p0,r0p1"}
                detail = ports if kind is EventKind.LAG else {}
                yield Event(at_ns + late_ns, kind, node, subject + of, what, detail)


def edges_of(drill: Drill) -> Iterator[Edge]:
    """The edges, each until the next."""
    found = moments(drill.timeline.faults)
    ends = [*(moment.at_ns for moment in found[1:]), drill.timeline.end_ns]
    for moment, end_ns in zip(found, ends, strict=True):
        at_ns = START_NS + moment.at_ns + LATENCY_NS
        own, *more = (due.planned.id for due in moment.due)
        yield Edge(own, moment.kind, 0, at_ns, at_ns + 256, START_NS + end_ns + LATENCY_NS, together_with=tuple(more))


@dataclass
class PretendedRuns:
    """Makes run folders; ``made`` has the names of the drills in order."""

    breaks: Breaks = lambda _drill: False
    shift: Callable[[Drill], int] = lambda _drill: 0
    """ns by which the first event of a run comes late."""
    made: list[str] = field(default_factory=list)

    def __call__(self, task: Task, folder: Path) -> int:
        body = asked(task)
        drill = body.order().drill
        self.made.append(task.name)
        run = create(folder / body.folder)
        self._write(run, drill)
        return 1 if self.breaks(drill) else 0

    def _write(self, run: RunFolder, drill: Drill) -> None:
        found = sorted(events_of(drill), key=lambda event: event.at_ns)
        found[0] = replace(found[0], at_ns=found[0].at_ns + self.shift(drill))
        run.write_events(found)
        calm = metrics(0)
        results = [replace(calm.edges[0], edge=edge) for edge in edges_of(drill)]
        flows = [replace(flow, edges=flow.edges[:1] * len(results)) for flow in calm.flows]
        run.write_metrics(replace(calm, edges=tuple(results), flows=tuple(flows), unexplained=()))
        run.write_paths([PathAt(START_NS, 0, "begin", 50_000, 0, 0, ())])
        run.write_manifest(MANIFEST)
        run.write_verdict(decide([holds("state restored", not self.breaks(drill), evidence="planted")]))
