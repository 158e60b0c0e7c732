"""Every lever of a running lab does what it says, and its inverse leaves the lab as it was."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from hpn.testbed.events import EventKind, now_ns
from hpn.testbed.fabric.model import Role
from hpn.testbed.kernel import linkwatch
from hpn.testbed.kernel.rtnetlink.netlink import Netlink
from hpn.testbed.kernel.rtnetlink.rtnl import PROTO_HOST_ROUTE
from hpn.testbed.lab.breaking.impair import Drop, Traffic
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.state import state
from hpn.testbed.routing.trace import Flow
from tests.lab.running import Recorder, cut, mend, ping, running, tiny, whole_again

pytestmark = pytest.mark.kernel

TOR = "p0.s0.t0.0"
_KERNEL_ASKS_S = 3.2
"""A neighbour that does not answer is asked for three times, a second apart, then given up."""
QUICK_BGP = {"hold_s": 3, "keepalive_s": 1}


def _hosts_of(lab: Lab, tor: str) -> list[str]:
    return [nic.name for nic in lab.fabric.nics if any(link.upper.node == tor for link in nic.links)]


def _active(lab: Lab, nics: Iterable[str]) -> set[tuple[int, ...]]:
    return {lab.nics[nic].active for nic in nics}


@pytest.mark.parametrize("end", ["lower", "upper"])
async def test_an_end_that_is_put_down_takes_the_carrier_of_the_other_and_comes_back(end: str) -> None:
    async with running(tiny()) as lab:
        before = state(lab)
        nic = lab.fabric.nics[0]
        ends = [(nic.links[0], getattr(nic.links[0], end).node)]
        lab.breakage.ports_down(ends)
        await lab.wait_for(lambda: lab.nics[nic.name].active == (1,), 10)
        assert not lab.link_up(nic.links[0].name)
        lab.breakage.ports_up(ends)
        await whole_again(lab, before)


async def test_a_nic_without_any_port_is_gone_from_both_planes_and_comes_back() -> None:
    async with running(tiny()) as lab:
        before = state(lab)
        nic = lab.fabric.nics[0]
        watcher = lab.watcher
        ends = [(link, link.lower.node) for link in nic.links]
        lab.breakage.ports_down(ends)
        await lab.wait_for(lambda: lab.nics[nic.name].active == (), 10)
        aggs = [node.name for node in lab.fabric.switches if node.role is Role.AGG]
        await lab.wait_for(lambda: not any(f"{nic.ip}/32" in watcher.routes(agg) for agg in aggs), 10)
        lab.breakage.ports_up(ends)
        await whole_again(lab, before)


async def test_all_aggs_of_a_plane_die_together_and_boot_again_and_hosts_keep_their_port() -> None:
    async with running(tiny()) as lab:
        before = state(lab)
        aggs = ("p0.a0.0", "p0.a0.1")
        lab.breakage.crash(aggs)
        lab.breakage.crash(aggs)  # they are dead already
        await lab.wait_for(lambda: not any(lab.bgp[agg].running for agg in aggs), 10)
        tors = [node.name for node in lab.fabric.switches if node.role is Role.TOR and node.plane == 0]
        await lab.wait_for(lambda: not any(lab.bgp[tor].established for tor in tors), 10)
        assert _active(lab, lab.nics) == {(0, 1)}
        await lab.breakage.boot(aggs)
        await lab.breakage.boot(aggs)
        await whole_again(lab, before)


async def test_when_more_ports_change_than_the_kernel_tells_at_a_run_it_is_asked_for_each_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running(tiny()) as lab:
        before = state(lab)
        near, far = set[int](), set[int]()
        monkeypatch.setattr(linkwatch, "carry_out", lambda _, ifindexes: near.update(ifindexes))
        monkeypatch.setattr(linkwatch, "carry_out_far", lambda _, ifindexes: far.update(ifindexes))
        ports = {link.end_at(tor).ifindex for tor in (TOR, "p0.s0.t1.0") for link in lab.fabric.links_of(tor)}
        monkeypatch.setattr(linkwatch, "AT_A_RUN", 2 * len(ports))
        lab.breakage.crash([TOR, "p0.s0.t1.0"])
        await lab.breakage.boot([TOR, "p0.s0.t1.0"])
        assert (near, far) == (set(), set())
        await whole_again(lab, before)
        monkeypatch.setattr(linkwatch, "AT_A_RUN", 2 * len(ports) - 1)
        lab.breakage.crash([TOR, "p0.s0.t1.0"])
        assert (near, far) == (set(), ports)
        far.clear()
        await lab.breakage.boot([TOR, "p0.s0.t1.0"])
        assert (near, far) == (ports, ports)
        await whole_again(lab, before)


async def test_a_switch_loses_all_of_its_ports_by_one_request_and_fewer_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running(tiny()) as lab:
        before = state(lab)
        sent: list[int] = []
        run = Netlink.run

        def counted(self: Netlink, requests: Sequence[bytes]) -> None:
            sent.append(len(requests))
            run(self, requests)

        monkeypatch.setattr(Netlink, "run", counted)
        links = lab.fabric.links_of(TOR)
        lab.breakage.ports_down([(link, TOR) for link in links[1:]])
        assert sent == [len(links) - 1]
        await lab.wait_for(lambda: not any(lab.link_up(link.name) for link in links[1:]), 10)
        assert lab.link_up(links[0].name)
        lab.breakage.ports_up([(link, TOR) for link in links[1:]])
        await whole_again(lab, before)
        sent.clear()
        lab.breakage.ports_down([(link, TOR) for link in links])
        assert sent == [1]
        await lab.wait_for(lambda: not any(lab.link_up(link.name) for link in links), 10)
        lab.breakage.ports_up([(link, TOR) for link in links])
        await whole_again(lab, before)


async def test_a_whole_plane_dies_with_its_tors_and_boots_again() -> None:
    async with running(tiny()) as lab:
        before = state(lab)
        dying = tuple(node.name for node in lab.fabric.switches if node.plane == 0)
        lab.breakage.crash(dying)
        await lab.wait_for(lambda: _active(lab, lab.nics) == {(1,)}, 10)
        await lab.breakage.boot(dying)
        await whole_again(lab, before)


async def test_a_host_that_noticed_nothing_is_asked_for() -> None:
    """A ToR whose port blinked has lost its neighbours; a host that did not see it (miimon) announces nothing."""
    async with running(tiny()) as lab:
        before = state(lab)
        nic = lab.fabric.nics[0]
        link = nic.links[0]
        lab.nics[nic.name].announcer.carry = lambda ports, *, grown: None  # type: ignore[method-assign]
        ends = [(link, link.upper.node)]
        lab.breakage.ports_down(ends)
        await lab.wait_for(lambda: not lab.link_up(link.name), 10)
        lab.breakage.ports_up(ends)
        await whole_again(lab, before)


@pytest.mark.parametrize("alone", ["host", "tor"])
async def test_a_nic_whose_arp_was_lost_at_its_return_gets_its_host_route_when_arp_passes_again(alone: str) -> None:
    """Either end suffices: a ToR that booted knows nobody to ask for, a host's word is all it can have; or the ToR."""
    async with running(tiny()) as lab:
        before = state(lab)
        watcher = lab.watcher
        nic = lab.fabric.nics[0]
        link = nic.links[0]
        tor = lab.tors[link.upper.node]
        if alone == "tor":
            lab.nics[nic.name].announcer.carry = lambda ports, *, grown: None  # type: ignore[method-assign]
            cut(lab, link)
        else:
            lab.breakage.crash([tor.node.name])
        await lab.wait_for(lambda: not watcher.has_host_route(tor.node.name, f"{nic.ip}/32"), 10)
        await lab.wait_for(lambda: 0 not in lab.nics[nic.name].active, 10)
        lab.impairments.on_arrival("arp", link.upper, Drop(Traffic.ARP))
        if alone == "tor":
            mend(lab, link)
        else:
            await lab.breakage.boot([tor.node.name])
        await lab.wait_for(lambda: 0 in lab.nics[nic.name].active and tor.collecting(link.upper.name), 20)
        await asyncio.sleep(_KERNEL_ASKS_S)
        missing = [gap.text for gap in lab.missing() if gap.where == link.name]
        assert missing == [f"{link.name}: the port distributes but {tor.node.name} has not learned {nic.ip}/32"]
        await lab.impairments.lift("arp")
        await whole_again(lab, before)


async def test_a_dead_switch_is_known_to_have_no_routes() -> None:
    """The kernel removes them with their interfaces and tells nobody: a booting switch would look converged."""
    async with running(tiny()) as lab:
        assert lab.watcher.routes("p0.a0.0")
        lab.breakage.crash(["p0.a0.0"])
        assert lab.watcher.routes("p0.a0.0") == {}
        await lab.breakage.boot(["p0.a0.0"])
        await lab.converged(30)


async def test_a_core_dies_and_boots_again() -> None:
    async with running(tiny(pods=2, segments=1, hosts=1, rails=1, aggs=1, cores=2)) as lab:
        before = state(lab)
        lab.breakage.crash(["c0.0"])
        await lab.wait_for(lambda: not lab.bgp["c0.0"].running and bool(lab.missing()), 10)
        assert lab.path(Flow("p0.s0.h0.r0", "p1.s0.h0.r0", 50_000)).dropped is None
        await lab.breakage.boot(["c0.0"])
        await whole_again(lab, before)


async def test_a_hung_control_plane_forwards_on_until_its_partners_lose_patience() -> None:
    events = Recorder()
    async with running(tiny(bgp=QUICK_BGP), events) as lab:
        before = state(lab)
        hosts = _hosts_of(lab, TOR)
        watcher = lab.watcher
        there = lab.fabric.nic("p0.s0.h0.r0")
        start = now_ns()
        lab.breakage.hang(TOR)
        assert state(lab)[f"daemons of {TOR}"] == "hung"
        pids = lab.bgp[TOR].pids
        assert {Path(f"/proc/{pid}/stat").read_text().split()[2] for pid in pids} == {"T"}
        assert "ttl=" in ping(lab, "p0.s1.h0", there.ip)
        await lab.wait_for(lambda: _active(lab, hosts) == {(1,)}, 10)  # Short Timeout: 3 s after the last LACPDU
        await lab.wait_for(lambda: f"{there.ip}/32" not in watcher.routes("p0.a0.0"), 10)  # hold time
        assert not events.after(start, EventKind.LACP, TOR), "a frozen daemon says nothing"
        assert all(lab.link_up(link.name) for link in lab.fabric.links_of(TOR))
        lab.breakage.resume(TOR)
        await whole_again(lab, before)


async def test_a_short_hang_goes_unnoticed() -> None:
    events = Recorder()
    async with running(tiny(), events) as lab:
        before = state(lab)
        start = now_ns()
        lab.breakage.hang(TOR)
        lab.breakage.resume(TOR)
        await whole_again(lab, before)
        assert not events.after(start, EventKind.LAG)


async def test_a_draining_tor_withdraws_its_hosts_then_sends_them_away_and_forwards_to_the_last() -> None:
    events = Recorder()
    async with running(tiny(), events) as lab:
        before = state(lab)
        hosts = _hosts_of(lab, TOR)
        nic = lab.fabric.nic(hosts[0])
        watcher = lab.watcher
        start = now_ns()

        def host_routes() -> set[str]:
            return {r.prefix for r in lab.requests(TOR).routes() if r.protocol == PROTO_HOST_ROUTE}

        lab.breakage.withdraw(TOR)
        await lab.wait_for(lambda: f"{nic.ip}/32" not in watcher.routes("p0.s1.t0.0"), 10)
        assert nic.subnet in watcher.routes("p0.s1.t0.0"), "late packets still find their way"
        assert f"{nic.ip}/32" in host_routes()
        assert not [e for e in events.after(start, EventKind.BGP) if e.what == "down"]
        lab.breakage.leave(TOR)
        await lab.wait_for(lambda: _active(lab, hosts) == {(1,)}, 10)
        assert all(lab.link_up(link.name) for link in lab.fabric.links_of(TOR))
        assert f"{nic.ip}/32" in host_routes()
        lab.breakage.rejoin(TOR)
        lab.breakage.announce(TOR)
        await whole_again(lab, before)


async def test_a_drained_tor_that_went_down_boots_undrained() -> None:
    async with running(tiny()) as lab:
        before = state(lab)
        lab.breakage.withdraw(TOR)
        lab.breakage.leave(TOR)
        lab.breakage.crash([TOR])
        await lab.breakage.boot([TOR])
        lab.breakage.rejoin(TOR)
        lab.breakage.announce(TOR)
        await whole_again(lab, before)


async def test_a_dead_data_plane_drops_what_it_would_forward_and_nobody_notices() -> None:
    events = Recorder()
    async with running(tiny(), events) as lab:
        before = state(lab)
        there = lab.fabric.nic("p0.s0.h0.r0")
        start = now_ns()
        lab.breakage.stop_forwarding(TOR)
        lab.breakage.stop_forwarding("p0.s0.t0.1")  # both planes, so that the LAG's choice does not matter
        assert state(lab)[f"forwarding of {TOR}"] == "dead"
        assert "ttl=" not in ping(lab, "p0.s1.h0", there.ip, wait_s=1)
        assert "ttl=" in ping(lab, there.host, there.gateway), "what is meant for the ToR itself still arrives"
        sent = {name: speaker for name, speaker in lab.tors[TOR].speakers.items() if speaker.active_ports}
        assert len(sent) == len(_hosts_of(lab, TOR))
        assert not events.after(start, EventKind.LAG)
        assert not events.after(start, EventKind.BGP)
        for tor in (TOR, "p0.s0.t0.1"):
            lab.breakage.start_forwarding(tor)
            lab.breakage.start_forwarding(tor)
        assert "ttl=" in ping(lab, "p0.s1.h0", there.ip)
        await whole_again(lab, before)


async def test_an_agg_with_a_dead_data_plane_keeps_its_bgp_sessions_beyond_the_hold_time() -> None:
    events = Recorder()
    async with running(tiny(hosts=1, rails=1, aggs=1, bgp=QUICK_BGP), events) as lab:
        before, routes, start = state(lab), lab.watcher.routes(TOR), now_ns()
        there, aggs = lab.fabric.nic("p0.s0.h0.r0"), ("p0.a0.0", "p0.a1.0")
        for agg in aggs:  # both planes, so that the LAG's choice does not matter
            lab.breakage.stop_forwarding(agg)
        assert state(lab)[f"forwarding of {aggs[0]}"] == "dead"
        assert "ttl=" not in ping(lab, "p0.s1.h0", there.ip, wait_s=1)
        await asyncio.sleep(QUICK_BGP["hold_s"] + 1)
        assert not events.after(start, EventKind.BGP)
        assert lab.watcher.routes(TOR) == routes, "ECMP goes on over the Agg"
        for agg in aggs:
            lab.breakage.start_forwarding(agg)
        assert "ttl=" in ping(lab, "p0.s1.h0", there.ip)
        await whole_again(lab, before)


async def test_a_session_that_is_reset_goes_down_at_both_ends_and_stands_again() -> None:
    events = Recorder()
    async with running(tiny(), events) as lab:
        before = state(lab)
        link = lab.fabric.link(f"{TOR}-p0.a0.0")
        start = now_ns()
        lab.breakage.reset_session(link)

        def mourners() -> set[str]:
            return {e.node for e in events.after(start, EventKind.BGP) if e.what == "down"}

        await lab.wait_for(lambda: mourners() == {TOR, "p0.a0.0"}, 10)
        assert lab.link_up(link.name)
        await whole_again(lab, before)
