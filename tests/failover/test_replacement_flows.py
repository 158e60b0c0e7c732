"""Flows that begin late and flows that are closed: a host dies, a spare takes over, the power comes back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hpn.failover.analysis.downtime import Downtime
from hpn.failover.analysis.metrics.analyse import analyse
from hpn.failover.analysis.model import DrillMetrics, Edge, EdgeKind, HitLink, Relation, Settings
from hpn.testbed.events import Event, EventKind
from hpn.traffic.flows.flow import FlowSpec
from tests.failover.synthetic import MS, Dead, Records, S, flow, record

DEATH, TAKEOVER, POWER, END = 4 * S, 6 * S, 8 * S, 10 * S
DEAD, SPARE, PEER = "p0.s0.h0.r0", "p0.s0.h2.r0", "p0.s1.h0.r0"
TO, FROM = flow(0, src=PEER, dst=DEAD), flow(1, src=DEAD, dst=PEER)
OTHER = flow(2, src="p0.s0.h1.r0", dst="p0.s1.h1.r0")
NEW_TO = replace(flow(3, src=PEER, dst=SPARE), replaces=0)
NEW_FROM = replace(flow(4, src=SPARE, dst=PEER), replaces=1)
FLOWS = (TO, FROM, OTHER, NEW_TO, NEW_FROM)
QUICK = Settings(validation_s=1.0)
DIED_AT = DEATH + 537 * MS


def hit(nic: str) -> HitLink:
    host = nic.rpartition(".")[0]
    return HitLink(f"{nic}.0", f"{host}:r0p0", "p0.s0.t0.0:h0r0", nic, host, "bond0", "10.0.0.1")


def edge(
    kind: EdgeKind, at_ns: int, end_ns: int, nic: str, index: int, absent: tuple[int, ...], over: tuple[str, ...] = ()
) -> Edge:
    links = (hit(nic),)
    return Edge("power", kind, index, at_ns, at_ns + MS // 10, end_ns, links, absent=absent, taken_over=over)


EDGES = (
    edge(EdgeKind.FAILURE, DEATH, TAKEOVER, DEAD, 0, (3, 4)),
    edge(EdgeKind.REPAIR, TAKEOVER, POWER, SPARE, 0, (0, 1), ("power",)),
    edge(EdgeKind.REPAIR, POWER, END, DEAD, 1, (0, 1)),
)


def measure(
    *,
    closed_ns: int = DIED_AT,
    lost: tuple[Dead, ...] = (),
    flows: tuple[FlowSpec, ...] = FLOWS,
    edges: tuple[Edge, ...] = EDGES,
    rate: float = 1.0,
) -> DrillMetrics:
    """The first two flows lose all from the death on and stop at ``closed_ns``; ``lost`` is of a replacement flow."""
    old = [record(each, closed_ns - S, [Dead(DEATH, END)]) for each in (TO, FROM)]
    late = [
        record(replace(each, rate_pps=1000 * rate), END - TAKEOVER, lost, start_ns=TAKEOVER + MS)
        for each in flows
        if each.replaces is not None
    ]
    records = sum([*old, *late], record(OTHER, 9 * S))
    return analyse(flows, *records.tables, deaths(closed_ns), edges, (S, 3 * S), settings=QUICK)


def deaths(closed_ns: int) -> list[Event]:
    """Queue pairs that were not closed before had used up their retries."""
    detail: dict[str, str | int | float] = {"flow": 0}
    dead = [each for each in (TO, FROM) if closed_ns >= DIED_AT]
    return [Event(DIED_AT, EventKind.QP, "p0.s1.h0", each.name, "error", detail) for each in dead]


def test_a_flow_is_hit_while_it_is_there_and_absent_before_and_after() -> None:
    metrics = measure()
    relations = [[one.relation for one in result.edges] for result in metrics.flows]
    gone, none = Relation.ABSENT, Relation.NONE
    assert relations == [
        [Relation.RECEIVER, gone, gone],
        [Relation.SENDER, gone, gone],
        [none, none, none],
        [gone, Relation.RECEIVER, none],
        [gone, Relation.SENDER, none],
    ]
    assert [result.flows_hit for result in metrics.edges] == [2, 2, 0]
    control = [[one.control for one in result.edges] for result in metrics.flows]
    assert control == [[False] * 3, [False] * 3, [True] * 3, [False] * 3, [False] * 3]


def test_nothing_is_doubtful_or_unexplained_about_flows_that_come_and_go() -> None:
    metrics = measure()
    assert (metrics.inconclusive, metrics.unexplained, metrics.unexplained_lost) == ((), (), 0)
    assert metrics.noise.lost == 0
    assert metrics.noise.noise_floor_ms == pytest.approx(0, abs=1e-6)
    assert (metrics.flow_count, [one.replaces for one in metrics.flows]) == (3, [None, None, None, 0, 1])
    assert [result.lost for result in metrics.edges] == [2 * 537, 0, 0]


def test_a_slow_stand_in_is_found_slow() -> None:
    (doubt,) = measure(rate=0.9).inconclusive
    assert doubt == f"2 senders were slower than 98 % of their rate, worst {NEW_TO.name}: 90.0 %"


def test_being_closed_is_no_death_and_running_out_of_retries_before_is_one() -> None:
    died, closed = measure(), measure(closed_ns=DEATH + 300 * MS)
    assert [result.flows_died for result in died.edges] == [2, 0, 0]
    assert [result.flows_died for result in closed.edges] == [0, 0, 0]
    assert [result.stopped_at_ns for result in closed.flows] == [None] * 5
    assert closed.edges[0].flows_unrecovered == 2
    assert closed.edges[0].lost == 2 * 300


def test_before_of_a_stand_in_is_that_of_the_flow_it_replaces() -> None:
    metrics = measure()
    rate = 1000 * 1024 * 8
    old, new = metrics.flows[0], metrics.flows[3]
    assert new.edges[0].goodput.before_bps == old.edges[0].goodput.before_bps == pytest.approx(rate, rel=1e-3)
    assert new.edges[0].goodput.during_bps == 0
    assert new.edges[1].goodput.before_bps == 0, "the dead flow's, just before the takeover"
    assert new.edges[1].goodput.after_bps == pytest.approx(rate, rel=1e-3)
    assert new.edges[2].goodput.before_bps == pytest.approx(rate, rel=1e-3), "its own from then on"


def test_nobody_s_goodput_is_counted_twice() -> None:
    rate = 1000 * 1024 * 8
    before = [round(result.goodput.before_bps / rate, 2) for result in measure().edges]
    after = [round(result.goodput.after_bps / rate, 2) for result in measure().edges]
    assert (before, after) == ([3, 1, 3], [1, 3, 3])
    nics = [{(nic.nic, nic.direction) for nic in result.nics} for result in measure().edges]
    assert (DEAD, "up") in nics[0]
    assert (SPARE, "up") not in nics[0]
    assert (SPARE, "down") in nics[1]
    assert not {(DEAD, "up"), (DEAD, "down")} & (nics[1] | nics[2])


def test_what_a_stand_in_loses_at_first_is_an_outage_of_the_takeover() -> None:
    metrics = measure(lost=(Dead(TAKEOVER, TAKEOVER + 31 * MS),))
    takeover = metrics.edges[1]
    assert (takeover.flows_lossy, takeover.lost, takeover.worst_outage_plbm_ms) == (2, 60, 30)
    assert takeover.phases.recover.ms == pytest.approx(31.1)
    assert metrics.unexplained_lost == 0


def test_the_job_stands_still_from_the_death_to_the_fifth_packet_of_the_last_stand_in() -> None:
    found = measure().edges
    assert [result.downtime is None for result in found] == [True, False, True]
    last = TAKEOVER + MS + 4 * MS + MS // 10
    assert found[1].downtime == Downtime((last - DEATH) / MS, DEATH, last, 2, NEW_TO.name, 1.0)


def test_packets_before_a_hole_are_not_enough_to_be_at_work() -> None:
    """Three come through, then ten are lost."""
    downtime = measure(lost=(Dead(TAKEOVER + 4 * MS, TAKEOVER + 14 * MS),)).edges[1].downtime
    assert downtime is not None
    assert downtime.until_ns == TAKEOVER + (14 + 4) * MS + MS // 10


def test_a_stand_in_that_never_comes_through_leaves_the_job_standing() -> None:
    downtime = measure(lost=(Dead(TAKEOVER, END),)).edges[1].downtime
    assert downtime is not None
    assert (downtime.ms, downtime.until_ns) == (None, None)
    assert downtime.reason == f"2 of 2 replacement flows did not get 5 packets through in order, first {NEW_TO.name}"


def test_a_stand_in_that_is_replaced_itself_hands_over() -> None:
    """The peer dies too before the takeover; its own spare comes at 8 s."""
    second = "p0.s1.h2.r0"
    last = (replace(flow(5, src=second, dst=SPARE), replaces=3), replace(flow(6, src=SPARE, dst=second), replaces=4))
    records = sum((record(each, 2 * S, start_ns=POWER + MS) for each in last), record(OTHER, 9 * S))
    for each in (TO, FROM):
        records += record(each, DIED_AT - S, [Dead(DEATH, END)])
    for each in (NEW_TO, NEW_FROM):
        records += record(each, S, [Dead(TAKEOVER, END)], start_ns=TAKEOVER + MS)
    edges = (
        replace(EDGES[0], absent=(3, 4, 5, 6)),
        replace(EDGES[1], absent=(0, 1, 5, 6)),
        replace(EDGES[2], links=(hit(second),), absent=(0, 1, 3, 4)),
    )
    flows = (*FLOWS, *last)
    metrics = analyse(flows, *records.tables, (), edges, (S, 3 * S), settings=QUICK)
    downtime = metrics.edges[1].downtime
    assert downtime is not None
    assert downtime.ms == pytest.approx(4005.1)
    assert downtime.last_flow == last[0].name
    rate = 1000 * 1024 * 8
    assert metrics.flows[5].edges[0].goodput.before_bps == pytest.approx(rate, rel=1e-3), "of the first of its line"


def test_a_takeover_of_nothing_says_so() -> None:
    records: Records = record(OTHER, 9 * S)
    edges = tuple(replace(each, absent=()) for each in EDGES)
    metrics = analyse((OTHER,), *records.tables, (), edges, (S, 3 * S), settings=QUICK)
    assert metrics.edges[1].downtime == Downtime(None, DEATH, None, 0, "", 0.0, "no queue pair was replaced")
