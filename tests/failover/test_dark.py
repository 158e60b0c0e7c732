"""A NIC is dark while all of its flows in one direction are out, and cut off when that lasts until the repair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from hpn.failover.analysis.dark import Way, dark_nics
from hpn.failover.analysis.metrics.analyse import analyse
from hpn.failover.analysis.model import DrillMetrics, EdgeKind, Settings
from hpn.traffic.flows.flow import FlowSpec
from tests.failover.synthetic import MS, Dead, Records, S, edge, flow, record

AT, BACK, END = 4 * S, 6 * S, 10 * S
HIT, NEAR, FAR, OTHER = "p0.s0.h0.r0", "p0.s0.h1.r0", "p0.s1.h0.r0", "p0.s1.h1.r0"
WHOLE = (Dead(AT, BACK + S),)


Ways = Sequence[tuple[str, str]]
ALL: Ways = (
    *((HIT, NEAR), (HIT, FAR), (NEAR, HIT), (NEAR, OTHER)),
    *((FAR, OTHER), (FAR, HIT), (OTHER, FAR), (OTHER, NEAR)),
)


def _metrics(dead: Mapping[tuple[str, str], Sequence[Dead]], ways: Ways = ALL) -> DrillMetrics:
    """Near and far flows of four NICs, each of which is out as ``dead`` says; one of HIT's links fails."""
    flows: list[FlowSpec] = [flow(at, src=src, dst=dst) for at, (src, dst) in enumerate(ways)]
    records: Records | None = None
    for each, way in zip(flows, ways, strict=True):
        found = record(each, 9 * S, dead.get(way, ()))
        records = found if records is None else records + found
    assert records is not None
    edges = [edge(AT, BACK), edge(BACK, END, EdgeKind.REPAIR)]
    return analyse(flows, *records.tables, (), edges, (S, 3 * S), Settings(validation_s=1), None)


def _dark(metrics: DrillMetrics, *without: str) -> dict[tuple[str, str], bool]:
    return {(each.nic, each.way.value): each.cut_off for each in dark_nics(metrics, metrics.edges[0], without)}


def test_nothing_is_dark_when_nothing_is_lost() -> None:
    assert _dark(_metrics({})) == {}


def test_one_flow_out_of_two_makes_nobody_dark() -> None:
    assert _dark(_metrics({(HIT, NEAR): WHOLE})) == {}


def test_all_flows_of_a_nic_make_it_dark() -> None:
    ways = [(HIT, NEAR), (HIT, FAR), (NEAR, HIT), (FAR, HIT)]
    assert _dark(_metrics(dict.fromkeys(ways, WHOLE))) == {(HIT, "up"): True, (HIT, "down"): True}


def test_a_nic_whose_only_partner_is_cut_off_is_not_blamed() -> None:
    ways = [(HIT, FAR), (FAR, HIT)]
    assert _dark(_metrics(dict.fromkeys(ways, WHOLE), ways)) == {(HIT, "up"): True, (HIT, "down"): True}


def test_a_nic_is_dark_only_while_all_its_flows_are() -> None:
    found = _metrics({(HIT, NEAR): [Dead(AT, AT + 300 * MS)], (HIT, FAR): [Dead(AT + 100 * MS, AT + 500 * MS)]})
    (dark,) = dark_nics(found, found.edges[0])
    assert (dark.nic, dark.way, dark.cut_off) == (HIT, Way.UP, False)
    assert dark.ms == pytest.approx(200, abs=2)


def test_a_nic_that_is_not_hit_is_blamed_when_it_loses_flows_of_nics_that_are_well() -> None:
    assert _dark(_metrics(dict.fromkeys([(OTHER, FAR), (OTHER, NEAR)], WHOLE))) == {(OTHER, "up"): True}


def test_flows_of_nics_that_are_left_out_do_not_count() -> None:
    ways = [(HIT, NEAR), (HIT, FAR), (NEAR, HIT), (FAR, HIT)]
    assert _dark(_metrics(dict.fromkeys(ways, WHOLE)), HIT) == {}
