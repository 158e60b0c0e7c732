"""A network with its own frr.conf and bird.conf in virtual time: it converges, survives a ToR, and shows a mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpn.results.run import folder
from hpn.testbed.kernel.process import programs
from tests.fabric.own_network import edit, write
from tests.product.hpn import Hpn, skip_without_virtual_time

pytestmark = [pytest.mark.guest, pytest.mark.timeout(400)]
_DRILL = """
drill: crash
summary: leaf1 dies and comes back
topology: own.yaml
timeline:
  healthy: 1 s
  faults:
    - {id: leaf, fault: tor-crash, target: leaf1, at: 1 s, for: 1 s}
  settle: 4 s
expect:
  - worst_outage: {flows: hit, edge: failure, below: 200 ms}
  - queue_pair_deaths: {at_most: 0}
  - state_restored: yes
"""


def _run(tmp_path: Path, code: int) -> str:
    skip_without_virtual_time()
    if programs.find("vtysh") is None:
        pytest.skip("FRR's vtysh is not installed: apt install frr")
    (tmp_path / "crash.yaml").write_text(_DRILL)
    return Hpn(tmp_path).run("drill", "run", "./crash.yaml", "--engine", "uml-virtual-time", "--out", "out", code=code)


def test_frr_and_bird_by_their_own_files_lose_and_regain_a_tor(tmp_path: Path) -> None:
    write(tmp_path, birds=("leaf1", "spine2"))  # BIRD in the ToR that boots: not all its protocols are sessions
    edit(tmp_path, "leaf3", " bgp router-id", " no bgp log-neighbor-changes\n bgp router-id")  # heard all the same
    _run(tmp_path, 0)
    run = folder.load(tmp_path / "out" / "crash")
    sessions = {(event.node, event.subject, event.what) for event in run.events() if event.kind == "bgp"}
    assert {("spine1", "swp1", "down"), ("spine1", "swp1", "established")} <= sessions
    assert ("spine2", "swp2", "established") in sessions
    assert {"frr", "bird"} <= run.manifest().versions.keys()


def test_a_session_that_cannot_stand_is_named(tmp_path: Path) -> None:
    write(tmp_path)
    edit(tmp_path, "spine2", "remote-as 65003", "remote-as 65033")
    said = _run(tmp_path, 3)
    assert "did not converge" in said
    assert "spine2:swp3: BGP session is not established" in said


def test_a_line_that_a_daemon_refuses_is_named(tmp_path: Path) -> None:
    """vtysh -C finds nothing wrong with it: FRR knows the rule of the remote ASN when it runs only."""
    write(tmp_path)
    group = " neighbor FABRIC peer-group\n neighbor FABRIC remote-as 100\n neighbor FABRIC local-as 100\n"
    edit(tmp_path, "spine2", " bgp router-id", f"{group} bgp router-id")
    lines = (tmp_path / "spine2" / "frr.conf").read_text().splitlines()
    said = _run(tmp_path, 3)
    where = f"spine2/frr.conf:{lines.index(' neighbor FABRIC local-as 100') + 1}"
    assert f"{where}: refused by bgpd, line:  neighbor FABRIC local-as 100" in said
