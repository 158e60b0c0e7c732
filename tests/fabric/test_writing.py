"""``hpn topology new``: the file has what was set, loads, and is not written when it would not."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hpn.cli import command_line
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.load import load_fabric, load_topology
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.fabric.writing import as_data, written
from hpn.testbed.files.document import Plain, parse
from hpn.testbed.files.one_line import one_line
from tests.fabric.as_wired import as_wired


def _new(*arguments: str) -> Result:
    return CliRunner().invoke(command_line, ["topology", "new", *arguments])


def test_the_file_has_the_preset_the_keys_and_what_they_mean(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    done = _new("--set", "hosts=4", "--set", "lacp.rate=slow", "--set", "lacp.port_id_offset=400", "--out", str(file))
    assert done.exit_code == 0, done.output
    assert done.output == f"{file}\nnext: hpn plan {file}\n"
    assert file.read_text().splitlines()[1:] == [
        f"preset: tiny  # by itself: {PRESETS['tiny'].summary}",
        "hosts: 4  # active hosts per segment",
        "lacp:",
        "  rate: slow  # what ToRs ask of hosts, and hosts of ToRs",
        "  port_id_offset: 400  # per ToR of a set: offset, 2 x offset, ...",
    ]
    spec = load_topology(str(file))
    assert (spec.hosts, spec.lacp.rate, spec.lacp.port_id_offset, spec.name) == (4, "slow", 400, "tiny")


def test_every_key_that_was_set_is_in_the_file_also_one_that_is_as_in_the_preset(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    same = ("--set", "rails=2", "--set", "lacp.rate=fast")
    assert _new(*same, "--set", "hosts=4", "--set", "bgp.bfd.interval_ms=100", "--out", str(file)).exit_code == 0
    keys = [line.partition("#")[0].strip() for line in file.read_text().splitlines()[1:]]
    assert keys == [
        *("preset: tiny", "rails: 2", "lacp:", "rate: fast", "hosts: 4"),
        *("bgp:", "bfd:", "interval_ms: 100"),
    ]


def test_every_preset_makes_a_file(tmp_path: Path) -> None:
    for name in ("tiny", "tiny-stacked", "tiny-dcn-plus", "tiny-rail-only", "tiny-fat-tree"):
        file = tmp_path / f"{name}.yaml"
        assert _new("--preset", name, "--out", str(file)).exit_code == 0
        assert load_fabric(str(file)).nodes


SETTINGS = {
    "nic_port_rate=100G": 100 * 10**9,
    "path_control.policy=off": "off",
    "soft_roce=no": False,
    'stack.version="no"': "no",
    'stack.version="1"': "1",
    'stack.version="a # b"': "a # b",
    "bgp.bfd={interval_ms: 50, multiplier: 4}": {"interval_ms": 50, "multiplier": 4},
    "queue_ms=1.5": 1.5,
    "ecn={kmin_bytes: 100000, kmax_bytes: 200000, pmax: 0.5}": None,
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_value_comes_back_as_it_was_said(tmp_path: Path, setting: str) -> None:
    preset = "tiny-stacked" if setting.startswith("stack") else "tiny"
    file = tmp_path / "mine.yaml"
    assert _new("--preset", preset, "--set", setting, "--out", str(file)).exit_code == 0
    found: object = load_topology(str(file)).model_dump()
    for key in setting.partition("=")[0].split("."):
        assert isinstance(found, dict)
        found = found[key]
    assert SETTINGS[setting] in (None, found)


REFUSED = {
    "hots=4": "unknown key 'hots'; did you mean hosts?",
    "hosts=0": "hosts is 0; write a whole number from 1 to 4096",
    "hosts": "write KEY=VALUE",
    "=4": "write KEY=VALUE",
    "hosts=4\nrails: 2": "write KEY=VALUE",
    "hosts=[": "not YAML",
    "hosts.a=1": "hosts is a mapping",
    "preset=small": "write --preset small",
    "cores=3": "k of a fat tree",
    "mtu=20000": "mtu is 20000",
    "switch_capacity=1G": "but a switch has",
    "a." * 5000 + "b=1": "no key lies so deep",
    "name=\udcff": "name",
    "pods=2}": "pods",
}


@pytest.mark.parametrize("setting", REFUSED, ids=[repr(each[:12]) for each in REFUSED])
def test_what_would_not_load_is_not_written(tmp_path: Path, setting: str) -> None:
    architecture = ("--set", "architecture=fat-tree") if setting.startswith("cores") else ()
    done = _new(*architecture, "--set", setting, "--out", str(tmp_path / "mine.yaml"))
    assert isinstance(done.exception, InputError)
    assert REFUSED[setting] in str(done.exception)
    assert "--set:1" not in str(done.exception)
    assert list(tmp_path.iterdir()) == []


def test_two_settings_of_one_key_are_refused() -> None:
    with pytest.raises(InputError, match="it is set twice"):
        written("tiny", ("hosts=2", "hosts=3"))
    with pytest.raises(InputError, match="set to a value already"):
        written("tiny", ("lacp=1", "lacp.rate=slow"))


def test_it_never_overwrites_unless_told(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("mine")
    done = _new("--out", str(file))
    assert "is there already" in str(done.exception)
    assert file.read_text() == "mine"
    assert _new("--out", str(file), "--force").exit_code == 0
    assert load_topology(str(file)).name == "tiny"


def test_an_unknown_preset_is_refused_with_what_is_near(tmp_path: Path) -> None:
    assert "did you mean tiny?" in str(_new("--preset", "tny", "--out", str(tmp_path / "x.yaml")).exception)


def test_the_next_command_takes_the_file_for_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert _new("--out", "my fabric").output == "my fabric\nnext: hpn plan './my fabric'\n"


@pytest.mark.parametrize(
    "value", ["no", "off", "null", "1", "1e5", ".inf", "a: b", "a #", "50 ms", "200G", "x ", "", "é"]
)
def test_text_stays_text_on_one_line(value: str) -> None:
    data: dict[str, Plain] = {"key": value, "list": [value, 1, None, True, {"a": value}]}
    text = "".join(f"{key}: {one_line(each)}\n" for key, each in data.items())
    assert parse(text, "x").data == data


@pytest.mark.parametrize("given", [{}, {"enabled": True}, {"policy": "steer-destinations"}, {"enabled": False}, None])
def test_path_control_of_a_wired_network_is_written_down(given: dict[str, Plain] | None) -> None:
    """An audit's drills had none: a section that says nothing but that it is there was no difference to the default."""
    plain = as_wired(build(load_topology("tiny"))).model_dump(mode="json", exclude_unset=True, exclude={"path_control"})
    spec = FabricSpec.model_validate({**plain, **({} if given is None else {"path_control": given})})
    data = as_data(spec)
    assert isinstance(data, dict)
    assert FabricSpec.model_validate(data).path_control == spec.path_control
