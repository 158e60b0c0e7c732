"""Notes on a drill whose times are shorter than the control plane's: repairs show, and later faults hit, less. Pure.

Changes when another timer decides when a repaired part is in use again.
"""

from __future__ import annotations

from collections.abc import Iterator

from hpn.failover.analysis.model import EdgeKind
from hpn.failover.analysis.settings import Settings
from hpn.failover.faults import PlannedEdge, PlannedFault
from hpn.scenarios.drill.model import Drill
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Fabric, LinkKind
from hpn.testbed.files.units import format_duration
from hpn.testbed.lag.datapaths import candidates

_S, _MS = 10**9, 10**6
_RATE_AFTER_NS = int(Settings().goodput_window_s * _S)
"""Longest part of a window that a rate 'after' is taken from (failover.analysis.model.settled_window_ns)."""


def return_notes(drill: Drill) -> list[str]:
    """Return the notes, one line each; none if every repaired part has time to return."""
    fabric = build(drill.topology)
    return [*_settle(drill, fabric), *_settle_of_lags(drill, fabric), *_flaps(drill, fabric)]


def _settle(drill: Drill, fabric: Fabric) -> Iterator[str]:
    """Yield that traffic ends before BGP sessions are back and have been judged for the validation time."""
    bgp, settle_ns, needed_ns = drill.topology.bgp, drill.timeline.settle_ns, drill.profile.validation_ns
    returns_ns = (bgp.error_wait_min_s + bgp.connect_delay_s) * _S
    repaired = [planned for planned in drill.timeline.faults if _ends_sessions(planned, fabric)]
    if repaired and settle_ns < returns_ns + needed_ns:
        yield (
            f"settle {format_duration(settle_ns)}: BGP returns up to {format_duration(returns_ns)} after a repair"
            " (connect_delay_s, error_wait_min_s), so figures after it are partly of the fabric before;"
            f" write settle: {format_duration(returns_ns + needed_ns)} or more"
        )


def _settle_of_lags(drill: Drill, fabric: Fabric) -> Iterator[str]:
    """Yield that a job's rate after the repair is taken before a LAG has the port back.

    The rate is that of the last half of the window, 2 s at most. Streams of a fitting load need no second port.
    """
    settle_ns = drill.timeline.settle_ns
    repaired = drill.job is not None and any(
        edge.kind is EdgeKind.REPAIR and _access_links(planned, edge, fabric)
        for planned in drill.timeline.faults
        for edge in planned.edges
    )
    back = _back_ns(drill, fabric)
    slow = max(back, key=back.__getitem__, default="")
    if not repaired or not slow:
        return
    back_ns = back[slow]
    needed_ns = back_ns + min(back_ns, _RATE_AFTER_NS)
    if settle_ns < needed_ns:
        yield (
            f"settle {format_duration(settle_ns)}: a LAG by {slow} takes a port back up to"
            f" {format_duration(back_ns)} after its repair, and iterations after it are counted before;"
            f" write settle: {format_duration(needed_ns)} or more"
        )


def _back_ns(drill: Drill, fabric: Fabric) -> dict[str, int]:
    """Return how late any LAG may have a repaired port back, by datapath."""
    ways = {fabric.bonding(nic) for nic in fabric.nics}
    return {kind.name: int(max(map(kind.repair_ms, ways)) * _MS) for kind in candidates(drill.topology.lag)}


def _ends_sessions(planned: PlannedFault, fabric: Fabric) -> bool:
    """Return True for a repaired fault of links between switches that takes BGP sessions down."""
    between = any(link.kind is not LinkKind.ACCESS for link in planned.fault.links_hit(fabric))
    return planned.fault.SESSIONS_DOWN and between and any(edge.kind is EdgeKind.REPAIR for edge in planned.edges)


def _flaps(drill: Drill, fabric: Fabric) -> Iterator[str]:
    """Yield faults that break an access link again before a LAG has taken its port back."""
    back_ns = _back_ns(drill, fabric)
    for planned in drill.timeline.faults:
        gap_ns = min(_gaps(planned, fabric), default=None)
        late = {name: ns for name, ns in back_ns.items() if gap_ns is not None and gap_ns < ns}
        if gap_ns is not None and late:
            within = " and ".join(f"{name} {format_duration(ns)}" for name, ns in late.items())
            yield (
                f"{planned.id} breaks a link {format_duration(gap_ns)} after its repair, before LACP may have its port"
                f" in the LAG ({within}): a failure of an unused port tests no failover"
            )


def _gaps(planned: PlannedFault, fabric: Fabric) -> Iterator[int]:
    """Yield the times from a repair of an access link to its next failure."""
    repaired: dict[str, int] = {}
    for edge in sorted(planned.edges, key=lambda each: each.at_ns):
        for link in _access_links(planned, edge, fabric):
            if edge.kind is EdgeKind.REPAIR:
                repaired[link] = edge.at_ns
            elif link in repaired:
                yield edge.at_ns - repaired[link]


def _access_links(planned: PlannedFault, edge: PlannedEdge, fabric: Fabric) -> list[str]:
    fault = edge.part or planned.fault
    if fault.rate_left() != 0:
        return []
    return [link.name for link in fault.links_hit(fabric) if link.kind is LinkKind.ACCESS]
