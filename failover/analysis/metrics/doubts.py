"""Reasons that make a measurement unusable, and loss that no fault explains: one line each.

Changes when a rule is added. The host's own load is judged in ``failover.analysis.hostload``.
"""

from __future__ import annotations

from collections.abc import Sequence

from hpn.failover.analysis import phrases
from hpn.failover.analysis.model import EdgeKind, EdgeResult, FlowEdgeResult, FlowResult, Settings

NOTHING_SENT = "no packet was sent: nothing was measured"


def record_doubts(flows: Sequence[FlowResult], settings: Settings) -> tuple[str, ...]:
    """Return damage of the whole record: packets that were never sent, a slow sender."""
    found = []
    if not any(flow.sent for flow in flows):
        found.append(NOTHING_SENT)
    damaged = [flow for flow in flows if flow.unknown]
    if damaged:
        count = sum(flow.unknown for flow in damaged)
        found.append(f"{count} packets were received but never recorded as sent, first flow {damaged[0].name}")
    least = 1 - settings.rate_tolerance_pct / 100
    slow = [flow for flow in flows if 0 < flow.sent_rate_pps < flow.rate_pps * least]
    if slow:
        worst = min(slow, key=lambda flow: flow.sent_rate_pps / flow.rate_pps)
        share = 100 * worst.sent_rate_pps / worst.rate_pps
        found.append(
            f"{len(slow)} senders were slower than {100 * least:g} % of their rate, worst {worst.name}: {share:.1f} %"
        )
    return tuple(found)


def edge_doubts(result: EdgeResult, flows: Sequence[FlowEdgeResult], settings: Settings) -> tuple[str, ...]:
    """Return problems of one edge: a sender or injection slower than the claimed resolution, methods that disagree."""
    found = []
    label, claimed_ms = result.edge.label, settings.claimed_resolution_ms
    hit = [flow for flow in flows if flow.relation.is_touched]
    paused = [flow for flow in hit if flow.send_gap_ms > claimed_ms]
    if paused:
        worst = max(paused, key=lambda flow: flow.send_gap_ms)
        found.append(
            f"{label}: {len(paused)} senders paused longer than the claimed resolution of {claimed_ms:g} ms, "
            f"worst {worst.name}: {worst.send_gap_ms:.1f} ms"
        )
    if result.edge.kind is EdgeKind.FAILURE and result.edge.skew_ms > claimed_ms:  # a repair may take its time
        found.append(
            f"{label}: the injection took {result.edge.skew_ms:.1f} ms, longer than the claimed {claimed_ms:g} ms"
        )
    differ = [flow for flow in hit if flow.methods_disagree]
    if differ:
        first = differ[0]
        found.append(
            f"{label}: loss and time stamps disagree for {len(differ)} flows, "
            f"first {first.name}: {first.outage_plbm_ms:.2f} and {first.outage_tbm_ms:.2f} ms"
        )
    return tuple(found)


def unexplained_losses(edges: Sequence[EdgeResult], flows: Sequence[FlowResult]) -> tuple[str, ...]:
    """Return loss outside every window and in the control group: the machine's if it dropped packets, else the
    fabric's."""
    found = []
    strays = [flow for flow in flows if flow.unexplained_lost]
    if strays:
        count = sum(flow.unexplained_lost for flow in strays)
        what = f"{phrases.packets(count)} of {phrases.flows(len(strays))}"
        found.append(f"{what} were lost outside every fault window, first {strays[0].name}")
    for at, result in enumerate(edges):
        hurt = [
            flow.name for flow in flows if flow.edges[at].control and flow.edges[at].lost + flow.edges[at].corrupted
        ]
        if hurt and not result.edge.control_exempt:
            what = f"{phrases.packets(result.control_lost)} of {phrases.flows(len(hurt))}"
            found.append(f"{result.edge.label}: {what} that no fault had touched were lost, first {hurt[0]}")
    return tuple(found)
