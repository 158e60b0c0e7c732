"""Drains of a run: which link was taken out, whether a fault was in it, and what it saved or cost. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from hpn.failover.analysis.location import Drained
from hpn.failover.analysis.metrics.series import StreamSeries
from hpn.failover.locating.known import Standing
from hpn.failover.locating.parts import Ends
from hpn.testbed.events import Event, EventKind

DRAINED = "drained"
"""Event of a link that was taken out of use because of what was located."""


def drains_of(
    events: Iterable[Event], faults: Sequence[Standing], ends: Ends, series: StreamSeries
) -> Iterator[Drained]:
    """Yield every drain of a run, in order.

    What would be lost without it is by the rate of loss from the fault to the drain, until its repair.
    """
    for event in events:
        if event.kind is EventKind.LOCATE and event.what == DRAINED:
            yield _drained(event, next(_in(faults, ends, event), None), series)


def _in(faults: Sequence[Standing], ends: Ends, event: Event) -> Iterator[Standing]:
    """Yield the faults that stand in the drained link, or in a node at its ends."""
    names = {event.subject, *ends.get(event.subject, ())}
    for fault in faults:
        if fault.at_ns <= event.at_ns <= fault.until_ns and any(part.name in names for part in fault.parts):
            yield fault


def _drained(event: Event, fault: Standing | None, series: StreamSeries) -> Drained:
    until_ns = series.bins.end_ns if fault is None else fault.until_ns
    lost = _lost(series, event.at_ns, until_ns)
    if fault is None:
        return Drained(event.subject, "", None, lost, None)
    before_ns = max(event.at_ns - fault.at_ns, 1)
    rate = _lost(series, fault.at_ns, event.at_ns) / before_ns
    return Drained(event.subject, fault.fault, before_ns / 1e6, lost, round(rate * (until_ns - event.at_ns)))


def _lost(series: StreamSeries, begin_ns: int, end_ns: int) -> int:
    """Return the packets that were sent between two times and lost."""
    bins = series.bins
    first, last = ((at_ns - bins.start_ns) // bins.width_ns for at_ns in (begin_ns, end_ns))
    part = slice(max(first, 0), max(last, 0))
    sent, received = series.sent[:, part].sum(), series.received[:, part].sum()
    return max(0, int(sent) - int(received))
