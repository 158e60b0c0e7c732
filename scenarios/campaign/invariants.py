"""Invariants of a lab and of a run after each sequence. Each check is one function that yields violations.

Changes when another invariant must hold. ``promise`` defines what the faults excuse.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import permutations
from pathlib import Path

from hpn.failover.analysis.model import DrillMetrics, Edge, FlowResult, Relation
from hpn.scenarios.campaign import hostroutes
from hpn.scenarios.campaign.result import Invariant, Violation
from hpn.scenarios.campaign.survivors import excuse
from hpn.scenarios.drill.model import Drill
from hpn.testbed.events import Event
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.kernel.nftables.nft import Nft
from hpn.testbed.kernel.process.processes import own_pids
from hpn.testbed.lab.cabling import FarEnd
from hpn.testbed.lab.lab import Lab
from hpn.testbed.routing.trace import Flow
from hpn.traffic.flows.flow import SPORT_MAX, SPORT_MIN, FlowSpec

_PATHS = 400
_SPORTS = 4
_SHOWN = 3

Inventory = Mapping[str, str]


def paths_to_ask(fabric: Fabric) -> tuple[Flow, ...]:
    """Return flows between all pairs of NICs with a few source ports each; a fixed sample in a large fabric."""
    draw = random.Random(fabric.spec.seed)
    pairs = permutations([nic.name for nic in fabric.nics], 2)
    flows = [Flow(src, dst, draw.randint(SPORT_MIN, SPORT_MAX)) for src, dst in pairs for _ in range(_SPORTS)]
    return tuple(flows) if len(flows) <= _PATHS else tuple(draw.sample(flows, _PATHS))


def delivered(lab: Lab, flows: Iterable[Flow]) -> tuple[Flow, ...]:
    """Return the flows whose packets would arrive now: in a healthy lab, all that ever can."""
    return tuple(flow for flow in flows if lab.path(flow).dropped is None)


def forwarding(lab: Lab, flows: Iterable[Flow]) -> Iterator[Violation]:
    """Check that no flow that a healthy lab delivers is dropped or loops after convergence."""
    lost: dict[Invariant, list[str]] = {}
    for flow in flows:
        path = lab.path(flow)
        if path.dropped is not None:
            kind = Invariant.LOOP if path.dropped.startswith("loop") else Invariant.BLACK_HOLE
            where = f"{flow.src_nic} to {flow.dst_nic}, source port {flow.sport}: at {path.steps[-1].node}"
            lost.setdefault(kind, []).append(f"{where}, {path.dropped}")
    for kind, found in lost.items():
        yield Violation(kind, _first(found, "paths"))


def inventory(lab: Lab) -> Inventory:
    """Return the resources of a lab: processes by name, interfaces and packet filters of every node."""
    found = {f"processes called {name}": str(count) for name, count in Counter(_commands()).items()}
    for name, space in lab.wiring.namespaces.items():
        found[f"interfaces of {name}"] = " ".join(sorted(link.name for link in lab.requests(name).links()))
        nft = Nft(space)
        try:
            found[f"packet filters of {name}"] = " ".join(nft.run("list tables").split())
        finally:
            nft.close()
    return found


def leaks(before: Inventory, after: Inventory) -> Iterator[Violation]:
    """Check that a lab has the same resources after a sequence as before."""
    changed = [
        f"{key}: was {before.get(key, 'none')}, now {after.get(key, 'none')}"
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key)
    ]
    if changed:
        yield Violation(Invariant.LEAK, _first(changed, "things"))


def restored(differences: tuple[str, ...]) -> Iterator[Violation]:
    """Check that links, LACP, BGP and routes are as before; partners, rates and seeds match the fabric."""
    if differences:
        yield Violation(Invariant.STATE, _first(list(differences), "differences"))


def cabling(ends: Iterable[FarEnd]) -> Iterator[Violation]:
    """Check that every port hears the port that the fabric has at the other end of its cable, and no other."""
    found = [
        f"{end.here} has {' and '.join(end.heard) or 'nobody'}, not {end.expected}" for end in ends if not end.fits
    ]
    if found:
        yield Violation(Invariant.CABLING, _first(found, "ports"))


def moves(strays: tuple[str, ...]) -> Iterator[Violation]:
    """Check that path control moved exactly the queue pairs that had to move, and reverted exactly these."""
    if strays:
        yield Violation(Invariant.MOVES, _first(list(strays), "moves"))


def host_routes(fabric: Fabric, events: Iterable[Event], edges: Iterable[Edge], end_ns: int) -> Iterator[Violation]:
    """Check that no port distributes for long without the host route of its NIC."""
    found = [
        f"{each.link} for {each.lasted_ns / 1e9:.1f} s" for each in hostroutes.without(fabric, events, edges, end_ns)
    ]
    if found:
        limit_s = hostroutes.WITHIN_NS / 1e9
        yield Violation(
            Invariant.HOST_ROUTE, f"none while it distributed, {_first(found, 'times')}; limit {limit_s:g} s"
        )


def queue_pairs(drill: Drill, metrics: DrillMetrics, fabric: Fabric, flows: Iterable[FlowSpec]) -> Iterator[Violation]:
    """Check that only those queue pairs failed that the faults excuse."""
    dead = {result.flow for result in metrics.flows if result.stopped_at_ns is not None}
    found = [flow.name for flow in flows if flow.id in dead and not excuse(fabric, drill.timeline.faults, flow)]
    if found:
        yield Violation(Invariant.QUEUE_PAIR, f"died: {_first(found, 'queue pairs')}")


def going_on(metrics: DrillMetrics, last: Mapping[int, int], since_ns: int, patience_ns: int) -> Iterator[Violation]:
    """Check that after convergence every working queue pair receives packets.

    ``last``: arrival time of the newest packet by flow.
    """
    living = [flow for flow in metrics.flows if flow.stopped_at_ns is None and not _is_closed(flow)]
    silent = [flow.name for flow in living if last.get(flow.flow, 0) < since_ns]
    if silent:
        after = f"after it had converged, in {patience_ns // 1_000_000} ms"
        yield Violation(Invariant.SILENCE, f"nothing arrived {after}: {_first(silent, 'flows')}")


def control_group(metrics: DrillMetrics) -> Iterator[Violation]:
    """Check that flows which no fault touches lose nothing."""
    if metrics.unexplained:
        yield Violation(Invariant.CONTROL, _first(list(metrics.unexplained), "findings"))


def _is_closed(flow: FlowResult) -> bool:
    """Return True if a replacement flow has taken its place."""
    return bool(flow.edges) and flow.edges[-1].relation is Relation.ABSENT


def _first(found: list[str], what: str) -> str:
    more = f" and {len(found) - _SHOWN} more {what}" if len(found) > _SHOWN else ""
    return "; ".join(found[:_SHOWN]) + more


def _commands() -> Iterator[str]:
    for pid in own_pids():
        try:
            yield Path(f"/proc/{pid}/comm").read_text().strip()
        except OSError:  # it has ended
            continue
