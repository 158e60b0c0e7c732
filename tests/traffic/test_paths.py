"""Source ports are chosen so that paths share as little as possible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from hpn.traffic.flows.flow import SPORT_MAX, SPORT_MIN, FlowSpec
from hpn.traffic.flows.paths import (
    CHOICES,
    drawn,
    drawn_again,
    drawn_once,
    hashed,
    in_turn,
    link_disjoint,
    link_disjoint_anew,
    pinned,
    spread,
)

AGGS = 4
RATE = 100_000_000


class Fabric:
    """Two ports a NIC by the parity of the source port; above each ToR one of four Aggs by what is left of it."""

    def ports(self, nic: str) -> int:
        return 2

    def port_for(self, nic: str, dst_ip: str, sport: int, dport: int) -> int:
        return sport % 2

    def links(self, src_nic: str, dst_nic: str, sport: int, bound: int | None = None) -> Sequence[str]:
        plane, agg = sport % 2, sport // 2 % AGGS
        return [f"{src_nic}.{plane}", f"t{src_nic}-a{plane}.{agg}", f"t{dst_nic}-a{plane}.{agg}", f"{dst_nic}.{plane}"]

    def rate_bps(self, link: str) -> int:
        return RATE


def flow(number: int, src: str, dst: str, sport: int = 0xC000) -> FlowSpec:
    ips = {"x": "10.0.0.1", "y": "10.0.1.1", "z": "10.0.2.1"}
    return FlowSpec(
        id=number,
        name=f"{src}>{dst}#{number}",
        src_nic=src,
        dst_nic=dst,
        src_ip=ips[src],
        dst_ip=ips[dst],
        sport=sport,
        ack_sport=0xD000,
        rate_pps=1000,
        path_mtu=1024,
    )


def test_the_queue_pairs_of_a_nic_take_its_ports_in_turn_and_different_aggs() -> None:
    flows = [flow(number, "x", "y") for number in range(2 * AGGS)]
    found = spread(flows, Fabric())
    assert Counter(f.sport % 2 for f in found.flows) == {0: AGGS, 1: AGGS}
    assert len({(f.sport % 2, f.sport // 2 % AGGS) for f in found.flows}) == 2 * AGGS
    assert len({f.sport for f in found.flows}) == 2 * AGGS
    assert Counter(f.ack_sport % 2 for f in found.flows) == {0: AGGS, 1: AGGS}


def test_a_link_carries_its_rate_each_way() -> None:
    one = spread([flow(0, "x", "y"), flow(1, "x", "y")], Fabric())
    both = spread([flow(0, "x", "y"), flow(1, "y", "x"), flow(2, "x", "y"), flow(3, "y", "x")], Fabric())
    assert one.worst_load == pytest.approx(flow(0, "x", "y").goodput_bps / RATE, rel=1e-3)
    assert both.worst_load == one.worst_load


def test_replacement_flows_get_fresh_ports_and_what_they_replace_weighs_nothing() -> None:
    first = [flow(number, "x", "y") for number in range(2 * AGGS)]
    later = [replace(flow(2 * AGGS + one.id, "x", "y"), replaces=one.id) for one in first]
    alone, found = spread(first, Fabric()), spread(first, Fabric(), [later])
    assert found.flows[: 2 * AGGS] == alone.flows
    assert found.worst_load == alone.worst_load
    begun = found.flows[2 * AGGS :]
    assert len({(one.sport % 2, one.sport // 2 % AGGS) for one in begun}) == 2 * AGGS, "as even as the first"
    assert len({port for one in found.flows for port in (one.sport,)}) == 4 * AGGS
    assert Counter(one.ack_sport % 2 for one in begun) == {0: AGGS, 1: AGGS}


def test_the_worst_load_is_that_of_any_time() -> None:
    first = [flow(0, "x", "y")]
    later = [replace(flow(1, "x", "y"), replaces=0, rate_pps=3000.0)]
    assert spread(first, Fabric(), [later]).worst_load == spread(later, Fabric()).worst_load
    gentle = [replace(later[0], rate_pps=10.0)]
    assert spread(first, Fabric(), [gentle]).worst_load == spread(first, Fabric()).worst_load


def test_ports_in_turn_leave_the_rest_to_hashes() -> None:
    found = in_turn([flow(number, "x", "y") for number in range(2 * AGGS)], Fabric())
    assert Counter(f.sport % 2 for f in found.flows) == {0: AGGS, 1: AGGS}
    assert Counter(f.ack_sport % 2 for f in found.flows) == {0: AGGS, 1: AGGS}
    assert [f.sport for f in found.flows] == list(range(0xC000, 0xC000 + 2 * AGGS)), "the next free port that fits"
    assert found.worst_load == spread([flow(number, "x", "y") for number in range(2 * AGGS)], Fabric()).worst_load


def test_by_hash_every_flow_keeps_what_its_stack_drew_and_collisions_show() -> None:
    flows = [flow(number, "x", "y") for number in range(4)]  # all from one source port
    found = hashed(flows, Fabric())
    assert found.flows == tuple(flows)
    assert found.worst_load == pytest.approx(4 * flows[0].goodput_bps / RATE, rel=1e-3)
    assert CHOICES["hash"].choose(flows, Fabric(), (), 1) == found


def test_nothing_to_spread_is_no_load() -> None:
    assert spread([], Fabric()) == spread((), Fabric())
    assert spread([], Fabric()).worst_load == 0


def fabric_links(found: Sequence[FlowSpec]) -> list[str]:
    """All links between switches that these cross, as often as they do."""
    return [link for f in found for link in Fabric().links(f.src_nic, f.dst_nic, f.sport)[1:-1]]


def test_the_queue_pairs_of_a_connection_share_no_link_although_another_choice_would_be_less_loaded() -> None:
    wide = [replace(flow(number, "x", "y"), rate_pps=1) for number in range(2 * AGGS)]
    others = [flow(100 + number, "x", "z") for number in range(3)]
    found = link_disjoint([*others, *wide], Fabric())
    links = fabric_links([f for f in found.flows if f.dst_nic == "y"])
    assert len(links) == len(set(links)) == 4 * AGGS


def test_with_more_queue_pairs_than_paths_each_path_has_as_many() -> None:
    found = link_disjoint([flow(number, "x", "y") for number in range(6 * AGGS)], Fabric())
    assert set(Counter(fabric_links(found.flows)).values()) == {3}


def test_drawn_ports_repeat_with_their_seed_and_queue_pairs_have_nothing_in_common() -> None:
    flows = [flow(number, "x", "y") for number in range(64)]
    found = drawn(flows, Fabric(), (), 1)
    assert found == drawn(flows, Fabric(), (), 1) == CHOICES["drawn"].choose(flows, Fabric(), (), 1)
    assert found != drawn(flows, Fabric(), (), 2)
    assert len({f.sport for f in found.flows}) == 64
    assert all(f.sport != f.ack_sport for f in found.flows)
    planes = Counter(f.sport % 2 for f in found.flows)
    assert 20 <= planes[0] <= 44  # three standard deviations of 64 tosses


def test_ports_drawn_once_are_the_same_for_all_queue_pairs_of_a_connection_and_of_no_other() -> None:
    flows = [*(flow(number, "x", "y") for number in range(8)), flow(8, "x", "z"), flow(9, "z", "y")]
    found = drawn_once(flows, Fabric(), (), 1).flows
    assert len({f.sport for f in found[:8]}) == 1
    assert len({f.sport for f in found}) == 3
    assert found != drawn_once(flows, Fabric(), (), 2).flows
    alone = [replace(flows[at], id=number) for number, at in enumerate((0, 8, 9))]
    assert [f.sport for f in drawn(alone, Fabric(), (), 1).flows] == [found[at].sport for at in (0, 8, 9)]


def test_a_pinned_path_takes_the_uplink_of_its_destination_whoever_else_does() -> None:
    senders, receivers = ("p0.s0.h0.r0", "p0.s0.h1.r0"), tuple(f"p0.s1.h{host}.r0" for host in range(AGGS + 1))
    flows = [flow(0, "x", "y", 0xC123 + at) for at in range(2 * len(receivers))]
    ends = [(src, dst) for src in senders for dst in receivers]
    flows = [
        replace(f, id=at, src_nic=src, dst_nic=dst, dst_ip=f"10.0.1.{receivers.index(dst) + 1}")
        for at, (f, (src, dst)) in enumerate(zip(flows, ends, strict=True))
    ]
    found = pinned(flows, Fabric()).flows
    aggs = [Fabric().links(f.src_nic, f.dst_nic, f.sport)[1].rpartition(".")[2] for f in found]
    assert aggs == ["0", "1", "2", "3", "0"] * 2


class Broken(Fabric):
    """One Agg of plane 0 is gone: what took its links takes the next Agg's, but for port 0xC002, which is lost."""

    def links(self, src_nic: str, dst_nic: str, sport: int, bound: int | None = None) -> Sequence[str]:
        if sport == 0xC002:
            return ()
        found = super().links(src_nic, dst_nic, sport, bound)
        return [link.replace("-a0.0", "-a0.1") for link in found]


def anew(flows: Sequence[FlowSpec], homes: Sequence[FlowSpec], router: Fabric, staying: int = 0) -> list[FlowSpec]:
    chosen = link_disjoint_anew(flows[:staying], flows[staying:], {f.id: f.sport for f in homes}, router)
    return sorted([*flows[:staying], *chosen], key=lambda each: each.id)


def test_paths_chosen_anew_share_no_link_and_nobody_moves_without_need_or_to_another_port() -> None:
    homes = link_disjoint([flow(number, "x", "y") for number in range(6)], Fabric()).flows
    lost = [f for f in homes if f.sport % 2 == 0 and f.sport // 2 % AGGS == 0]
    assert len(lost) == 1
    found = anew(homes, homes, Broken())
    links = [link for f in found for link in Broken().links("x", "y", f.sport)[1:-1]]
    assert len(links) == len(set(links)) == 12
    moved = [now.id for now, home in zip(found, homes, strict=True) if now.sport != home.sport]
    assert len(moved) == 1, "two share an Agg now: one of them moves"
    assert [f.sport % 2 for f in found] == [f.sport % 2 for f in homes]
    assert 0xC002 not in {f.sport for f in found}


def test_when_the_link_is_back_all_go_home() -> None:
    homes = link_disjoint([flow(number, "x", "y") for number in range(6)], Fabric()).flows
    away = anew(homes, homes, Broken())
    assert away != list(homes)
    assert anew(away, homes, Fabric()) == list(homes)


def test_those_who_stay_are_gone_round() -> None:
    homes = link_disjoint([flow(number, "x", "y") for number in range(6)], Fabric()).flows
    clash = [*homes[:5], replace(homes[5], sport=homes[3].sport)]
    found = anew(clash, clash, Fabric(), staying=5)
    assert found[5].sport != clash[5].sport
    assert len(set(fabric_links(found))) == 12


def test_a_source_port_drawn_again_fits_and_is_the_same_for_the_same_seed_only() -> None:
    moving = flow(3, "x", "y")
    ports = [drawn_again(moving, lambda sport: sport % 2 == 0, 7, again) for again in range(1, 20)]
    assert all(port is not None and SPORT_MIN <= port <= SPORT_MAX and port % 2 == 0 for port in ports)
    assert len(set(ports)) == 19
    assert ports == [drawn_again(moving, lambda sport: sport % 2 == 0, 7, again) for again in range(1, 20)]
    assert ports[0] != drawn_again(moving, lambda sport: sport % 2 == 0, 8, 1)
    assert drawn_again(moving, lambda _sport: False, 7, 1) is None
