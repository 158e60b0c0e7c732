"""A link that drops a share of its packets: a share and a longest hole are told, no outage and no recovery."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from hpn.failover.analysis.cost import cost
from hpn.failover.analysis.metrics.analyse import analyse
from hpn.failover.analysis.model import DrillMetrics, EdgeKind, LossPattern
from hpn.failover.analysis.settings import QUICK
from hpn.results.page.edges import EdgeSection
from hpn.results.page.page import page, view_of
from hpn.results.text.terminal import summary
from tests.failover.synthetic import MS, Dead, Records, S, edge, flow, record
from tests.results.sample import MANIFEST, verdict
from tests.results.shown import as_text
from tests.results.test_page import run_of
from tests.results.whole import DRILL

FAULT, REPAIR, END = 4 * S, 7 * S, 10 * S


def measured(number: int, share: float, dead_ms: int = 0) -> Records:
    """A flow that loses a share of its packets from the fault to the repair, or all of them for a while."""
    spec = flow(number)
    dead = [Dead(FAULT, FAULT + dead_ms * MS)]
    parts = [
        record(spec, 3 * S, start_ns=S),
        record(spec, 3 * S, dead, start_ns=FAULT, loss=share, first_seq=3000, seed=number + 1),
        record(spec, 3 * S, start_ns=REPAIR, first_seq=6000),
    ]
    return parts[0] + parts[1] + parts[2]


def of(*flows: Records) -> DrillMetrics:
    records = flows[0]
    for more in flows[1:]:
        records += more
    edges = [edge(FAULT, REPAIR), edge(REPAIR, END, EdgeKind.REPAIR)]
    return analyse([flow(at) for at in range(len(flows))], *records.tables, [], edges, (S, 3 * S), QUICK)


SOME = of(measured(0, 0.01), measured(1, 0.01), measured(2, 0))


def section(metrics: DrillMetrics) -> EdgeSection:
    return view_of(run_of(metrics, verdict(metrics))).stories[0].edges[0]


def test_scattered_loss_is_told_as_a_share_with_its_longest_hole() -> None:
    assert [each.edges[0].pattern for each in SOME.flows] == [LossPattern.SCATTERED] * 2 + [LossPattern.NONE]
    said = "2 of them lost 0.95 % of their packets (57), longest hole 2.00 ms"
    assert f": 3 of 3 queue pairs hit, {said}, none died, goodput " in cost(SOME, {})
    assert section(SOME).line == f"3 flows hit, {said}"


def test_the_page_s_table_and_bars_of_scattered_loss_add_no_holes_up() -> None:
    found = section(SOME)
    rows = {row[0]: row[1] for row in found.facts[0].rows}
    assert rows["longest hole"] == "2.00 ms"
    assert not {"worst outage", "median outage"} & set(rows)
    assert found.harmed is not None
    assert [bar.text for bar in found.harmed.bars] == [
        "30 packets lost, longest hole 2.00 ms",
        "27 packets lost, longest hole 2.00 ms",
    ]
    assert found.harmed.ticks[-1].text == "10 ms", "no bar is longer than a hole and a period on each side"


def test_scattered_loss_has_no_recovery_before_its_repair() -> None:
    """Its last packet may be lost long before the repair: that pause is chance."""
    assert SOME.edges[0].phases.recover.ms is not None, "what an expectation has stays"
    assert "last flow recovered" not in [step.name for step in section(SOME).chain.steps]
    text = as_text(summary(MANIFEST, SOME, verdict(SOME)))
    assert "recover: scattered loss: a pause of it is no recovery (link failure 0)" in text


def test_a_flow_that_stood_still_longer_is_told_as_that() -> None:
    found = of(measured(0, 0.01), measured(1, 0, dead_ms=400))
    assert ": 2 of 2 queue pairs hit, no outage longer than 402 ms, none died, " in cost(found, {})
    assert "last flow recovered" in [step.name for step in section(found).chain.steps]


@pytest.mark.parametrize(
    ("given", "repeat", "is_told"),
    [({"share": 0.01}, 0, True), ({"share": 0.01}, 2, False), ({"share": 1.0}, 0, False), ({"for": S}, 0, False)],
)
def test_one_run_of_random_loss_says_that_it_is_one_draw(given: dict[str, float], repeat: int, is_told: bool) -> None:
    asked = replace(DRILL, faults=(replace(DRILL.faults[0], parameters=given),))
    manifest = replace(MANIFEST, repeat=repeat)
    line = "random loss: one draw; --repeat N tells how far it varies"
    assert (line in as_text(summary(manifest, SOME, verdict(SOME), asked))) is is_told
    assert (line in page(run_of(SOME, verdict(SOME), manifest=manifest, drill=asked))) is is_told


@pytest.mark.parametrize(("repeat", "is_told"), [(0, True), (2, False)])
def test_one_run_of_a_fault_that_timers_notice_says_that_it_is_one_draw(repeat: int, is_told: bool) -> None:
    asked = replace(DRILL, faults=(replace(DRILL.faults[0], timers_alone_notice=True),))
    manifest = replace(MANIFEST, repeat=repeat)
    line = (
        "only timers notice the fault, and their phase decides the outage: one draw; --repeat N tells how far it varies"
    )
    assert (line in as_text(summary(manifest, SOME, verdict(SOME), asked))) is is_told
    shown = re.sub("<[^>]+>", "", page(run_of(SOME, verdict(SOME), manifest=manifest, drill=asked)))  # terms are marked
    assert (line in shown) is is_told


def test_the_table_tells_that_scattered_loss_is_no_outage_and_gives_it_no_interval() -> None:
    text = as_text(summary(MANIFEST, SOME, verdict(SOME)))
    assert "worst, median: all that a flow misses, in many holes: link failure 0" in text
    assert not [line for line in text.splitlines() if line.startswith("link failure 0") and ".." in line]
