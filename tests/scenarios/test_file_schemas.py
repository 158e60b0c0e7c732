"""The JSON Schemas of topology and suite files: what ships is right by them, and what they refuse, hpn refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from click.testing import CliRunner, Result

from hpn.cli import command_line
from hpn.scenarios.batch.suite.json_schema import suite_schema
from hpn.scenarios.batch.suite.suite import suite_from
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.json_schema import topology_schema
from hpn.testbed.fabric.load import load_topology
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.files.document import parse, read
from hpn.testbed.files.json_schema import Schema
from hpn.testbed.vm.engines import ENGINES
from tests.docs.pages import PAGES, ROOT, Language, blocks

Data = dict[str, Any]


@cache
def validator(kind: str) -> jsonschema.Draft202012Validator:
    of_kind: dict[str, Callable[[], Schema]] = {"topology": topology_schema, "suite": lambda: suite_schema(ENGINES)}
    schema = json.loads(json.dumps(of_kind[kind]()))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def _wrong(kind: str, data: object) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in validator(kind).iter_errors(data)]


def _on_pages(*keys: str) -> list[tuple[str, Data]]:
    """Blocks of files with one of these keys at the top, and where they stand."""
    code = [each for page in PAGES for each in blocks(page) if each.language is Language.YAML]
    read = [(each.place, yaml.safe_load(each.text)) for each in code if "\n..." not in each.text]
    return [(place, data) for place, data in read if isinstance(data, dict) and data.keys() & set(keys)]


def test_every_topology_that_comes_with_hpn_is_right_by_it() -> None:
    for name, preset in PRESETS.items():
        whole = {"preset": name, **json.loads(preset.spec.model_dump_json())}
        assert _wrong("topology", whole) == [], name
    inline = [read(path).data.get("topology") for path in (ROOT / "scenarios").rglob("*.yaml")]
    written = [("library", each) for each in inline if isinstance(each, dict)]
    pages = [(place, data) for place, data in _on_pages("preset", "architecture") if "drill" not in data]
    assert len(written) > 10
    assert len(pages) > 0
    for place, data in (*written, *pages):
        assert _wrong("topology", data) == [], place


def test_every_suite_that_comes_with_hpn_is_right_by_it() -> None:
    files = [read(path) for path in ROOT.glob("examples/ci/*.yaml")]
    suites = [(file.name, file.data) for file in files if "suite" in file.data]
    assert len(suites) >= 3
    for place, data in (*suites, *_on_pages("suite")):
        assert _wrong("suite", data) == [], place


TOPOLOGY: Data = {"preset": "tiny", "hosts": 4, "nic_port_rate": "100G", "lacp": {"rate": "slow"}, "ecn": None}
SUITE: Data = {"suite": "good", "runs": [{"drills": ["link-down", "mine.yaml"], "engines": ["host", "uml"]}]}


def _set(*where: str | int, to: object) -> Callable[[Data], None]:
    def change(data: Data) -> None:
        place: Any = data
        for key in where[:-1]:
            place = place[key]
        place[where[-1]] = to

    return change


WRONG_TOPOLOGY = {
    "an unknown key": _set("hots", to=4),
    "an unknown key of a section": _set("lacp", "rat", to="slow"),
    "an unknown preset": _set("preset", to="tny"),
    "an unknown architecture": _set("architecture", to="hpm"),
    "too many hosts": _set("hosts", to=4097),
    "text for a number": _set("hosts", to="four"),
    "a rate that is none": _set("nic_port_rate", to="fast"),
    "a word that is none": _set("lacp", "rate", to="medium"),
    "a datapath that there is not": _set("lag", to="ovs"),
    "a policy that there is not": _set("path_control", to={"policy": "on"}),
    "a MAC address that is none": _set("lacp", "system_id", to="02:00"),
    "half of a section": _set("ecn", to={"kmin_bytes": 1000}),
    "a word for yes or no": _set("soft_roce", to="perhaps"),
    "a name with blanks": _set("name", to="My Fabric"),
}
WRONG_SUITE = {
    "an unknown key": _set("sweet", to="x"),
    "an unknown key of a block": _set("runs", 0, "repeat", to=2),
    "an unknown drill": _set("runs", 0, "drills", to=["link-dwn"]),
    "an unknown engine": _set("runs", 0, "engines", to=["vmware"]),
    "too many repeats": _set("runs", 0, "repeats", to=1001),
    "a block without drills": _set("runs", 0, to={"engines": ["host"]}),
    "no drills": _set("runs", 0, "drills", to=[]),
    "no runs": _set("runs", to=[]),
    "a name that is none": _set("suite", to="Good Suite"),
}


@pytest.mark.parametrize("what", WRONG_TOPOLOGY)
def test_what_is_wrong_in_a_topology_is_wrong_for_both(tmp_path: Path, what: str) -> None:
    data, file = json.loads(json.dumps(TOPOLOGY)), tmp_path / "mine.yaml"
    file.write_text(yaml.safe_dump(data))
    load_topology(str(file))
    assert _wrong("topology", data) == []
    WRONG_TOPOLOGY[what](data)
    file.write_text(yaml.safe_dump(data))
    assert _wrong("topology", read(file).data) != []
    with pytest.raises(InputError):
        load_topology(str(file))


@pytest.mark.parametrize("what", WRONG_SUITE)
def test_what_is_wrong_in_a_suite_is_wrong_for_both(tmp_path: Path, what: str) -> None:
    drill = (ROOT / "scenarios" / "library" / "link-flap.yaml").read_text()
    (tmp_path / "mine.yaml").write_text(drill)
    data = json.loads(json.dumps(SUITE))
    suite_from(parse(yaml.safe_dump(data), "good.yaml"), tmp_path, tuple(ENGINES))
    assert _wrong("suite", data) == []
    WRONG_SUITE[what](data)
    assert _wrong("suite", data) != []
    with pytest.raises(InputError):
        suite_from(parse(yaml.safe_dump(data), "bad.yaml"), tmp_path, tuple(ENGINES))


def test_the_word_off_is_a_policy_as_text_and_as_yaml_reads_it() -> None:
    for word in ("off", False):
        assert _wrong("topology", {"preset": "tiny", "path_control": {"policy": word}}) == []


@pytest.mark.parametrize("group", ["drill", "ci", "topology"])
def test_each_kind_has_its_schema_printed_or_written(tmp_path: Path, group: str) -> None:
    printed = CliRunner().invoke(command_line, [group, "schema"])
    assert printed.exit_code == 0
    file = tmp_path / "file.schema.json"
    assert CliRunner().invoke(command_line, [group, "schema", "--out", str(file)]).output == ""
    assert json.loads(file.read_text()) == json.loads(printed.output)


_NEW = {"drill": ("new", "mine", "--fault", "link-down", "--template", "job"), "topology": ("new",)}


def _new(group: str, *arguments: str) -> Result:
    return CliRunner().invoke(command_line, [group, *_NEW[group], *arguments])


@pytest.mark.parametrize("group", _NEW)
def test_a_new_file_names_the_schema_that_was_written_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("files").mkdir()
    for out in ("files/one.yaml", "files/two.yaml"):  # the second finds the schema there
        assert _new(group, "--out", out, "--schema", "hpn.schema.json").exit_code == 0
        first = Path(out).read_text().splitlines()[0]
        assert first == "# yaml-language-server: $schema=../hpn.schema.json"
        schema = json.loads((Path(out).parent / first.partition("$schema=")[2]).read_text())
        assert list(jsonschema.Draft202012Validator(schema).iter_errors(read(out).data)) == []


@pytest.mark.parametrize("group", _NEW)
def test_a_new_file_names_no_schema_unless_one_is_written(tmp_path: Path, group: str) -> None:
    file = tmp_path / "one.yaml"
    assert _new(group, "--out", str(file)).exit_code == 0
    assert "yaml-language-server" not in file.read_text()


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ("notes.txt", "choose another --schema, or say --force"),
        ("one.yaml", "is the file to be written itself"),
        ("my schema.json", "no blanks"),
        ("a\n#b.json", "no blanks"),
        ("no/such.json", "choose another --schema"),
    ],
)
def test_a_schema_that_cannot_be_there_is_refused_and_nothing_is_written(
    tmp_path: Path, schema: str, told: str
) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    done = _new("topology", "--out", str(tmp_path / "one.yaml"), "--schema", str(tmp_path / schema))
    assert told in str(done.exception)
    assert [each.name for each in tmp_path.iterdir()] == ["notes.txt"]
    assert (tmp_path / "notes.txt").read_text() == "mine"
