"""Computation of transfers from packets: completeness, duration, and delays caused by the sender.

Changes when the end of a transfer, or the edge that it counts for, is defined otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import numpy as np

from hpn.failover.analysis.metrics.edge import windows_of
from hpn.failover.analysis.metrics.trace import NEVER, FlowTrace, Traces
from hpn.failover.analysis.model import Edge, Settings
from hpn.failover.analysis.transfers import Fate, Transfer, TransferPlan, Transfers

_NS_PER_MS = 1e6


def transfers_of(
    traces: Traces, edges: tuple[Edge, ...], settings: Settings, stopped: Mapping[int, int]
) -> Transfers | None:
    """Return every transfer of every flow; None if all flows are even streams. ``stopped``: flows with a dead queue
    pair."""
    timed = [(spec, plan) for spec in traces.flows if (plan := spec.transfers) is not None]
    if not timed:
        return None
    gone = {*stopped, *(flow for edge in edges for flow in edge.absent)}
    longest = TransferPlan(
        packets=max(plan.packets for _, plan in timed),
        sending_ms=max(spec.sending_ns for spec, _ in timed) / _NS_PER_MS,
        every_ms=max(plan.every_ns for _, plan in timed) / _NS_PER_MS,
    )
    found = (
        each
        for trace in traces
        if (plan := trace.spec.transfers) is not None
        for each in _of_flow(trace, plan.packets, edges, settings, gone)
    )
    return Transfers(longest, tuple(found))


def _of_flow(
    trace: FlowTrace, packets: int, edges: tuple[Edge, ...], settings: Settings, gone: Collection[int]
) -> Iterator[Transfer]:
    """Yield the transfers of a flow, with this number of packets each."""
    starts_ns = np.array([window.start_ns for window in windows_of(trace, edges, settings)], np.int64)
    for number, first in enumerate(range(0, len(trace.sent_ns), packets)):
        yield _transfer(trace, number, slice(first, first + packets), starts_ns, settings, gone)


def _transfer(
    trace: FlowTrace,
    number: int,
    span: slice,
    starts_ns: np.typing.NDArray[np.int64],
    settings: Settings,
    gone: Collection[int],
) -> Transfer:
    sent_ns, arrival_ns = trace.sent_ns[span], trace.arrival_ns[span]
    packets, sent = span.stop - span.start, len(sent_ns)
    received = arrival_ns != NEVER
    missing = ~received & ~trace.undecided[span]
    lost, got = int(np.count_nonzero(missing)), int(np.count_nonzero(received))
    late_ms = (int(sent_ns[-1] - sent_ns[0]) - (sent - 1) * trace.period_ns) / _NS_PER_MS
    fate = (
        Fate.COMPLETE if got == packets else Fate.INCOMPLETE if lost or (gone and sent < packets) else Fate.UNFINISHED
    )
    ms = int(arrival_ns.max() - sent_ns[0]) / _NS_PER_MS if fate is Fate.COMPLETE else None
    decided_ns = int(sent_ns[missing][0] if lost else sent_ns[-1])
    before = int(np.searchsorted(starts_ns, decided_ns, "right"))
    return Transfer(
        flow=trace.spec.id,
        number=number,
        edge=before - 1 if before else None,
        began_at_ns=int(sent_ns[0]),
        packets=packets,
        sent=sent,
        received=got,
        lost=lost,
        fate=fate,
        ms=ms,
        low_ms=None if ms is None else max(ms - max(late_ms, 0.0) - settings.clock_ms, 0.0),
        high_ms=None if ms is None else ms + max(-late_ms, 0.0) + settings.clock_ms,
        sender_late_ms=late_ms,
    )


def held_up(transfers: Transfers | None, names: Mapping[int, str], settings: Settings) -> tuple[str, ...]:
    """Return a line if senders needed longer for transfers than planned; one cut short ends as the next begins."""
    if transfers is None:
        return ()
    late = (
        [each for each in transfers.transfers if each.sender_late_ms > settings.claimed_resolution_ms]
        if transfers
        else []
    )
    if not late:
        return ()
    worst = max(late, key=lambda each: each.sender_late_ms)
    return (
        f"{len(late)} transfers were held up by their senders for longer than {settings.claimed_resolution_ms:g} ms,"
        f" worst number {worst.number} of {names[worst.flow]}: {worst.sender_late_ms:.1f} ms",
    )
