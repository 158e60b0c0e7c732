"""Suite files: what they ask for, and every mistake in them at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpn.scenarios.batch.suite.suite import Suite, load_suite, suite_from
from hpn.scenarios.drill import catalogue
from hpn.testbed.errors import InputError
from hpn.testbed.files.document import parse
from hpn.traffic.client.clients.torch import Torch

ENGINES = ("host", "qemu", "uml", "virtual-time")


def suite(text: str) -> Suite:
    return suite_from(parse(text, "ci.yaml"), Path("."), ENGINES)


def problems(text: str) -> tuple[str, ...]:
    with pytest.raises(InputError) as caught:
        suite(text)
    return caught.value.problems


def test_a_block_is_drills_by_engines_by_repeats() -> None:
    found = suite(
        "suite: nightly\n"
        "runs:\n"
        "  - {drills: [link-down, tor-crash], engines: [host, uml], repeats: 2, tries: 3}\n"
        "  - {drills: [link-flap]}\n"
    )
    assert (found.name, found.parallel, len(found.runs)) == ("nightly", None, 9)
    assert [run.title for run in found.runs[:4]] == [
        "link-down on host #1",
        "link-down on host #2",
        "link-down on uml #1",
        "link-down on uml #2",
    ]
    assert found.runs[-1].folder == "link-flap.host"
    assert len({run.folder for run in found.runs}) == 9
    assert [run.tries for run in found.runs] == [3] * 8 + [1]


def test_a_drill_file_is_found_beside_the_suite_and_known_by_its_own_name(tmp_path: Path) -> None:
    text = catalogue.find("link-down").read_text().replace("drill: link-down", "drill: mine")
    (tmp_path / "some.yaml").write_text(text)
    (tmp_path / "suite.yaml").write_text("suite: s\nruns: [{drills: [some.yaml]}]\n")
    (run,) = load_suite(tmp_path / "suite.yaml", ENGINES).runs
    assert (run.name, run.drill.source) == ("mine", str(tmp_path / "some.yaml"))


def test_every_drill_beside_one_of_them_is_told_to_stand_alone() -> None:
    assert problems("suite: s\nruns:\n  - drills: [link-down, all]\n") == (
        "ci.yaml:3: 'all' is every drill of the library and stands alone: [all]",
    )


def test_of_every_drill_those_are_left_out_and_named_whose_client_is_absent_but_not_one_that_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Torch, "missing", lambda _client, _site: "client torch: not here; install it")
    every = suite("suite: s\nruns: [{drills: [all]}]\n")
    assert "job-torch-link-down: client torch: not here; install it" in every.left_out
    ran = {run.name for run in every.runs}
    assert "link-down" in ran
    assert {"job-torch-link-down", "job-torch-link-down-steered"}.isdisjoint(ran)
    asked_for = suite("suite: s\nruns: [{drills: [job-torch-link-down]}]\n")
    assert ([run.name for run in asked_for.runs], asked_for.left_out) == (["job-torch-link-down"], ())


def test_of_every_drill_those_with_buffers_of_switches_run_where_the_kernel_has_them() -> None:
    here = suite("suite: s\nruns: [{drills: [all]}]\n")
    assert any("hpn drill run incast-pfc --engine uml-virtual-time" in each for each in here.left_out)
    assert "incast-pfc" not in {run.name for run in here.runs}
    text = "suite: s\nruns: [{drills: [all], engines: [uml-virtual-time]}]\n"
    there = suite_from(parse(text, "ci.yaml"), Path(), ("uml-virtual-time",))
    assert "incast-pfc" in {run.name for run in there.runs}


def test_all_mistakes_are_told_at_once_with_their_lines() -> None:
    assert problems(
        "suite: nightly\nruns:\n  - drills: [healthy-baselin]\n    engines: [qemo]\n  - drills: [none.yaml]\n"
    ) == (
        "ci.yaml:3: no drill 'healthy-baselin' in the library; did you mean healthy-baseline or healthy-baseline-clos?"
        " (a file ends in .yaml)",
        "ci.yaml:4: unknown engine 'qemo'; did you mean qemu?",
        "ci.yaml:5: none.yaml: no such file; check the path",
    )


def test_an_unknown_key_or_a_wrong_value_hides_no_other_mistake() -> None:
    """Of a suite with 'repeat:', a misspelt drill and a misspelt engine, the key alone was told."""
    assert problems(
        "suite: nightly\nparalel: 2\nruns:\n"
        "  - drills: [healthy-baselin]\n    engines: [qemo]\n    repeat: 5\n"
        "  - {drills: [none.yaml], repeats: 0}\n"
        "  - {drills: 3, engines: [um]}\n"
        "  - link-down\n"
    ) == (
        "ci.yaml:2: unknown key 'paralel'; did you mean parallel?",
        "ci.yaml:4: no drill 'healthy-baselin' in the library; did you mean healthy-baseline or healthy-baseline-clos?"
        " (a file ends in .yaml)",
        "ci.yaml:5: unknown engine 'qemo'; did you mean qemu?",
        "ci.yaml:6: unknown key 'repeat' in runs[0]; did you mean repeats?",
        "ci.yaml:7: none.yaml: no such file; check the path",
        "ci.yaml:7: runs[1].repeats is 0; write a whole number from 1 to 1000",
        "ci.yaml:8: runs[2].drills is 3; write a list",
        "ci.yaml:8: unknown engine 'um'; did you mean uml?",
        "ci.yaml:9: runs[3] is 'link-down'; write a mapping (key: value)",
    )


def test_a_mistake_in_a_topology_file_is_told_once_with_its_own_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was told at each drill, as 'drills/../topology.yaml:2'."""
    monkeypatch.chdir(tmp_path)
    Path("drills").mkdir()
    Path("topology.yaml").write_text("preset: tiny\nrals: 1\nhots: 2\n")
    for name in ("one", "two"):
        text = f"drill: {name}\nsummary: s\ntopology: ../topology.yaml\nexpect: [{{packets_losst: {{at_most: 0}}}}]\n"
        Path(f"drills/{name}.yaml").write_text(text)
    Path("suite.yaml").write_text("suite: s\nruns:\n- {drills: [drills/one.yaml]}\n- {drills: [drills/two.yaml]}\n")
    with pytest.raises(InputError) as caught:
        load_suite("suite.yaml", ENGINES)
    told = caught.value.problems
    assert [each for each in told if "topology" in each] == [
        "suite.yaml:3: drills/one.yaml:3: topology: topology.yaml:2: unknown key 'rals'; did you mean rails?",
        "suite.yaml:3: drills/one.yaml:3: topology: topology.yaml:3: unknown key 'hots'; did you mean hosts?",
    ]
    assert sum("packets_lost?" in each for each in told) == 2, "each drill's own"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("suite: s\n", "'runs' is missing"),
        ("suite: s\nruns: []\n", "runs is empty"),
        ("suite: s\nruns: [{drills: []}]\n", "drills is empty"),
        ("suite: s\nruns: [{drills: [link-down], repeats: 0}]\n", "write a whole number from 1 to 1000"),
        ("suite: s\nruns: [{drills: [link-down]}]\nparalel: 2\n", "did you mean parallel?"),
        ("suite: s\nruns: [{drills: [link-down]}, {drills: [link-down]}]\n", "asked for 2 times"),
    ],
)
def test_what_is_wrong_is_said(text: str, said: str) -> None:
    assert said in " ".join(problems(text))


def test_the_mistakes_of_a_drill_are_told_with_those_of_the_suite(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(
        "drill: bad\nsummary: s\ntopology: tiny\nexpect: [{packets_losst: {at_most: 0}}]\n"
    )
    (tmp_path / "s.yaml").write_text("suite: s\nruns: [{drills: [bad.yaml]}]\n")
    with pytest.raises(InputError, match="did you mean packets_lost"):
        load_suite(tmp_path / "s.yaml", ENGINES)
