"""Goodput as a share of its value before the first fault. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum, auto
from functools import partial
from typing import NamedTuple

from hpn.failover.analysis.budget import around
from hpn.failover.analysis.model import DrillMetrics, Goodput, Relation, settled_window_ns
from hpn.failover.analysis.phrases import plain
from hpn.scenarios.expect.choose import NOTHING_SENT, FlowAt, chosen_flows, nothing
from hpn.scenarios.expect.evidence import Evidence
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


class _Share(NamedTuple):
    """Share of the goodput before the first fault, and what it would be at most and at least if no sender were late."""

    value: float
    low: float
    high: float


def _goodput(part: _Part, expectation: Selection, evidence: Evidence) -> Figure:
    """Return the goodput in % of that before the first fault, for the worst NIC and direction by the limit.

    Packets that late senders left out are the machine's loss, so the interval has room for them.
    """
    metrics, unsent = evidence.metrics, evidence.facts.unsent
    groups: dict[tuple[str, str, str], list[FlowAt]] = {}
    for at in chosen_flows(expectation, metrics):
        for nic, direction in _ends(at, expectation.scope):
            groups.setdefault((nic, direction, at.edge.edge.label), []).append(at)
    if groups and not any(at.result.sent or at.dead for found in groups.values() for at in found):
        return NOTHING_SENT
    shares = [(share, key) for key, found in groups.items() if (share := _share(part, found, unsent)) is not None]
    if not shares:
        return Figure(None, "there was no goodput before the first fault") if groups else nothing(expectation)
    worst = max if expectation.bound.is_upper else min
    share, key = max(shares, key=lambda found: found[0].value) if expectation.bound.is_upper else min(shares)
    nic, direction, label = key
    low, high = (worst(bounds) for bounds in zip(*((each.low, each.high) for each, _ in shares), strict=True))
    reach = 100 * _goodput_reach(part, share.value, groups[key], metrics)
    late = f"; late senders left out up to {plain(100 * (high - low))} % of before" * (high > low)
    said = f"{_SAID[direction]} {nic} at {label}{late}"
    return Figure(100 * share.value, said, around(100 * low, reach).low, around(100 * high, reach).high)


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


def _share(part: _Part, found: list[FlowAt], unsent: Mapping[int, tuple[Goodput, ...]]) -> _Share | None:
    before = sum(at.flow.edges[0].goodput.before_bps for at in found)
    if not before:
        return None
    now = sum(_of_part(part, at.result.goodput) for at in found)
    late = [(of, at.index) for at in found if (of := unsent.get(at.flow.flow)) is not None]
    before_late = sum(of[0].before_bps for of, _ in late)
    now_late = sum(_of_part(part, of[index]) for of, index in late)
    return _Share(now / before, now / (before + before_late), (now + now_late) / before)


def _of_part(part: _Part, goodput: Goodput) -> float:
    return goodput.during_bps if part is _Part.DURING else goodput.after_bps


def _of_before(key: str, summary: str, part: _Part) -> Metric:
    measure = partial(_goodput, part)
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
