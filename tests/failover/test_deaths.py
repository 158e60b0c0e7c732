"""Why a queue pair died is judged by what was known at its death, not by the paths at the end of the window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from hpn.failover.analysis.causes import causes
from hpn.failover.analysis.metrics.analyse import analyse
from hpn.failover.analysis.model import DrillMetrics, EdgeKind
from hpn.failover.analysis.offered import Offered, StablePeriod, UndeliveredFlow
from hpn.failover.analysis.settings import QUICK
from hpn.testbed.events import Event, EventKind
from tests.failover.synthetic import HIT, MS, Dead, S, edge, flow, record

FAULT, END = 4 * S, 10 * S
NO_CONTROL = "another port's path works, and path control is off (blackhole)"


def lacp(at_ms: float) -> Event:
    """The ToR's end of the link gives its partner up."""
    return Event(FAULT + int(at_ms * MS), EventKind.LACP, "p0.s0.t0.0", HIT.upper, "expired")


def route(at_ms: float) -> Event:
    return Event(FAULT + int(at_ms * MS), EventKind.ROUTE, "p0.a0.0", "10.0.0.1/32", "host-route-removed")


def died(
    events: Sequence[Event],
    after: Mapping[str, Any] | None = None,
    *,
    at_ms: Sequence[float] = (547,),
    repaired_ms: float | None = None,
    arrives: bool = False,
) -> DrillMetrics:
    """Flows whose packets are lost from the fault to their death, and one that loses none.

    ``after``: what is so at the end of the window. ``arrives``: only their acknowledgements are lost.
    """
    flows = [flow(at) for at, _ in enumerate(at_ms)]
    ends = [FAULT + int(ms * MS) for ms in at_ms]
    whole = record(flow(len(flows)), END - S)
    for each, end in zip(flows, ends, strict=True):
        whole += record(each, end - S, () if arrives else (Dead(FAULT, end),))
    deaths = [Event(end, EventKind.QP, "p0.s0.h0", each.name, "error") for each, end in zip(flows, ends, strict=True)]
    broke_until = END if repaired_ms is None else FAULT + int(repaired_ms * MS)
    edges = [edge(FAULT, broke_until, fault="cut")]
    if repaired_ms is not None:
        edges.append(edge(broke_until, END, EdgeKind.REPAIR, fault="cut"))
    spans = [StablePeriod(S, FAULT, "", (), 0), StablePeriod(FAULT, END, "cut failure 0", (), 0)]
    load = Offered((spans[0], replace(spans[1], **(after or {}))), ())
    return analyse(
        [*flows, flow(len(flows))], *whole.tables, [*events, *deaths], edges, (S, 3 * S), QUICK, offered=load
    )


BEFORE = (
    "failure of cut: detection time: 1 queue pair died 547 ms after it,"
    " before an end of the link noticed 2.18 s after it"
)


@pytest.mark.parametrize(
    "after",
    [{}, {"pathless": (UndeliveredFlow(0, NO_CONTROL),)}, {"unanswered": (UndeliveredFlow(0, NO_CONTROL),)}],
    ids=str,
)
def test_a_queue_pair_that_died_before_anybody_noticed_died_of_the_detection_time(
    after: Mapping[str, Any],
) -> None:
    """Whatever became of its path afterwards."""
    assert causes(died([lacp(2180), route(2200)], after)) == (BEFORE,)


def test_one_whose_acknowledgements_alone_were_lost_is_told_too() -> None:
    assert causes(died([lacp(2180), route(2200)], arrives=True)) == (BEFORE,)
    assert causes(died([lacp(300), route(900)], arrives=True)) == (
        "failure of cut: 1 queue pair died 547 ms after it, before failover was over:"
        " the last route changed (convergence) 900 ms after it",
    )


def test_one_that_died_after_the_detection_is_told_by_its_path() -> None:
    stranded = {"pathless": (UndeliveredFlow(0, NO_CONTROL),)}
    assert causes(died([lacp(300)], stranded)) == (
        f"failure of cut: {NO_CONTROL}: 1 flow lost packets to the end of the run",
    )


def test_no_detection_helps_where_no_path_is_left() -> None:
    alone = {"pathless": (UndeliveredFlow(0, "no path left (no route)"),)}
    found = causes(died([lacp(2180)], alone))
    assert found == ("failure of cut: no path left (no route): 1 flow lost packets to the end of the run",)


def test_one_that_died_before_failover_was_over_is_told_what_came_too_late() -> None:
    assert causes(died([lacp(300), route(900)])) == (
        "failure of cut: 1 queue pair died 547 ms after it, before failover was over:"
        " the last route changed (convergence) 900 ms after it",
    )


def test_one_that_died_when_all_was_done_is_not_told_to_have_been_late() -> None:
    found = causes(died([lacp(100), route(200)]))
    assert found == ("failure of cut: 1 flow did not come back, and no path tells why",)


def test_where_nobody_ever_noticed_a_link_that_loses_packets_that_is_told() -> None:
    assert causes(died([], after={"marred": (0,)})) == (
        "failure of cut: 1 flow lost packets on a link that the fault makes lose them",
        "failure of cut: detection time: 1 queue pair died 547 ms after it, and nothing that was hit noticed",
    )


def test_one_that_lost_acknowledgements_alone_and_nobody_noticed_is_told_so() -> None:
    assert causes(died([], arrives=True)) == (
        "failure of cut: 1 queue pair lost no data, but acknowledgements",
        "failure of cut: detection time: 1 queue pair died 547 ms after it, and nothing that was hit noticed",
    )


def test_a_death_after_the_repair_is_told_once_where_its_outage_began() -> None:
    assert causes(died([lacp(390)], at_ms=(300,), repaired_ms=400)) == (
        BEFORE.replace("547 ms", "300 ms").replace("2.18 s", "390 ms"),
    )
    assert causes(died([], repaired_ms=400, after={"marred": (0,)}))[1:] == (
        "failure of cut: detection time: 1 queue pair died 547 ms after it, and nothing that was hit noticed",
    )


def test_queue_pairs_that_died_at_several_times_are_one_line() -> None:
    found = causes(died([lacp(2180)], at_ms=(547, 600.2)))
    assert found == (BEFORE.replace("1 queue pair died 547 ms", "2 queue pairs died 547 ms to 601 ms"),)
