"""Paths of flows over time, made again from a timeline alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from hpn.failover.analysis.model import Edge, EdgeKind
from hpn.failover.analysis.paths import Looked, PathAt, Paths, PathsAtBegin, Step
from hpn.testbed.events import Event, EventKind
from hpn.testbed.fabric.load import load_fabric
from hpn.traffic.flows.flow import FlowSpec
from tests.failover.synthetic import MS, S, flow

FABRIC = load_fabric("tiny")
SENDER, TARGET = FABRIC.nic("p0.s0.h0.r0"), FABRIC.nic("p0.s1.h0.r0")
FLOW = replace(flow(0), dst_ip=TARGET.ip, sport=50_000)
LINKS = ("p0.s0.h0.r0.0", "p0.s0.t0.0-p0.a0.0", "p0.s1.t0.0-p0.a0.0", "p0.s1.h0.r0.0")


def _by_parity(_nic: str, sport: int, _dst_ip: str, _dport: int, active: Sequence[str]) -> str:
    return active[sport % len(active)]


def _lag(at_ns: int, ports: str, host: str = SENDER.host) -> Event:
    return Event(at_ns, EventKind.LAG, host, "bond0", "active", {"ports": ports})


def _path(at_ns: int, what: str, subject: str, **detail: str | int) -> Event:
    return Event(at_ns, EventKind.PATH, SENDER.host, subject, what, detail)


def _over(steps: Sequence[Step], flows: Sequence[FlowSpec] = (FLOW,)) -> list[PathAt]:
    begin = PathsAtBegin(tuple(flows), {0: LINKS}, _by_parity)
    return list(Paths(FABRIC, begin).over([_lag(MS, "r0p0,r0p1"), *steps], (S, 9 * S)))


BEGIN = PathAt(S, 0, "begin", 50_000, 0, 0, LINKS)


def test_a_quiet_run_has_one_line_a_flow_with_the_links_that_the_switches_named() -> None:
    assert _over([]) == _over([_lag(2 * S, "r0p0,r0p1"), _lag(3 * S, "r0p1", "p0.s1.h1")]) == [BEGIN]


def test_a_lag_moves_what_it_carries_and_back() -> None:
    found = _over([_lag(4 * S, "r0p1"), _lag(5 * S, ""), _lag(6 * S, "r0p0,r0p1")])
    assert found == [
        BEGIN,
        PathAt(4 * S, 0, "LAG", 50_000, 1, 1),
        PathAt(5 * S, 0, "LAG", 50_000, None, None),
        PathAt(6 * S, 0, "LAG", 50_000, 0, 0),
    ]


@pytest.mark.parametrize("what", ["moved", "rehomed"])
def test_path_control_moves_data_and_not_acknowledgements(what: str) -> None:
    found = _over([_path(4 * S, what, "0", sport=50_001), _path(5 * S, what, "1", sport=50_004)])
    assert found == [BEGIN, PathAt(4 * S, 0, what, 50_001, 1, 1)]


def test_a_path_that_is_chosen_again_at_a_failure_is_not_told_as_one_that_left_marks() -> None:
    found = _over([_path(4 * S, "rehomed", "0", sport=50_001, why="rechosen")])
    assert found[1:] == [PathAt(4 * S, 0, "rechosen", 50_001, 1, 1)]
    assert _over([_path(4 * S, "rehomed", "0", sport=50_001, why="timeout")])[1].why == "rehomed"


def test_what_moved_before_the_begin_begins_there() -> None:
    (found,) = _over([_path(S - 1, "moved", "0", sport=50_001)])
    assert (found.at_ns, found.why, found.sport, found.plane) == (S, "begin", 50_001, 1)


def test_a_destination_that_is_steered_leaves_by_the_other_port_until_it_is_released() -> None:
    found = _over(
        [
            _path(4 * S, "steered", TARGET.ip, from_port="r0p0", to_port="r0p1"),
            _path(5 * S, "steered", "10.9.9.9", from_port="r0p1", to_port="r0p0"),
            _path(6 * S, "released", TARGET.ip, from_port="r0p0", to_port="r0p0"),
        ]
    )
    assert found[1:] == [
        PathAt(4 * S, 0, "steered", 50_000, 1, 1),
        PathAt(6 * S, 0, "released", 50_000, 0, 0),
    ]


def test_a_stand_in_comes_when_its_host_takes_over() -> None:
    stand_in = replace(flow(1, src="p0.s0.h1.r0"), dst_ip=TARGET.ip, sport=50_003, replaces=0)
    edges = [
        Edge("dead", EdgeKind.FAILURE, 0, 3 * S, 3 * S, 5 * S, absent=(1,)),
        Edge("dead", EdgeKind.REPAIR, 0, 5 * S, 5 * S + MS, 9 * S, absent=(0,)),
    ]
    lag = _lag(MS, "r0p0,r0p1", "p0.s0.h1")
    found = _over([lag, *edges], (FLOW, stand_in))
    assert found == [
        BEGIN,
        PathAt(S, 1, "begin", None, None, None),
        PathAt(5 * S + MS, 0, "taken over", None, None, None),
        PathAt(5 * S + MS, 1, "taken over", 50_003, 1, 1),
    ]


def test_a_job_s_host_that_a_spare_replaces_is_followed_no_further() -> None:
    gone = Event(4 * S, EventKind.JOB, "job", SENDER.host, "replaced", {"by": "p0.s0.h1", "ranks": "0"})
    found = _over([gone, _path(5 * S, "moved", "0", sport=50_001)])
    assert found == [BEGIN, PathAt(4 * S, 0, "replaced", None, None, None)]


def test_what_comes_after_the_end_is_not_told() -> None:
    assert _over([_lag(10 * S, "r0p1")]) == [BEGIN]


def test_links_are_told_when_somebody_looked_and_they_are_others() -> None:
    other = (LINKS[0], "p0.s0.t0.0-p0.a0.1", "p0.s1.t0.0-p0.a0.1", LINKS[3])
    found = _over(
        [
            Looked(2 * S, 0, LINKS, None),
            Looked(3 * S, 0, other, None),
            _lag(4 * S, "r0p1"),
            Looked(5 * S, 0, LINKS[:1], "no route"),
            Looked(6 * S, 0, LINKS[:1], "no route"),
            Looked(6 * S, 7, LINKS, None),
        ]
    )
    assert found == [
        BEGIN,
        PathAt(3 * S, 0, "looked", 50_000, 0, 0, other),
        PathAt(4 * S, 0, "LAG", 50_000, 1, 1),
        PathAt(5 * S, 0, "looked", 50_000, 1, 1, LINKS[:1], "no route"),
    ]


def test_a_bound_queue_pair_follows_its_adapter_and_path_control_not_its_lag_or_source_port() -> None:
    bound = replace(FLOW, port=0)
    found = _over(
        [
            _lag(3 * S, "r0p1"),
            Event(4 * S, EventKind.LAG, SENDER.host, "bond0", "remapped", {"port": "r0p0", "to_port": "r0p1"}),
            Event(5 * S, EventKind.LAG, SENDER.host, "bond0", "remapped", {"port": "r0p0", "to_port": "r0p0"}),
            _path(6 * S, "rebound", "0", dst=TARGET.ip, from_port="r0p0", to_port="r0p1"),
            _path(7 * S, "rebound", "1", dst=SENDER.ip, from_port="r0p0", to_port="r0p1"),
            _path(8 * S, "rehomed", "0", sport=50_001),
        ],
        [bound],
    )
    assert found == [
        BEGIN,
        PathAt(4 * S, 0, "remapped", 50_000, 1, 1),
        PathAt(5 * S, 0, "remapped", 50_000, 0, 0),
        PathAt(6 * S, 0, "rebound", 50_000, 1, 1),
        PathAt(8 * S, 0, "rehomed", 50_001, 1, 1),
    ]
