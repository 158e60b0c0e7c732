"""Our rtnetlink encoding, judged by the kernel and by pyroute2."""

from __future__ import annotations

import errno
import struct

import pytest

from hpn.testbed.kernel import ns
from hpn.testbed.kernel.rtnetlink import nlmsg, rtnl, rtnl_events
from hpn.testbed.kernel.rtnetlink.netlink import Monitor, Netlink, NetlinkError, OverrunError


def _pair() -> tuple[ns.NetNs, ns.NetNs, Netlink, Netlink]:
    """a:x0 (100) --- y0 (101):b"""
    a, b = ns.create("a"), ns.create("b")
    root = Netlink(ns.current("root"))
    root.run(
        [
            rtnl.add_veth(
                "x0",
                100,
                a,
                "y0",
                101,
                b,
                mac="02:00:00:00:00:01",
                peer_mac="02:00:00:00:00:02",
                mtu=4200,
                split_gso=True,
            )
        ]
    )
    left, right = Netlink(a), Netlink(b)
    right.run([rtnl.set_link(101, up=True)])
    return a, b, left, right


@pytest.mark.kernel
def test_pyroute2_sees_the_veth_address_route_neighbour_and_shaper_we_asked_for() -> None:
    from pyroute2 import IPRoute

    a, _, left, _ = _pair()
    left.run(
        [
            rtnl.add_address(100, "10.1.0.1/24"),
            rtnl.add_neighbour(100, "10.1.0.2", "02:00:00:00:00:02"),
            rtnl.add_route("10.9.0.0/16", gateway="10.1.0.2"),
            rtnl.add_route("10.8.0.0/16", kind=rtnl.RTN_BLACKHOLE),
            rtnl.add_tbf(100, 200_000_000, 12_500, 500_000),
        ]
    )
    with a.entered(), IPRoute() as judge:
        link = judge.get_links(100)[0]
        assert link.get_attr("IFLA_IFNAME") == "x0"
        assert link.get_attr("IFLA_ADDRESS") == "02:00:00:00:00:01"
        assert link.get_attr("IFLA_MTU") == 4200
        assert link.get_attr("IFLA_GSO_MAX_SEGS") == 1
        assert [x.get_attr("IFA_ADDRESS") for x in judge.get_addr(index=100, family=2)] == ["10.1.0.1"]
        routes = {r.get_attr("RTA_DST"): r for r in judge.get_routes(family=2, table=254)}
        assert routes["10.9.0.0"].get_attr("RTA_GATEWAY") == "10.1.0.2"
        assert routes["10.8.0.0"]["type"] == rtnl.RTN_BLACKHOLE
        neighbour = next(n for n in judge.get_neighbours(family=2) if n.get_attr("NDA_DST") == "10.1.0.2")
        assert neighbour["state"] == rtnl.NUD_PERMANENT
        shaper = next(q for q in judge.get_qdiscs(index=100) if q.get_attr("TCA_KIND") == "tbf")
        parameters = shaper.get_attr("TCA_OPTIONS").get_attr("TCA_TBF_PARMS")
        assert parameters["rate"] == 25_000_000
        assert parameters["limit"] == 500_000


@pytest.mark.kernel
def test_pyroute2_sees_the_rules_and_the_routes_of_other_tables_and_look_ups_follow_them() -> None:
    from pyroute2 import IPRoute

    a, _, left, _ = _pair()
    left.run(
        [
            rtnl.add_address(100, "10.1.0.1/24"),
            rtnl.add_route("10.9.0.0/16", gateway="10.1.0.2"),
            rtnl.add_route("10.9.0.0/16", gateway="10.1.0.3", table=1000),
            rtnl.add_rule(1000, 1000, src="10.1.0.1"),
            rtnl.add_rule(1001, 1001, iif="x0"),
        ]
    )
    with a.entered(), IPRoute() as judge:
        rules = {rule.get_attr("FRA_PRIORITY"): rule for rule in judge.get_rules(family=2)}
        assert (rules[1000].get_attr("FRA_SRC"), rules[1000]["src_len"]) == ("10.1.0.1", 32)
        assert (rules[1001].get_attr("FRA_IIFNAME"), rules[1001].get_attr("FRA_TABLE")) == ("x0", 1001)
        [route] = judge.get_routes(family=2, table=1000)
        assert route.get_attr("RTA_GATEWAY") == "10.1.0.3"
    assert left.route_get("10.9.1.1", src="10.1.0.1").gateway == "10.1.0.3"
    assert left.route_get("10.9.1.1").gateway == "10.1.0.2"
    with pytest.raises(NetlinkError, match="a: policy rule: "):
        left.run([rtnl.add_rule(1000, 1000, src="10.1.0.1")])


@pytest.mark.kernel
def test_our_dumps_agree_with_what_was_set() -> None:
    _, _, left, _ = _pair()
    left.run([rtnl.add_address(100, "10.1.0.1/24"), rtnl.add_route("10.9.0.0/16", gateway="10.1.0.2")])
    assert {(e.name, e.ifindex, e.up, e.carrier) for e in left.links() if e.ifindex >= 100} == {("x0", 100, True, True)}
    assert {(r.prefix, r.oifs) for r in left.routes() if r.table == rtnl.RT_TABLE_MAIN} == {
        ("10.1.0.0/24", (100,)),
        ("10.9.0.0/16", (100,)),
    }
    assert left.route_get("10.9.1.1", sport=1, dport=2).gateway == "10.1.0.2"


@pytest.mark.kernel
def test_a_refused_request_names_itself_and_the_rest_of_the_batch_is_done() -> None:
    _, _, left, _ = _pair()
    with pytest.raises(NetlinkError, match=r"a: route 10\.7\.0\.0/16: ") as refused:
        left.run([rtnl.add_route("10.7.0.0/16", gateway="99.0.0.1"), rtnl.add_address(100, "10.1.0.1/24")])
    assert refused.value.errno == errno.ENETUNREACH
    assert "10.1.0.0/24" in {r.prefix for r in left.routes()}


@pytest.mark.kernel
def test_a_batch_larger_than_one_datagram_is_carried_out_whole() -> None:
    _, _, left, _ = _pair()
    left.run([rtnl.add_route(f"10.{i // 250}.{i % 250}.0/24", kind=rtnl.RTN_BLACKHOLE) for i in range(3000)])
    assert len([r for r in left.routes() if r.kind == rtnl.RTN_BLACKHOLE]) == 3000


@pytest.mark.kernel
def test_a_monitor_reports_carrier_loss_and_route_changes() -> None:
    import select

    a, _, left, right = _pair()
    left.run([rtnl.add_address(100, "10.1.0.1/24")])
    monitor = Monitor(a, link=True, route=True)
    right.run([rtnl.set_link(101, up=False)])
    left.run([rtnl.add_route("10.9.0.0/16", kind=rtnl.RTN_BLACKHOLE)])
    seen: list[object] = []
    while not (
        any(isinstance(e, rtnl_events.LinkEvent) and e.ifindex == 100 and not e.carrier for e in seen)
        and any(isinstance(e, rtnl_events.RouteEvent) and e.prefix == "10.9.0.0/16" for e in seen)
    ):
        assert select.select([monitor], [], [], 5)[0], f"nothing more came after {seen}"
        seen.extend(monitor.read())


def test_hostile_bytes_do_not_crash_the_decoders() -> None:
    from hypothesis import given
    from hypothesis import strategies as st

    @given(st.binary(max_size=64))
    def never_loops(data: bytes) -> None:
        list(nlmsg.split(data))
        nlmsg.attributes(data)

    never_loops()


def test_next_hops_are_counted_as_they_would_be_one_by_one() -> None:
    from hypothesis import example, given
    from hypothesis import strategies as st

    hops = st.tuples(st.sampled_from([8, 16, 20, 24]), st.integers(1, 2**31 - 1))

    @given(st.lists(hops, max_size=70))
    @example([(8, 1), (24, 2), (16, 3)])  # as long as three of the same size
    def same(wanted: list[tuple[int, int]]) -> None:
        data = b"".join(struct.pack("=HBBi", size, 0, 0, oif) + bytes(size - 8) for size, oif in wanted)
        found = rtnl_events.NextHops(data)
        assert (len(found), tuple(found)) == (len(wanted), tuple(oif for _, oif in wanted))
        assert found == [oif for _, oif in wanted]

    @given(st.binary(max_size=64))
    def never_loops(data: bytes) -> None:
        found = rtnl_events.NextHops(data)
        assert len(found) == len(list(found))

    same()
    never_loops()


@pytest.mark.kernel
def test_a_multipath_route_is_told_with_its_next_hops() -> None:
    from pyroute2 import IPRoute

    a, _, left, _ = _pair()
    left.run([rtnl.add_address(100, "10.1.0.1/24")])
    monitor = Monitor(a, route=True)
    with a.entered(), IPRoute() as judge:
        judge.route("add", dst="10.9.0.0/16", priority=7, multipath=[{"gateway": f"10.1.0.{n}"} for n in (2, 3, 4)])
    [event] = [e for e in monitor.read() if isinstance(e, rtnl_events.RouteEvent) and e.prefix == "10.9.0.0/16"]
    assert (event.oifs, len(event.oifs), event.metric, event.gone) == ((100, 100, 100), 3, 7, False)
    assert event.oifs[0] == 100
    assert [r.oifs for r in left.routes() if r.prefix == event.prefix] == [event.oifs]


@pytest.mark.kernel
def test_a_monitor_reads_only_so_much_at_one_go_and_the_rest_later() -> None:
    a, _, left, _ = _pair()
    monitor = Monitor(a, route=True)
    left.run([rtnl.add_route(f"10.9.{n}.{m}/32", kind=rtnl.RTN_BLACKHOLE) for n in range(2) for m in range(250)])
    read = [len(monitor.read()) for _ in range(4)]
    assert sum(read) == 500
    assert all(0 < part < 500 for part in read[:2])
    assert read[-1] == 0


@pytest.mark.kernel
def test_what_waited_before_messages_were_lost_is_not_told_after_the_loss() -> None:
    """Who reads everything anew after a loss would take an older carrier or neighbour for the latest."""
    a, _, left, _ = _pair()
    monitor = Monitor(a, link=True)
    for _ in range(40):
        left.run([rtnl.set_link(100, up=up) for up in (True, False) * 100])
    with pytest.raises(OverrunError):
        monitor.read()
    assert monitor.read() == []
    left.run([rtnl.set_link(100, up=True)])
    assert [event.up for event in monitor.read() if isinstance(event, rtnl_events.LinkEvent)][-1:] == [True]
    monitor.close()
