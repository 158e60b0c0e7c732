"""Host routes follow exactly from carrier, LACP and valid neighbours, whatever the order of the news."""

from __future__ import annotations

from ipaddress import IPv4Network

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from hpn.testbed.kernel.rtnetlink import rtnl
from hpn.testbed.kernel.rtnetlink.rtnl_events import LinkEvent, NeighbourEvent
from hpn.testbed.routing.hostroute_rules import AccessPort, Change, HostRouteTable

SUBNET, GATEWAY = IPv4Network("10.0.0.0/24"), "10.0.0.254"
PORTS = (11, 12)
IPS = ("10.0.0.1", "10.0.0.2")
FOREIGN = ("10.0.1.1", GATEWAY, "10.0.0.0", "10.0.0.255")
MAC = "02:01:00:00:00:01"


def table() -> HostRouteTable:
    return HostRouteTable(AccessPort(port, f"h{port}", SUBNET, GATEWAY) for port in PORTS)


def link(ifindex: int, up: bool = True, carrier: bool = True, gone: bool = False) -> LinkEvent:
    return LinkEvent(0, ifindex, f"h{ifindex}", up, carrier, gone)


def neighbour(
    ip: str, ifindex: int, state: int = rtnl.NUD_REACHABLE, mac: str | None = MAC, gone: bool = False
) -> NeighbourEvent:
    return NeighbourEvent(0, ifindex, ip, mac, state, gone)


def ready() -> HostRouteTable:
    made = table()
    for port in PORTS:
        made.on_link(link(port))
        made.on_usable(port, True)
    return made


def test_a_learned_host_gets_a_route_and_carrier_loss_takes_it_at_once() -> None:
    made = ready()
    assert made.on_neighbour(neighbour(IPS[0], 11)) == [Change(IPS[0], 11, True, "neighbour")]
    assert made.on_link(link(11, carrier=False)) == [Change(IPS[0], 11, False, "carrier")]
    assert made.on_neighbour(neighbour(IPS[0], 11, gone=True)) == []


def test_a_port_is_not_used_before_lacp_collects() -> None:
    made = table()
    made.on_link(link(11))
    assert made.on_neighbour(neighbour(IPS[0], 11)) == []
    assert made.on_usable(11, True) == [Change(IPS[0], 11, True, "LACP")]
    assert made.on_usable(11, False) == [Change(IPS[0], 11, False, "LACP")]


def test_an_address_of_a_live_port_cannot_be_taken_over_but_is_inherited() -> None:
    made = ready()
    made.on_neighbour(neighbour(IPS[0], 11))
    assert made.on_neighbour(neighbour(IPS[0], 12)) == []
    assert made.on_neighbour(neighbour(IPS[0], 11, state=rtnl.NUD_FAILED, mac=None)) == [
        Change(IPS[0], 11, False, "neighbour"),
        Change(IPS[0], 12, True, "neighbour"),
    ]


def test_resync_removes_what_an_earlier_life_left_and_keeps_who_was_first() -> None:
    made = ready()
    made.on_neighbour(neighbour(IPS[0], 12))
    made.on_neighbour(neighbour(IPS[0], 11))
    dump = [neighbour(IPS[0], 11), neighbour(IPS[0], 12)]
    present = {IPS[0]: 12, "10.0.0.77": 11}
    assert made.resync([link(11), link(12)], dump, present) == [Change("10.0.0.77", 11, False, "resync")]


class HostRoutes(RuleBasedStateMachine):
    """The kernel's and LACP's truth beside the table; the routes must follow from the truth."""

    def __init__(self) -> None:
        super().__init__()
        self.table = table()
        self.carrier: dict[int, bool] = dict.fromkeys(PORTS, False)
        self.usable: dict[int, bool] = dict.fromkeys(PORTS, False)
        self.claims: dict[str, list[int]] = {ip: [] for ip in IPS}
        self.routes: dict[str, int] = {}

    def carry_out(self, changes: list[Change]) -> None:
        for change in changes:
            if change.install:
                assert change.ip not in self.routes, "added over another"
                self.routes[change.ip] = change.ifindex
            else:
                assert self.routes.pop(change.ip) == change.ifindex

    @rule(port=st.sampled_from(PORTS), up=st.booleans(), carrier=st.booleans(), gone=st.booleans())
    def link_changes(self, port: int, up: bool, carrier: bool, gone: bool) -> None:
        self.carrier[port] = up and carrier and not gone
        self.carry_out(self.table.on_link(link(port, up, carrier, gone)))

    @rule(port=st.sampled_from(PORTS), usable=st.booleans())
    def lacp_changes(self, port: int, usable: bool) -> None:
        self.usable[port] = usable
        self.carry_out(self.table.on_usable(port, usable))

    @rule(
        ip=st.sampled_from(IPS),
        port=st.sampled_from(PORTS),
        state=st.sampled_from([0, 1, 2, 4, 8, 0x10, 0x20, 0x80]),
        mac=st.sampled_from([MAC, None]),
        gone=st.booleans(),
    )
    def neighbour_changes(self, ip: str, port: int, state: int, mac: str | None, gone: bool) -> None:
        valid = state in (2, 4, 8, 0x10, 0x80) and mac is not None and not gone
        claims = self.claims[ip]
        if valid and port not in claims:
            claims.append(port)
        if not valid and port in claims:
            claims.remove(port)
        self.carry_out(self.table.on_neighbour(neighbour(ip, port, state, mac, gone)))

    @rule(ip=st.sampled_from(FOREIGN), port=st.sampled_from((*PORTS, 99)))
    def a_lie_is_told(self, ip: str, port: int) -> None:
        assert self.table.on_neighbour(neighbour(ip, port)) == []

    @rule()
    def messages_are_lost_and_read_again(self) -> None:
        links = [link(port, carrier=self.carrier[port]) for port in PORTS]
        neighbours = [neighbour(ip, port) for ip, claims in self.claims.items() for port in reversed(claims)]
        self.carry_out(self.table.resync(links, neighbours, dict(self.routes)))

    @invariant()
    def routes_follow_from_the_truth(self) -> None:
        live = {port for port in PORTS if self.carrier[port] and self.usable[port]}
        owners = {ip: [port for port in claims if port in live] for ip, claims in self.claims.items()}
        assert self.routes == {ip: ports[0] for ip, ports in owners.items() if ports} == dict(self.table.installed)


TestHostRoutes = HostRoutes.TestCase
TestHostRoutes.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
