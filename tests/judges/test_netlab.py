"""Netlab itself transforms a network, and the import is the network that was written."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.importing.reading import nics, read, roles

TOPOLOGY = """\
name: mine
provider: clab
defaults.device: frr
module: [bgp, lag]
groups:
  leaf: {members: [l1, l2]}
  spine: {members: [s1, s2]}
nodes:
  l1: {bgp.as: 65001}
  l2: {bgp.as: 65002}
  s1: {bgp.as: 65101}
  s2: {bgp.as: 65102}
  h1: {device: linux, module: [lag]}
  h2: {device: linux, module: [lag]}
links:
- l1-s1
- l1-s2
- l2-s1
- {l2: , s2: , bandwidth: 400000000}
- lag.members: [h1-l1, h1-l1]
- lag.members: [h2-l2, h2-l2]
"""


def test_what_netlab_transforms_is_the_network_that_was_written(tmp_path: Path) -> None:
    netlab = shutil.which("netlab")
    if netlab is None:
        pytest.skip("no netlab; pip install networklab, in an environment of its own, and add its bin to PATH")
    (tmp_path / "topology.yml").write_text(TOPOLOGY)
    made = tmp_path / "made.json"
    subprocess.run([netlab, "create", "-o", f"json={made}", "topology.yml"], cwd=tmp_path, check=True)
    result = read((made.name, made.read_text()))
    assert roles(result) == {"l1": "tor", "l2": "tor", "s1": "agg", "s2": "agg", "h1": "host", "h2": "host"}
    assert nics(result) == {"h1": {"bond1": ["eth1", "eth2"]}, "h2": {"bond1": ["eth1", "eth2"]}}
    assert [link.rate for link in result.wiring.links if link.rate] == [400 * 10**9]
    assert len(result.wiring.links) == 8
    assert {node.asn for node in result.wiring.nodes.values()} == {65001, 65002, 65101, 65102, None}
