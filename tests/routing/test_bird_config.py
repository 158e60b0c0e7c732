"""BIRD's configuration: golden files for its words, BIRD itself as the judge of its syntax."""

from __future__ import annotations

import re
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.core_ports import preset_tables
from hpn.testbed.fabric.model import Fabric, Role
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.fabric.spec import BfdSpec, BgpSpec, FabricSpec
from hpn.testbed.routing.bird.config import config
from hpn.testbed.routing.bird.daemon import find_bird, slacken, timer_slack_ns
from hpn.testbed.routing.neighbours import access_subnets
from tests.routing import fabrics

GOLDEN = Path(__file__).parent / "golden"
CASES = [
    ("hpn", "p0.s0.t0.0"),
    ("hpn", "p0.a1.0"),
    ("clos", "p0.s0.t0.1"),
    ("pods", "p0.a0.0"),
    ("pods", "c1.0"),
    ("stacked", "p0.s0.t0.0"),
    ("dcn", "p0.s0.t0.0"),
    ("dcn", "p0.a0.0"),
    ("rails", "p0.r1.a0"),
]
FABRICS = ("hpn", "clos", "pods", "stacked", "dcn", "rails")


@pytest.mark.parametrize(("name", "node"), CASES)
def test_configuration_is_as_written_down(name: str, node: str) -> None:
    fabric: Fabric = getattr(fabrics, name)()
    assert config(fabric, fabric.node(node)) == (GOLDEN / f"{name}-{node}.conf").read_text()


@pytest.mark.parametrize(
    "spec",
    [
        FabricSpec(),
        FabricSpec(architecture="dual-tor-clos"),
        FabricSpec(architecture="single-tor", rails=2),
        FabricSpec(pods=2, cores=2),
        FabricSpec(aggs=0, segments=1),
        FabricSpec(aggs=60, bgp=BgpSpec(hold_s=3, keepalive_s=1)),
        FabricSpec(aggs=3, bgp=BgpSpec(bfd=BfdSpec(interval_ms=50, multiplier=4))),
        PRESETS["tiny-stacked"].spec,
        PRESETS["tiny-dcn-plus"].spec,
        PRESETS["tiny-rail-only"].spec,
    ],
    ids=lambda spec: f"{spec.architecture}-{spec.pods}p{spec.aggs}a{spec.cores}c",
)
def test_bird_accepts_the_configuration_of_every_switch(spec: FabricSpec, tmp_path: Path) -> None:
    fabric = build(spec)
    for node in fabric.switches:
        path = tmp_path / f"{node.name}.conf"
        path.write_text(config(fabric, node))
        judged = subprocess.run([find_bird(), "-p", "-c", str(path)], capture_output=True, text=True, check=False)
        assert judged.returncode == 0, f"{node.name}: {judged.stderr}"


@pytest.mark.parametrize(("interval_ms", "multiplier"), [(50, 4), (100, 3), (300, 10)])
def test_bfd_has_the_interval_and_the_multiplier_of_the_topology(interval_ms: int, multiplier: int) -> None:
    fabric = build(FabricSpec(bgp=BgpSpec(bfd=BfdSpec(interval_ms=interval_ms, multiplier=multiplier))))
    for node in fabric.switches:
        words = re.sub(r"\s+", " ", config(fabric, node))
        assert set(re.findall(r"multiplier (\d+);", words)) == {str(multiplier)}, node.name
        assert set(re.findall(r"min [rt]x interval (\d+) ms;", words)) == {str(interval_ms)}, node.name


@pytest.mark.parametrize("fabric", [getattr(fabrics, name)() for name in FABRICS], ids=FABRICS)
def test_both_ends_of_every_switch_link_name_each_other(fabric: Fabric) -> None:
    for link in fabric.links:
        if not link.is_routed:
            continue
        for near, far in ((link.lower, link.upper), (link.upper, link.lower)):
            text = config(fabric, fabric.node(near.node))
            assert far.address is not None
            assert f'interface "{near.name}"' in text
            assert f"neighbor {far.address.split('/')[0]} as {fabric.node(far.node).asn};" in text


def test_a_peer_link_carries_no_session() -> None:
    fabric = fabrics.stacked()
    for stack in fabric.stacks:
        peer = fabric.link(stack.peer_link)
        for near, far in ((peer.lower, peer.upper), (peer.upper, peer.lower)):
            assert far.address is not None
            text = config(fabric, fabric.node(near.node))
            assert near.name not in text
            assert far.address.split("/")[0] not in text


def test_a_dcn_plus_tor_serves_a_subnet_of_every_nic_of_its_hosts() -> None:
    fabric = fabrics.dcn()
    assert access_subnets(fabric, fabric.node("p1.s0.t0.1")) == ("10.0.2.0/24", "10.1.2.0/24")


def test_only_tors_take_paths_with_their_own_asn() -> None:
    fabric = fabrics.pods()
    allowing = {node.role for node in fabric.switches if "allow local as" in config(fabric, node)}
    assert allowing == {Role.TOR}


def test_a_draining_tor_announces_subnets_but_no_host_and_all_else_stays() -> None:
    fabric = fabrics.hpn(hosts=3)
    tor = fabric.node("p0.s1.t0.1")
    usual, draining = config(fabric, tor).splitlines(), config(fabric, tor, draining=True).splitlines()
    different = [(a.strip(), b.strip()) for a, b in zip(usual, draining, strict=True) if a != b]
    assert different == [
        ("export where source = RTS_STATIC || source = RTS_INHERIT;", "export where source = RTS_STATIC;")
    ]


def test_a_tor_serves_each_subnet_of_its_hosts_once() -> None:
    fabric = fabrics.hpn(hosts=3)
    assert access_subnets(fabric, fabric.node("p0.s1.t0.1")) == ("10.0.1.0/24",)
    assert access_subnets(fabric, fabric.node("p0.a0.0")) == ()


def test_a_switch_with_many_sessions_in_a_large_lab_rarely_looks_at_its_interfaces() -> None:
    """Keepalives wake it as often as the scan would; where they are rare or few, the scan does."""

    def scan(keepalive_s: int, name: str, aggs: int, *, large: bool = True) -> str:
        bgp = {"hold_s": 3 * keepalive_s, "keepalive_s": keepalive_s}
        spec = FabricSpec.model_validate(PRESETS["tiny"].spec.model_dump() | {"aggs": aggs, "bgp": bgp})
        fabric = build(spec)
        written = config(fabric, fabric.node(name), large=large)
        return written.partition("protocol device {\n")[2].partition(";")[0].strip()

    assert scan(3, "p0.s0.t0.0", aggs=8) == "scan time 10"
    assert scan(3, "p0.s0.t0.0", aggs=7) == "scan time 1"
    assert scan(3, "p0.a0.0", aggs=8) == "scan time 1"
    assert scan(20, "p0.s0.t0.0", aggs=8) == "scan time 1"
    assert scan(3, "p0.s0.t0.0", aggs=8, large=False) == "scan time 1"


def test_a_large_lab_reads_its_kernels_routes_as_often_as_bird_does_by_itself() -> None:
    """BIRD refuses a configuration whose kernel protocols differ in that."""

    def scans(fabric: Fabric, name: str, *, deaf: bool = False, large: bool = False) -> list[str]:
        lines = config(fabric, fabric.node(name), deaf=deaf, large=large).splitlines()
        return [line.strip() for before, line in pairwise(lines) if "scan time" in line and "device" not in before]

    fabric = fabrics.hpn(hosts=3)
    assert scans(fabric, "p0.s0.t0.0") == ["scan time 20;"]
    assert scans(fabric, "p0.s0.t0.0", large=True) == ["scan time 60;"]
    assert scans(fabric, "p0.s0.t0.0", deaf=True, large=True) == ["scan time 61;"]
    pods = fabrics.pods()
    core = next(node.name for node in pods.switches if preset_tables(pods, node))
    assert set(scans(pods, core, large=True)) == {"scan time 60;"}
    assert len(scans(pods, core, large=True)) > 1


def test_timers_are_late_only_where_a_switch_is_woken_more_often_than_that() -> None:
    segment = build(PRESETS["segment"].spec)
    assert timer_slack_ns(segment, segment.node("p0.s0.t0.0")) == 100_000_000, "60 sessions, 20 keepalives a second"
    assert timer_slack_ns(segment, segment.node("p0.a0.0")) == 0
    bfd = PRESETS["segment"].spec.model_dump() | {"bgp": {"bfd": {"interval_ms": 100, "multiplier": 3}}}
    assert timer_slack_ns(build(FabricSpec.model_validate(bfd)), segment.node("p0.s0.t0.0")) == 0


@pytest.mark.kernel
def test_a_process_is_given_late_timers_without_root_too() -> None:
    child = subprocess.Popen(["sleep", "60"])
    try:
        slacken(child.pid, 100_000_000)
        assert Path(f"/proc/{child.pid}/timerslack_ns").read_text() == "100000000\n"
    finally:
        child.kill()
        child.wait()
