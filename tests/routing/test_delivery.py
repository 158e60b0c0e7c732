"""When the BGP of a switch that has booted counts as having delivered."""

from __future__ import annotations

from hpn.testbed.kernel.rtnetlink.rtnl import PROTO_BIRD, PROTO_HOST_ROUTE, RT_TABLE_MAIN, RTN_UNICAST
from hpn.testbed.kernel.rtnetlink.rtnl_events import RouteEvent
from hpn.testbed.lab.reload import QUIET_NS, Delivery

MS = 1_000_000
SILENT_NS = 3000 * MS
UPLINKS = {"up0": 100, "up1": 101}


def route(*oifs: int, protocol: int = PROTO_BIRD) -> RouteEvent:
    return RouteEvent(0, "10.0.1.2/32", RT_TABLE_MAIN, protocol, RTN_UNICAST, oifs, False, 32)


def booted() -> Delivery:
    """Both uplinks lit, no session yet."""
    found = Delivery(UPLINKS, SILENT_NS, PROTO_BIRD)
    for port in UPLINKS:
        found.carrier(port, True)
    return found


def test_a_session_that_stands_has_not_delivered_yet() -> None:
    found = booted()
    for port in UPLINKS:
        found.session(port, True, 900 * MS)
    assert found.due() == 900 * MS + SILENT_NS, "both may have nothing to say, but have not been silent for long"


def test_it_has_delivered_when_each_session_is_a_next_hop_and_the_fib_is_quiet() -> None:
    found = booted()
    found.session("up0", True, 900 * MS)
    found.routes([route(100)], 905 * MS)
    assert found.due() is None, "one session is missing"
    found.session("up1", True, 1500 * MS)
    found.routes([route(100, 101)], 1510 * MS)
    assert found.due() == 1510 * MS + QUIET_NS
    found.routes([route(100, 101)], 1560 * MS)
    assert found.due() == 1560 * MS + QUIET_NS


def test_routes_of_others_than_bgp_are_no_delivery() -> None:
    found = booted()
    for port in UPLINKS:
        found.session(port, True, 900 * MS)
    found.routes([route(100, 101, protocol=2), route(100, 101, protocol=PROTO_HOST_ROUTE), object()], 910 * MS)
    assert found.due() == 900 * MS + SILENT_NS


def test_a_link_without_carrier_is_not_waited_for_but_no_carrier_at_all_is() -> None:
    found = booted()
    found.session("up0", True, 900 * MS)
    found.routes([route(100)], 905 * MS)
    found.carrier("up1", False)
    assert found.due() == 905 * MS + QUIET_NS
    found.carriers([])
    assert found.due() is None


def test_a_session_that_goes_down_again_is_missing() -> None:
    found = booted()
    for port in UPLINKS:
        found.session(port, True, 900 * MS)
    found.routes([route(100, 101)], 910 * MS)
    found.session("up1", False, 920 * MS)
    assert found.due() is None


def test_a_tor_without_uplinks_has_nothing_to_wait_for() -> None:
    assert Delivery({}, SILENT_NS, PROTO_BIRD).due() == 0
