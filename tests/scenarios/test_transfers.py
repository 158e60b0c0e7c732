"""What a drill can expect of transfers: limits, edges, flows, and runs of which nothing can be told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hpn.failover.analysis.model import DrillMetrics
from hpn.scenarios.drill.catalogue import load
from hpn.scenarios.drill.model import Workload
from hpn.scenarios.drill.workload import flows_of
from hpn.scenarios.expect.evidence import Evidence, RunFacts
from hpn.scenarios.expect.expectation import Expectation
from hpn.scenarios.expect.figure import Figure
from hpn.scenarios.expect.metric import Pauses
from hpn.scenarios.expect.metrics import METRICS
from hpn.scenarios.expect.selection import At, Bound, Flows
from hpn.testbed.fabric.build import build
from tests.failover.synthetic import MS, Dead, S
from tests.failover.test_transfers import FAULT_NS, measure, records, sent_by


def figure(metrics: DrillMetrics, key: str, edge: At = At.ANY, flows: Flows = Flows.ALL) -> Figure:
    expectation = Expectation(METRICS[key], Bound.AT_MOST, 0, flows, edge)
    return METRICS[key].measure(expectation, Evidence(metrics, RunFacts()))


def test_the_longest_transfer_counts_where_it_was_sent_and_one_that_lacks_a_packet_never_ends() -> None:
    slow = measure(records(slow=Dead(FAULT_NS, FAULT_NS + 100 * MS)))
    at_failure = figure(slow, "transfer_time", At.FAILURE)
    assert at_failure.value == pytest.approx(49.1)
    assert at_failure.low is not None
    assert at_failure.high is not None
    assert at_failure.low <= 49.1 <= at_failure.high
    assert at_failure.evidence.startswith("transfer 8 of ")
    assert figure(slow, "transfer_time", At.REPAIR).value == pytest.approx(19.1)
    assert figure(slow, "transfer_time").value == pytest.approx(49.1)
    cut = measure(records([Dead(FAULT_NS + 10 * MS, FAULT_NS + 260 * MS)]))
    lacking = figure(cut, "transfer_time", At.FAILURE)
    assert lacking.open_ended
    assert "transfer 8 of" in lacking.evidence
    assert "lacks 10 of 20 packets and 1 more are incomplete" in lacking.evidence
    assert not figure(cut, "transfer_time", At.REPAIR).open_ended


def test_incomplete_transfers_are_counted_at_the_edge_that_took_their_packets() -> None:
    cut = measure(records([Dead(FAULT_NS + 10 * MS, FAULT_NS + 260 * MS)]))
    assert figure(cut, "transfers_incomplete", At.FAILURE).value == 2
    assert figure(cut, "transfers_incomplete", At.REPAIR).value == 0
    assert figure(cut, "transfers_incomplete").value == 2
    healthy = measure(records())
    assert figure(healthy, "transfers_incomplete").evidence == "none of 24"


def test_of_a_run_without_a_transfer_that_ended_nothing_is_told() -> None:
    one = measure(records(sent=sent_by(end_ns=FAULT_NS - 2 * S + 5 * MS)))
    for key in ("transfer_time", "transfers_incomplete"):
        assert figure(one, key).value is None
    none = measure(records())
    assert figure(none, "transfer_time", flows=Flows.TRANSIT).value is None


def test_every_metric_that_reads_a_time_of_outage_is_blind_in_a_pause() -> None:
    blind = {key for key, metric in METRICS.items() if metric.needs.pauses is Pauses.BLIND}
    assert {key for key, metric in METRICS.items() if metric.needs.period} <= blind
    spanned = {key for key, metric in METRICS.items() if metric.needs.pauses is Pauses.SPANNED}
    assert spanned == {"flows_unrecovered", "goodput_during", "goodput_after", "recover", "untouched"}


@pytest.mark.parametrize("times", [1, 2, 10, 20, 64])
def test_on_a_slow_kernel_transfers_are_smaller_and_take_as_long(times: int) -> None:
    drill = load("link-down-bursts")
    fabric = build(drill.topology)
    fast, slow = (flows_of(each.workload, fabric)[0] for each in (drill, drill.slowed(times)))
    assert fast.transfers is not None
    assert slow.transfers is not None
    assert slow.transfers.every_ns == fast.transfers.every_ns
    period_ns = 1e9 / slow.rate_pps
    assert abs(slow.sending_ns - fast.sending_ns) <= period_ns
    assert slow.transfers.packets >= 1


def test_a_workload_without_transfers_stays_without() -> None:
    assert Workload().slowed(10).size_bytes is None
    assert replace(Workload(), size_bytes=10).slowed(100).size_bytes == 1
