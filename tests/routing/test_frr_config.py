"""FRR's configuration: golden files for its words, and bgpd itself, which leaves out what it does not understand."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.fabric.model import Fabric, Role
from testbed.routing.daemons import DAEMONS
from testbed.routing.frr.config import bgpd, staticd
from testbed.routing.frr.daemon import FrrDaemon
from testbed.routing.frr.vty import command_now
from testbed.routing.neighbours import neighbours
from tests.routing import fabrics
from tests.routing.minilab import MiniLab

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize(("name", "node"), [("hpn", "p0.s0.t0.0"), ("pods", "p0.a0.0"), ("dcn", "p0.s0.t0.0")])
def test_configuration_is_as_written_down(name: str, node: str) -> None:
    fabric: Fabric = getattr(fabrics, name)()
    found = bgpd(fabric, fabric.node(node))
    assert found == (GOLDEN / f"frr-{name}-{node}.conf").read_text()


def test_only_tors_originate_and_take_paths_with_their_own_asn() -> None:
    fabric = fabrics.pods()
    for words in ("allowas-in", "redistribute"):
        assert {node.role for node in fabric.switches if words in bgpd(fabric, fabric.node(node.name))} == {Role.TOR}
    assert {node.role for node in fabric.switches if "ip route" in staticd(fabric, node)} == {Role.TOR}


def test_of_the_two_ends_of_a_link_one_connects() -> None:
    fabric = fabrics.pods()
    for node in fabric.switches:
        passive = {line.split()[1] for line in bgpd(fabric, node).splitlines() if line.endswith(" passive")}
        assert passive == {one.address for one in neighbours(fabric, node) if not one.above}


@pytest.mark.kernel
async def test_bgpd_takes_every_line() -> None:
    missing = DAEMONS["frr"].missing()
    if missing is not None:
        pytest.skip(missing)
    lab = MiniLab(fabrics.pods(core_ports="hash", daemon="frr"))
    await lab.start()
    for node in lab.fabric.switches:
        daemon = lab.bgp[node.name]
        assert isinstance(daemon, FrrDaemon)
        taken = command_now(daemon.folder / "bgpd.vty", ["show running-config"])
        refused = {line.strip() for line in bgpd(lab.fabric, node).splitlines()} - set(
            map(str.strip, taken.split("\n"))
        )
        assert refused == set(), node.name
