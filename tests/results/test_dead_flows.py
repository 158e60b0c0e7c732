"""Flows that died at an earlier edge are shown as dead at later ones, not as flows that lost nothing."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from hpn.failover.analysis.cost import cost
from hpn.failover.analysis.retry_deaths import retry_notes
from hpn.failover.analysis.scattered import recovery
from hpn.failover.analysis.unended import is_median_open
from hpn.results.page.edges import stories
from hpn.results.page.names import Names
from hpn.results.text.outages import outage_notes, outages_table
from tests.failover.synthetic import S
from tests.failover.synthetic import flow as a_flow
from tests.failover.test_congestion import FAULT, two
from tests.results.shown import as_text

ALL, ONE = two([0, 1], stop=FAULT - S), two([0], stop=FAULT - S)


def test_an_edge_at_which_all_flows_were_dead_has_no_outage_in_the_terminal() -> None:
    row = next(line for line in as_text(outages_table(ALL)).splitlines() if line.startswith("cut failure 0"))
    assert row.split()[3:11] == ["2", "2", "dead", "-", "-", "-", "-", "-"]
    assert "<" not in row
    assert [note.plain for note in outage_notes(ALL)] == [
        "  dead: every flow that is hit had died before: cut failure 0, cut repair 0"
    ]


def test_an_edge_at_which_some_flows_were_dead_tells_how_many() -> None:
    row = next(line for line in as_text(outages_table(ONE)).splitlines() if line.startswith("cut failure 0"))
    assert "dead" not in row
    first = next(iter(outage_notes(ONE)))
    assert first.plain == "  cut failure 0: 1 of 2 flows that are hit had died before"
    assert list(outage_notes(two([]))) == []


def test_dead_flows_do_not_recover_from_a_later_edge() -> None:
    first = ALL.edges[0]
    assert recovery(ALL, first).reason == "every flow that is hit had died before"
    assert first.phases.recover.reason == "no flow that is hit sent anything", "in metrics.json"
    assert recovery(ONE, ONE.edges[0]).reason == "no flow that is hit lost anything"
    assert (ALL.all_dead_before(first), ONE.all_dead_before(ONE.edges[0])) == (True, False)


def test_the_page_tells_that_all_flows_of_an_edge_were_dead() -> None:
    first = stories(ALL, [], frozenset(), Names(None))[0].edges[0]
    assert (first.quiet, first.line) == (
        "All 2 flows that are hit had died before.",
        "all 2 flows that are hit had died before",
    )


def test_the_cost_says_how_long_queue_pairs_that_died_had_waited() -> None:
    """The retry timer (ib_timeout, retry_count) decides whether an outage kills: 'all of them died' hides that."""
    told = cost(two([0, 1], stop=FAULT + S), {})
    assert "all of them died after 537 ms without an acknowledgement" in told
    assert "1 died after 537 ms without an acknowledgement" in cost(two([0], stop=FAULT + S), {})
    unknown = two([0], stop=FAULT + S)
    unknown = replace(unknown, flows=tuple(replace(flow, patience_ms=None) for flow in unknown.flows))
    assert "1 died, " in cost(unknown, {})


def test_a_note_names_the_setting_by_which_queue_pairs_died() -> None:
    """ib_timeout 14 kills within 0.54 s and 20 does not; a run did not name it."""
    flow = a_flow(0)
    (note,) = retry_notes(two([0], stop=FAULT + S), [flow])
    assert note == (
        "a queue pair died by the retry timer (ib_timeout 14, retry_count 7 in the drill): larger values outlive a"
        " longer outage"
    )
    assert retry_notes(two([]), [flow]) == ()


@pytest.mark.parametrize(("lossy", "never", "is_open"), [(3, 2, True), (2, 1, True), (3, 1, False), (0, 0, False)])
def test_page_and_terminal_have_one_rule_for_a_median_without_end(lossy: int, never: int, is_open: bool) -> None:
    """Of 10 flows hit, 3 lost packets and 2 of these never recovered: the page had a median with an upper end."""
    found = two([0])
    edge = replace(found.edges[0], flows_hit=10, flows_lossy=lossy, flows_unrecovered=never)
    found = replace(found, edges=(edge, *found.edges[1:]))
    assert is_median_open(edge) is is_open
    rows = stories(found, [], frozenset(), Names(None))[0].edges[0].facts[0].rows
    (of_page,) = (row[1] for row in rows if row[0] == "median outage")
    row = next(line for line in as_text(outages_table(found)).splitlines() if line.startswith("cut failure 0"))
    assert (of_page == "never" or ">=" in of_page) is is_open
    assert re.split(r"\s{2,}", row)[6].startswith(">= ") is is_open, row
