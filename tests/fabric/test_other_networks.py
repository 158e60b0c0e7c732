"""Networks of others, counted: GPUs, switches, links and ports as published, and what keeps them apart."""

from __future__ import annotations

from itertools import combinations

import pytest

from hpn.scenarios.paper.topology_claims import PAPER, Size
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.exporting import topology_text
from hpn.testbed.fabric.inventory import Inventory, inventory
from hpn.testbed.fabric.load import topology_in
from hpn.testbed.fabric.model import Fabric, LinkKind, Role
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.fabric.rules import contradictions
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.files.document import parse

_G = 10**9


def _counted(preset: str, **changes: object) -> Inventory:
    return inventory(build(FabricSpec.model_validate({**PRESETS[preset].spec.model_dump(), **changes})))


def _above(found: Inventory) -> int:
    return found.link_count(LinkKind.FABRIC) + found.link_count(LinkKind.CORE)


def test_eight_planes_of_two_layers_are_deepseeks_table() -> None:
    """arXiv 2505.09343, table 3, row MPFT: switches of 64 ports of 400G; row FT2 is one of the planes."""
    found = _counted("deepseek-planes")
    assert Size(found.gpus, found.tors + found.aggs, _above(found)) == PAPER["MPFT"]
    assert {(b.down_ports + b.up_ports, b.used_bps) for b in found.budgets} == {(64, 64 * 400 * _G)}
    one = _counted("deepseek-planes", rails=1)
    assert Size(one.gpus, one.tors + one.aggs, _above(one)) == PAPER["FT2"]


@pytest.mark.parametrize(
    ("units", "leaves", "spines", "cables"), [(2, 16, 8, 512), (4, 32, 16, 1024), (8, 64, 32, 2048)]
)
def test_a_superpod_of_two_tiers_is_nvidias_table(units: int, leaves: int, spines: int, cables: int) -> None:
    """DGX SuperPOD reference architecture, B200: its table of scalable units, without core tier."""
    found = _counted("superpod", segments=units, aggs=4 * units, uplinks=32 // (4 * units))
    assert (found.hosts, found.gpus) == (32 * units, 256 * units)
    assert (found.tors, found.aggs, found.cores) == (leaves, spines, 0)
    assert found.link_count(LinkKind.ACCESS) == found.link_count(LinkKind.FABRIC) == cables
    assert {b.used_bps for b in found.budgets} == {64 * 400 * _G}


@pytest.mark.parametrize(("units", "leaves", "cores", "cables"), [(16, 128, 64, 4096), (32, 256, 128, 8192)])
def test_a_superpod_of_three_tiers_is_nvidias_table(units: int, leaves: int, cores: int, cables: int) -> None:
    """The same table: as many spines as leaves, half as many cores."""
    found = _counted("superpod-16", pods=units // 4, cores=cores, core_groups=units // 8)
    assert (found.hosts, found.gpus) == (32 * units, 256 * units)
    assert (found.tors, found.aggs, found.cores) == (leaves, leaves, cores)
    assert {found.link_count(kind) for kind in (LinkKind.ACCESS, LinkKind.FABRIC, LinkKind.CORE)} == {cables}
    assert {(b.down_ports + b.up_ports, b.used_bps) for b in found.budgets} == {(64, 64 * 400 * _G)}


def test_spectrum_x_has_the_counts_of_the_first_line_that_simai_writes() -> None:
    """``gen_Topo_Template.py -topo Spectrum-X`` (aliyun/SimAI at cef83f9d): '4736 8 512 128 12288 H100'.

    That is nodes with an NVLink switch a server, GPUs a server, NVLink switches, other switches, and links with one
    from each GPU to its NVLink switch.
    """
    found = _counted("spectrum-x")
    assert found.gpus + found.hosts + found.tors + found.aggs == 4736
    assert (found.gpus // found.hosts, found.hosts, found.tors + found.aggs) == (8, 512, 128)
    assert found.gpus + found.link_count(LinkKind.ACCESS) + _above(found) == 12_288


def test_megascale_has_64_hosts_below_eight_tors_and_switches_of_64_ports_one_to_one() -> None:
    """arXiv 2402.15627, section 3.6. A ToR's 32 ports down carry two NICs of 200G each, which is 64 links."""
    fabric = build(PRESETS["megascale"].spec)
    found = inventory(fabric)
    assert found.gpus > 10_000
    tor, agg, core = found.budgets
    assert (tor.down_ports, tor.down_bps, tor.up_ports) == (64, 32 * 400 * _G, 32)
    assert (agg.down_ports, agg.up_ports, core.down_ports) == (32, 32, 64)
    assert tor.oversubscription == agg.oversubscription == 1
    assert len({fabric.nics_of("p0.s0.h0")[rail].links[0].upper.node for rail in range(8)}) == 8


def test_meta_24k_is_what_llama_3s_paper_says() -> None:
    """arXiv 2407.21783, section 3.3.1: racks of 16 GPUs, 192 a pod, 8 pods, full bisection in a pod, 1:7 above."""
    found = _counted("meta-24k")
    assert (found.gpus, found.hosts, found.tors) == (24_576, 3072, 8 * 192)
    tor, agg, _ = found.budgets
    assert (tor.down_ports, tor.oversubscription) == (16, 1)
    assert agg.oversubscription == pytest.approx(7, abs=0.15)


def test_fire_flyer_is_two_zones_of_800_ports() -> None:
    """arXiv 2408.14158: two fat trees of two layers of 40-port switches; a few links between them.

    The switches are our count, 2 x (40 + 20) and 2 that join the zones: the paper's was not at hand.
    """
    found = _counted("fire-flyer")
    assert (found.gpus, found.tors + found.aggs + found.cores) == (2 * 800, 122)
    tor, agg, _ = found.budgets
    assert (tor.down_ports, tor.up_ports, agg.down_ports, agg.up_ports) == (20, 20, 40, 1)
    assert found.link_count(LinkKind.CORE) == 40 < found.link_count(LinkKind.FABRIC) // 10


def test_one_rail_of_an_astral_pod_fills_its_switches_one_to_one() -> None:
    """Astral, SIGCOMM 2025: 64 blocks of 1,024 GPUs a pod, NICs of 2 x 200G to two ToRs, equal bandwidth per tier.

    Switches of 128 ports of 400G then force Aggs of one port of the NICs: those of both would have no port up.
    """
    spec = FabricSpec(architecture="same-rail", segments=64, hosts=128, aggs=64, cores=4096, core_groups=64)
    found = inventory(build(spec))
    assert 8 * found.gpus == 65_536
    tor, agg, _ = found.budgets
    assert (tor.down_ports, tor.up_ports, agg.down_ports, agg.up_ports) == (128, 64, 64, 64)
    assert tor.used_bps == agg.used_bps == 128 * 400 * _G


def test_a_core_of_eight_astral_pods_has_one_agg_of_each_pod_rail_and_port() -> None:
    spec = FabricSpec(architecture="same-rail", pods=8, segments=1, hosts=1, rails=8, aggs=2, cores=4, core_groups=2)
    fabric = build(spec)
    for core in (node for node in fabric.nodes if node.role is Role.CORE):
        below = [fabric.node(link.lower.node) for link in fabric.links_of(core.name)]
        assert len(below) == 128
        assert len({agg.asn for agg in below}) == 128, "a group of Aggs each, with an ASN of its own"


def _tors_above(fabric: Fabric, nic: str) -> list[str]:
    return [link.upper.node for link in fabric.nic(nic).links]


def _aggs_of(fabric: Fabric, tor: str) -> set[str]:
    return {link.upper.node for link in fabric.links_of(tor) if link.kind is LinkKind.FABRIC}


def test_the_two_tors_of_a_nic_and_two_rails_have_no_agg_in_common_where_aggs_are_of_one_rail() -> None:
    fabric = build(PRESETS["tiny-same-rail"].spec)
    aggs = [_aggs_of(fabric, tor) for rail in (0, 1) for tor in _tors_above(fabric, f"p0.s0.h0.r{rail}")]
    assert all(not one & other for one, other in combinations(aggs, 2))
    assert _aggs_of(fabric, "p0.s0.t0.1") == _aggs_of(fabric, "p0.s1.t0.1") == {"p0.r0.a2", "p0.r0.a3"}


def test_all_nics_of_a_rack_hang_on_one_tor_where_there_is_one() -> None:
    fabric = build(PRESETS["tiny-spine-leaf"].spec)
    for segment in range(3):
        assert {link.upper.node for nic in fabric.nics if f".s{segment}." in nic.name for link in nic.links} == {
            f"p0.s{segment}.t0.0"
        }


@pytest.mark.parametrize(
    ("change", "keys"),
    [
        ({"cores": 0, "core_groups": 1}, ["cores"]),
        ({"aggs": 0, "segments": 1, "cores": 1, "core_groups": 1}, ["aggs", "cores"]),
        ({"core_ports": "preset"}, ["core_ports"]),
        ({"core_groups": 1}, ["core_groups"]),
        ({"planes": 4}, ["planes"]),
        ({"nic_ports": 1, "core_groups": 1}, []),
    ],
)
def test_each_number_that_makes_no_same_rail_network_is_named(change: dict[str, object], keys: list[str]) -> None:
    spec = FabricSpec.model_validate({**PRESETS["tiny-same-rail"].spec.model_dump(), **change})
    assert sorted({str(where[0]) for where, _ in contradictions(spec)}) == keys


@pytest.mark.parametrize("preset", ["tiny-same-rail", "tiny-zones", "tiny-rail-only", "tiny-megascale", "tiny-pods"])
def test_only_aggs_that_cores_alone_join_have_asns_apart_also_from_a_file(preset: str) -> None:
    fabric = build(PRESETS[preset].spec)
    again = build(topology_in(parse(topology_text(fabric), "mine.yaml"), "mine"))
    asns = {node.name: node.asn for node in fabric.switches if node.role is Role.AGG}
    assert {node.name: node.asn for node in again.switches if node.role is Role.AGG} == asns
    assert any(asn is not None and asn > 65_535 for asn in asns.values()) == (preset == "tiny-same-rail")
