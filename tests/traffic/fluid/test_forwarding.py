"""Where packets go by the model: what the kernels of a lab answer, and what BGP's policy makes of dead links."""

from __future__ import annotations

import pytest

from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Fabric, Link
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.routing.trace import Flow, trace
from hpn.traffic.fluid.forwarding import Forwarding
from tests.routing import fabrics
from tests.routing.minilab import MiniLab

SPORTS = range(0xC000, 0xC000 + 64)


def names(forwarding: Forwarding, src: str, dst: str, port: int, sport: int) -> tuple[tuple[str, ...], bool]:
    """The links of one packet's way, and whether it arrives."""
    fabric = forwarding.fabric
    found = forwarding.walk([fabric.nic(src)], [fabric.nic(dst)], [port], [sport])
    return tuple(fabric.links[link // 2].name for link in found.links[0] if link >= 0), bool(found.arrives[0])


def both(fabric: Fabric, link: Link) -> tuple[int, int]:
    """The directed links of a cable, up and down."""
    at = fabric.links.index(link)
    return 2 * at, 2 * at + 1


@pytest.mark.kernel
async def test_what_is_computed_is_what_the_kernels_of_a_lab_answer() -> None:
    """Three Aggs choose between two ToRs: two ECMP decisions for each of 64 source ports, and again without an Agg."""
    lab = MiniLab(fabrics.clos(aggs=3))
    await lab.start()
    fabric = lab.fabric
    source, target = fabric.nic("p0.s0.h0.r0"), fabric.nic("p0.s1.h0.r0")
    lab.home(source, 0)
    lab.greet(source, 0)
    for plane in (0, 1):
        lab.greet(target, plane)
    await lab.until(lambda: len(lab.routes("p0.s0.t0.0", f"{target.ip}/32")) == 3)
    await lab.until(lambda: all(len(lab.routes(f"p0.a0.{i}", f"{target.ip}/32")) == 2 for i in range(3)))
    forwarding, taken = Forwarding(fabric), set()
    for sport in SPORTS:
        flow = Flow(source.name, target.name, sport)
        path = trace(fabric, flow, 0, lambda node: lab.netlinks[node], lambda link: True)
        assert names(forwarding, source.name, target.name, 0, sport) == (path.links, True)
        taken.add(path.links)
    assert len(taken) == 6


def test_links_are_numbered_by_the_way_they_are_taken() -> None:
    fabric = fabrics.hpn()
    found = Forwarding(fabric).walk([fabric.nic("p0.s0.h0.r0")], [fabric.nic("p0.s1.h0.r0")], [1], [0xC000])
    up, across, down, last = (fabric.links[link // 2] for link in found.links[0] if link >= 0)
    assert found.links[0][:4].tolist() == [
        both(fabric, up)[0], both(fabric, across)[0], both(fabric, down)[1], both(fabric, last)[1],
    ]  # fmt: skip
    assert {link.plane for link in (up, across, down, last)} == {1}


def test_within_a_segment_the_tor_hands_over_by_itself() -> None:
    forwarding = Forwarding(fabrics.hpn(hosts=2))
    assert names(forwarding, "p0.s0.h0.r0", "p0.s0.h1.r0", 0, 0xC000) == (("p0.s0.h0.r0.0", "p0.s0.h1.r0.0"), True)


def test_in_an_isolated_plane_nothing_arrives_at_a_nic_that_lost_its_port_there() -> None:
    forwarding = Forwarding(fabrics.hpn(), down=["p0.s1.h0.r0.0"])
    lost, arrives = names(forwarding, "p0.s0.h0.r0", "p0.s1.h0.r0", 0, 0xC000)
    assert (lost[0], len(lost), arrives) == ("p0.s0.h0.r0.0", 3, False)
    assert lost[-1].startswith("p0.s1.t0.0-"), "the subnet route leads to the ToR that drops it"
    target = forwarding.fabric.nic("p0.s1.h0.r0")
    assert not forwarding.reaches("p0.s0.t0.0", target)
    assert forwarding.reaches("p0.s0.t0.1", target)
    assert names(forwarding, "p0.s0.h0.r0", "p0.s1.h0.r0", 1, 0xC000)[1]


def test_below_one_plane_the_other_tor_takes_over_for_packets_on_their_way() -> None:
    forwarding = Forwarding(fabrics.clos(aggs=2), down=["p0.s1.h0.r0.0"])
    ways = {names(forwarding, "p0.s0.h0.r0", "p0.s1.h0.r0", 0, sport) for sport in SPORTS}
    assert len(ways) == 2  # the Aggs
    assert all(arrives and links[-1] == "p0.s1.h0.r0.1" for links, arrives in ways)


def test_a_tor_without_its_own_link_to_a_nic_sends_up_to_its_twin() -> None:
    forwarding = Forwarding(fabrics.clos(hosts=2), down=["p0.s0.h1.r0.0"])
    links, arrives = names(forwarding, "p0.s0.h0.r0", "p0.s0.h1.r0", 0, 0xC000)
    assert arrives
    assert (links[0], links[-1], len(links)) == ("p0.s0.h0.r0.0", "p0.s0.h1.r0.1", 4)


def test_a_dead_agg_takes_no_part_and_a_dead_first_link_drops() -> None:
    fabric = fabrics.hpn()
    dead = [link.name for link in fabric.links_of("p0.a0.0")]
    ways = {names(Forwarding(fabric, dead), "p0.s0.h0.r0", "p0.s1.h0.r0", 0, sport)[0] for sport in SPORTS}
    assert {links[1] for links in ways} == {"p0.s0.t0.0-p0.a0.1"}
    cut = Forwarding(fabric, ["p0.s0.h0.r0.0"])
    assert names(cut, "p0.s0.h0.r0", "p0.s1.h0.r0", 0, 0xC000) == (("p0.s0.h0.r0.0",), False)


def test_between_pods_a_core_leaves_by_its_preset_port_and_hashes_without_it() -> None:
    fabric = fabrics.pods()
    src, dst = "p0.s0.h0.r0", "p1.s0.h0.r0"
    ways = {names(Forwarding(fabric), src, dst, 0, sport) for sport in SPORTS}
    assert all(arrives and len(links) == 6 for links, arrives in ways)
    assert len({links[2:4] for links, _ in ways}) == 4  # Agg and Core up; the way down is preset
    assert len(ways) == 4
    egress = next(iter(ways))[0][3]
    around = {names(Forwarding(fabric, [egress]), src, dst, 0, sport) for sport in SPORTS}
    assert all(arrives and egress not in links for links, arrives in around)
    hashed = {names(Forwarding(fabrics.pods(core_ports="hash")), src, dst, 0, sport) for sport in SPORTS}
    assert len(hashed) == 8


def test_an_agg_below_which_a_tor_is_cut_off_is_not_sent_to() -> None:
    """Cores do not lead back into the pod that a route comes from: the fabric goes round by other Aggs."""
    fabric = build(PRESETS["tiny-fat-tree"].spec)
    forwarding = Forwarding(fabric, down=["p0.s0.t0.0-p0.a0.0"])
    inside = {names(forwarding, "p0.s1.h0.r0", "p0.s0.h0.r0", 0, sport) for sport in SPORTS}
    outside = {names(forwarding, "p1.s0.h0.r0", "p0.s0.h0.r0", 0, sport) for sport in SPORTS}
    assert all(arrives for _, arrives in inside | outside)
    assert {links[1] for links, _ in inside} == {"p0.s1.t0.0-p0.a0.1"}
    assert {links[1] for links, _ in outside} == {"p1.s0.t0.0-p1.a0.1"}


def test_rails_that_no_switch_joins_do_not_reach_each_other() -> None:
    assert not names(Forwarding(fabrics.rails()), "p0.s0.h0.r0", "p0.s1.h0.r1", 0, 0xC000)[1]


def test_many_packets_at_once_go_as_each_would_alone() -> None:
    fabric = fabrics.dcn()
    nics = [nic for nic in fabric.nics if nic.name != "p0.s0.h0.r0"]
    forwarding = Forwarding(fabric, down=["p1.s0.h0.r0.1"])
    asked = [(nic, port, 0xC000 + at) for at, nic in enumerate(nics) for port in range(2)]
    source = fabric.nic("p0.s0.h0.r0")
    together = forwarding.walk(
        [source] * len(asked), [nic for nic, _, _ in asked], [port for _, port, _ in asked], [s for _, _, s in asked]
    )
    for at, (nic, port, sport) in enumerate(asked):
        alone = forwarding.walk([source], [nic], [port], [sport])
        assert alone.links[0].tolist() == together.links[at].tolist()
        assert alone.arrives[0] == together.arrives[at]


def test_where_aggs_are_of_one_rail_and_port_cores_join_rails_and_the_two_tors_of_a_nic() -> None:
    """Each NIC reaches each other by either port, also while the other lacks one: by Cores, which are at most two."""
    fabric = build(PRESETS["tiny-same-rail"].spec)
    cut = "p0.s1.h0.r0.0"
    pairs = [(a.name, b.name) for a in fabric.nics for b in fabric.nics if a.host != b.host]
    for down in ([], [cut]):
        forwarding = Forwarding(fabric, down)
        ways = [names(forwarding, *pair, port, 0xC000) for pair in pairs for port in (0, 1)]
        assert all(arrives for (links, arrives) in ways if links[0] not in down)
        assert all(("c0." in "".join(links)) <= (len(links) == 6) for links, _ in ways)
    links, _ = names(Forwarding(fabric, [cut]), "p0.s0.h0.r0", "p0.s1.h0.r0", 0, 0xC000)
    assert [link.split("-")[-1][:2] for link in links[2:4]] == ["c0", "c0"]
    assert links[-1] == "p0.s1.h0.r0.1"
