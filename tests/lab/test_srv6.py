"""SRv6 in running labs: probes go down every path, cuts silence exactly theirs, and tables come back."""

from __future__ import annotations

import asyncio
import os
import struct
import subprocess
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from hpn.testbed.errors import InputError, MachineError
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.kernel import ns
from hpn.testbed.kernel.packets.packet import PacketSocket
from hpn.testbed.kernel.rtnetlink import rtnl, seg6
from hpn.testbed.kernel.rtnetlink.netlink import Netlink
from hpn.testbed.kernel.rtnetlink.seg6 import Seg6Local
from hpn.testbed.lab import srv6 as of_lab
from hpn.testbed.lab.expected_state import deviations
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.srv6_carriers import Carried, Carriers
from hpn.testbed.lab.srv6_probe import ETHERTYPE_IPV6, Probed, probe, srv6_of
from hpn.testbed.lab.srv6_state import entries
from hpn.testbed.lab.state import state
from hpn.testbed.routing.srv6.packet import Datagram, encapsulated
from hpn.testbed.routing.srv6.plan import UsidPath
from hpn.traffic.flows.ip_layer import IPV6
from hpn.traffic.io.sockets import open_raw_sender, open_receiver
from hpn.traffic.transport.packets import Envelope, pack_ip
from tests.lab.running import cut, mend, running, tiny, whole_again

pytestmark = pytest.mark.kernel
_SRC, _DST = "p0.s0.h0.r0", "p0.s1.h0.r0"
_FABRICS: dict[str, dict[str, object]] = {
    "tiny": {**PRESETS["tiny"].spec.model_dump(exclude_unset=True), "rails": 1},
    "eight-planes": {"planes": 8, "segments": 2, "hosts": 1, "aggs": 1},
    "parallel": {"architecture": "dual-tor-clos", "segments": 2, "hosts": 1, "aggs": 2, "uplinks": 2},
}
_BURST = 300


def _spec(name: str) -> FabricSpec:
    return FabricSpec.model_validate({**_FABRICS[name], "lag": "nft", "srv6": {}})


@pytest.mark.parametrize("name", _FABRICS)
async def test_a_probe_arrives_down_every_path_and_a_cut_silences_its_own_alone(name: str) -> None:
    async with running(_spec(name)) as lab:
        before = state(lab)
        assert not deviations(lab)
        found = await probe(lab, _SRC, _DST)
        assert all(each.arrived for each in found)
        assert _counted(lab) == _planned(lab, [each.path for each in found])
        link = lab.fabric.link(found[-1].path.links[1])
        cut(lab, link)
        await lab.wait_for(lambda: not lab.link_up(link.name), 5)
        silent = [each for each in await probe(lab, _SRC, _DST) if not each.arrived]
        assert silent == [Probed(each.path, arrived=False) for each in found if link.name in each.path.links]
        mend(lab, link)
        await whole_again(lab, before)
        assert await probe(lab, _SRC, _DST) == found
        assert not deviations(lab)


@pytest.mark.parametrize("name", _FABRICS)
async def test_a_packet_by_a_carriers_route_takes_the_planned_path_and_keeps_its_addresses(name: str) -> None:
    async with running(_spec(name)) as lab:
        carriers, before = Carriers(lab), state(lab)
        paths = carriers.paths(_SRC, _DST)
        assert {each.path for each in paths} == set(srv6_of(lab).plan.paths(_SRC, _DST))
        assert [each.path.port for each in paths[: len(lab.fabric.nic(_SRC).links)]] == [
            *range(len(lab.fabric.nic(_SRC).links))
        ]
        assert await _received(lab, paths) == set(range(len(paths)))
        assert _counted(lab) == _planned(lab, [each.path for each in paths])
        cut(lab, link := lab.fabric.link(paths[0].path.links[0]))
        there = {at for at, each in enumerate(paths) if link.name not in each.path.links}
        assert await _received(lab, paths) == there
        mend(lab, link)
        await whole_again(lab, before)
        assert await _received(lab, paths) == set(range(len(paths)))
        carriers.close()
        host = lab.requests(lab.fabric.nic(_SRC).host)
        assert not [each for each in host.routes6() if each.prefix.startswith("fd02:")]


async def _received(lab: Lab, paths: Sequence[Carried]) -> set[int]:
    """Send a datagram by each path, whole as RoCE's are, and return the numbers of those that arrive."""
    source, target = lab.fabric.nic(_SRC), lab.fabric.nic(_DST)
    inner = srv6_of(lab).plan.inner
    with open_receiver(lab.wiring.namespaces[target.host], inner[_DST]) as ear:
        for number, each in enumerate(paths):
            to = Envelope(inner[_SRC], inner[_DST], 50_000 + number, 1)
            with open_raw_sender(lab.wiring.namespaces[source.host], each.mark, IPV6) as out, suppress(OSError):
                out.sendto(pack_ip(to, bytes(100 if number else 4132)), (each.via, 0))
        found: set[int] = set()
        with suppress(TimeoutError):
            async with asyncio.timeout(1):
                while len(found) < len(paths):
                    _, (ip, sport, *_) = await asyncio.get_running_loop().sock_recvfrom(ear, 8192)
                    assert ip == inner[_SRC]
                    found.add(sport - 50_000)
        return found


async def test_a_burst_passes_the_planned_links_alone() -> None:
    async with running(_spec("parallel")) as lab:
        for path in srv6_of(lab).plan.paths(_SRC, _DST)[::5]:
            before = _sent(lab)
            await _burst(lab, path)
            after = _sent(lab)
            assert {label for label in after if after[label] - before[label] >= _BURST} == set(_out_ports(lab, path))


async def test_a_switch_that_crashes_boots_with_its_tables() -> None:
    async with running(_spec("tiny")) as lab:
        before = state(lab)
        lab.breakage.crash(["p0.s0.t0.0"])
        await lab.wait_for(lambda: not lab.link_up("p0.s0.t0.0-p0.a0.0"), 5)
        assert {each.path.port for each in await probe(lab, _SRC, _DST) if each.arrived} == {1}
        assert any("SRv6 fc00:0:5::/48 on p0.s0.t0.0: is absent, should be" in each for each in deviations(lab))
        await lab.breakage.boot(["p0.s0.t0.0"])
        await whole_again(lab, before)
        assert all(each.arrived for each in await probe(lab, _SRC, _DST))


async def test_a_dead_data_plane_forwards_no_carrier() -> None:
    async with running(_spec("tiny")) as lab:
        lab.breakage.stop_forwarding("p0.a0.1")
        dead = [each.path.links[1] for each in await probe(lab, _SRC, _DST) if not each.arrived]
        assert dead == ["p0.s0.t0.0-p0.a0.1"]
        lab.breakage.start_forwarding("p0.a0.1")
        assert all(each.arrived for each in await probe(lab, _SRC, _DST))


async def test_a_port_put_down_and_up_by_hand_gets_its_routes_back() -> None:
    async with running(_spec("parallel")) as lab:
        before = state(lab)
        for way in ("down", "up"):
            _ip("p0.s0.t0.0", "link", "set", "up0p1", way)
        await whole_again(lab, before)
        assert not deviations(lab)


async def test_deviations_name_a_route_that_is_gone_and_one_that_nobody_planned() -> None:
    async with running(_spec("tiny")) as lab:
        _ip("p0.s0.t0.0", "-6", "route", "del", "fc00:0:5::/48")
        (gone, count) = deviations(lab)
        assert gone.startswith("SRv6 fc00:0:5::/48 on p0.s0.t0.0: is absent, should be route by up0 to 06:00:")
        assert count == "static IPv6 routes of p0.s0.t0.0: is 4, should be 5"
        _ip("p0.s0.t0.0", "-6", "route", "add", "fc00:0:5::/48", "via", "fe80::dead", "dev", "up1", "proto", "static")
        (wrong,) = deviations(lab)
        assert "is route by up1 to an unknown neighbour, should be route by up0" in wrong


async def test_iproute2_reads_the_tables_as_they_are_meant() -> None:
    async with running(_spec("parallel")) as lab:
        own, uplink = "fc00:0:1::/48", "fc00:0:e000::/48"
        shown = {
            line.split(" encap")[0]: " ".join(line.split())
            for line in _ip("p0.s0.t0.0", "-6", "route", "show", "table", "all").splitlines()
        }
        flavor = "flavors next-csid lblen 32 nflen 16"
        assert shown[f"local {own} "].startswith(f"local {own} encap seg6local action End {flavor} dev lo proto static")
        there = lab.fabric.link("p0.s0.t0.0-p0.a0.0.0").upper.ifindex
        assert f"action End.X nh6 fd01::{there:x} {flavor} dev up0p0 proto static" in shown[f"{uplink} "]
        host = _ip("p0.s1.h0", "-6", "route")
        assert "encap seg6local action End.DT6 table local dev bond0 proto static" in " ".join(host.split())
        assert "permanent" in _ip("p0.s0.t0.0", "-6", "neigh").lower()


async def test_tshark_decodes_what_is_on_a_link(tmp_path: Path) -> None:
    async with running(_spec("tiny")) as lab:
        packets, came = list[bytes](), asyncio.Event()

        def on_frame(packet: bytes, _source: str) -> None:
            if packet[6] == 41:
                packets.append(packet)
                came.set()

        link = lab.fabric.link("p0.s0.t0.0-p0.a0.0")
        space = lab.wiring.namespaces[link.upper.node]
        tap = PacketSocket(space, link.upper.name, ETHERTYPE_IPV6, on_frame=on_frame)
        (first, *_) = await probe(lab, _SRC, _DST)
        await asyncio.wait_for(came.wait(), 5)
        tap.close()
        (tmp_path / "x.pcap").write_bytes(_pcap(packets))
        fields = ["ipv6.nxt", "ipv6.dst", "udp.dstport"]
        command = ["tshark", "-r", str(tmp_path / "x.pcap"), "-T", "fields", *(w for f in fields for w in ("-e", f))]
        try:
            lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        except FileNotFoundError:
            pytest.skip("no tshark here")
        (headers, addresses, port), inner = lines[0].split("\t"), srv6_of(lab).plan.inner[_DST]
        assert len(lines) == 1
        assert headers == "41,17"
        assert port.isdigit()
        # Linux shifts a carrier in the buffer that captures share: they may show it as it is later.
        usids, carrier = first.path.usids, srv6_of(lab).plan.numbers.carrier
        assert addresses in {f"{carrier(usids[shift:])},{inner}" for shift in range(len(usids))}


async def test_a_lab_without_srv6_has_no_paths_and_no_ipv6() -> None:
    async with running(tiny(rails=1)) as lab:
        with pytest.raises(InputError, match=r"this lab has no SRv6; write srv6: \{\}"):
            await probe(lab, _SRC, _DST)
        assert not [key for key in state(lab) if "IPv6" in key or "SRv6" in key]
        assert all(not lab.requests(node.name).routes6() for node in lab.fabric.nodes)


async def test_a_kernel_without_it_is_refused_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    of_lab.check(_spec("tiny"))
    monkeypatch.setattr(of_lab, "seg6_problem", lambda _space: "Operation not supported")
    of_lab.check(tiny())
    with pytest.raises(
        MachineError, match=r"\(Operation not supported\); take a kernel with CONFIG_IPV6_SEG6_LWTUNNEL"
    ):
        of_lab.check(_spec("tiny"))


async def test_a_thousand_routes_are_one_batch() -> None:
    space = ns.create("thousand")
    link = Netlink(space)
    mac, peer = "02:00:00:00:00:01", "02:00:00:00:00:02"
    link.run([rtnl.add_veth("a", 900, space, "b", 901, space, mac=mac, peer_mac=peer, mtu=1500)])
    treatment = Seg6Local(seg6.END_X, (32, 16), nh6="fd01::1")
    wanted = [f"fc00:0:{number:x}::/48" for number in range(1, 1001)]
    link.run([seg6.add_route6(prefix, 900, treatment=treatment) for prefix in wanted])
    assert sorted(route.prefix for route in link.routes6() if route.treatment == treatment) == sorted(wanted)
    link.close()
    os.close(space.fd)


def _counted(lab: Lab) -> Counter[tuple[str, str]]:
    """The packets that each entry of each kernel has treated."""
    found: Counter[tuple[str, str]] = Counter()
    for node in lab.fabric.nodes:
        for prefix, _, counts in entries(lab, node.name):
            if counts is not None and counts.packets:
                assert counts.errors == 0
                found[node.name, prefix] = counts.packets
    return found


def _planned(lab: Lab, paths: Sequence[UsidPath]) -> Counter[tuple[str, str]]:
    """The same, by the paths of probes: the near end of parallel links treats, or the far end of a lone one."""
    numbers, found = srv6_of(lab).plan.numbers, Counter[tuple[str, str]]()
    for path in paths:
        node = lab.fabric.link(path.links[0]).upper.node
        for link in map(lab.fabric.link, path.links[1:-1]):
            near, node = link.end_at(node), link.far_end(node).node
            own = numbers.adjacency.get(near.label)
            found[(node, numbers.prefix(numbers.node[node])) if own is None else (near.node, numbers.prefix(own))] += 1
        found[lab.fabric.nic(_DST).host, numbers.prefix(numbers.nic[_DST])] += 1
    return found


def _sent(lab: Lab) -> dict[str, int]:
    """Packets that each port has sent, by its queue."""
    found: dict[str, int] = {}
    for node in lab.fabric.nodes:
        ports = {link.end_at(node.name).ifindex: link.end_at(node.name) for link in lab.fabric.links_of(node.name)}
        buckets = lab.requests(node.name).buckets(ports)
        found |= {ports[each.ifindex].label: each.sent_packets for each in buckets}
    return found


def _out_ports(lab: Lab, path: UsidPath) -> list[str]:
    node, found = lab.fabric.nic(_SRC).host, []
    for link in map(lab.fabric.link, path.links):
        found.append(link.end_at(node).label)
        node = link.far_end(node).node
    return found


async def _burst(lab: Lab, path: UsidPath) -> None:
    """Send so many carriers down a path, and wait until the receiver's kernel has counted them."""
    inner, link = srv6_of(lab).plan.inner, lab.fabric.nic(_SRC).links[path.port]
    packet = encapsulated(Datagram(inner[_SRC], inner[_DST], 1, 9, b"").packet(), inner[_SRC], path.carrier)
    port = PacketSocket(lab.wiring.namespaces["p0.s0.h0"], link.lower.name, ETHERTYPE_IPV6)
    before = sum(_counted(lab)[key] for key in _counted(lab) if key[0] == "p0.s1.h0")
    for _ in range(_BURST):
        assert port.send(packet, link.upper.mac)
    port.close()
    while sum(_counted(lab)[key] for key in _counted(lab) if key[0] == "p0.s1.h0") < before + _BURST:
        await probe(lab, _SRC, _DST)


def _ip(node: str, *words: str) -> str:
    command = ["ip", "netns", "exec", node, "ip", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _pcap(packets: Sequence[bytes]) -> bytes:
    """A capture file of bare IPv6 packets (link type 229)."""
    head = struct.pack("=IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 229)
    return head + b"".join(struct.pack("=IIII", 0, 0, len(each), len(each)) + each for each in packets)
