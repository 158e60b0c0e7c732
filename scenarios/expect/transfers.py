"""Duration of transfers, and incomplete transfers. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hpn.failover.analysis.budget import Interval, of_statistic
from hpn.failover.analysis.model import DrillMetrics
from hpn.failover.analysis.phrases import packets
from hpn.failover.analysis.transfers import Fate, Transfer, interval_of
from hpn.scenarios.expect.choose import chosen_flows, nothing, whole_record
from hpn.scenarios.expect.evidence import from_metrics
from hpn.scenarios.expect.figure import Figure, lower_bound
from hpn.scenarios.expect.metric import Larger, Metric, Needs, Slowed, Takes, Unit
from hpn.scenarios.expect.selection import Selection


@dataclass(frozen=True, slots=True)
class _Chosen:
    """A transfer that an expectation is about."""

    name: str  # name of its flow
    transfer: Transfer

    @property
    def label(self) -> str:
        """Label: 'transfer 3 of FLOW'."""
        return f"transfer {self.transfer.number} of {self.name}"

    @property
    def lacks(self) -> str:
        """Description of the gap: 'transfer 3 of FLOW lacks 12 of 25 packets'."""
        found = self.transfer
        return f"{self.label} lacks {found.packets - found.received:,} of {packets(found.packets)}"


def _chosen(expectation: Selection, metrics: DrillMetrics) -> Iterator[_Chosen]:
    """Yield the transfers of selected flows, over the whole record or for the selected edges."""
    if metrics.transfers is None:
        return
    flows = whole_record(expectation, metrics)
    if flows is not None:
        names = {flow.flow: flow.name for flow in flows}
        yield from (_Chosen(names[t.flow], t) for t in metrics.transfers.transfers if t.flow in names)
        return
    wanted = {(at.flow.flow, metrics.edges.index(at.edge)): at.flow.name for at in chosen_flows(expectation, metrics)}
    for transfer in metrics.transfers.transfers:
        if transfer.edge is not None and (transfer.flow, transfer.edge) in wanted:
            yield _Chosen(wanted[transfer.flow, transfer.edge], transfer)


def _transfer_time(expectation: Selection, metrics: DrillMetrics) -> Figure:
    """Return the longest transfer; one that lacks a packet never ends, as no packet is resent."""
    ended = [each for each in _chosen(expectation, metrics) if each.transfer.fate is not Fate.UNFINISHED]
    if not ended:
        return nothing(expectation)
    complete = [(each.transfer.ms, each) for each in ended if each.transfer.ms is not None]
    longest_ms, longest = max(complete, key=lambda found: found[0], default=(0.0, ended[0]))
    intervals = [found for each in ended if (found := interval_of(each.transfer)) is not None]
    within = of_statistic(intervals or [Interval(0.0, 0.0)], max)
    lacking = [each for each in ended if each.transfer.fate is Fate.INCOMPLETE]
    if lacking:
        more = f" and {len(lacking) - 1} more are incomplete" if len(lacking) > 1 else ""
        return lower_bound(within.low, f"{lacking[0].lacks}{more}", never=True)
    return Figure(longest_ms, f"{longest.label}, of {len(ended)}", *within)


def _incomplete(expectation: Selection, metrics: DrillMetrics) -> Figure:
    ended = [each for each in _chosen(expectation, metrics) if each.transfer.fate is not Fate.UNFINISHED]
    if not ended:
        return nothing(expectation)
    lacking = [each for each in ended if each.transfer.fate is Fate.INCOMPLETE]
    evidence = f"none of {len(ended)}" if not lacking else f"of {len(ended)}, first {lacking[0].lacks}"
    return Figure(len(lacking), evidence)


def _of_transfers(
    key: str,
    unit: Unit,
    slowed: Slowed,
    summary: str,
    measure: Callable[[Selection, DrillMetrics], Figure],
) -> Metric:
    needs = Needs(transfers=True, sending=unit is Unit.MS)
    return Metric(
        key, unit, Takes.FLOWS, slowed, needs, summary, from_metrics(measure), over_record=True, larger=Larger.WORSE
    )


METRICS = (
    _of_transfers(
        "transfer_time",
        Unit.MS,
        Slowed.STRETCHED,
        "the longest time from a transfer's first packet leaving to its last arriving; one that lacks any never ends",
        _transfer_time,
    ),
    _of_transfers(
        "transfers_incomplete",
        Unit.COUNT,
        Slowed.PER_QUEUE_PAIR,
        "transfers that lack a packet, or whose queue pair died or was closed before their end",
        _incomplete,
    ),
)
