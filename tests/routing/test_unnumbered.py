"""BGP unnumbered and BFD in configurations of switches: what is read, what the lab makes of it, what is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpn.testbed.fabric.load import load_fabric
from hpn.testbed.fabric.wired.config_words import words_of
from hpn.testbed.fabric.wired.configs import own_configs
from hpn.testbed.kernel.process import programs
from hpn.testbed.routing.daemons import config_problems
from hpn.testbed.routing.ecmp import port_sysctls
from hpn.testbed.routing.neighbours import bfd_ends, neighbours
from hpn.testbed.routing.own.notes import config_notes
from tests.fabric.own_network import edit
from tests.fabric.unnumbered_network import write


def test_links_have_no_address_and_neighbours_the_names_of_ports(tmp_path: Path) -> None:
    fabric = load_fabric(str(write(tmp_path)))
    link = fabric.link("leaf1:swp51")
    assert (link.lower.address, link.upper.address) == (None, None)
    assert [each.name for each in neighbours(fabric, fabric.node("leaf1"))] == ["swp51", "swp52"]
    config = own_configs(fabric)["leaf1"]
    assert (config.neighbours, config.daemons) == ({"swp51": "external", "swp52": "external"}, ("bfdd",))
    assert bfd_ends(fabric) == {
        port.label for link in fabric.links if link.is_routed for port in (link.lower, link.upper)
    }
    assert list(config_notes(fabric)) == []


def test_bfd_at_one_end_is_not_awaited(tmp_path: Path) -> None:
    path = write(tmp_path)
    for spine in ("spine1", "spine2"):
        edit(tmp_path, spine, " neighbor FABRIC bfd profile fabric", "!")
    assert bfd_ends(load_fabric(str(path))) == frozenset()


def test_only_ports_of_unnumbered_sessions_have_ipv6(tmp_path: Path) -> None:
    fabric = load_fabric(str(write(tmp_path)))
    enabled = {s.path for s in port_sysctls(fabric, fabric.node("leaf2")) if s.path.endswith("/disable_ipv6")}
    assert enabled == {f"net/ipv6/conf/{port}/disable_ipv6" for port in ("swp51", "swp52")}


@pytest.mark.parametrize(
    ("lines", "asn", "v6only", "bfd"),
    [
        ("neighbor p1 interface remote-as external", "external", False, False),
        ("neighbor p1 interface v6only remote-as 65002", 65002, True, False),
        ("neighbor p1 interface v6only peer-group F\n neighbor F remote-as internal", "internal", True, False),
        ("neighbor p1 interface\n neighbor p1 remote-as external\n neighbor p1 bfd 3 100 100", "external", False, True),
        ("neighbor F bfd\n neighbor p1 interface v6only\n neighbor p1 peer-group F", None, True, True),
        ("neighbor F remote-as 1\n neighbor p1 interface peer-group F\n neighbor p1 remote-as 2", 2, False, False),
    ],
)
def test_every_way_to_write_an_interface_is_read(lines: str, asn: object, v6only: bool, bfd: bool) -> None:
    found = words_of("frr.conf", f"router bgp 65001\n neighbor F peer-group\n {lines}\n")
    assert (found.neighbours, found.interfaces) == ({"p1": asn}, {"p1": v6only})
    assert ("p1" in found.bfd, found.daemons) == (bfd, ("bfdd",) if bfd else ())


@pytest.mark.parametrize(
    ("switch", "old", "new", "notes"),
    [
        ("leaf1", "interface peer-group", "interface v6only peer-group", []),
        (
            "spine1",
            " neighbor swp1 interface peer-group FABRIC\n",
            " neighbor 10.9.9.1 remote-as 65011\n",
            [
                "leaf1/frr.conf:26: leaf1 speaks BGP unnumbered with spine1, 172.16.0.1 at swp51, which does not",
                "leaf1 has BFD with spine1, 172.16.0.1 at swp51, which has none: it finds no failure",
                "spine1/frr.conf:19: spine1 has no neighbour leaf1, 172.16.0.0 at swp1: that link carries no routes",
                "spine1/frr.conf:26: spine1 has no link to neighbour 10.9.9.1",
            ],
        ),
        ("spine2", "neighbor swp1 ", "neighbor swp9 ", ["has no link to neighbour swp9"]),
        ("leaf1", "65011", "65020", ["leaf1/frr.conf:26: leaf1 awaits an ASN other than its own of spine1 at swp51"]),
        ("leaf2", "remote-as external", "remote-as internal", ["awaits ASN 65012 of spine1 at swp51, which has 65020"]),
        ("leaf3", "remote-as external", "remote-as 65021", ["awaits ASN 65021 of spine2 at swp52, which has 65020"]),
        ("leaf4", "neighbor FABRIC bfd profile fabric", "!", ["spine1 has BFD with leaf4 at swp4, which has none"]),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_told(tmp_path: Path, switch: str, old: str, new: str, notes: list[str]) -> None:
    path = write(tmp_path)
    edit(tmp_path, switch, old, new)
    found = list(config_notes(load_fabric(str(path))))
    assert bool(found) == bool(notes)
    for note in notes:
        assert any(note in each for each in found), found


def test_beside_a_switch_of_hpns_an_unnumbered_session_runs_over_its_addresses(tmp_path: Path) -> None:
    path = write(tmp_path, bfd=False)
    path.write_text(
        path.read_text().replace("spine1: {role: spine, config: spine1/frr.conf}", "spine1: {role: spine, asn: 65020}")
    )
    fabric = load_fabric(str(path))
    assert fabric.link("leaf1:swp51").lower.address is not None
    assert list(config_notes(fabric)) == []
    edit(tmp_path, "leaf1", "interface peer-group", "interface v6only peer-group")
    (note,) = config_notes(load_fabric(str(path)))
    assert "leaf1 speaks BGP unnumbered with spine1" in note


def test_frr_itself_takes_the_files(tmp_path: Path) -> None:
    if programs.find("vtysh") is None:
        pytest.skip("FRR's vtysh is not installed: apt install frr")
    assert config_problems(load_fabric(str(write(tmp_path)))) == []
