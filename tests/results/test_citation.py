"""``hpn cite``: BibTeX and CSL-JSON of hpn, what made a run in its note, and CITATION.cff that says the same."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from hpn import cli
from hpn.results.export.citation import AUTHORS
from hpn.results.judge.verdict import decide
from hpn.results.run.folder import RunFolder, create
from hpn.testbed.errors import InputError
from tests.results.hostile import NASTY
from tests.results.sample import MANIFEST
from tests.results.whole import whole_run

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
TITLE = f"hpn: {PROJECT['description']}"


def cite(*arguments: str | Path) -> str:
    ended = CliRunner().invoke(cli.command_line, ["cite", *map(str, arguments)])
    assert ended.exit_code == 0, ended.output
    return ended.stdout


def run(folder: Path, **changes: object) -> Path:
    made = create(folder)
    manifest = replace(MANIFEST, commit="0123abc", digests={"drill": "feed0123"})
    made.write_manifest(replace(manifest, **changes))  # type: ignore[arg-type]  # a test names fields
    return made.path


def test_the_file_says_of_hpn_what_the_project_says() -> None:
    said = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert (said["cff-version"], said["type"]) == ("1.2.0", "software")
    assert (said["title"], said["version"]) == (TITLE, PROJECT["version"])
    assert said["license"] == PROJECT["license"].split(" AND ")[0]
    assert said["authors"] == [{"name": AUTHORS}]
    assert tomllib.loads((ROOT / "REUSE.toml").read_text())["annotations"][0]["SPDX-FileCopyrightText"] == AUTHORS


def test_hpn_is_cited_as_the_file_says() -> None:
    assert cite().splitlines() == [
        "@software{hpn,",
        f"  author = {{{{{AUTHORS}}}}},",
        f"  title = {{{{{TITLE}}}}},",
        f"  version = {{{PROJECT['version']}}},",
        f"  license = {{{PROJECT['license']}}},",
        "}",
    ]
    (item,) = json.loads(cite("--json"))
    assert (item["type"], item["title"], item["version"]) == ("software", TITLE, PROJECT["version"])


def test_a_run_is_cited_with_what_made_it(tmp_path: Path) -> None:
    """Its version of hpn, not the one that is installed."""
    folder = run(tmp_path / "run", versions={"hpn": "0.0.7"})
    (item,) = json.loads(cite(folder, "--json"))
    assert item["version"] == "0.0.7"
    assert item["note"] == (
        "run of link-down on tiny by hpn 0.0.7 (commit 0123abc), engine host, kernel 6.18.0, drill digest feed0123"
    )
    assert item["issued"] == {"date-parts": [[2025]]}
    assert {f"  note = {{{item['note']}}},", "  year = {2025},"} <= set(cite(folder).splitlines())


def test_repeats_are_cited_together_with_the_phases_that_make_them_again(tmp_path: Path) -> None:
    for phase in (1, 2, 3, 7):
        made = create(run(tmp_path / "of" / f"link-down-{phase}", phase=phase, repeat=phase).parent / f"other-{phase}")
        made.write_manifest(replace(MANIFEST, phase=phase))
        for each in (made, RunFolder(tmp_path / "of" / f"link-down-{phase}")):
            each.write_verdict(decide([]))
    (item,) = json.loads(cite(tmp_path / "of", "--json"))
    assert item["note"].count(", phases 1 to 3, 7") == 2
    assert item["note"].startswith("4 runs of link-down on tiny by hpn ")


def test_two_experiments_are_told_apart_by_digest_and_by_the_keys_that_differ(tmp_path: Path) -> None:
    for name, hold_s in (("A", 9), ("B", 30)):
        made = whole_run(tmp_path / name)
        fabric = made.fabric()
        spec = fabric.spec.model_copy(update={"bgp": fabric.spec.bgp.model_copy(update={"hold_s": hold_s})})
        made.write_fabric(replace(fabric, spec=spec))
        made.write_drill(replace(made.drill(), job={}))
        made.write_manifest(replace(made.manifest(), digests={}))
    (item,) = json.loads(cite(tmp_path / "A", tmp_path / "B", "--json"))
    one, other = item["note"].split("; ")
    assert one.endswith("(bgp.hold_s 9)")
    assert other.endswith("(bgp.hold_s 30)")
    assert "run of link-down on tiny by hpn " in one
    assert len({*re.findall("experiment digest ([0-9a-f]{16})", item["note"])}) == 2


def test_what_a_run_does_not_say_is_unknown(tmp_path: Path) -> None:
    (item,) = json.loads(cite(run(tmp_path / "run", commit="", versions={}, digests={}), "--json"))
    assert "hpn unknown (commit unknown)" in item["note"]
    assert item["version"] == PROJECT["version"]


def test_runs_of_several_versions_are_all_told(tmp_path: Path) -> None:
    folders = [run(tmp_path / version, versions={"hpn": version}) for version in ("2", "1")]
    (item,) = json.loads(cite(*folders, "--json"))
    assert item["version"] == "1, 2"
    assert item["note"].count("; run of ") == 1


@pytest.mark.parametrize("name", [NASTY, "}, note = {x", "a\\", "50%_of $x & #1 ~ ^", "{" * 9])
def test_no_name_leaves_its_field(tmp_path: Path, name: str) -> None:
    said = cite(run(tmp_path / "run", drill=name, kernel=name, commit=name))
    assert len(said.splitlines()) == 8
    assert said.count("{") == said.count("}")
    note = said.splitlines()[6]
    assert re.fullmatch(r"  note = \{(?:[^{}]|\{\})*\},", note)
    assert re.search(r"(?<!\\)[#$%&_~^]", note) is None


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    ended = CliRunner().invoke(cli.command_line, ["cite", str(tmp_path)])
    assert isinstance(ended.exception, InputError)
