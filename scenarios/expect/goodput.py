"""Goodput as a share of its value before the first fault. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from functools import partial

from hpn.failover.analysis.budget import around
from hpn.failover.analysis.model import DrillMetrics, Relation, settled_window_ns
from hpn.scenarios.expect.choose import NOTHING_SENT, FlowAt, chosen_flows, nothing
from hpn.scenarios.expect.evidence import from_metrics
from hpn.scenarios.expect.figure import Figure
from hpn.scenarios.expect.metric import MODELLED, Lack, Larger, Metric, Needs, Pauses, Slowed, Takes, Unit
from hpn.scenarios.expect.scope import Scope
from hpn.scenarios.expect.selection import Selection


class _Part(Enum):
    """A part of the time from an edge to the next."""

    DURING = auto()  # the whole time
    AFTER = auto()  # the last part


_SAID = {"up": "sent by", "down": "received by"}
"""Words for a NIC and the direction of its goodput."""


def _goodput(part: _Part, expectation: Selection, metrics: DrillMetrics) -> Figure:
    """Return the goodput in % of that before the first fault, for the worst NIC and direction by the limit."""
    groups: dict[tuple[str, str, str], list[FlowAt]] = {}
    for at in chosen_flows(expectation, metrics):
        for nic, direction in _ends(at, expectation.scope):
            groups.setdefault((nic, direction, at.edge.edge.label), []).append(at)
    if groups and not any(at.result.sent or at.dead for found in groups.values() for at in found):
        return NOTHING_SENT
    shares = [(share, key) for key, found in groups.items() if (share := _share(part, found)) is not None]
    if not shares:
        return Figure(None, "there was no goodput before the first fault") if groups else nothing(expectation)
    share, key = max(shares, key=lambda found: found[0]) if expectation.bound.is_upper else min(shares)
    nic, direction, label = key
    reach = _goodput_reach(part, share, groups[key], metrics)
    said = f"{_SAID[direction]} {nic} at {label}"
    return Figure(100 * share, said, *around(100 * share, 100 * reach))


def _goodput_reach(part: _Part, share: float, found: Sequence[FlowAt], metrics: DrillMetrics) -> float:
    """Return the uncertainty of a goodput share: a window, like 'before', may hold a packet (a burst) more or less."""
    edge, settings = found[0].edge.edge, metrics.settings
    window_ns = edge.window_end_ns - edge.inject_before_ns
    window_ns = window_ns if part is _Part.DURING else settled_window_ns(edge, settings)
    before_ms = min(settings.goodput_window_s, metrics.noise.window_s) * 1e3
    packet_ms = max(at.result.resolution_ms for at in found)
    sending = metrics.transfers.plan.sending_share if metrics.transfers is not None else 1.0
    now_ms, then_ms = window_ns / 1e6 * sending, before_ms * sending
    return packet_ms / max(now_ms, packet_ms) + share * packet_ms / max(then_ms, packet_ms)


def _ends(at: FlowAt, scope: Scope) -> list[tuple[str, str]]:
    """Return the NICs and directions whose goodput includes the flow: those selected or hit, else its source."""
    if scope.of_nics:
        both = ((at.flow.src_nic, "up"), (at.flow.dst_nic, "down"))
        return [(nic, direction) for nic, direction in both if scope.has_nic(nic)]
    ends = [(at.flow.src_nic, "up")] if at.result.relation is not Relation.RECEIVER else []
    receives = at.result.relation in {Relation.RECEIVER, Relation.BOTH}
    return ends + ([(at.flow.dst_nic, "down")] if receives else [])


def _share(part: _Part, found: list[FlowAt]) -> float | None:
    before = sum(at.flow.edges[0].goodput.before_bps for at in found)
    goodputs = [at.result.goodput for at in found]
    now = sum(g.during_bps if part is _Part.DURING else g.after_bps for g in goodputs)
    return now / before if before else None


def _of_before(key: str, summary: str, part: _Part) -> Metric:
    measure = from_metrics(partial(_goodput, part))
    needs = Needs(fault=True, pauses=Pauses.SPANNED)
    tells = {Lack.CUT_OFF: "it is what arrived in the window, whatever goes on"}
    return Metric(
        key,
        Unit.SHARE,
        Takes.FLOWS,
        Slowed.NOT,
        needs,
        summary,
        measure,
        tells=tells,
        larger=Larger.BETTER,
        unmodelled=MODELLED,
    )


METRICS = (
    _of_before("goodput_during", "from an edge to the next", _Part.DURING),
    _of_before(
        "goodput_after",
        "the last part of that time, at most 2 s: what is left when things have settled",
        _Part.AFTER,
    ),
)
