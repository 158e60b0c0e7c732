"""FRR's configuration: golden files for its words, and bgpd itself, which leaves out what it does not understand."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Fabric, Role
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.fabric.spec import BgpSpec
from hpn.testbed.routing.bgp import BgpDaemon
from hpn.testbed.routing.daemons import DAEMONS
from hpn.testbed.routing.frr.config import HOST_ROUTES, bgpd, staticd
from hpn.testbed.routing.frr.daemon import FrrDaemon, command_now
from hpn.testbed.routing.neighbours import neighbours
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


@pytest.fixture
def frr() -> None:
    """Skip where there is none."""
    missing = DAEMONS["frr"].missing()
    if missing is not None:
        pytest.skip(missing)


def running(daemon: BgpDaemon) -> set[str]:
    """The lines that bgpd has taken."""
    assert isinstance(daemon, FrrDaemon)
    return set(map(str.strip, command_now(daemon.folder / "bgpd.vty", ["show running-config"]).splitlines()))


@pytest.mark.kernel
async def test_bgpd_takes_every_line(frr: None) -> None:
    lab = MiniLab(fabrics.pods(core_ports="hash", daemon="frr"))
    await lab.start()
    for node in lab.fabric.switches:
        given = set(map(str.strip, bgpd(lab.fabric, node).splitlines()))
        assert given - running(lab.bgp[node.name]) == set(), node.name


@pytest.mark.kernel
async def test_a_tor_that_drains_before_bgpd_listens_announces_no_host(frr: None) -> None:
    lab = MiniLab(fabrics.hpn(daemon="frr"))
    tor = lab.bgp["p0.s0.t0.0"]
    tor.start()
    tor.withdraw()
    tor.reset("up0")  # no session yet, and nobody to ask
    await lab.start()
    assert HOST_ROUTES not in running(tor)
    assert "redistribute static" in running(tor)
    tor.announce()
    assert HOST_ROUTES in running(tor)


def test_a_core_above_aggs_of_several_asns_uses_equal_routes_with_different_paths() -> None:
    """Seen in a lab: without multipath-relax a Core had one of two next hops to a NIC's subnet."""
    spec = PRESETS["tiny-same-rail"].spec
    fabric = build(spec.model_copy(update={"bgp": BgpSpec(daemon="frr")}))
    relaxed = {node.role for node in fabric.switches if "multipath-relax" in bgpd(fabric, node)}
    assert relaxed == {Role.CORE}
