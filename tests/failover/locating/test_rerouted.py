"""Paths that are unknown from an event on: whose event, and until when."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hpn.failover.analysis.paths import PathAt
from hpn.failover.locating.parts import ends_of
from hpn.failover.locating.rerouted import REROUTED, changes_of, while_known
from hpn.testbed.events import Event, EventKind
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.presets import PRESETS

S = 10**9
FABRIC = build(PRESETS["tiny"].spec)
ENDS = ends_of(FABRIC)
LINKS = ("p0.s0.h0.r0.0", "p0.s0.t0.0-p0.a0.1", "p0.s1.t0.0-p0.a0.1", "p0.s1.h0.r0.0")
TO = FABRIC.nic("p0.s1.h0.r0").ip
BEGIN = PathAt(0, 7, "begin", 50_000, 0, 0, LINKS)


def known(*events: Event, looks: Sequence[int] = (), more: Sequence[PathAt] = ()) -> list[tuple[int, str, bool]]:
    """Time in seconds, reason, and whether the links are known."""
    changes = changes_of(FABRIC, events, {7: "p0.s1.h0.r0"})
    found = while_known(ENDS, [BEGIN, *more], changes, looks)
    return [(path.at_ns // S, path.why, bool(path.links)) for path in found]


def event(at_s: int, kind: EventKind, node: str, subject: str) -> Event:
    return Event(at_s * S, kind, node, subject, "")


def port_of(link: str, node: str) -> str:
    return FABRIC.link(link).end_at(node).name


@pytest.mark.parametrize(
    ("kind", "node", "subject", "ends_it"),
    [
        (EventKind.ROUTE, "p0.s1.t0.0", f"{TO}/32", True),
        (EventKind.ROUTE, "p0.s1.t0.1", f"{TO}/32", False),  # of the other plane
        (EventKind.ROUTE, "p0.s1.t0.0", "10.9.9.9/32", False),  # to somebody else
        (EventKind.NEIGHBOUR, "p0.s1.t0.1", TO, True),  # any switch may have another route to it then
        (EventKind.NEIGHBOUR, "p0.s1.t0.0", "10.9.9.9", False),
        (EventKind.LAG, "p0.s0.h0", FABRIC.nic("p0.s0.h0.r0").lag, True),  # the sender's may use another port
        (EventKind.LAG, "p0.s0.h0", FABRIC.nic("p0.s0.h0.r1").lag, False),
        (EventKind.LAG, "p0.s0.h1", FABRIC.nic("p0.s0.h1.r0").lag, False),
        (EventKind.BGP, "p0.s0.t0.0", port_of("p0.s0.t0.0-p0.a0.0", "p0.s0.t0.0"), True),  # ECMP hashes all anew
        (EventKind.BGP, "p0.s0.t1.0", port_of("p0.s0.t1.0-p0.a0.0", "p0.s0.t1.0"), False),
        (EventKind.LINK, "p0.s1.t0.0", port_of("p0.s1.h0.r0.0", "p0.s1.t0.0"), True),
        (EventKind.LINK, "p0.s1.t0.0", port_of("p0.s1.h1.r0.0", "p0.s1.t0.0"), False),  # another host's port
        (EventKind.LINK, "p0.s1.t0.0", "no-such-port", False),
    ],
)
def test_an_event_on_the_path_ends_what_is_known_of_it(kind: EventKind, node: str, subject: str, ends_it: bool) -> None:
    found = known(event(5, kind, node, subject))
    assert found == [(0, "begin", True), *([(5, REROUTED, False)] if ends_it else [])]


def test_a_path_counts_again_when_the_switches_were_asked_and_told_no_other() -> None:
    route = event(5, EventKind.ROUTE, "p0.s1.t0.0", f"{TO}/32")
    again = event(8, EventKind.ROUTE, "p0.s1.t0.0", f"{TO}/32")
    assert known(route, again, looks=[3 * S, 6 * S]) == [
        (0, "begin", True),
        (5, REROUTED, False),
        (6, "begin", True),
        (8, REROUTED, False),
    ]


def test_another_path_found_by_the_next_look_takes_its_place() -> None:
    route = event(5, EventKind.ROUTE, "p0.s1.t0.0", f"{TO}/32")
    other = PathAt(6 * S, 7, "looked", 50_000, 0, 0, (LINKS[0], "p0.s0.t0.0-p0.a0.0", "p0.s1.t0.0-p0.a0.0", LINKS[3]))
    assert known(route, looks=[6 * S], more=[other]) == [
        (0, "begin", True),
        (5, REROUTED, False),
        (6, "looked", True),
    ]
