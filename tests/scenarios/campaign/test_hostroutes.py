"""A port that distributes without its host route is found in the timeline, however it came to that."""

from __future__ import annotations

from hpn.failover.analysis.model import Edge, EdgeKind, HitLink
from hpn.scenarios.campaign import invariants
from hpn.scenarios.campaign.hostroutes import WITHIN_NS, Without, without
from hpn.scenarios.campaign.result import Invariant
from hpn.testbed.events import Event, EventKind
from hpn.testbed.fabric.build import build
from tests.scenarios.campaign.samples import TINY

FABRIC = build(TINY)
NIC = FABRIC.nics[0]
LINK = NIC.links[0]
TOR, PORT = LINK.upper.node, LINK.upper.name
S = 10**9
SHORT, LONG = WITHIN_NS - 1, WITHIN_NS + 1


def lag(at_ns: int, *ports: int) -> Event:
    names = ",".join(NIC.links[port].lower.name for port in ports)
    return Event(at_ns, EventKind.LAG, NIC.host, NIC.lag, "active", {"ports": names})


def mux(at_ns: int, state: str) -> Event:
    return Event(at_ns, EventKind.LACP, TOR, PORT, state)


def tor(at_ns: int, what: str) -> Event:
    return Event(at_ns, EventKind.NEIGHBOUR, TOR, NIC.ip, what, {"port": PORT, "reason": "neighbour"})


def edge(at_ns: int, kind: EdgeKind) -> Edge:
    return Edge("deaf", kind, 0, at_ns, at_ns, at_ns, links=(HitLink(LINK.name, LINK.lower.label, LINK.upper.label),))


CUT = [lag(S, 1), mux(S, "detached"), tor(S, "lost")]
BACK = [lag(3 * S, 0, 1), mux(3 * S, "attached"), mux(3 * S, "distributing")]


def test_a_route_that_comes_back_in_time_is_fine_and_one_that_does_not_is_told() -> None:
    back = 3 * S
    assert list(without(FABRIC, [*CUT, *BACK, tor(back + SHORT, "learned")], (), 60 * S)) == []
    late = [*CUT, *BACK, tor(back + LONG, "learned")]
    assert list(without(FABRIC, late, (), 60 * S)) == [Without(LINK.name, back, LONG)]
    assert list(without(FABRIC, [*CUT, *BACK], (), 60 * S)) == [Without(LINK.name, back, 57 * S)]


def test_a_port_that_one_end_does_not_use_needs_no_route() -> None:
    assert list(without(FABRIC, [*CUT, BACK[0]], (), 60 * S)) == []
    assert list(without(FABRIC, [*CUT, *BACK[1:]], (), 60 * S)) == []


def test_a_fault_that_acts_on_the_link_may_take_arp_too() -> None:
    deaf, well = edge(2 * S, EdgeKind.FAILURE), edge(9 * S, EdgeKind.REPAIR)
    learned = tor(9 * S + SHORT, "learned")
    assert list(without(FABRIC, [*CUT, *BACK, learned], (deaf, well), 60 * S)) == []
    assert list(without(FABRIC, [*CUT, *BACK], (deaf, well), 60 * S)) == [Without(LINK.name, 9 * S, 51 * S)]


def test_a_crashed_tor_has_learned_nobody_although_it_says_nothing() -> None:
    crash = [lag(S, 1), Event(S, EventKind.LINK, TOR, PORT, "admin-down")]
    assert list(without(FABRIC, [*crash, *BACK], (), 60 * S)) == [Without(LINK.name, 3 * S, 57 * S)]


def test_the_campaign_names_link_and_time() -> None:
    (found,) = invariants.host_routes(FABRIC, [*CUT, *BACK], (), 60 * S)
    assert found.invariant is Invariant.HOST_ROUTE
    assert found.text == f"none while it distributed, {LINK.name} for 57.0 s; limit 4.8 s"
