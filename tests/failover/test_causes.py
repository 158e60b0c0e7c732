"""A cause of loss does not end before the loss does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from hpn.failover.analysis.buffers import ClassUse
from hpn.failover.analysis.causes import causes
from hpn.failover.analysis.metrics.analyse import analyse
from hpn.failover.analysis.model import EdgeKind
from hpn.failover.analysis.offered import Offered, StablePeriod, UndeliveredFlow
from hpn.failover.analysis.settings import QUICK
from hpn.testbed.events import Event, EventKind
from tests.failover.synthetic import HIT, MS, Dead, S, edge, flow, record
from tests.results.sample import class_use

FAULT, END = 4 * S, 10 * S
LOST = "failure of link: 1 flow lost packets until failover was over: the last "


def event(at_ms: float, kind: EventKind, node: str, subject: str, what: str) -> Event:
    return Event(FAULT + int(at_ms * MS), kind, node, subject, what)


NEAR = event(241.5, EventKind.BFD, "p0.s0.t0.0", HIT.upper, "down")
ROUTE = event(241.6, EventKind.ROUTE, "p0.a0.0", "10.0.0.1/32", "host-route-removed")
MOVED = event(292.4, EventKind.PATH, "p0.s0.h0", "0", "moved")
LAG = Event(FAULT + 2860 * MS, EventKind.LAG, "p0.s0.h0", "bond0", "active", {"ports": "r0p1"})
FAR = event(292.6, EventKind.BGP, "p0.a0.0", "s0r0t0", "down")


def told(lost_ms: float, events: Sequence[Event]) -> str:
    """The only cause of a run whose one flow loses packets for so long."""
    one = flow()
    whole = record(one, END - S, (Dead(FAULT, FAULT + int(lost_ms * MS)),))
    (cause,) = causes(analyse([one], *whole.tables, events, [edge(FAULT, END)], (S, 3 * S), QUICK))
    return cause


@pytest.mark.parametrize(
    ("lost_ms", "events", "said"),
    [
        (292, (NEAR, ROUTE, FAR), "BGP session went down 293 ms after it; an end of the link noticed 242 ms after it"),
        (241, (NEAR, ROUTE, FAR), "route changed (convergence) 242 ms after it, of which 242 ms are detection time"),
        (
            290,
            (NEAR, ROUTE),
            "route changed (convergence) 242 ms after it, yet they lost packets until 289 ms: no event tells why",
        ),
    ],
    ids=["far end is later", "near end ends it", "nothing ends it"],
)
def test_what_ended_the_loss_is_never_told_to_have_come_before_its_end(
    lost_ms: float, events: Sequence[Event], said: str
) -> None:
    assert told(lost_ms, events) == LOST + said


def test_loss_ends_with_the_first_step_after_it_not_with_the_last_of_all() -> None:
    assert "path control moved the last queue pair 293 ms after it" in told(292, (MOVED, LAG))


def test_loss_without_a_path_ends_with_the_repair_if_there_is_one() -> None:
    one, repair = flow(), FAULT + 2 * S
    whole = record(one, END - S, (Dead(FAULT, repair),))
    edges = [edge(FAULT, repair), edge(repair, END, kind=EdgeKind.REPAIR)]
    stranded = StablePeriod(FAULT, repair, edges[0].label, (), 1, pathless=(UndeliveredFlow(one.id, ""),))
    metrics = analyse([one], *whole.tables, (), edges, (S, 3 * S), QUICK)
    (cause,) = causes(replace(metrics, offered=Offered((stranded,), (), 1)))
    assert cause.endswith("1 flow lost packets until the repair of link")


def _use(*, is_switch: bool, paused_ns: int = 0, queue: int = 0) -> ClassUse:
    made = class_use("p0.s0.h0:r0p0", 3)
    return replace(made, is_switch=is_switch, paused_ns=paused_ns, queue_bytes=queue)


@pytest.mark.parametrize(
    ("buffers", "lost_ms", "says"),
    [
        ((_use(is_switch=False, paused_ns=2 * S, queue=3_400_000),), 300, True),
        ((_use(is_switch=False, paused_ns=2 * S, queue=3_400_000),), 0, False),
        ((_use(is_switch=False, paused_ns=2 * S),), 300, False),
        ((_use(is_switch=True, paused_ns=2 * S, queue=3_400_000),), 300, False),
        (None, 300, False),
    ],
    ids=["a host waits", "nothing was lost", "it has caught up", "a switch holds it", "no buffers"],
)
def test_what_waits_at_a_stopped_host_is_told_where_nobody_knows_paths(
    buffers: tuple[ClassUse, ...] | None, lost_ms: int, says: bool
) -> None:
    one = flow()
    whole = record(one, END - S, (Dead(FAULT, FAULT + lost_ms * MS),) if lost_ms else ())
    metrics = analyse([one], *whole.tables, (), [edge(FAULT, END)], (S, 3 * S), QUICK)
    told_of = [cause for cause in causes(replace(metrics, buffers=buffers)) if cause.startswith("PFC stopped senders")]
    assert [("3.4 MB wait at p0.s0.h0:r0p0" in cause, "2,000 ms" in cause) for cause in told_of] == [
        (True, True)
    ] * says
    known = Offered((), (), 1)
    assert not any("PFC" in cause for cause in causes(replace(metrics, buffers=buffers, offered=known)))


def test_an_adapter_that_moves_its_queue_pairs_later_than_the_lag_is_named() -> None:
    remapped = event(296, EventKind.LAG, "p0.s0.h0", "bond0", "remapped")
    assert "the last adapter sent its queue pairs by another port 296 ms after it" in told(292, (ROUTE, remapped))
