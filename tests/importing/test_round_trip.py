"""A fabric exported and imported again is the same wiring, for fabrics drawn at random."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from hpn.cli import command_line
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.load import load_fabric
from hpn.testbed.fabric.model import Fabric, LinkKind
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.fabric.wired.wiring_spec import WiredLink, WiredNic, WiredNode, WiredStack
from hpn.testbed.importing.exporting import EXPORTERS
from hpn.testbed.importing.importer import Imported
from tests.importing.reading import read

NAMES = {"containerlab": "x.clab.yml", "csv": "x.csv"}


def _imported(fabric: Fabric, name: str) -> Imported:
    return read((NAMES[name], EXPORTERS[name](fabric)))


def _expected_links(fabric: Fabric) -> list[WiredLink]:
    return [
        WiredLink(
            ends=[link.lower.label, link.upper.label],
            rate=link.rate_bps * fabric.spec.scale,
            addresses=[link.lower.address or "", link.upper.address or ""] if link.is_routed else None,
        )
        for link in fabric.links
    ]


def _expected_nodes(fabric: Fabric, *, with_all: bool) -> Mapping[str, WiredNode]:
    """The nodes; a CSV of cables has neither AS numbers nor spare hosts."""
    per_switch = fabric.spec.bgp.asn == "per-switch"
    return {
        node.name: WiredNode(
            role=node.role.value,
            spare=node.spare and with_all,
            asn=node.asn if with_all and per_switch and node.is_switch else None,
            nics={
                nic.lag: WiredNic(ports=[link.lower.name for link in nic.links]) for nic in fabric.nics_of(node.name)
            },
        )
        for node in fabric.nodes
    }


def _check(fabric: Fabric, name: str) -> None:
    result = _imported(fabric, name)
    assert result.wiring.links == _expected_links(fabric)
    assert dict(result.wiring.nodes) == _expected_nodes(fabric, with_all=name == "containerlab")
    peers = [link for link in fabric.links if link.kind is LinkKind.PEER]
    stacks = [fabric.stack_of[link.upper.node] for link in peers]
    assert result.wiring.stacks == [WiredStack(primary=s.primary, secondary=s.secondary) for s in stacks]
    assert result.renamed == ()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("preset", [name for name in PRESETS if name.startswith("tiny") and name != "tiny-spare"])
def test_a_preset_comes_back_as_it_went(preset: str, name: str) -> None:
    _check(build(PRESETS[preset].spec), name)


def test_the_command_writes_what_import_reads(tmp_path: Path) -> None:
    lab, back = tmp_path / "tiny.clab.yml", tmp_path / "back.yaml"
    for arguments in (("export", "tiny", "--format", "containerlab", "--out", lab), ("import", lab, "--out", back)):
        done = CliRunner().invoke(command_line, ["topology", *map(str, arguments)])
        assert done.exit_code == 0, done.output
    tiny, again = build(PRESETS["tiny"].spec), load_fabric(str(back))
    assert [(link.lower.label, link.upper.label) for link in again.links] == [
        (link.lower.label, link.upper.label) for link in tiny.links
    ]
    assert [node.name for node in again.nodes] == [node.name for node in tiny.nodes]
    assert [nic.lag for nic in again.nics] == [nic.lag for nic in tiny.nics]


@given(
    st.builds(
        FabricSpec,
        architecture=st.sampled_from(["hpn", "dual-tor-clos", "single-tor"]),
        segments=st.integers(1, 3),
        hosts=st.integers(1, 4),
        spare_hosts=st.integers(0, 1),
        rails=st.integers(1, 3),
        aggs=st.sampled_from([2, 4]),
        uplinks=st.integers(1, 2),
        uplink_rate=st.sampled_from([100 * 10**9, 800 * 10**9]),
        bgp=st.sampled_from([{"asn": "per-tier"}, {"asn": "per-switch"}]),
    ),
    st.sampled_from(sorted(NAMES)),
)
@settings(max_examples=60, deadline=None)
def test_a_fabric_drawn_at_random_comes_back_as_it_went(spec: FabricSpec, name: str) -> None:
    _check(build(spec), name)
