"""Goodput where PFC holds senders up: packets count when they arrive."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hpn.failover.analysis.cost import cost
from hpn.failover.analysis.metrics.analyse import analyse
from hpn.failover.analysis.metrics.goodput import flow_goodput
from hpn.failover.analysis.metrics.trace import build_traces
from hpn.failover.analysis.model import EdgeKind
from hpn.failover.analysis.settings import Settings
from tests.failover.synthetic import MS, Dead, S, edge, flow, record

SPEC = flow(0)
FULL_BPS = SPEC.rate_pps * SPEC.path_mtu * 8
HELD = Dead(3 * S, 4 * S)
RECORDS = record(SPEC, 9 * S, stuck=HELD, stuck_for_ns=1000 * MS)


@pytest.mark.parametrize(("by_arrival", "during"), [(False, 1.0), (True, 0.0)])
def test_what_waits_with_its_sender_is_no_goodput_of_that_time(by_arrival: bool, during: float) -> None:
    """Of the second at the edge every packet arrives one second later, beside the packets of that time."""
    (trace,) = build_traces([SPEC], *RECORDS.tables, Settings(), by_arrival=by_arrival)
    found = flow_goodput(trace, edge(HELD.start_ns, HELD.end_ns), S, Settings())
    assert found.during_bps / FULL_BPS == pytest.approx(during, abs=0.002)
    assert found.before_bps / FULL_BPS == pytest.approx(1.0, abs=0.002)
    assert trace.received_between(4 * S, 5 * S) == pytest.approx(2000 if by_arrival else 1000, abs=2)


@pytest.mark.parametrize(("buffers", "told"), [(None, ", none died"), ((), ", but stopped for 1.00 s, none died")])
def test_the_cost_of_a_stop_without_loss_is_its_time(buffers: tuple[()] | None, told: str) -> None:
    edges = [edge(HELD.start_ns, HELD.end_ns), edge(HELD.end_ns, 8 * S, EdgeKind.REPAIR)]
    found = analyse([SPEC], *RECORDS.tables, (), edges, (S, 3 * S), Settings())
    assert f"longer than 2.01 ms{told}" in cost(replace(found, buffers=buffers), {})


def test_by_either_every_packet_counts_once() -> None:
    counts = set()
    for by_arrival in (False, True):
        (trace,) = build_traces([SPEC], *RECORDS.tables, Settings(), by_arrival=by_arrival)
        counts.add(trace.received_between(0, 20 * S))
    assert counts == {len(RECORDS.received)}
