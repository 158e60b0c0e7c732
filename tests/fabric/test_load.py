"""Topologies by name, file and inline mapping; presets have the sizes they promise; mistakes carry file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.inventory import inventory
from hpn.testbed.fabric.load import load_fabric, load_topology, topology_from
from hpn.testbed.fabric.model import LinkKind
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.files.check import Mistakes
from hpn.testbed.files.document import parse


def problems(path: Path, text: str) -> list[str]:
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        load_fabric(str(path))
    return [problem.removeprefix(f"{path}:") for problem in caught.value.problems]


def inline(text: str) -> FabricSpec | None:
    mistakes = Mistakes(parse(text, "drill.yaml"))
    spec = topology_from(mistakes, ("topology",), Path())
    if mistakes:
        raise mistakes.error()
    return spec


@pytest.mark.parametrize(
    ("name", "nodes", "access", "fabric", "gpus"),
    [
        ("tiny", 16, 16, 16, 8),
        ("tiny-spare", 18, 16, 16, 8),
        ("tiny-pods", 20, 8, 8, 4),
        ("tiny-stacked", 14, 16, 16, 8),
        ("tiny-dcn-plus", 20, 16, 32, 8),
        ("tiny-rail-only", 12, 8, 8, 8),
        ("small", 24, 32, 32, 16),
        ("medium", 164, 264, 120, 132),
        ("paper-64", 40, 128, 128, 64),  # aliyun/SimAI's generator for 64 GPUs: 16 ToRs, 16 Aggs
        ("segment-1rail", 146, 256, 8, 128),
        ("segment", 272, 2048, 960, 1024),
        ("pod", 2400, 30_720, 14_400, 15_360),  # paper section 4
        ("dcn-plus-pod", 80, 1024, 512, 512),
        ("dcn-plus", 2688, 32_768, 16_384, 16_384),
    ],
)
def test_a_preset_has_the_size_it_promises(name: str, nodes: int, access: int, fabric: int, gpus: int) -> None:
    built = build(PRESETS[name].spec)
    counts = inventory(built)
    assert len(built.nodes) == nodes
    assert (counts.link_count(LinkKind.ACCESS), counts.link_count(LinkKind.FABRIC)) == (access, fabric)
    assert counts.gpus == gpus


def test_medium_is_the_benchmark_size() -> None:
    built = build(PRESETS["medium"].spec)
    assert (len(built.nodes), len(built.links)) == (164, 384)


def test_every_preset_says_in_one_line_what_it_is_good_for() -> None:
    for name, preset in PRESETS.items():
        assert preset.name == name
        assert 20 < len(preset.summary) < 120


def test_a_preset_is_loaded_by_name() -> None:
    assert load_topology("tiny") is PRESETS["tiny"].spec
    with pytest.raises(InputError, match=r"no preset 'tny'; did you mean tiny\? \(a topology file ends in \.yaml\)"):
        load_topology("tny")


def test_a_file_is_named_after_itself_unless_it_says_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "My Net!.yaml"
    path.write_text("segments: 3\n")
    assert load_topology(str(path)) == FabricSpec(name="my-net", segments=3)
    path.write_text("name: other\n")
    assert load_topology(str(path)).name == "other"


def test_a_file_may_build_on_a_preset_and_change_single_keys_of_its_sections(tmp_path: Path) -> None:
    path = tmp_path / "net.yaml"
    path.write_text("preset: small\nbgp: {hold_s: 30}\nnic_port_rate: 100G\n")
    spec = load_topology(str(path))
    assert (spec.name, spec.hosts, spec.bgp.hold_s, spec.bgp.keepalive_s) == ("small", 4, 30, 3)
    assert spec.nic_port_rate == 100 * 10**9


def test_an_inline_mapping_is_a_preset_with_overrides() -> None:
    spec = inline("topology: {preset: tiny, architecture: dual-tor-clos, path_control: {enabled: false}}")
    assert spec is not None
    assert (spec.architecture, spec.path_control.enabled, spec.path_control.refresh_ms) == ("dual-tor-clos", False, 500)


def test_every_mistake_of_a_topology_file_is_said_at_once(tmp_path: Path) -> None:
    text = """preset: tny
architecture: hpnn
segments: two
hosts: 0
rails: true
lag: kernal
lacp: {rate: fsat, port_id_ofset: 300, system_id: 00:00}
nic_port_rate: fastest
queue_ms: .inf
bgp:
  hold_s: 9
  keepalive_s: 9999999
path_control: yes
prest: tiny
"""
    assert problems(tmp_path / "net.yaml", text) == [
        "1: preset is 'tny'; did you mean tiny?",
        "2: architecture is 'hpnn'; did you mean hpn?",
        "3: segments is 'two'; write a whole number from 1 to 256",
        "4: hosts is 0; write a whole number from 1 to 4096",
        "5: rails is true; write a whole number from 1 to 64",
        "6: lag is 'kernal'; write one of auto, kernel, nft (did you mean kernel?)",
        "7: lacp.rate is 'fsat'; write one of fast, slow (did you mean fast?)",
        "7: lacp.system_id is '00:00'; write text such as 02:00:00:00:00:01",
        "7: unknown key 'port_id_ofset' in lacp; did you mean port_id_offset?",
        "8: nic_port_rate: 'fastest' is not a rate; write one such as 200G",
        "9: queue_ms is '.inf'; write a number above 0 up to 1000",
        "12: bgp.keepalive_s is 9999999; write a whole number from 1 to 21845",
        "13: path_control is true; write a mapping (key: value)",
        "14: unknown key 'prest'; did you mean preset?",
    ]


def test_values_that_contradict_each_other_are_named_where_they_stand(tmp_path: Path) -> None:
    text = "preset: tiny\npods: 2\ncores: 0\naggs: 0\nbgp:\n  keepalive_s: 4\n  error_wait_min_s: 3\n"
    assert problems(tmp_path / "net.yaml", text) == [
        "3: cores is 0 but there are 2 pods to connect; write at least 1",
        "4: aggs is 0 but there are 2 segments to connect; write at least 1",
        "6: bgp.keepalive_s is 4, more than a third of hold_s; write 3 or less (RFC 4271 section 4.4)",
        "7: bgp.error_wait_min_s is above error_wait_max_s; write 2 or less",
    ]


def test_bfd_that_is_slower_than_the_hold_time_is_refused(tmp_path: Path) -> None:
    assert problems(tmp_path / "net.yaml", "preset: tiny\nbgp:\n  bfd: {interval_ms: 3000, multiplier: 3}\n") == [
        "3: bgp.bfd needs 9000 ms to find what BGP finds in hold_s, 9 s; write less"
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "preset: tiny\nstack: {version: '2'}\n",
            "2: stack means nothing to hpn: its ToRs are not stacked; leave it out,"
            " or write architecture: stacked-dual-tor",
        ),
        (
            "preset: tiny-stacked\nlacp:\n  tor_system_ids: {p0.s0.t0.0: '02:00:00:00:00:01'}\n",
            "3: lacp.tor_system_ids means nothing to stacked-dual-tor: a stack is one LACP speaker;"
            " write lacp.system_id, or architecture: dual-tor-clos",
        ),
        (
            "preset: tiny-rail-only\npods: 2\n",
            "2: pods means nothing to rail-only: a rail is one network with nothing above its Aggs;"
            " write more segments",
        ),
        (
            "preset: tiny\narchitecture: single-tor\nlacp: {port_id_offset: 400}\n",
            "3: lacp.port_id_offset means nothing to single-tor: a set has one ToR, so no port ID can be taken twice;"
            " leave it out",
        ),
        (
            "preset: tiny-same-rail\nhosts: 3\ncore_ports: preset\n",
            "3: core_ports is preset, which maps pods and not rails; leave it out, or write hash",
        ),
        (
            "preset: tiny-same-rail\ncores: 4\ncore_groups: 1\n",
            "3: core_groups is 1, but a Core has one Agg of each rail and port, as published; write 2",
        ),
        (
            "preset: tiny-same-rail\nplanes: 4\n",
            "2: planes means nothing to same-rail: all its ToRs are of one plane; leave it out,"
            " or write architecture: hpn",
        ),
        (
            "preset: tiny-four-planes\nhosts: 3\nnic_ports: 6\n",
            "3: nic_ports is 6, which 4 planes cannot share; write 8",
        ),
        (
            "preset: tiny-superpod\nnic_ports: 2\n",
            "2: nic_ports means nothing to single-tor: a NIC has one port, so there is nothing to select; leave it out",
        ),
        (
            "preset: tiny-dcn-plus\naggs: 3\n",
            "2: aggs is 3, which 2 core_groups cannot share; write 4",
        ),
        (
            "preset: tiny\ncore_groups: 2\n",
            "2: core_groups is 2 but cores is 0; leave it out, or write cores: 2",
        ),
        (
            "preset: tiny\nlacp: {down_delay_ms: 500}\n",
            "2: lacp.down_delay_ms is 500, but Linux bonding sends nothing through a port without carrier, whatever its"
            " downdelay; write lag: nft",
        ),
        (
            "preset: tiny\nlag: kernel\nlacp: {down_delay_ms: 500}\n",
            "3: lacp.down_delay_ms is 500, but Linux bonding sends nothing through a port without carrier, whatever its"
            " downdelay; write lag: nft",
        ),
        ("preset: tiny\nlag: ntf\n", "2: lag is 'ntf'; write one of auto, kernel, nft (did you mean nft?)"),
        ("preset: tiny\nlag: [nft]\n", "2: lag is a list; write one of auto, kernel, nft"),
        (
            "preset: tiny\npath_control: {policy: rebind}\n",
            "2: path_control.policy is rebind, but the NICs hash: no queue pair is bound to a port; write nic:"
            " {port_selection: queue-affinity}",
        ),
        (
            "preset: tiny\nnic: {port_selection: queue-affinity}\npath_control: {policy: both}\n",
            "3: path_control.policy is both, but packets of bound queue pairs pass the host's LAG by; write policy:"
            " rebind",
        ),
        (
            "preset: tiny\nnic: {port_selection: queue-affinity}\nsoft_roce: yes\n",
            "2: soft_roce is yes, but Soft-RoCE's queue pairs have no queue-affinity: the LAG hashes them; write"
            " port_selection: hash",
        ),
        (
            "preset: tiny\narchitecture: dcn-plus\nnic_ports: 1\nnic: {port_selection: queue-affinity}\n",
            "4: nic.port_selection is queue-affinity, but a NIC has one port: there is nothing to select; leave it out",
        ),
        (
            "preset: tiny\nplanes: 1\nnic: {port_selection: queue-affinity}\n",
            "3: nic.port_selection is queue-affinity, but a NIC has one port: there is nothing to select; leave it out",
        ),
        (
            "preset: tiny\nnic: {affinity: explicit}\n",
            "2: nic.affinity is explicit, but the NICs hash: no queue pair is bound to a port; write port_selection:"
            " queue-affinity",
        ),
        (
            "preset: tiny\nnic: {rebind_least_ms: 20}\n",
            "2: nic.rebind_least_ms is above rebind_most_ms; write 10 or less",
        ),
        (
            "preset: tiny\narchitecture: single-tor\nnic: {port_selection: queue-affinity}\n",
            "3: nic means nothing to single-tor: a NIC has one port, so there is nothing to select; leave it out",
        ),
        (
            "preset: tiny\nsegments: 1\naggs: 0\nuplinks: 2\n",
            "4: uplinks is 2 but aggs is 0; write at least 1 Agg, or leave uplinks out",
        ),
        (
            "preset: tiny\nsegments: 1\naggs: 0\ncores: 2\n",
            "4: cores is 2 but aggs is 0, so nothing reaches them; write at least 1 Agg",
        ),
    ],
)
def test_what_an_architecture_cannot_honour_is_refused_with_the_way_out(tmp_path: Path, text: str, found: str) -> None:
    assert problems(tmp_path / "net.yaml", text) == [found]


def test_a_lag_datapath_is_asked_what_it_cannot_honour_and_must_exist_for_scripts_too(tmp_path: Path) -> None:
    (tmp_path / "net.yaml").write_text("preset: tiny\nlag: nft\nlacp: {down_delay_ms: 500}\n")
    assert load_fabric(str(tmp_path / "net.yaml")).spec.lacp.down_delay_ms == 500
    with pytest.raises(InputError, match="lag is 'mine'; write one of auto, kernel, nft"):
        build(FabricSpec(lag="mine"))


def test_a_fabric_whose_switches_have_too_few_ports_is_refused_with_its_file(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path / "net.yaml", "preset: tiny\nhosts: 300\n")
    assert problem.startswith("1: a ")
    assert "51.2T" in problem


def test_a_topology_beside_a_linked_folder_is_the_one_that_the_link_leads_to(tmp_path: Path) -> None:
    (tmp_path / "theirs" / "drills").mkdir(parents=True)
    (tmp_path / "drills").symlink_to(tmp_path / "theirs" / "drills")
    (tmp_path / "theirs" / "fabric").write_text("preset: tiny\nhosts: 3\n")
    document = parse("drill: d\ntopology: ../fabric\n", "d.yaml")
    for other in ("", "preset: tiny\n"):
        if other:
            (tmp_path / "fabric").write_text(other)
        found = topology_from(Mistakes(document), ("topology",), tmp_path / "drills")
        assert found is not None
        assert found.hosts == 3


def test_an_inline_topology_that_is_neither_name_nor_mapping_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        inline("topology: [tiny]")
    assert caught.value.problems == (
        "drill.yaml:1: topology is a list; write a preset (such as tiny), a file, or {preset: tiny, ...}",
    )


@pytest.mark.parametrize("rate", ["9" * 400, "9" * 400 + "T", "1e300", "1001T", "0.5"])
def test_a_rate_beyond_all_sense_is_a_mistake_in_the_file(tmp_path: Path, rate: str) -> None:
    said = problems(tmp_path / "bad.yaml", f"preset: tiny\nuplink_rate: {rate}\n")
    assert said == ["2: uplink_rate: a rate must be at least 1 bit/s and at most 1000T"]


def test_an_unknown_bgp_daemon_is_told_with_its_line(tmp_path: Path) -> None:
    assert problems(tmp_path / "net.yaml", "preset: tiny\nbgp:\n  daemon: brid\n") == [
        "3: bgp.daemon is 'brid'; did you mean bird?"
    ]


def test_what_frr_cannot_carry_is_refused_with_its_line(tmp_path: Path) -> None:
    text = "preset: tiny-pods\nbgp:\n  daemon: frr\n  bfd: {}\n  connect_delay_s: 2\n"
    assert problems(tmp_path / "net.yaml", text) == [
        "3: FRR does not fill the tables of the Cores' preset ports; write core_ports: hash, or bgp: {daemon: bird}",
        "4: bgp.bfd runs beside BIRD alone here; leave it out, or write daemon: bird",
        "5: bgp.connect_delay_s means nothing to frr, whose waits are its own; leave it out",
    ]
    for fine in ("preset: tiny-pods\ncore_ports: hash", "preset: tiny-dcn-plus", "preset: tiny"):
        (tmp_path / "net.yaml").write_text(f"{fine}\nbgp: {{daemon: frr}}\n")
        assert load_topology(str(tmp_path / "net.yaml")).bgp.daemon == "frr"
