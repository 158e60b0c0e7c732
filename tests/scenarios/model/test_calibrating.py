"""Times of failovers from a run with known truth: what was cut off, what had another way, what came to other links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from hpn.failover.analysis.metrics.analyse import analyse
from hpn.failover.analysis.model import EdgeKind, Settings
from hpn.failover.analysis.paths import PathAt
from hpn.results.run.reading import Run
from hpn.scenarios.model import calibrating
from hpn.scenarios.model.failover_times import Case, FailoverStep, FailoverTimes, Side, Times
from hpn.testbed.errors import InputError
from hpn.testbed.events import Event, EventKind
from tests.failover.synthetic import MS, Dead, S, edge, flow, record
from tests.results.sample import LOAD, MANIFEST
from tests.results.test_page import run_of
from tests.results.whole import DRILL, FABRIC

FAILURE, REPAIR, END = 4 * S, 6 * S, 10 * S
HOME, OTHER = ("p0.s0.h0.r0.0", "p0.s1.h0.r0.0"), ("p0.s0.h0.r0.1", "p0.s1.h0.r0.1")
UPLINKS = ("p0.s0.t0.0-p0.a0.0", "p0.s0.t0.0-p0.a0.1")


def run() -> Run:
    """A NIC's flow is cut off and returns in two parts; one towards it has another way; one below comes onto a link."""
    flows = [flow(0), flow(1, src="p0.s0.h1.r0", dst="p0.s0.h0.r0"), flow(2, src="p0.s0.h1.r0", dst="p0.s1.h1.r0")]
    holes = [Dead(FAILURE, REPAIR + 100 * MS), Dead(REPAIR + 500 * MS, REPAIR + 610 * MS)]
    records = record(flows[0], 9 * S, holes) + record(flows[1], 9 * S, [Dead(FAILURE, FAILURE + 20 * MS)])
    records = records + record(flows[2], 9 * S)
    edges = [edge(FAILURE, REPAIR, fault="cut"), edge(REPAIR, END, EdgeKind.REPAIR, fault="cut")]
    events = (
        Event(REPAIR + 300 * MS, EventKind.BGP, "p0.a0.1", "s0r0t0", "established"),
        Event(REPAIR + 310 * MS, EventKind.ROUTE, "p0.a0.1", "10.0.1.2/32", "host-route-added"),
        Event(REPAIR + 700 * MS, EventKind.BGP, "p0.s0.t1.0", "up0", "established"),
        Event(REPAIR + 800 * MS, EventKind.ROUTE, "p0.a0.1", "10.0.0.1/32", "host-route-added"),
    )
    paths = (
        PathAt(S, 0, "begin", 50344, 0, 0, HOME),
        PathAt(FAILURE + MS, 0, "LAG", 50344, None, None),
        PathAt(REPAIR + 100 * MS, 0, "LAG", 50344, 0, 0),
        PathAt(END - MS, 0, "looked", 50344, 0, 0, HOME),
        PathAt(S, 1, "begin", 50345, 0, 0, HOME),
        PathAt(REPAIR - MS, 1, "looked", 50345, 1, 1, OTHER),
        PathAt(S, 2, "begin", 50346, 0, 0, UPLINKS[:1]),
        PathAt(END - MS, 2, "looked", 50346, 0, 0, UPLINKS[1:]),
    )
    metrics = analyse(flows, *records.tables, (), edges, (S, 3 * S), Settings(validation_s=1), LOAD)
    manifest = replace(MANIFEST, engine="uml-virtual-time", phase=7)
    return run_of(metrics, drill=DRILL, fabric=FABRIC, paths=paths, events=events, manifest=manifest)


def measured(monkeypatch: pytest.MonkeyPatch, found: Run) -> FailoverTimes:
    monkeypatch.setattr(calibrating, "read", lambda _: found)
    return calibrating.measured_in([Path("run")])


def by_case(found: FailoverTimes) -> Mapping[tuple[EdgeKind, Side, FailoverStep], Times]:
    assert all(times.case.fault == "link-down" for times in found.times)
    return {(times.case.edge, times.case.side, times.case.step): times for times in found.times}


def test_each_flow_s_time_is_taken_once_and_names_its_run(monkeypatch: pytest.MonkeyPatch) -> None:
    found = measured(monkeypatch, run())
    assert [(source.phase, source.conditions.architecture) for source in found.sources] == [(7, "hpn")]
    assert by_case(found).keys() == {
        (EdgeKind.FAILURE, Side.DOWN, FailoverStep.OUTAGE),
        (EdgeKind.REPAIR, Side.UP, FailoverStep.RESUMED),
        (EdgeKind.REPAIR, Side.TRANSIT, FailoverStep.MOVED),
    }
    assert [times.source for times in found.times] == [0, 0, 0]


def test_what_had_another_way_was_out_for_the_packets_that_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    times = by_case(measured(monkeypatch, run()))[EdgeKind.FAILURE, Side.DOWN, FailoverStep.OUTAGE]
    assert times.ms == pytest.approx([20], abs=1.1)
    assert times.most_ms >= times.ms[0]


def test_what_was_cut_off_counts_from_the_repair_and_keeps_what_it_lost_once_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    times = by_case(measured(monkeypatch, run()))[EdgeKind.REPAIR, Side.UP, FailoverStep.RESUMED]
    assert times.ms == pytest.approx([100], abs=2)
    assert times.pauses[0] == pytest.approx((500, 610), abs=2)


def test_what_came_onto_another_link_did_so_with_its_session_and_its_route(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not with other links' sessions, nor with other hosts' routes."""
    times = by_case(measured(monkeypatch, run()))[EdgeKind.REPAIR, Side.TRANSIT, FailoverStep.MOVED]
    assert times.ms == (310.0,)


def test_a_run_that_tells_no_ways_or_whose_time_a_machine_s_load_touched_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = run()
    for lacks, said in (
        (replace(whole, paths=None), "paths"),
        (replace(whole, manifest=MANIFEST), "virtual time"),
        (replace(whole, metrics=None), "cannot be calibrated"),
    ):
        with pytest.raises(InputError, match=said) as error:
            measured(monkeypatch, lacks)
        assert "\n" not in str(error.value)


def test_a_case_says_in_words_what_it_is() -> None:
    case = Case("link-down", EdgeKind.REPAIR, Side.DOWN, FailoverStep.RESUMED)
    assert case.text == "link-down repair, resumed (down)"
