"""BIRD's configuration: golden files for its words, BIRD itself as the judge of its syntax."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from testbed.fabric.build import build
from testbed.fabric.model import Fabric, LinkKind, Role
from testbed.fabric.spec import BgpSpec, FabricSpec
from testbed.routing.bird import access_subnets, config
from testbed.routing.daemon import find_bird
from tests.routing import fabrics

GOLDEN = Path(__file__).parent / "golden"
CASES = [
    ("hpn", "p0.s0.t0.0"),
    ("hpn", "p0.a1.0"),
    ("clos", "p0.s0.t0.1"),
    ("pods", "p0.a0.0"),
    ("pods", "c1.0"),
]


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


@pytest.mark.parametrize("fabric", [fabrics.hpn(), fabrics.clos(), fabrics.pods()], ids=["hpn", "clos", "pods"])
def test_both_ends_of_every_switch_link_name_each_other(fabric: Fabric) -> None:
    for link in fabric.links:
        if link.kind is LinkKind.ACCESS:
            continue
        for near, far in ((link.lower, link.upper), (link.upper, link.lower)):
            text = config(fabric, fabric.node(near.node))
            assert far.address is not None
            assert f'interface "{near.name}"' in text
            assert f"neighbor {far.address.split('/')[0]} as {fabric.node(far.node).asn};" in text


def test_only_tors_take_paths_with_their_own_asn() -> None:
    fabric = fabrics.pods()
    allowing = {node.role for node in fabric.switches if "allow local as" in config(fabric, node)}
    assert allowing == {Role.TOR}


def test_a_tor_serves_each_subnet_of_its_hosts_once() -> None:
    fabric = fabrics.hpn(hosts=3)
    assert access_subnets(fabric, fabric.node("p0.s1.t0.1")) == ("10.0.1.0/24",)
    assert access_subnets(fabric, fabric.node("p0.a0.0")) == ()
