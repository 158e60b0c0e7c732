"""docs/architectures.md explains every key of a topology file, as the reader of such files has it."""

from __future__ import annotations

import re

from docs.site.models import every_key
from hpn.testbed.fabric.load import TopologyFile
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "architectures.md"


def test_the_page_has_every_key_of_a_topology_and_no_other() -> None:
    """Word for word; what the test prints is what belongs there."""
    section = PAGE.read_text().split("\n## Keys of a topology file\n")[1].split("\n## ")[0]
    found = "".join(f"{line}\n" for line in section.splitlines() if line.startswith("|"))
    assert found == every_key(TopologyFile), f"docs/architectures.md needs:\n{every_key(TopologyFile)}"


def test_the_table_has_the_keys_of_sections_too() -> None:
    keys = re.findall(r"^\| `([a-z0-9_.]+)` \|", every_key(TopologyFile), re.M)
    assert {"hosts", "lacp.rate", "bgp.bfd.interval_ms", "ecn.kmin_bytes", "path_control.policy"} <= set(keys)
    assert len(keys) == len(set(keys))


def test_the_readme_links_the_page() -> None:
    assert "(docs/architectures.md)" in (ROOT / "README.md").read_text()
