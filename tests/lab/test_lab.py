"""A whole lab in a sandbox: it converges, is broken and heals; every layer tells the same story."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from pathlib import Path

import pytest

from hpn.testbed.errors import MachineError
from hpn.testbed.events import EventKind, now_ns
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Nic, Port
from hpn.testbed.kernel.packets.packet import PacketSocket
from hpn.testbed.kernel.rtnetlink.rtnl import PROTO_HOST_ROUTE
from hpn.testbed.lab.breaking.impair import Drop
from hpn.testbed.lab.host_nic import HostNic
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.service.control import JsonValue
from hpn.testbed.lab.service.inspect import report
from hpn.testbed.lab.state import state
from hpn.testbed.lag.lacpdu import ETHERTYPE_SLOW_PROTOCOLS, SLOW_PROTOCOLS_MAC
from hpn.testbed.lag.machine import PortStatus
from hpn.testbed.routing.trace import Flow
from hpn.traffic.flows.flow import ROCE_PORT
from tests.lab.running import Recorder, crossed, cut, mend, ping, running, tiny, whole_again
from tests.lag.markers import marker

pytestmark = pytest.mark.kernel


def _host_routes(lab: Lab, tor: str) -> set[str]:
    return {r.prefix for r in lab.requests(tor).routes() if r.protocol == PROTO_HOST_ROUTE}


async def test_both_tors_of_a_set_learn_every_host_from_its_mirrored_arp() -> None:
    async with running(tiny()) as lab:
        for nic in lab.fabric.nics:
            for link in nic.links:
                assert f"{nic.ip}/32" in _host_routes(lab, link.upper.node)


async def test_a_lab_looks_no_further_than_its_first_gap_to_know_that_it_is_not_converged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is asked after every event: looking at everything each time, 132 hosts took minutes in a guest."""
    asked: list[str] = []

    def status(nic: HostNic) -> tuple[PortStatus, ...]:
        asked.append(nic.nic.name)
        return tell(nic)

    tell = HostNic.status
    monkeypatch.setattr(HostNic, "status", status)
    async with running(tiny()) as lab:
        for nic in lab.fabric.nics:
            cut(lab, nic.links[0])
        await lab.wait_for(lambda: all(nic.active == (1,) for nic in lab.nics.values()), 10)
        asked.clear()
        assert not lab.stands
        assert len(asked) <= 1  # none where the first gap is a route
        assert len(lab.missing()) >= len(lab.nics)


async def test_hosts_of_one_segment_reach_each_other_through_the_tor_not_around_it() -> None:
    async with running(tiny()) as lab:
        first, second = lab.fabric.nic("p0.s0.h0.r0"), lab.fabric.nic("p0.s0.h1.r0")
        assert "ttl=63" in ping(lab, first.host, second.ip)  # one hop: routed, by the ToR's proxy ARP
        neighbours = {n.ip: n.mac for n in lab.requests(first.host).neighbours()}
        assert neighbours[second.ip] == first.gateway_mac


@pytest.mark.parametrize(("cut_s", "leaves"), [(0.1, False), (0.6, True)])
async def test_a_lag_with_a_down_delay_stays_on_a_port_that_comes_back_in_time(cut_s: float, leaves: bool) -> None:
    events = Recorder()
    async with running(tiny(lag="nft", lacp={"down_delay_ms": 300}), events) as lab:
        nic = lab.fabric.nics[0]
        start = now_ns()
        cut(lab, nic.links[0])
        with suppress(TimeoutError):
            await lab.wait_for(lambda: lab.nics[nic.name].active == (1,), cut_s)
        left = lab.nics[nic.name].active == (1,)
        mend(lab, nic.links[0])
        assert left is leaves
        assert [e.at_ns - start > 300_000_000 for e in events.after(start, EventKind.LAG, nic.host)[:1]] == [
            True
        ] * left


async def test_a_cut_link_moves_the_host_at_once_and_its_route_leaves_the_whole_plane() -> None:
    events = Recorder()
    async with running(tiny(), events) as lab:
        before = state(lab)
        nic = lab.fabric.nics[0]
        link = nic.links[0]
        plane0 = [n.name for n in lab.fabric.switches if n.plane == 0]
        plane1 = [n.name for n in lab.fabric.switches if n.plane == 1]
        watcher = lab.watcher
        start = now_ns()
        cut(lab, link)
        await lab.wait_for(lambda: not any(f"{nic.ip}/32" in watcher.routes(n) for n in plane0), 10)
        await lab.wait_for(lambda: lab.nics[nic.name].active == (1,), 10)  # Linux bonding looks every 10 ms
        assert all(f"{nic.ip}/32" in watcher.routes(n) for n in plane1)
        assert nic.subnet in watcher.routes("p0.a0.0"), "the subnet route stays as fallback"
        assert events.after(start, EventKind.LAG, nic.host)
        mend(lab, link)
        await whole_again(lab, before)


async def test_a_sender_in_the_isolated_plane_hits_the_subnet_route_and_is_dropped() -> None:
    async with running(tiny()) as lab:
        source, target = "p0.s1.h0.r0", lab.fabric.nic("p0.s0.h0.r0")
        sports = {lab.nics[source].port_for(target.ip, s, 4791): s for s in range(50_000, 50_064)}
        watcher = lab.watcher
        cut(lab, target.links[0])
        await lab.wait_for(lambda: f"{target.ip}/32" not in watcher.routes("p0.s1.t0.0"), 10)
        lost = lab.path(Flow(source, target.name, sports[0]))
        kept = lab.path(Flow(source, target.name, sports[1]))
        assert lost.dropped is not None
        assert "blackhole" in lost.dropped
        assert kept.dropped is None


async def test_below_one_clos_plane_bgp_alone_leads_to_the_other_tor() -> None:
    async with running(tiny(architecture="dual-tor-clos")) as lab:
        source, target = "p0.s1.h0.r0", lab.fabric.nic("p0.s0.h0.r0")
        dead, alive = (link.upper.node for link in target.links)
        watcher = lab.watcher
        cut(lab, target.links[0])
        await lab.wait_for(lambda: watcher.routes("p0.a0.0").get(f"{target.ip}/32") == 1, 10)
        for sport in range(50_000, 50_016):
            path = lab.path(Flow(source, target.name, sport))
            assert path.dropped is None
            assert [step.node for step in path.steps][-2] == alive, f"port {sport} went by {dead}"


async def test_a_tor_with_another_system_id_is_not_aggregated_and_the_lab_says_so() -> None:
    async with running(tiny(lacp={"tor_system_ids": {"p0.s0.t0.1": "00:00:5e:00:01:02"}}), converge=False) as lab:
        with pytest.raises(MachineError, match=r"did not converge within 3 s: p0\.s0\.h0\.r0\.1: host port is"):
            await lab.converged(3)
        # An emulated guest may need longer than those 3 s for the ports that are to come.
        wanted = {"p0.s0.h0.r0": (0,), "p0.s0.h1.r0": (0,), "p0.s0.h0.r1": (0, 1)}
        await lab.wait_for(lambda: {nic: tuple(lab.nics[nic].active) for nic in wanted} == wanted, 30)
        # BGP may need longer than those 3 s; what is missing for good is the refused port and what hangs on it.
        await lab.wait_for(lambda: not any(gap.kind == "bgp" for gap in lab.missing()), 30)

        def ways_out() -> list[str | None]:
            flows = [Flow("p0.s0.h0.r0", "p0.s1.h0.r0", sport) for sport in range(50_000, 50_008)]
            return [lab.path(flow).dropped for flow in flows]

        await lab.wait_for(lambda: ways_out() == [None] * 8, 30)


_ETH_P_ALL = 3  # a socket for one ethertype hears no answer that Linux bonding consumes


async def test_a_nic_cabled_to_a_tor_of_another_segment_is_refused_and_inspect_says_why() -> None:
    """Both NICs are NIC 0 of their rack, and all ToRs share one system ID: the LACP key must tell the sets apart."""
    ours, theirs = "p0.s0.h0.r0.1", "p0.s1.h0.r0.1"
    async with running(crossed(build(tiny()), ours, theirs), converge=False) as lab:

        def row(port: str) -> dict[str, JsonValue]:
            rows = report(lab, "lacp")
            assert isinstance(rows, list)
            return next(found for found in rows if isinstance(found, dict) and found["port"] == port)

        nic = lab.nics["p0.s0.h0.r0"]
        await lab.wait_for(lambda: len(nic.active) == 1 and not any(gap.kind == "bgp" for gap in lab.missing()), 30)
        (held,) = nic.active  # bonding chooses either
        refused, far = 1 - held, [link.upper for link in nic.nic.links]
        told = (
            f"partner key {far[refused].key} of {far[refused].label}; the LAG has {far[held].key} of {far[held].label}"
        )
        await lab.wait_for(lambda: row(f"p0.s0.h0:r0p{refused}")["why_idle"] == told, 10)
        assert any(gap.text.startswith(nic.nic.links[refused].name) and told in gap.text for gap in lab.missing())
        assert row(f"p0.s0.h0:r0p{held}")["why_idle"] == ""
        if lab.datapath == "nft":  # bonding is in synchronization on ports of LAGs that it does not use, too
            assert row(far[refused].label)["why_idle"] == f"{nic.nic.mac} is not in synchronization"


async def test_a_marker_is_answered_by_both_ends_of_a_link_in_the_same_words() -> None:
    """Whoever speaks LACP answers: our speaker on ToRs, and on hosts it or Linux bonding, the judge of ours."""
    async with running(tiny()) as lab:
        link = lab.fabric.links[0]
        asked = marker(link.lower.port_id, link.lower.mac, 0xCAFE)
        heard: asyncio.Queue[bytes] = asyncio.Queue()

        def hear(payload: bytes, _source: str) -> None:
            if payload[0] == 2 and payload[2] == 2:
                heard.put_nowait(payload)

        for near, far in ((link.upper, link.lower), (link.lower, link.upper)):
            space = lab.wiring.namespaces[near.node]
            ear = PacketSocket(space, near.name, _ETH_P_ALL, group=SLOW_PROTOCOLS_MAC, on_frame=hear)
            mouth = PacketSocket(space, near.name, ETHERTYPE_SLOW_PROTOCOLS)
            assert mouth.send(asked, SLOW_PROTOCOLS_MAC)
            async with asyncio.timeout(5):
                assert await heard.get() == asked[:2] + bytes((2,)) + asked[3:], f"{far.label}'s answer"
            ear.close()
            mouth.close()


async def test_a_crashed_tor_takes_all_its_links_and_comes_back_empty() -> None:
    events = Recorder()
    async with running(tiny(), events) as lab:
        before = state(lab)
        tor = "p0.s0.t0.0"
        start = now_ns()
        lab.breakage.crash([tor])
        hit = [nic for nic in lab.fabric.nics if nic.links[0].upper.node == tor]
        await lab.wait_for(lambda: all(lab.nics[nic.name].active == (1,) for nic in hit), 10)
        await lab.wait_for(lambda: not lab.bgp[tor].running, 10)

        def mourners() -> set[str]:
            return {e.node for e in events.after(start, EventKind.BGP) if e.what == "down" and e.node != tor}

        await lab.wait_for(lambda: mourners() == {"p0.a0.0", "p0.a0.1"}, 10)
        await lab.breakage.boot([tor])
        await whole_again(lab, before)


async def _lost_udp(lab: Lab, sender: Nic, receiver: Nic, stop: asyncio.Event) -> list[int]:
    """Send numbered datagrams from 16 ports, every 2 ms one each, until ``stop``; when those lost were sent, in ns.

    Nothing here is known to path control.
    """
    spaces, loop = lab.wiring.namespaces, asyncio.get_running_loop()
    sink = spaces[receiver.host].socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK, 0)
    sink.bind((receiver.ip, 9000))
    missing: dict[int, int] = {}
    all_here = asyncio.Event()

    def read() -> None:
        with suppress(BlockingIOError):
            while True:
                missing.pop(int.from_bytes(sink.recv(4), "big"))
        if not missing:
            all_here.set()

    loop.add_reader(sink.fileno(), read)
    sources = [spaces[sender.host].socket(socket.AF_INET, socket.SOCK_DGRAM, 0) for _ in range(16)]
    for index, source in enumerate(sources):
        source.bind((sender.ip, 40_000 + index))
    number = 0
    while not stop.is_set():
        for source in sources:
            missing[number] = now_ns()
            source.sendto(number.to_bytes(4, "big"), (receiver.ip, 9000))
            number += 1
        await asyncio.sleep(0.002)
    if missing:
        all_here.clear()
    with suppress(TimeoutError):
        async with asyncio.timeout(1):
            await all_here.wait()
    loop.remove_reader(sink.fileno())
    for opened in (*sources, sink):
        opened.close()
    return list(missing.values())


async def test_a_tor_that_boots_attracts_no_traffic_before_it_has_routes() -> None:
    """Plain UDP out of the rack with path control off: what its sender loses now is the returning ToR's doing."""
    events = Recorder()
    async with running(tiny(path_control={"enabled": False}), events) as lab:
        tor, stop = "p0.s0.t0.0", asyncio.Event()
        sender, receiver = lab.fabric.nic("p0.s0.h0.r0"), lab.fabric.nic("p0.s1.h0.r0")
        lab.breakage.crash([tor])
        await lab.wait_for(lambda: lab.nics[sender.name].active == (1,), 10)
        lost = asyncio.create_task(_lost_udp(lab, sender, receiver, stop))
        booted = now_ns()
        await lab.breakage.boot([tor])
        await lab.wait_for(lambda: not lab.missing(), 30)
        stop.set()
        assert [(at - booted) // 1_000_000 for at in await lost] == [], "ms after the boot"
        said = events.after(booted, EventKind.DAEMON, tor)
        released = next(event for event in said if event.what == "released")
        assert released.detail["reason"] == "BGP delivered"
        grown = [event for event in events.after(booted, EventKind.LAG, sender.host) if event.subject == sender.lag]
        assert [event.at_ns > released.at_ns for event in grown] == [True]
        assert lab.tors[tor].condition == ""


async def test_a_tor_whose_uplinks_stay_dark_takes_its_hosts_back_when_the_reload_delay_is_over() -> None:
    events = Recorder()
    async with running(tiny(lacp={"reload_delay_s": 2}), events) as lab:
        tor = "p0.s0.t0.0"
        lab.breakage.crash([tor])
        for link in lab.fabric.links_of(tor):
            if link.is_routed:
                lab.breakage.ports_down([(link, link.upper.node)])
        start = now_ns()
        await lab.breakage.boot([tor])
        assert lab.tors[tor].condition == "waiting for BGP"
        told = "the ToR holds it back: waiting for BGP"
        row = {"port": f"{tor}:h0r0", "mux": "waiting", "why_idle": told}

        def shown() -> bool:
            rows = report(lab, "lacp")
            assert isinstance(rows, list)
            return any(isinstance(found, dict) and row.items() <= found.items() for found in rows)

        await lab.wait_for(shown, 5)
        await lab.wait_for(lambda: lab.nics["p0.s0.h0.r0"].active == (0, 1), 10)
        (released,) = [event for event in events.after(start, EventKind.DAEMON, tor) if event.what == "released"]
        assert released.detail["reason"] == "reload delay over"
        assert 1.9e9 < released.at_ns - start < 4e9


async def test_a_tor_without_a_fabric_above_it_does_not_wait() -> None:
    events = Recorder()
    async with running(tiny(segments=1, aggs=0), events) as lab:
        tor, start = "p0.s0.t0.0", now_ns()
        lab.breakage.crash([tor])
        await lab.breakage.boot([tor])
        await lab.converged(30)
        (released,) = [event for event in events.after(start, EventKind.DAEMON, tor) if event.what == "released"]
        assert released.detail["reason"] == "BGP delivered", "and not that the reload delay of 30 s was over"


async def test_traced_paths_are_where_packets_really_go() -> None:
    async with running(tiny()) as lab:
        source, target = lab.fabric.nic("p0.s0.h0.r0"), lab.fabric.nic("p0.s1.h1.r0")
        for sport in range(50_000, 50_020):
            path = lab.path(Flow(source.name, target.name, sport))
            before = {name: _sent(lab, name) for name in path.links}
            await _send_across(lab, source, target, sport, 50)
            for name in path.links:
                assert _sent(lab, name) - before[name] >= 50, f"port {sport}: not over {name}"


async def test_bfd_ends_a_bgp_session_whose_link_is_silent_and_inspect_tells() -> None:
    events = Recorder()
    async with running(
        tiny(bgp={"hold_s": 60, "keepalive_s": 20, "bfd": {"interval_ms": 100, "multiplier": 8}}), events
    ) as lab:
        before = state(lab)
        link = next(link for link in lab.fabric.links if link.is_routed)
        other = next(each for each in lab.fabric.links if each.is_routed and each is not link)
        assert (_session(lab, link.lower), _session(lab, other.upper)) == ((True, "up"), (True, "up"))
        start = now_ns()
        for end in (link.lower, link.upper):
            lab.impairments.on_arrival("hole", end, Drop())
        await lab.wait_for(lambda: _session(lab, link.lower)[0] is False and _session(lab, link.upper)[0] is False, 20)
        downs = [event for event in events.after(start, EventKind.BFD) if event.what == "down"]
        ends = (link.lower, link.upper)
        assert {(event.node, event.subject) for event in downs} == {(end.node, end.name) for end in ends}
        assert min(event.at_ns for event in downs) >= start + 690_000_000, (
            "8 intervals after the last packet, not BIRD's 5"
        )
        sessions = [event for event in events.after(start, EventKind.BGP) if event.what == "down"]
        assert len(sessions) == 2
        assert min(event.at_ns for event in downs) <= min(event.at_ns for event in sessions)
        assert "up" not in (_session(lab, link.lower)[1], _session(lab, link.upper)[1])
        assert _session(lab, other.upper) == (True, "up")
        await lab.impairments.lift("hole")
        await whole_again(lab, before)


def _session(lab: Lab, port: Port) -> tuple[bool, str]:
    """Whether the BGP session of a port is established, and its BFD, as ``hpn inspect bgp`` has them."""
    rows = report(lab, "bgp")
    assert isinstance(rows, list)
    (row,) = [row for row in rows if isinstance(row, dict) and (row["node"], row["port"]) == (port.node, port.name)]
    return bool(row["established"]), str(row["bfd"])


def _sent(lab: Lab, link: str) -> int:
    """Packets that crossed a link, both ways."""
    found = lab.fabric.link(link)
    with lab.wiring.namespaces[found.lower.node].entered():
        lines = Path("/proc/thread-self/net/dev").read_text().splitlines()
    fields = next(line.split() for line in lines if line.strip().startswith(found.lower.name + ":"))
    return int(fields[2]) + int(fields[10])


async def _send_across(lab: Lab, source: Nic, target: Nic, sport: int, count: int) -> None:
    """Return when all have arrived: a busy kernel forwards them, and counts them, some time after they were sent.

    The lab's own LACP runs in this process: whoever blocks here for long takes links out of their LAGs.
    """
    spaces, loop = lab.wiring.namespaces, asyncio.get_running_loop()
    with (
        spaces[target.host].socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver,
        spaces[source.host].socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        receiver.bind((target.ip, ROCE_PORT))
        receiver.setblocking(False)
        sender.bind((source.ip, sport))
        for _ in range(count):
            sender.sendto(b"x", (target.ip, ROCE_PORT))
        for _ in range(count):
            assert await asyncio.wait_for(loop.sock_recv(receiver, 64), 10) == b"x"
