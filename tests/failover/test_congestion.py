"""Loss of a full queue is congestion, loss of a dead path is failover; both are told, and neither as the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpn.failover.analysis.causes import causes
from hpn.failover.analysis.cost import cost
from hpn.failover.analysis.metrics.analyse import analyse
from hpn.failover.analysis.model import DrillMetrics, EdgeKind
from hpn.failover.analysis.offered import Crossing, Offered, OfferedLink, StablePeriod, UndeliveredFlow, overloads
from hpn.failover.analysis.settings import QUICK
from hpn.results.judge.verdict import Check, Outcome
from hpn.scenarios.expect.evidence import RunFacts
from hpn.scenarios.expect.verdict import judge
from hpn.testbed.events import Event, EventKind
from tests.failover.synthetic import MS, Dead, Records, S, edge, flow, record
from tests.scenarios.measured import drill

FAULT, REPAIR, END = 4 * S, 6 * S, 10 * S


def uplinks(*shares: float | None, sender: str = "p0.s0.t0.1", number: int = 0) -> OfferedLink:
    towards = f"p0.a1.{number}"
    return OfferedLink(f"{sender}-{towards}", sender, towards, True, False, 10**8, shares)


def offered(since_ms: int = 3, share: float = 1.33, end_ns: int = REPAIR, unknown: int = 0) -> Offered:
    """An uplink is offered too much from so long after the failure, when a flow moved there, to the repair."""
    crossing = (Crossing(0, FAULT + since_ms * MS, FAULT + since_ms * MS),)
    return Offered(
        (
            StablePeriod(S, FAULT, "", (), 0),
            StablePeriod(FAULT, end_ns, "cut failure 0", crossing, unknown),
            StablePeriod(end_ns, END, "cut repair 0", (), 0),
        ),
        (uplinks(0.6, share, 0.6),),
    )


def measure(records: Records, load: Offered | None) -> DrillMetrics:
    edges = [edge(FAULT, REPAIR, fault="cut"), edge(REPAIR, END, EdgeKind.REPAIR, fault="cut")]
    return analyse([flow()], *records.tables, [], edges, (S, 3 * S), QUICK, offered=load)


def congested(dead_ms: int = 3, loss: float = 0.25) -> Records:
    """A path that is dead for so long, and then loses a share of its packets until the repair."""
    before = record(flow(), 3 * S, start_ns=S)
    during = record(flow(), 2 * S, (Dead(FAULT, FAULT + dead_ms * MS),), start_ns=FAULT, loss=loss, first_seq=3000)
    return before + during + record(flow(), 4 * S, start_ns=REPAIR, first_seq=5000)


def check(metrics: DrillMetrics, expectation: str) -> Check:
    return judge(drill(expectation), metrics, RunFacts(state_differences=())).checks[0]


def test_an_outage_of_3_ms_and_a_quarter_of_the_packets_to_congestion_are_told_apart() -> None:
    metrics = measure(congested(), offered())
    found = metrics.flows[0].edges[0].congestion
    assert found is not None
    assert metrics.flows[0].edges[0].outage_plbm_ms > 400, "what was told as one outage"
    assert found.failover_ms == pytest.approx(3, abs=1.01)
    assert found.low_ms <= 3 <= found.high_ms < 6
    assert 400 < found.lost < 600
    at_edge = metrics.edges[0].congestion
    assert at_edge is not None
    assert (at_edge.packets, at_edge.flows, at_edge.unrecovered) == (found.lost, 1, 0)
    assert at_edge.failover_packets == metrics.edges[0].lost - found.lost


def two(
    dead: Sequence[int], second: EdgeKind = EdgeKind.REPAIR, stop: int = FAULT, last: Sequence[Dead] = ()
) -> DrillMetrics:
    """Two flows that a fault hits: those that die send nothing from ``stop`` on; what they lost is ``last``."""
    flows = [flow(at) for at in (0, 1)]
    ends = [stop if at in dead else END for at in (0, 1)]
    records = [record(each, ends[at] - S, last if at in dead else (), start_ns=S) for at, each in enumerate(flows)]
    deaths = [Event(stop + 500 * MS, EventKind.QP, "p0.s0.h0", flows[at].name, "error") for at in dead]
    edges = [edge(FAULT, REPAIR, fault="cut"), edge(REPAIR, END, second, fault="cut")]
    return analyse(flows, *(records[0] + records[1]).tables, deaths, edges, (S, 3 * S), QUICK)


def test_how_long_queue_pairs_stood_still_is_told_of_those_that_live() -> None:
    """What died stands still for good, though no packet of it is missing where its acknowledgements were lost."""
    assert ": 2 of 2 queue pairs hit, no outage longer than 1.01 ms, none died, " in cost(two([]), {})
    assert ": 2 of 2 queue pairs hit, no other outage longer than 1.01 ms, 1 died after 537 ms " in cost(two([0]), {})
    lost = two([0], stop=FAULT + 500 * MS, last=[Dead(FAULT, FAULT + 500 * MS)])
    assert ": 2 of 2 queue pairs hit, no other outage longer than 1.01 ms, 1 died after 537 ms " in cost(lost, {})
    assert ": 2 of 2 queue pairs hit, all of them died after 537 ms " in cost(two([0, 1]), {})


@pytest.mark.parametrize(
    ("crossed", "words"),
    [
        ((0,), "1 of 2 queue pairs crossed it (2 could have), no outage"),
        ((0, 1), "2 of 2 queue pairs crossed it, no outage"),
        ((), "none of 2 queue pairs crossed it (2 could have)"),
    ],
)
def test_what_crossed_a_fault_is_told_apart_from_what_could_have(crossed: tuple[int, ...], words: str) -> None:
    found = two([])
    first = replace(found.edges[0], edge=replace(found.edges[0].edge, crossed=crossed))
    assert f": {words}" in cost(replace(found, edges=(first, *found.edges[1:])), {})


@pytest.mark.parametrize(
    ("dead", "words"),
    [
        (
            (1,),
            "data of 1 of 2 queue pairs crossed it, acknowledgements of 1 other did (2 could have)",
        ),
        ((0,), "1 of 2 queue pairs crossed it (2 could have), no other outage"),
    ],
    ids=["one died of its acknowledgements", "none did"],
)
def test_acknowledgements_that_crossed_a_fault_are_told_where_a_queue_pair_died_of_them(
    dead: tuple[int, ...], words: str
) -> None:
    found = two(dead)
    first = replace(found.edges[0], edge=replace(found.edges[0].edge, crossed=(0,), acks_crossed=(0, 1)))
    assert f": {words}" in cost(replace(found, edges=(first, *found.edges[1:])), {})


def test_queue_pairs_that_were_dead_before_a_fault_are_no_cost_of_it() -> None:
    early = FAULT - S
    assert ": 2 of 2 queue pairs hit, 1 of which had died before, no outage" in cost(two([0], stop=early), {})
    assert ": 2 of 2 queue pairs hit, all of which had died before, goodput" in cost(two([0, 1], stop=early), {})


def test_goodput_is_that_of_the_step_of_a_fault_that_costs_most() -> None:
    """A drain is announced first, which costs nothing; what dies then dies by its second step."""
    assert "goodput -50.0 %" in cost(two([0], EdgeKind.FAILURE, REPAIR), {})


def test_without_an_overloaded_link_all_of_it_is_failover() -> None:
    calm = replace(offered(), spans=tuple(replace(span, crossing=()) for span in offered().spans))
    assert measure(congested(), calm).edges[0].congestion is None
    assert check(measure(congested(), calm), "failover_loss: {at_most: 5}").outcome is Outcome.FAIL


@pytest.mark.parametrize(
    ("expectation", "outcome"),
    [
        ("failover_outage: {below: 10 ms}", Outcome.PASS),
        ("failover_outage: {below: 1 ms}", Outcome.FAIL),
        ("worst_outage: {below: 10 ms}", Outcome.FAIL),
        ("failover_loss: {at_most: 5}", Outcome.PASS),
        ("congestion_loss: {at_most: 5}", Outcome.FAIL),
        ("congestion_loss: {at_most: 1000}", Outcome.PASS),
    ],
)
def test_both_can_be_expected(expectation: str, outcome: Outcome) -> None:
    assert check(measure(congested(), offered()), expectation).outcome is outcome


@pytest.mark.parametrize("metric", ["failover_outage: {below: 10 s}", "failover_loss: {at_most: 9999}"])
def test_nothing_is_told_apart_where_paths_are_not_known(metric: str) -> None:
    for load in (None, offered(unknown=3)):
        found = check(measure(congested(), load), metric)
        assert found.outcome is Outcome.INCONCLUSIVE
        assert "nobody knows the offered load" in found.evidence


@given(dead_ms=st.integers(0, 500), loss=st.floats(0.01, 0.9), known=st.booleans())
@settings(max_examples=25, deadline=None)
def test_failover_is_as_long_as_the_path_was_dead(dead_ms: int, loss: float, known: bool) -> None:
    metrics = measure(congested(dead_ms, loss), offered(dead_ms if known else 0))
    result = metrics.flows[0].edges[0]
    assert result.congestion is not None
    assert 0 < result.congestion.lost <= result.lost
    assert result.congestion.low_ms <= dead_ms + 1, "what chance took next to it is not certain to be failover's"
    assert dead_ms - 1.01 <= result.congestion.high_ms, "the dead time is failover's"
    if known:
        assert result.congestion.low_ms == pytest.approx(dead_ms, abs=2.01)


def test_what_a_sender_lost_before_it_knew_of_its_move_is_no_congestion() -> None:
    metrics = measure(congested(dead_ms=4, loss=0.0), offered(since_ms=3))
    assert metrics.flows[0].edges[0].lost == 4
    assert metrics.edges[0].congestion is None, "all of it was lost before anything arrived by the new path"


def test_what_a_flow_loses_that_was_on_the_overloaded_link_before_is_congestion_from_the_edge_on() -> None:
    load = offered(since_ms=0)
    stays = tuple(
        replace(span, crossing=tuple(replace(each, moved_ns=None) for each in span.crossing)) for span in load.spans
    )
    metrics = measure(congested(dead_ms=4, loss=0.0), replace(load, spans=stays))
    assert metrics.edges[0].congestion is not None
    assert metrics.edges[0].congestion.packets == 4


def test_congestion_is_named_before_failover_with_link_share_and_time() -> None:
    found = causes(measure(congested(), offered()))
    assert found[0].startswith("failure of cut: uplink p0.s0.t0.1 to p0.a1.0: 133 % of its rate: loss from ")
    assert found[0].endswith(" packets of 1 flow)")
    assert "is congestion" in found[0]
    assert (
        found[1] == "failure of cut: 1 flow lost packets until failover was over: no LAG, route or path control reacted"
    )


def test_congestion_before_any_fault_is_told_once_and_first() -> None:
    load = offered()
    full = replace(load, links=(uplinks(1.2, 1.33, 1.2),))
    found = causes(measure(congested(), full))
    assert found[0] == "before any fault: uplink p0.s0.t0.1 to p0.a1.0: 120 % of its rate: loss there is congestion"
    assert found[1].startswith("failure of cut: the same links as before any fault: loss from ")


def test_a_queue_pair_that_died_without_acknowledgements_is_told_so() -> None:
    load, dead = offered(), "another port's path works, and path control is off (no route)"
    spans = tuple(replace(span, crossing=(), unanswered=(UndeliveredFlow(0, dead),)) for span in load.spans)
    records = record(flow(), 3 * S, start_ns=S) + record(flow(), 500 * MS, start_ns=FAULT, first_seq=3000)
    edges = [edge(FAULT, REPAIR, fault="cut"), edge(REPAIR, END, EdgeKind.REPAIR, fault="cut")]
    death = Event(FAULT + 500 * MS, EventKind.QP, "p0.s0.h0", flow().name, "error")
    metrics = analyse([flow()], *records.tables, [death], edges, (S, 3 * S), QUICK, offered=replace(load, spans=spans))
    assert causes(metrics)[0] == f"failure of cut: {dead}: 1 queue pair died without acknowledgements"


def test_no_failover_is_told_of_a_flow_that_never_came_back() -> None:
    dead = record(flow(), 3 * S, start_ns=S) + record(
        flow(), 6 * S, (Dead(FAULT, END),), start_ns=FAULT, first_seq=3000
    )
    assert causes(measure(dead, None))[0] == "failure of cut: 1 flow did not come back, and no path tells why"


def test_what_it_cost_is_one_sentence() -> None:
    metrics = measure(congested(), offered())
    said = cost(metrics, {"cut": "link down of p0.s0.h0.r0.0 for 2 s"})
    assert said.startswith("Link down of p0.s0.h0.r0.0 for 2 s: 1 of 1 queue pair hit, no outage longer than ")
    assert "none died" in said
    assert "congestion took" in said
    assert ", goodput -2" in said


def test_goodput_that_did_not_change_is_told_without_a_sign() -> None:
    whole = record(flow(), 9 * S, start_ns=S)
    assert cost(measure(whole, None), {"cut": "a cut"}).endswith("none died, goodput as before.")


def test_links_of_one_node_are_told_together() -> None:
    links = (
        uplinks(1.2, number=0),
        uplinks(1.333, number=1),
        uplinks(1.01, sender="p0.s1.t0.1"),
        uplinks(0.99, number=3),
    )
    load = Offered((StablePeriod(0, S, "", (), 0),), links)
    assert list(overloads(load, 0)) == [
        "uplinks of p0.s0.t0.1: 120 to 133 % of their rate",
        "uplink p0.s1.t0.1 to p0.a1.0: 101 % of its rate",
    ]
    just = Offered((StablePeriod(0, S, "", (), 0),), (uplinks(1.0001),))
    assert list(overloads(just, 0)) == ["uplink p0.s0.t0.1 to p0.a1.0: 100.01 % of its rate"], "never 100 %: it is more"
