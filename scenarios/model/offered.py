"""Offered load from paths and rates: of a drill by the model, of a run by its recorded paths. Imports numpy.

Changes when the load of a link is summed differently. Paths are arrays of directed links as in ``traffic.fluid``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hpn.failover.analysis.offered import FULL, Crossing, Offered, OfferedLink, StablePeriod, UndeliveredFlow
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.drill.workload import flows_of
from hpn.scenarios.model.fault_stages import FaultStage, stages
from hpn.scenarios.model.path_assignment import PathAssignment
from hpn.scenarios.model.rates import ACK_BITS, answers_pps, capacity_of
from hpn.scenarios.model.router import Lag, ModelRouter, unknown_paths
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Fabric, LinkKind
from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.flows.framing import wire_bytes
from hpn.traffic.flows.paths import CHOICES
from hpn.traffic.fluid.forwarding import Forwarding
from hpn.traffic.fluid.links import Links
from hpn.traffic.fluid.solve import link_load

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_TOLD = 24
_MOST_OVERLOADED = 256


@dataclass(frozen=True, eq=False)
class Going:
    """Paths of packets in a span; arrays have one row per flow."""

    begin_ns: int
    end_ns: int
    after: str
    data: NDArray[np.int32]  # (flows, hops), -1: none
    answers: NDArray[np.int32]  # paths of acknowledgements
    sends: Flags  # active, with a working queue pair
    arrives: Flags
    known: Flags
    marred: Flags  # the path crosses a link that loses packets by itself
    why: Sequence[str]  # reason for no arrival; '': routes end
    unanswered: Mapping[int, str]  # reasons by row for acknowledgements that do not arrive
    since_ns: Ints  # start time of the flow's current path
    moved: Flags  # an edge moved it to this path
    down: frozenset[str]
    slow: Mapping[str, float]  # share of the rate left, by link


def offered_load(links: Links, flows: Sequence[FlowSpec], spans: Sequence[Going], tick_ns: int) -> Offered:
    """Return the offered load; ``tick_ns`` of the senders determines how often acknowledgements come."""
    shares = [_shares(links, flows, span, tick_ns) for span in spans]
    return Offered(
        spans=tuple(_span(flows, span, share) for span, share in zip(spans, shares, strict=True)),
        links=tuple(_link(links, at, spans, shares) for at in _worth_telling(np.array(shares))),
        flows=len(flows),
    )


def planned_load(drill: Drill, *, as_dead: bool = False) -> Offered | None:
    """Return the modelled load of a drill's streams after failover is complete; None without streams or known paths.

    After faults that the model does not support paths are unknown; with ``as_dead`` their links count as down.
    """
    if drill.job is not None or not drill.streams or unknown_paths(drill.topology):
        return None
    fabric, end_ns = build(drill.topology), drill.timeline.end_ns
    lag, links, workload = Lag(fabric), Links.of(fabric), drill.workload
    wanted = flows_of(workload, fabric)
    router = ModelRouter(fabric, lag, Forwarding(fabric))
    router.look_up_all(wanted)
    flows = CHOICES[workload.source_ports].choose(wanted, router, (), fabric.spec.seed).flows
    placing = PathAssignment(fabric, lag, flows, known=workload.path_control)
    found = stages(drill.timeline.faults, fabric)
    if as_dead:
        found = tuple(_as_dead(stage, fabric) for stage in found)
    ends = [stage.at_ns for stage in found[1:]] + [end_ns]
    spans = [_planned(stage, end, placing, len(flows)) for stage, end in zip(found, ends, strict=True)]
    return offered_load(links, flows, spans, drill.tick_ns)


def _as_dead(stage: FaultStage, fabric: Fabric) -> FaultStage:
    names = {link.name for fault in stage.unmodelled if fault.STEADY for link in fault.links_hit(fabric)}
    return replace(stage, down=stage.down | names, unmodelled=())


def _planned(stage: FaultStage, end_ns: int, placing: PathAssignment, count: int) -> Going:
    placed, moment = placing.settle(stage.down), stage.moment
    everyone, known = np.ones(count, dtype=np.bool_), np.full(count, not stage.unmodelled)
    return Going(
        begin_ns=stage.at_ns,
        end_ns=end_ns,
        after="" if moment is None else f"{'+'.join(due.planned.id for due in moment.due)} {moment.kind}",
        data=placed.links,
        answers=placed.answers,
        sends=everyone,
        arrives=placed.arrives,
        known=known,
        marred=~everyone,
        why=[""] * count,
        unanswered=dict.fromkeys(np.flatnonzero(placed.arrives & ~placed.answered).tolist(), ""),
        since_ns=np.full(count, stage.at_ns, dtype=np.int64),
        moved=~everyone,
        down=stage.down,
        slow=stage.slow,
    )


def _shares(links: Links, flows: Sequence[FlowSpec], span: Going, tick_ns: int) -> Floats:
    """Return offered load / rate of each directed link, without flows on unknown paths."""
    pps = np.array([flow.rate_pps for flow in flows])
    bits = np.array([8 * wire_bytes(flow.path_mtu) for flow in flows], dtype=np.float64)
    sends = span.sends & span.known
    load = link_load(span.data, np.where(sends, pps * bits, 0.0), len(links))
    answers = np.where(sends & span.arrives, np.minimum(pps, answers_pps(flows, tick_ns)) * ACK_BITS, 0.0)
    load = load + link_load(span.answers, answers, len(links))
    share: Floats = load / capacity_of(links, span.slow)
    return share


def _span(flows: Sequence[FlowSpec], span: Going, shares: Floats) -> StablePeriod:
    overloaded = np.append(shares > FULL, False)  # the last element stands for -1, no link
    crosses = overloaded[span.data].any(axis=1) & span.sends & span.arrives & span.known & ~span.marred
    return StablePeriod(
        begin_ns=span.begin_ns,
        end_ns=span.end_ns,
        after=span.after,
        crossing=tuple(
            Crossing(
                flows[at].id,
                max(int(span.since_ns[at]), span.begin_ns),
                int(span.since_ns[at]) if span.moved[at] else None,
            )
            for at in np.flatnonzero(crosses).tolist()
        ),
        unknown=int(np.count_nonzero(span.sends & ~span.known)),
        pathless=tuple(
            UndeliveredFlow(flows[at].id, span.why[at])
            for at in np.flatnonzero(span.sends & span.known & ~span.arrives).tolist()
        ),
        marred=tuple(flows[at].id for at in np.flatnonzero(span.sends & span.marred).tolist()),
        unanswered=tuple(UndeliveredFlow(flows[at].id, why) for at, why in span.unanswered.items() if span.sends[at]),
    )


def _worth_telling(shares: Floats) -> Sequence[int]:
    """Return the indices of the busiest links, and of all links overloaded at any time, in order."""
    worst = shares.max(axis=0)
    order = np.argsort(-worst, kind="stable")
    overloaded, used = int(np.count_nonzero(worst > FULL)), int(np.count_nonzero(worst))
    return sorted(order[: min(max(overloaded, _TOLD), _MOST_OVERLOADED, used)].tolist())


def _link(links: Links, at: int, spans: Sequence[Going], shares: Sequence[Floats]) -> OfferedLink:
    link, up = links.fabric.links[at // 2], at % 2 == 0
    sender, towards = (link.lower.node, link.upper.node) if up else (link.upper.node, link.lower.node)
    return OfferedLink(
        link=link.name,
        sender=sender,
        towards=towards,
        up=up,
        access=link.kind is LinkKind.ACCESS,
        rate_bps=link.rate_bps,
        shares=tuple(
            None if link.name in span.down else float(share[at]) for span, share in zip(spans, shares, strict=True)
        ),
    )
