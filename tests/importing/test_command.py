"""``hpn topology import`` as a user types it: the file, what it prints, files that it refuses, and its speed."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hpn.cli import command_line
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.wired.wiring_spec import WiringSpec
from hpn.testbed.files.document import parse
from hpn.testbed.importing import sources
from hpn.testbed.importing.importer import Importer
from hpn.testbed.importing.importers import IMPORTERS
from hpn.testbed.importing.portnames import PortNames, linux_name
from hpn.testbed.importing.sources import read_sources
from tests.importing.test_containerlab import LAB


def _import(*arguments: str | Path) -> Result:
    return CliRunner().invoke(command_line, ["topology", "import", *map(str, arguments)])


def _refused(*arguments: str | Path) -> str:
    error = _import(*arguments).exception
    assert isinstance(error, InputError)
    return str(error)


def test_the_file_loads_and_what_was_taken_and_left_is_printed(tmp_path: Path) -> None:
    lab, out = tmp_path / "x.clab.yml", tmp_path / "t.yaml"
    lab.write_text(LAB)
    done = _import(lab, "--out", out)
    assert done.exit_code == 0, done.output
    said = done.output.splitlines()
    assert said[0] == (
        "taken: 2 tor, 1 agg, 2 host; 5 links; hosts with NICs named: 1; switches with AS numbers: 3; "
        "links with rates: 1; links with addresses: 2"
    )
    assert "left: nodes prometheus: no cable" in said
    assert (
        "renamed: 2 interfaces that Linux cannot have: spine1:ethernet-1/1 is ethernet-1-1, "
        "spine1:ethernet-1/2 is ethernet-1-2" in said
    )
    assert said[-2:] == [str(out), f"next: hpn plan {out}"]
    text = out.read_text()
    assert text.splitlines()[1:4] == [
        "name: mylab",
        "architecture: wired",
        "bgp: {asn: per-switch}  # switches have AS numbers of their own",
    ]
    wiring = WiringSpec.model_validate(parse(text, "t.yaml").data["wiring"], strict=True)
    assert list(wiring.nodes) == ["leaf1", "leaf2", "spine1", "gpu1", "gpu2"]


def test_json_has_all_that_was_left_and_renamed(tmp_path: Path) -> None:
    lab, out = tmp_path / "x.clab.yml", tmp_path / "t.yaml"
    lab.write_text(LAB)
    done = _import(lab, "--out", out, "--json")
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert said["file"] == str(out)
    assert said["taken"]["roles"] == {"tor": 2, "agg": 1, "host": 2}
    assert {"node": "spine1", "old": "ethernet-1/1", "new": "ethernet-1-1"} in said["renamed"]
    assert [each["names"] for each in said["left"] if each["what"] == "binds"] == [["gpu1"]]


def test_a_file_that_is_there_is_kept(tmp_path: Path) -> None:
    lab, out = tmp_path / "x.clab.yml", tmp_path / "t.yaml"
    lab.write_text(LAB)
    out.write_text("mine")
    assert _refused(lab, "--out", out) == f"{out} is there already; choose another --out, or say --force"
    assert out.read_text() == "mine"
    assert _import(lab, "--out", out, "--force").exit_code == 0


def test_a_wrong_file_leaves_nothing_behind(tmp_path: Path) -> None:
    lab, out = tmp_path / "x.csv", tmp_path / "t.yaml"
    lab.write_text("a\n")
    assert "x.csv:1: no single column for a_node" in _refused(lab, "--out", out)
    assert not out.exists()


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("x.txt", b"hello\n", "x.txt: no known format, or several; say which: --format containerlab, netlab"),
        ("x.csv", b"a\0b", "x.csv: a binary file (it holds NUL bytes); name a text file"),
        ("x.csv", b"a\n\xff", "x.csv:2: not UTF-8 text; save the file as UTF-8"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_in_one_line(
    tmp_path: Path, name: str, content: bytes, problem: str
) -> None:
    (tmp_path / name).write_bytes(content)
    assert problem in _refused(tmp_path / name, "--out", tmp_path / "t.yaml")


def test_files_that_are_missing_too_large_or_led_out_of_their_folder_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, outside = tmp_path / "in", tmp_path / "secret.csv"
    inside.mkdir()
    outside.write_text("x" * 100)
    (inside / "a.csv").symlink_to(outside)
    (inside / "b.csv").write_text("y" * 100)
    (inside / "c.csv").symlink_to("b.csv")
    assert read_sources([inside / "c.csv"])[0].text == "y" * 100
    monkeypatch.setattr(sources, "MOST_BYTES", 50)
    for path, problem in (
        (inside / "a.csv", "outside of its folder; name that file itself"),
        (inside / "b.csv", "is larger than any file of a network"),
        (inside / "none.csv", "no such file; check the path"),
        (inside, "Is a directory"),
    ):
        with pytest.raises(InputError, match=problem):
            read_sources([path])
    monkeypatch.setattr(sources, "MOST_BYTES", 1000)
    monkeypatch.setattr(sources, "MOST_BYTES_TOGETHER", 150)
    with pytest.raises(InputError, match="the files together exceed"):
        read_sources([inside / "b.csv", inside / "c.csv"])


def test_an_unknown_format_is_named_with_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a")
    found = _refused(tmp_path / "x.csv", "--format", "netbx", "--out", tmp_path / "t.yaml")
    assert found == "no format 'netbx'; did you mean netbox or netlab?"


def test_every_importer_says_what_it_reads_and_a_name_is_taken_once() -> None:
    assert all(importer.summary for importer in IMPORTERS.values())
    with pytest.raises(TypeError, match="there already"):
        IMPORTERS.add(next(iter(IMPORTERS.values())))
    with pytest.raises(TypeError, match="is no importer"):
        IMPORTERS.add("csv")  # type: ignore[arg-type]  # what a plug-in may do
    assert all(isinstance(each, Importer) for each in IMPORTERS.values())


@pytest.mark.parametrize(
    ("name", "new"),
    [
        ("Ethernet0", "Ethernet0"),
        ("Ethernet1/1", "Ethernet1-1"),
        ("1/1/c1/1", "p1-1-c1-1"),
        ("TwentyFiveGigE1/0/1", "TwentyFive1-0-1"),
        ("HundredGigE0/0/0/12", "Hundred0-0-0-12"),
        ("lo", "plo"),
        ("eth 0:1", "eth-0-1"),
        ("0" * 40, "p" + "0" * 14),
    ],
)
def test_an_interface_gets_a_name_that_linux_can_have(name: str, new: str) -> None:
    assert linux_name(name) == new
    assert len(new) <= 15


def test_two_ports_that_would_get_one_name_get_two() -> None:
    names = PortNames()
    given = [names.given("leaf1", port) for port in ("Ethernet1/1", "Ethernet1-1", "Ethernet1:1", "Ethernet1/1")]
    assert given == ["Ethernet1-1", "Ethernet1-1-2", "Ethernet1-1-3", "Ethernet1-1"]
    assert names.given("leaf2", "Ethernet1:1") == "Ethernet1-1"


def _cables(leaves: int, spines: int, hosts: int) -> Iterator[str]:
    yield "a_node,a_port,b_node,b_port,rate"
    for leaf in range(leaves):
        for spine in range(spines):
            yield f"leaf{leaf},Ethernet{spine * 8},spine{spine},Ethernet{leaf * 8},400G"
    for host in range(hosts):
        pair, number = host % (leaves // 2) * 2, spines + host // (leaves // 2)
        for plane in (0, 1):
            yield f"gpu{host},eth{plane},leaf{pair + plane},Ethernet{number * 8},200G"


def test_a_thousand_devices_are_imported_in_seconds(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("\n".join(_cables(64, 32, 904)))
    begun = time.monotonic()
    done = _import(
        *(tmp_path / "x.csv", "--out", tmp_path / "t.yaml", "--nic", "eth0+eth1"),
        *("--role", "leaf*=tor", "--role", "spine*=agg", "--role", "gpu*=host"),
    )
    assert done.exit_code == 0, done.output
    assert done.output.startswith("taken: 64 tor, 32 agg, 904 host; 3856 links")
    assert time.monotonic() - begun < 30
