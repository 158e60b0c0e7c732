"""Spare hosts: which fault gets which, who stands in for whom, and how long the job stood still."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hpn.failover.analysis.downtime import Downtime
from hpn.failover.analysis.model import DrillMetrics, EdgeKind, Goodput, Relation
from hpn.failover.faults import MS, HostReplaced, PlannedEdge, PlannedFault, SpareTakeover
from hpn.results.judge.verdict import Outcome
from hpn.scenarios.drill.describe import describe
from hpn.scenarios.drill.load import drill_from
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.drill.spares import ActiveFlows, assigned, replacement_flows
from hpn.scenarios.drill.workload import flows_of
from hpn.scenarios.expect.evidence import RunFacts
from hpn.scenarios.expect.verdict import judge
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.files.document import parse
from hpn.traffic.flows.flow import FlowSpec

from .measured import FAILURE, REPAIR, at_edge, flow, metrics

SPEC = PRESETS["tiny-spare"].spec
FABRIC = build(SPEC)
TWO_SPARES = build(SPEC.model_copy(update={"spare_hosts": 2}))

TEXT = """
drill: d
summary: s
topology: tiny-spare
timeline:
  faults: [{{id: power, fault: host-replaced, target: p0.s0.h0, at: 1 s, after: {}}}]
expect:
  - {}
"""


def drill(expectation: str, after: str = "2 s") -> Drill:
    return drill_from(parse(TEXT.format(after, expectation), "d.yaml"), Path())


def planned(name: str, host: str, at_ms: int = 1000, spare: str = "", after_ms: int = 1000) -> PlannedFault:
    return PlannedFault(name, HostReplaced(host, after_ms * MS, spare), at_ms * MS)


def spares(fabric: Fabric, *faults: PlannedFault) -> list[str]:
    found = (each.fault for each in assigned(fabric, faults).faults)
    return [each.spare for each in found if isinstance(each, HostReplaced)]


def test_a_replaced_host_dies_is_taken_over_from_and_gets_its_power_back() -> None:
    fault = HostReplaced("p0.s0.h0", 2000 * MS, "p0.s0.h2")
    takeover = SpareTakeover("p0.s0.h2", "p0.s0.h0")
    death, second, power = fault.edges(1000 * MS, 3500 * MS)
    assert death == PlannedEdge(1000 * MS, EdgeKind.FAILURE)
    assert second == PlannedEdge(3000 * MS, EdgeKind.REPAIR, 0, takeover)
    assert power == PlannedEdge(4500 * MS, EdgeKind.REPAIR, 1)
    assert fault.edges(1000 * MS, None) == (death, second)
    assert {link.name for link in fault.links_hit(FABRIC)} == {link.name for link in FABRIC.links_of("p0.s0.h0")}
    assert {link.name for link in takeover.links_hit(FABRIC)} == {link.name for link in FABRIC.links_of("p0.s0.h2")}
    assert (fault.nodes_hit(), takeover.nodes_hit()) == (("p0.s0.h0",), ())


def test_a_fault_gets_the_spare_it_names_else_the_first_that_nobody_has() -> None:
    assert spares(FABRIC, planned("a", "p0.s1.h1"), planned("b", "p0.s0.h1")) == ["p0.s1.h2", "p0.s0.h2"]
    named = (planned("a", "p0.s0.h0"), planned("b", "p0.s0.h1", 2000, "p0.s0.h2"))
    assert spares(TWO_SPARES, *named) == ["p0.s0.h3", "p0.s0.h2"], "who names one is served first"
    assert spares(TWO_SPARES, planned("a", "p0.s0.h0"), planned("b", "p0.s0.h2", 3000)) == ["p0.s0.h2", "p0.s0.h3"]
    too_many = (planned("a", "p0.s0.h0"), planned("b", "p0.s0.h1", 2000))
    assert spares(FABRIC, *too_many) == ["p0.s0.h2", ""]
    assert list(assigned(FABRIC, too_many).problems) == [1]


def flows(fabric: Fabric = FABRIC) -> tuple[FlowSpec, ...]:
    return flows_of(drill("state_restored: yes").workload, fabric)


def instants(fabric: Fabric, *faults: PlannedFault) -> tuple[tuple[FlowSpec, ...], ...]:
    return replacement_flows(fabric, assigned(fabric, faults).faults, flows(fabric))


def test_every_queue_pair_of_the_dead_host_gets_a_stand_in_on_the_same_rail() -> None:
    (begun,) = instants(FABRIC, planned("a", "p0.s0.h0"))
    old = {one.id: one for one in flows()}
    dead = [one for one in old.values() if "p0.s0.h0.r" in one.name]
    assert [one.replaces for one in begun] == [one.id for one in dead]
    assert [one.id for one in begun] == list(range(len(old), len(old) + len(dead)))
    for new in begun:
        was = old[new.replaces or 0]
        assert (new.src_nic, new.dst_nic) == tuple(n.replace("s0.h0", "s0.h2") for n in (was.src_nic, was.dst_nic))
        assert (new.src_ip, new.dst_ip) == (FABRIC.nic(new.src_nic).ip, FABRIC.nic(new.dst_nic).ip)
        assert new.name == was.name.replace("s0.h0", "s0.h2")
        assert (new.rate_pps, new.path_mtu, new.ib_timeout) == (was.rate_pps, was.path_mtu, was.ib_timeout)
    assert len({one.name for one in (*old.values(), *begun)}) == len(old) + len(begun)


def test_two_dead_ends_at_one_instant_get_one_stand_in_and_at_two_instants_one_after_the_other() -> None:
    pair = next(one for one in flows() if one.src_nic == "p0.s0.h0.r0")
    peer = pair.dst_nic.removesuffix(".r0")
    (together,) = instants(FABRIC, planned("a", "p0.s0.h0"), planned("b", peer))
    assert [one.name for one in together if one.replaces == pair.id] == ["p0.s0.h2.r0>p0.s1.h2.r0#0"]
    first, second = instants(FABRIC, planned("a", "p0.s0.h0"), planned("b", peer, 1500))
    (new,) = (one for one in first if one.replaces == pair.id)
    assert (new.src_nic, new.dst_nic) == ("p0.s0.h2.r0", pair.dst_nic)
    assert [one.name for one in second if one.replaces == new.id] == ["p0.s0.h2.r0>p0.s1.h2.r0#0"]


def test_a_spare_that_dies_is_replaced_by_the_next() -> None:
    first, second = instants(TWO_SPARES, planned("a", "p0.s0.h0"), planned("b", "p0.s0.h2", 3000))
    assert {one.replaces for one in second} == {one.id for one in first}
    assert {nic for one in second for nic in (one.src_nic, one.dst_nic) if "s0" in nic} == {
        "p0.s0.h3.r0",
        "p0.s0.h3.r1",
    }


def test_a_roster_knows_who_is_there() -> None:
    first, second = instants(TWO_SPARES, planned("a", "p0.s0.h0"), planned("b", "p0.s0.h2", 3000))
    at_first = flows(TWO_SPARES)
    roster = ActiveFlows((*at_first, *first, *second))
    assert roster.present == at_first
    assert roster.absent == tuple(one.id for one in (*first, *second))
    change = roster.take_over({"p0.s0.h0"})
    assert change.starts == first
    assert [one.id for one in change.closes] == [one.replaces for one in first]
    assert set(roster.absent) == {*(one.id for one in second), *(one.id for one in change.closes)}
    assert roster.take_over({"p0.s0.h0"}).closes == (), "nothing of it is left there"
    assert roster.take_over({"p0.s0.h2"}).starts == second
    assert len(roster.present) == len(at_first)


def mistakes(expectation: str, after: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        drill(expectation, after)
    return list(caught.value.problems)


def test_a_dead_host_without_power_holds_its_links_to_the_end_of_the_drill() -> None:
    cut = "}, {id: cut, fault: link-down, target: p0.s0.h0.r0.0, at: 5 s, for: 1 s"
    (said,) = mistakes("state_restored: yes", f"2 s{cut}")
    assert "host-replaced leaves nothing of link-down on p0.s0.h0.r0.0; give power a 'for'" in said
    assert drill("state_restored: yes", f"2 s, for: 3 s{cut}").timeline.faults[1].id == "cut"


@pytest.mark.parametrize(("nic", "edge"), [("p0.s0.h0.r0", "repair"), ("p0.s0.h2.r1", "failure")])
def test_a_nic_whose_flows_are_closed_or_have_not_begun_has_nothing_to_judge(nic: str, edge: str) -> None:
    (said,) = mistakes(f"goodput_after: {{at_least: 1 %, edge: {edge}, nic: {nic}}}", "2 s")
    assert said.endswith(
        f"can never be judged: no flow of NIC {nic} is there at such an edge; write another part or edge"
    )


def test_a_takeover_too_soon_to_judge_the_death_is_refused() -> None:
    (said,) = mistakes("converged: {below: 1 s, edge: failure}", "900 ms")
    assert said.endswith("power is repaired before the lab can be quiet; write after: 1 s or more")


@pytest.mark.parametrize("nic", ["p0.s0.h2.r0", "p0.s1.h0.r1"])
def test_the_nics_of_a_spare_answer_for_scopes(nic: str) -> None:
    (found,) = drill(f"goodput_after: {{at_least: 98 %, edge: repair, nic: {nic}}}").expectations
    assert found.scope.nics == (nic,)


def test_a_drill_says_which_spare_takes_over_and_when() -> None:
    lines = "\n".join(describe(drill("state_restored: yes", "2 s, for: 3 s")))
    assert "     1 s  power: host-replaced p0.s0.h0 (after 2 s, spare p0.s0.h2)" in lines
    assert "     3 s  power: p0.s0.h2 takes over from p0.s0.h0" in lines
    assert "     4 s  power: repaired" in lines


def run(downtime: Downtime | None) -> DrillMetrics:
    """A flow to the dead host, its replacement, and one that nothing happens to."""
    failure, repair = replace(FAILURE, fault="power"), replace(REPAIR, fault="power", taken_over=("power",))
    dead = at_edge("old", Relation.RECEIVER, 2000, recovered=False, died=True, goodput=Goodput(100.0, 0.0, 0.0))
    gone = at_edge("old", Relation.ABSENT, goodput=Goodput(0.0, 0.0, 0.0))
    to_come = at_edge("new", Relation.ABSENT, goodput=Goodput(100.0, 0.0, 0.0))
    begun = at_edge("new", Relation.RECEIVER, goodput=Goodput(0.0, 90.0, 97.0))
    peer, old, new = "p0.s1.h0.r0", "p0.s0.h0.r0", "p0.s0.h2.r0"
    calm = at_edge("other", Relation.NONE)
    found = metrics(
        (failure, repair),
        (
            flow("old", dead, gone, src=peer, dst=old),
            flow("new", to_come, begun, src=peer, dst=new),
            flow("other", calm, calm, src="p0.s0.h1.r0", dst="p0.s1.h1.r0"),
        ),
    )
    return replace(found, edges=(found.edges[0], replace(found.edges[1], downtime=downtime)))


STOOD = Downtime(2004.0, 1000 * MS, 3004 * MS, 1, "new", 1.0)
STILL = Downtime(None, 1000 * MS, None, 1, "", 1.0, "1 of 1 replacement flows did not get through, first new")


@pytest.mark.parametrize(
    ("expectation", "outcome", "measured", "evidence"),
    [
        ("job_downtime: {below: 2100 ms}", Outcome.PASS, 2004, "power repair 0: 1 replacement flows, last new"),
        ("job_downtime: {below: 1990 ms}", Outcome.FAIL, 2004, "power repair 0"),
        ("job_downtime: {below: 2 s}", Outcome.INCONCLUSIVE, 2004, "power repair 0"),  # noise floor 12 ms
        ("job_downtime: {below: 2004.5 ms, fault: power}", Outcome.INCONCLUSIVE, 2004, "power repair 0"),
        (
            "goodput_after: {at_least: 98 %, edge: repair}",
            Outcome.FAIL,
            97,
            "received by p0.s0.h2.r0 at power repair 0",
        ),
        (
            "goodput_after: {at_least: 96 %, edge: repair, nic: p0.s0.h2.r0}",
            Outcome.PASS,
            97,
            "received by p0.s0.h2.r0",
        ),
        ("goodput_after: {at_least: 96 %, edge: repair, nic: p0.s1.h0.r0}", Outcome.PASS, 97, "sent by p0.s1.h0.r0"),
        ("goodput_after: {at_most: 1 %, edge: failure, nic: p0.s1.h0.r0}", Outcome.PASS, 0, "sent by p0.s1.h0.r0"),
        ("goodput_during: {at_least: 98 %, flows: others}", Outcome.PASS, 100, "sent by p0.s0.h1.r0"),
        ("queue_pair_deaths: {at_most: 0, edge: repair}", Outcome.PASS, 0, "none of 2 flows"),
        ("queue_pair_deaths: {at_least: 1, at_most: 1}", Outcome.PASS, 1, "old"),
        ("flows_unrecovered: {at_most: 0, edge: repair}", Outcome.PASS, 0, "none of 2 flows"),
        ("packets_lost: {at_most: 0, flows: others}", Outcome.PASS, 0, "none of 1 flows"),
        (
            "untouched: {hosts: [p0.s0.h2], edge: failure}",
            Outcome.INCONCLUSIVE,
            None,
            "no flow that sends has to do with",
        ),
        ("untouched: {hosts: [p0.s0.h2], edge: repair}", Outcome.PASS, 0, "none of 1 flows"),
    ],
)
def test_expectations_are_about_the_flows_that_are_there(
    expectation: str, outcome: Outcome, measured: float | None, evidence: str
) -> None:
    found = judge(drill(expectation), run(STOOD), RunFacts(state_differences=())).checks[0]
    assert (found.outcome, found.measured) == (outcome, measured)
    assert found.evidence.startswith(evidence)


def test_a_job_that_did_not_go_on_fails_what_it_is_beyond_and_nobody_knows_the_rest() -> None:
    found = judge(drill("job_downtime: {below: 4 s}"), run(STILL), RunFacts()).checks[0]
    assert (found.outcome, found.measured, found.open_ended) == (Outcome.FAIL, 5000, True)
    longer = judge(drill("job_downtime: {below: 1 min}"), run(STILL), RunFacts()).checks[0]
    assert longer.outcome is Outcome.INCONCLUSIVE
    assert found.evidence == f"power repair 0: {STILL.reason}"
    nothing = judge(drill("job_downtime: {below: 1 min}"), run(None), RunFacts()).checks[0]
    assert (nothing.outcome, nothing.evidence) == (Outcome.INCONCLUSIVE, "no spare took over in the run")
