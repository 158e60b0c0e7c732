"""A cause of loss does not end before the loss does."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hpn.failover.analysis.causes import causes
from hpn.failover.analysis.metrics.analyse import analyse
from hpn.failover.analysis.settings import QUICK
from hpn.testbed.events import Event, EventKind
from tests.failover.synthetic import HIT, MS, Dead, S, edge, flow, record

FAULT, END = 4 * S, 10 * S
LOST = "failure of link: 1 flow lost packets until failover was over: the last "


def event(at_ms: float, kind: EventKind, node: str, subject: str, what: str) -> Event:
    return Event(FAULT + int(at_ms * MS), kind, node, subject, what)


NEAR = event(241.5, EventKind.BFD, "p0.s0.t0.0", HIT.upper, "down")
ROUTE = event(241.6, EventKind.ROUTE, "p0.a0.0", "10.0.0.1/32", "host-route-removed")
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
