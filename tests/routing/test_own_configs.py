"""Switches with their own configuration: what is read of it, what is told before a start, what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpn.failover.faults import make, settled
from hpn.testbed.errors import InputError
from hpn.testbed.events import Event
from hpn.testbed.fabric.load import load_fabric
from hpn.testbed.fabric.wired.config_words import words_of
from hpn.testbed.fabric.wired.configs import own_configs
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.process import programs
from hpn.testbed.routing.daemons import config_problems, daemon_of, kinds_of
from hpn.testbed.routing.frr.daemon import find_frr
from hpn.testbed.routing.own.bird import OwnBird
from hpn.testbed.routing.own.frr import find_vtysh
from hpn.testbed.routing.own.notes import config_notes
from tests.fabric.own_network import edit, write


def test_asns_router_ids_addresses_and_neighbours_come_from_the_files(tmp_path: Path) -> None:
    fabric = load_fabric(str(write(tmp_path, birds=("leaf2",))))
    assert [(node.asn, node.router_id) for node in fabric.switches[:2]] == [
        (65001, "10.255.0.1"),
        (65002, "10.255.0.2"),
    ]
    assert fabric.link("leaf1:Ethernet48").upper.address == "100.64.0.1/31"
    configs = own_configs(fabric)
    assert configs["leaf1"].neighbours == {"100.64.0.1": 65100, "100.64.0.7": 65100}
    assert configs["leaf2"].sessions == {"100.64.0.3": "to_spine1", "100.64.0.9": "to_spine2"}
    assert {daemon_of(fabric, node).name for node in fabric.switches} == {"frr", "bird"}
    assert [kind.name for kind in kinds_of(fabric)] == ["bird", "frr"]
    assert list(config_notes(fabric)) == []


@pytest.mark.parametrize(
    ("switch", "old", "new", "note"),
    [
        ("leaf1", "neighbor 100.64.0.1 ", "neighbor 100.64.0.99 ", "leaf1/frr.conf:13: leaf1 has no neighbour spine1"),
        ("leaf1", "neighbor 100.64.0.1 ", "neighbor 100.64.0.99 ", ":19: leaf1 has no link to neighbour 100.64.0.99"),
        ("leaf3", "remote-as 65100", "remote-as 65101", "leaf3/frr.conf:19: leaf3 awaits ASN 65101 of spine1"),
        ("spine1", "ip address 100.64.0.1/31", "ip address 100.64.0.9/31", "leaf1:Ethernet48 at the other end"),
        ("leaf2", "64.0.3 as 65100", "64.0.3 as 65109", "leaf2/bird.conf:16: leaf2 awaits ASN 65109 of spine1"),
        ("spine2", "exit\n!\nrouter", "exit\n!\nrouter ospf\n!\nrouter", "not done: hpn runs BGP and static routes"),
        ("spine2", "  maximum-paths", "  advertise-all-vni\n  maximum-paths", "not done: EVPN needs VXLAN devices"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_file_and_line(tmp_path: Path, switch: str, old: str, new: str, note: str) -> None:
    path = write(tmp_path, birds=("leaf2",))
    if switch == "spine1":  # else the topology file's addresses count
        path.write_text(path.read_text().replace(", addresses: [100.64.0.0/31, 100.64.0.1/31]", ""))
    edit(tmp_path, switch, old, new)
    notes = list(config_notes(load_fabric(str(path))))
    assert any(note in each for each in notes), notes


def test_comments_and_peer_groups_are_read() -> None:
    text = "router bgp 65001\n neighbor F peer-group\n neighbor F remote-as 65100\n! neighbor 10.0.0.9 remote-as 1\n"
    found = words_of("x/frr.conf", text + " neighbor 10.0.0.1 peer-group F\n neighbor 10.0.0.2 remote-as external\n")
    assert found.neighbours == {"10.0.0.1": 65100, "10.0.0.2": "external"}
    bird = words_of(
        "bird.conf",
        "# neighbor 10.0.0.9 as 1;\nprotocol bgp 'a-b' {\n local as 65001;\n neighbor 10.0.0.1%'e0' as 2;\n}",
    )
    assert (bird.asn, bird.sessions) == (65001, {"10.0.0.1": "a-b"})


@pytest.mark.parametrize("program", ["frr", "bird"])
def test_the_programs_own_checks_name_the_users_file_and_line(tmp_path: Path, program: str) -> None:
    if programs.find("vtysh" if program == "frr" else "bird") is None:
        pytest.skip(f"{program} is not installed")
    path = write(tmp_path, birds=LEAVES if program == "bird" else ())
    assert config_problems(load_fabric(str(path))) == []
    old, new, line = ("router-id", "ruoter-id", 14) if program == "frr" else ("hold time", "hold tmie", 10)
    edit(tmp_path, "leaf1", old, new)
    (problem,) = config_problems(load_fabric(str(path)))
    assert problem.startswith(f"leaf1/{program}.conf:{line}: "), problem


LEAVES = ("leaf1", "leaf2", "leaf3")


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("../secret/frr.conf", "leads out of the topology file's folder; copy it there"),
        ("link/frr.conf", "leads out of the topology file's folder; copy it there"),
        ("leaf9/frr.conf", "No such file or directory; write a path from the topology file's folder"),
        ("leaf1", "is a folder without a host's configuration; write the path of a file"),
        ("big/frr.conf", "is no file of at most 1,000,000 bytes"),
        ("raw/frr.conf", "is no text; write the path of a configuration"),
        ("leaf1/startup.cfg", "hpn runs no 'startup.cfg'; write a path to one of frr.conf, bird.conf, or to"),
    ],
)
def test_a_file_that_cannot_be_is_refused_with_its_line(tmp_path: Path, given: str, problem: str) -> None:
    folder = tmp_path / "net"
    path = write(folder)
    for name, content in (("big", b"!" * 1_000_001), ("raw", b"\xff\xfe"), ("../secret", b"! mine")):
        (folder / name).mkdir()
        (folder / name / "frr.conf").write_bytes(content)
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "leaf1" / "startup.cfg").write_text("! other")
    path.write_text(path.read_text().replace("leaf1/frr.conf", given))
    with pytest.raises(InputError) as error:
        load_fabric(str(path))
    assert f"{path}:8: " in str(error.value)
    assert problem in str(error.value)


def test_a_drain_of_a_tor_with_its_own_configuration_is_refused(tmp_path: Path) -> None:
    fabric = load_fabric(str(write(tmp_path)))
    with pytest.raises(InputError, match=r"a drain would change leaf1/frr\.conf, which leaf1 runs; write tor-crash"):
        settled(make("tor-drain", "leaf1", {"grace_ns": 10**9}), fabric)


def test_another_frr_in_path_brings_its_own_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for program in ("sbin/zebra", "bin/vtysh"):
        (tmp_path / program).parent.mkdir()
        (tmp_path / program).touch(0o755)
    monkeypatch.setenv("PATH", f"/usr/bin:{tmp_path}/sbin")
    assert (find_frr("zebra"), find_vtysh()) == (f"{tmp_path}/sbin/zebra", f"{tmp_path}/bin/vtysh")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("protocol bgp a {{ {bfd}; neighbor 10.0.0.1 as 1; }}", {"bfd": True, "bfd on": True, "bfd off": False}),
        (
            "template bgp t {{\n {bfd};\n}}\nprotocol bgp a from t {{\n neighbor 10.0.0.1 as 1;\n}}",
            {"bfd graceful": True},
        ),
        (
            "template bgp t {{\n bfd;\n}}\nprotocol bgp a from t {{\n {bfd};\n neighbor 10.0.0.1 as 1;\n}}",
            {"bfd no": False},
        ),
        ("protocol bfd {{ {bfd}; }}\nprotocol bgp a {{\n neighbor 10.0.0.1 as 1;\n}}", {"accept ipv4": False}),
        ("protocol bgp a {{\n neighbor 10.0.0.1 as 1;\n {bfd}\n}}", {"bfd { min rx interval 100 ms; };": True}),
        (
            "template bgp t from t {{}}\nprotocol bgp a from t {{\n neighbor 10.0.0.1 as 1;\n# {bfd};\n}}",
            {"bfd": False},
        ),
    ],
)
def test_bfd_of_a_bird_conf_is_that_of_the_session_or_its_template(text: str, expected: dict[str, bool]) -> None:
    for words, has in expected.items():
        assert words_of("bird.conf", text.format(bfd=words)).bfd == frozenset({"10.0.0.1"} if has else ()), words


def test_only_bgp_protocols_of_a_bird_conf_are_sessions(tmp_path: Path) -> None:
    fabric, events = load_fabric(str(write(tmp_path, birds=("leaf2",)))), list[Event]()
    bird = OwnBird(fabric, fabric.node("leaf2"), NetNs("leaf2", -1), events.append)
    for name in ("device1", "kernel1", "to_spine1"):
        bird._heard(f"2026-11-28 13:00:00.000000 <TRACE> {name}: State changed to up")
    assert [(event.subject, event.what) for event in events] == [("Ethernet48", "established")]
    assert bird.established == {"Ethernet48"}


def test_an_address_that_is_none_is_left_to_frr_to_tell() -> None:
    """The notes of ``hpn plan`` compare addresses of both ends; one that was none ended it with a traceback."""
    text = "interface {}\n ip address {}\n"
    said = "".join(
        text.format(f"eth{number}", ip) for number, ip in enumerate(("nonsense", "10.0.0.999/31", "10.0.0.0/31"))
    )
    assert words_of("leaf1/frr.conf", said).addresses == {"eth2": "10.0.0.0/31"}
