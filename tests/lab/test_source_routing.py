"""Hosts with several NICs send by the NIC whose address a packet carries, wherever switches join the rails."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hpn.testbed.fabric.model import Nic
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.kernel.rtnetlink.rtnl import NUD_PERMANENT
from hpn.testbed.lab.lab import Lab
from hpn.testbed.routing.hostroute_rules import VALID
from hpn.testbed.routing.trace import Flow
from tests.lab.running import ping, running
from tests.taps import Taps, send

pytestmark = pytest.mark.kernel

SPORTS = range(50_000, 50_024)


def _packets(lab: Lab, nic: Nic) -> tuple[int, int]:
    """(received, sent) of a NIC's LAG interface."""
    with lab.wiring.namespaces[nic.host].entered():
        lines = Path("/proc/thread-self/net/dev").read_text().splitlines()
    fields = next(line.split() for line in lines if line.strip().startswith(nic.lag + ":"))
    return int(fields[2]), int(fields[10])


@pytest.mark.parametrize(
    ("preset", "src", "dst"),
    [
        ("tiny-dcn-plus", "p0.s0.h0.r0", "p1.s1.h0.r1"),
        ("tiny-dcn-plus", "p0.s0.h0.r1", "p0.s1.h0.r0"),
        ("tiny-same-rail", "p0.s0.h0.r0", "p0.s1.h0.r1"),
        ("tiny", "p0.s0.h0.r0", "p0.s1.h0.r1"),
        ("tiny", "p0.s0.h1.r1", "p0.s0.h0.r0"),
    ],
)
async def test_packets_between_nics_of_different_numbers_take_the_traced_paths(preset: str, src: str, dst: str) -> None:
    async with running(PRESETS[preset].spec) as lab:
        spaces = lab.wiring.namespaces
        source, target = lab.fabric.nic(src), lab.fabric.nic(dst)
        [other] = [nic for nic in lab.fabric.nics_of(source.host) if nic != source]
        [idle] = [nic for nic in lab.fabric.nics_of(target.host) if nic != target]
        before = {nic.name: _packets(lab, nic) for nic in (source, other, target, idle)}
        taps = Taps(spaces)
        switches = [node.name for node in lab.fabric.switches]
        for sport in SPORTS:
            path = lab.path(Flow(src, dst, sport))
            assert path.dropped is None
            send(spaces[source.host], source.ip, sport, target.ip)
            await taps.arrival(target.host)
            assert taps.seen_by(switches) == {(step.node, step.in_port) for step in path.steps[1:-1]}
        after = {name: _packets(lab, lab.fabric.nic(name)) for name in before}
        assert after[source.name][1] - before[source.name][1] >= len(SPORTS)
        assert after[target.name][0] - before[target.name][0] >= len(SPORTS)
        assert after[other.name][1] - before[other.name][1] < len(SPORTS)
        assert after[idle.name][0] - before[idle.name][0] < len(SPORTS)


async def test_an_answer_leaves_by_the_nic_it_was_asked_on_and_arp_stays_with_its_nic() -> None:
    async with running(PRESETS["tiny-dcn-plus"].spec) as lab:
        here, far = lab.fabric.nics_of("p0.s0.h0"), lab.fabric.nics_of("p1.s1.h0")
        before = {nic.name: _packets(lab, nic) for nic in (*here, *far)}
        assert "ttl=59" in _ping_from(lab, here[0], far[1].ip, 20)
        grown = {
            name: tuple(now - was for now, was in zip(_packets(lab, lab.fabric.nic(name)), before[name], strict=True))
            for name in before
        }
        assert min(*grown[here[0].name], *grown[far[1].name]) >= 20
        assert max(*grown[here[1].name], *grown[far[0].name]) < 20
        for nic in (*here, *far):
            known = {n.ip: n.mac for n in lab.requests(nic.host).neighbours() if n.ifindex == nic.lag_ifindex}
            assert known.items() <= {nic.gateway: nic.gateway_mac}.items(), "nobody of another subnet"
            for link in nic.links:
                entries = [n for n in lab.requests(link.upper.node).neighbours() if n.ip == nic.ip and n.state & VALID]
                assert [(n.ifindex, n.mac) for n in entries if n.state != NUD_PERMANENT] == [
                    (link.upper.ifindex, nic.mac)
                ]


def _ping_from(lab: Lab, nic: Nic, ip: str, count: int) -> str:
    assert nic.host in lab.fabric.node_by_name
    command = ["ip", "netns", "exec", nic.host, "ping", "-c", str(count), "-i", "0.01", "-W", "5", "-I", nic.ip, ip]
    return subprocess.run(command, capture_output=True, text=True, timeout=20, check=False).stdout


async def test_who_names_no_source_address_sends_by_the_nic_of_the_destinations_number() -> None:
    async with running(PRESETS["tiny-dcn-plus"].spec) as lab:
        here, far = lab.fabric.nics_of("p0.s0.h0"), lab.fabric.nics_of("p1.s1.h0")
        for nic, target in zip(here, far, strict=True):
            before = _packets(lab, nic)[1]
            assert "ttl=59" in ping(lab, nic.host, target.ip)
            assert _packets(lab, nic)[1] > before


async def test_where_no_switch_joins_rails_no_host_has_rules_of_its_own() -> None:
    async with running(PRESETS["tiny-rail-only"].spec):
        command = ["ip", "netns", "exec", "p0.s0.h0", "ip", "rule"]
        rules = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout
        assert [line.split(":")[0] for line in rules.splitlines()] == ["0", "32766", "32767"]
