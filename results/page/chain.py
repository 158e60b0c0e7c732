"""The two parallel chains of events after an edge, on one logarithmic time axis. Pure.

Changes when the lab reports another kind of event, or a chain is shown in another way. Events at the host of a failed
link (carrier, LAG) protect the traffic that it sends. Events in the fabric (carrier at the switch, neighbour,
withdrawal, notice, move) protect the traffic sent to it. A failover takes from 20 us to seconds; on a linear axis it
would be one dot.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from hpn.failover.analysis.edge import EdgeKind
from hpn.failover.analysis.model import EdgeResult, Phase
from hpn.failover.analysis.protocol_events import ProtocolEvent, mark_of
from hpn.results.page.axis import Logarithmic, Tick, logarithmic_ms, time_range
from hpn.testbed.events import Event


class Side(StrEnum):
    """The chain that a step belongs to."""

    HOST = "at the host: what it sends"
    FABRIC = "through the fabric: what is sent to it"
    END = "in the end"


@dataclass(frozen=True, slots=True)
class ChainStep:
    """Events of one kind: the first and the last of them, ms since the injection."""

    side: Side
    name: str
    count: int
    first_ms: float
    last_ms: float
    by: str  # 'node subject what' of the first

    @property
    def text(self) -> str:
        """Time of the events: '3.11 ms', '10.0 to 10.3 ms, 6 events'."""
        when = time_range(self.first_ms, self.last_ms)
        return when if self.count == 1 else f"{when}, {self.count:,} events"


@dataclass(frozen=True, slots=True)
class Chain:
    """Steps of an edge on one axis."""

    title: str
    axis: Logarithmic
    steps: tuple[ChainStep, ...]

    @property
    def ticks(self) -> tuple[Tick, ...]:
        """Values labelled below the axis."""
        return self.axis.ticks()

    def sides(self) -> tuple[tuple[Side, tuple[ChainStep, ...]], ...]:
        """Return the steps of each side that has any, in order of time."""
        found = ((side, tuple(step for step in self.steps if step.side is side)) for side in Side)
        return tuple((side, steps) for side, steps in found if steps)


_NAMES: Mapping[ProtocolEvent, str] = {
    ProtocolEvent.CARRIER: "carrier",
    ProtocolEvent.LACP: "LACP",
    ProtocolEvent.LAG: "LAG rewritten",
    ProtocolEvent.NEIGHBOUR: "neighbour",
    ProtocolEvent.ROUTE_WITHDRAWN: "host route withdrawn",
    ProtocolEvent.ROUTE_ADDED: "host route added",
    ProtocolEvent.PROGRAMMED: "data plane has its routes",
    ProtocolEvent.BGP_DOWN: "BGP session down",
    ProtocolEvent.BGP_UP: "BGP session up",
    ProtocolEvent.UNREACHABLE: "notice: unreachable",
    ProtocolEvent.REACHABLE: "notice: reachable",
    ProtocolEvent.MOVED: "queue pairs moved",
    ProtocolEvent.REBOUND: "queue pairs bound anew",
    ProtocolEvent.REMAPPED: "adapter changed ports",
    ProtocolEvent.STUCK: "queue pairs stuck",
    ProtocolEvent.STEERED: "LAG steers",
    ProtocolEvent.RELEASED: "LAG steers no longer",
    ProtocolEvent.DIED: "queue pairs died",
}


def chain_of(result: EdgeResult, events: Iterable[Event], hosts: Collection[str], recover: Phase) -> Chain:
    """Return the chains of an edge.

    ``events``: those of the complete run; ``hosts``: host names; ``recover``: recovery of the edge's flows.
    """
    edge = result.edge
    within = [event for event in events if edge.inject_before_ns <= event.at_ns < edge.window_end_ns]
    sorts: dict[tuple[Side, str], list[Event]] = {}
    for event in within:
        mark = mark_of(event)
        if mark is not None:
            side = _side(mark, event.node in hosts)
            sorts.setdefault((side, _name(mark, event.node in hosts)), []).append(event)
    steps = [_step(side, name, of, edge.inject_before_ns) for (side, name), of in sorts.items()]
    steps += _end(edge.kind, recover)
    steps.sort(key=lambda step: (step.first_ms, step.last_ms, step.name))
    axis = logarithmic_ms([at for step in steps for at in (step.first_ms, step.last_ms)])
    return Chain(edge.label, axis, tuple(steps))


def _side(mark: ProtocolEvent, at_host: bool) -> Side:
    if mark is ProtocolEvent.DIED:
        return Side.END
    return (
        Side.HOST if at_host and mark in {ProtocolEvent.CARRIER, ProtocolEvent.LACP, ProtocolEvent.LAG} else Side.FABRIC
    )


def _name(mark: ProtocolEvent, at_host: bool) -> str:
    shared = mark in {ProtocolEvent.CARRIER, ProtocolEvent.LACP}
    return _NAMES[mark] + ((" (host)" if at_host else " (switch)") if shared else "")


def _step(side: Side, name: str, events: Sequence[Event], injected_ns: int) -> ChainStep:
    first, last = events[0], events[-1]
    by = " ".join(filter(None, (first.node, first.subject, first.what)))
    return ChainStep(side, name, len(events), (first.at_ns - injected_ns) / 1e6, (last.at_ns - injected_ns) / 1e6, by)


def _end(kind: EdgeKind, recover: Phase) -> Iterable[ChainStep]:
    """Yield the recovery of the last flow that was hit."""
    if recover.ms is not None:
        what = "last flow recovered" if kind is EdgeKind.FAILURE else "last flow back"
        yield ChainStep(Side.END, what, 1, recover.ms, recover.ms, recover.by)
