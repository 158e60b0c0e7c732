"""The noise floor is what the same method reports without a fault."""

from __future__ import annotations

import pytest

from hpn.failover.analysis.metrics.trace import FlowTrace, build_traces
from hpn.failover.analysis.model import NoiseFloor, Settings
from hpn.failover.analysis.noise import noise_floor
from tests.failover.synthetic import MS, Dead, Records, S, flow, record


def traces(*records: Records) -> tuple[FlowTrace, ...]:
    total = records[0]
    for one in records[1:]:
        total += one
    return tuple(build_traces([flow(n) for n in range(len(records))], *total.tables, Settings()))


def test_a_steady_sender_has_no_noise() -> None:
    found = noise_floor(traces(record(flow(), 9 * S)), 2 * S, 4 * S)
    assert found == NoiseFloor(
        noise_floor_ms=0, send_gap_max_ms=1, send_gap_p99_ms=1, delay_variation_ms=0, lost=0, pseudo_edges=8, window_s=2
    )


def test_the_worst_flow_and_pseudo_edge_make_the_floor() -> None:
    jittery = record(flow(1), 9 * S, jitter_ns=6 * MS)
    found = noise_floor(traces(record(flow(), 9 * S), jittery), 2 * S, 4 * S)
    assert found.send_gap_max_ms == pytest.approx(found.noise_floor_ms + 1)  # less one packet period
    assert 3 < found.noise_floor_ms < 7


def test_loss_in_the_healthy_phase_raises_the_floor_and_is_counted() -> None:
    found = noise_floor(traces(record(flow(), 9 * S, [Dead(3 * S, 3 * S + 12 * MS)])), 2 * S, 4 * S)
    assert (found.noise_floor_ms, found.lost) == (12, 12)


@pytest.mark.parametrize("start_ms", [2900, 2994, 3000])
def test_a_hole_is_as_long_wherever_the_pseudo_edges_fall(start_ms: int) -> None:
    hole = Dead(start_ms * MS, (start_ms + 12) * MS)
    assert noise_floor(traces(record(flow(), 9 * S, [hole])), 2 * S, 4 * S).noise_floor_ms == 12
    assert noise_floor(traces(record(flow(), 9 * S, paused=[hole])), 2 * S, 4 * S).noise_floor_ms == 12


def test_delay_variation_is_of_one_flow_not_between_flows() -> None:
    slow = record(flow(1), 9 * S, delay_ns=9 * MS)
    slow.received["received_ns"][2500] += 2 * MS
    found = noise_floor(traces(record(flow(), 9 * S), slow), 2 * S, 4 * S)
    assert found.delay_variation_ms == 2


def test_an_empty_window_is_no_crash() -> None:
    found = noise_floor(traces(record(flow(), S)), 5 * S, 5 * S)
    assert (found.noise_floor_ms, found.pseudo_edges, found.window_s) == (0, 0, 0)
    assert noise_floor((), S, 2 * S).lost == 0


def test_a_hole_that_pacing_makes_is_resolution_not_noise() -> None:
    paced = record(flow(1, 800), 9 * S)  # period 1.25 ms, looked at every 2 ms
    for records in (paced.sent, paced.received):
        records["sent_ns"] = -(-records["sent_ns"] // (2 * MS)) * 2 * MS
    trace = build_traces([flow(1, 800)], *paced.tables, Settings())
    assert noise_floor(trace, 2 * S, 4 * S).noise_floor_ms == pytest.approx(0.75)
    assert noise_floor(trace, 2 * S, 4 * S, tick_ns=2 * MS).noise_floor_ms == 0
