"""New drill files: every template with every fault loads, or says why there is no such drill."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from hpn.commands.writing import drill_new, drill_schema_
from hpn.failover.faults import FAULTS, parameters
from hpn.scenarios.drill import catalogue, writing
from hpn.scenarios.drill.load import drill_from, load_drill
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.drill.templates import TEMPLATES
from hpn.scenarios.drill.writing import DrillRequest, written
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.testbed.files.document import parse

_NO_DRILL = {(template, "host-replaced") for template in ("job", "training", "client")}
"""A job and a client have no replacement flows; the refusal says what to write."""


def _loaded(wish: DrillRequest) -> Drill:
    return drill_from(parse(written(wish), "new.yaml"), Path())


@pytest.mark.parametrize("template", [each.name for each in TEMPLATES.values() if each.breaks])
def test_every_template_with_every_fault_loads(template: str) -> None:
    for fault in FAULTS:
        wish = DrillRequest(template, fault)
        if (template, fault) in _NO_DRILL:
            with pytest.raises(InputError, match="write fault: host-down"):
                written(wish)
            continue
        text = written(wish)  # which the loader has taken
        assert f"\ndrill: {fault}-{template}\n" in text
        assert f" fault: {fault}, " in text
        assert "  - state_restored: yes\n" in text
        assert text.count("\n  - ") >= 3


@pytest.mark.parametrize("template", [each.name for each in TEMPLATES.values() if each.breaks])
def test_what_is_written_is_the_drill_that_was_wanted(template: str) -> None:
    made = _loaded(DrillRequest(template, "tor-crash", name="mine"))
    (planned,) = made.timeline.faults
    assert type(planned.fault) is FAULTS["tor-crash"]
    assert made.name == "mine"
    assert (made.job is not None, made.client is not None) == (template in {"job", "training"}, template == "client")


def test_a_baseline_breaks_nothing() -> None:
    made = _loaded(DrillRequest("baseline"))
    assert made.timeline.faults == ()
    assert made.name == "baseline"


def test_a_fault_has_the_parameters_and_the_topology_of_the_library() -> None:
    assert "every: 500 ms, down: 300 ms, duration: 3 s}" in written(DrillRequest(fault="flap-storm"))
    assert "topology: tiny-pods\n" in written(DrillRequest(fault="core-crash"))
    assert _loaded(DrillRequest(fault="core-crash", topology="tiny-pods")).timeline.faults[0].fault.target == "c0.0"


@pytest.mark.parametrize("fault", ["agg-dataplane-death", "silent-drop"])
def test_queue_pairs_outlive_a_fault_that_nobody_is_told_of(fault: str) -> None:
    """They stand still until its repair; at the default timeout they would die, and the drill would fail."""
    made = _loaded(DrillRequest(fault=fault))
    (planned,) = made.timeline.faults
    assert 4096 * 2**made.workload.ib_timeout * 8 > 2 * (made.timeline.end_ns - planned.at_ns)
    text = written(DrillRequest(fault=fault))
    assert "queue_pair_deaths: {at_most: 0}" in text
    assert "goodput_after: {at_least: 95 %, of: before, edge: repair}" in text
    assert "worst_outage" not in text
    assert "ib_timeout" not in written(DrillRequest(fault="link-down"))


def test_parameters_that_have_a_default_are_shown_with_it() -> None:
    text = written(DrillRequest(fault="one-way-loss"))
    assert "\n    # one-way-loss takes more keys, by default share: 100 %\n" in text
    assert "takes more keys" not in written(DrillRequest(fault="flap-storm")), "it has all of them"


def test_every_parameter_of_every_fault_is_shown() -> None:
    for kind, fault in FAULTS.items():
        text = written(DrillRequest(fault=kind))
        assert all(f"{each.key}: " in text for each in parameters(fault).values()), kind


@pytest.mark.parametrize("topology", ["small", "tiny-rail-only", "{preset: tiny, rails: 4}"])
def test_another_topology_has_a_part_of_its_own_that_breaks(topology: str) -> None:
    for template in ("streams", "training"):
        made = _loaded(DrillRequest(template, "tor-crash", topology))
        assert made.timeline.faults[0].fault.target in build(made.topology).node_by_name


def test_a_fault_that_the_library_has_not_is_written_by_its_own_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "LIBRARY", Path("/nowhere"))
    for fault in ("link-down", "link-flap", "rate-drop", "admin-down"):
        assert type(_loaded(DrillRequest(fault=fault)).timeline.faults[0].fault) is FAULTS[fault]


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        (DrillRequest(template="steams"), "did you mean streams"),
        (DrillRequest(fault="link-dwn"), "did you mean link-down"),
        (DrillRequest(topology="tny"), "did you mean tiny"),
        (DrillRequest(topology="{preset: tiny, rials: 3}"), "unknown key 'rials'"),
        (DrillRequest(topology="tiny\nexpect: []"), "several lines"),
        (DrillRequest(topology="nowhere.yaml"), "no such file"),
        (DrillRequest(target="p0.s0.h9.r0.0"), "did you mean p0.s0.h"),
        (DrillRequest(target='x", at: 0 ms} #'), "no link"),
        (DrillRequest(fault="core-crash", topology="tiny"), "tiny has no Core, which core-crash needs"),
        (DrillRequest(name="My Drill"), "is no name of a drill"),
        (DrillRequest(name="x" * 49), "is no name of a drill"),
    ],
)
def test_what_makes_no_drill_is_refused(wish: DrillRequest, words: str) -> None:
    with pytest.raises(InputError) as caught:
        written(wish)
    assert words in str(caught.value)


@pytest.fixture
def new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """``hpn drill new`` in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, answers: str = "") -> Result:
        return CliRunner().invoke(drill_new, arguments, input=answers)

    return run


def test_without_options_it_asks_and_every_question_has_a_default(new: Callable[..., Result]) -> None:
    result = new(answers="\n\n\n\n\n")
    assert result.exit_code == 0, result.output
    assert load_drill("link-down-streams.yaml").timeline.faults[0].fault.target == "p0.s0.h0.r0.0"
    result = new("mine", answers="job\nagg-crash\nsmall\np0.a1.1\n")
    assert result.exit_code == 0, result.output
    made = load_drill("mine.yaml")
    assert (made.name, made.topology.name, made.timeline.faults[0].fault.target) == ("mine", "small", "p0.a1.1")
    result = new(answers="baseline\n\n\n")
    assert "What breaks" not in result.output
    assert load_drill("baseline.yaml").timeline.faults == ()


def test_an_answer_that_is_none_is_asked_again(new: Callable[..., Result]) -> None:
    result = new(answers="nothing\nstreams\nlink\nlink-flap\n\n\n\n")
    assert result.exit_code == 0, result.output
    assert result.output.count("Error:") == 2


def test_it_never_overwrites_unless_told(new: Callable[..., Result]) -> None:
    Path("mine.yaml").write_text("mine\n")
    result = new("mine", "--fault", "link-flap")
    assert isinstance(result.exception, InputError)
    assert "--force" in str(result.exception)
    assert Path("mine.yaml").read_text() == "mine\n"
    Path("link.yaml").symlink_to("nowhere")
    assert isinstance(new("mine", "--fault", "link-flap", "--out", "link.yaml").exception, InputError)
    assert not Path("nowhere").exists()
    assert new("mine", "--fault", "link-flap", "--force").exit_code == 0
    assert load_drill("mine.yaml").timeline.faults[0].fault.KIND == "link-flap"
    assert new("--fault", "link-flap", "--out", "made/x.yaml").exit_code == 0
    assert "cannot write" in str(new("--fault", "link-flap", "--out", "mine.yaml/x.yaml").exception)


@pytest.mark.parametrize("template", ["streams", "training"])
def test_a_topology_file_is_named_from_where_the_drill_lies(new: Callable[..., Result], template: str) -> None:
    Path("own.yaml").write_text("preset: tiny\nhosts: 3\n")
    result = new("mine", "--template", template, "--topology", "own.yaml", "--out", "drills/mine.yaml")
    assert result.exit_code == 0, result.exception
    assert "topology: ../own.yaml\n" in Path("drills/mine.yaml").read_text()
    assert load_drill("drills/mine.yaml").topology.hosts == 3


def test_nobody_there_to_answer_is_an_end_and_no_file(new: Callable[..., Result]) -> None:
    result = new()
    assert isinstance(result.exception, click.Abort | SystemExit)
    assert list(Path().iterdir()) == []


def test_templates_say_what_runs_and_what_that_tells() -> None:
    for each in TEMPLATES.values():
        runs, _, tells = each.summary.partition(": ")
        assert runs
        assert tells


def test_a_template_of_which_no_expectation_fits_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = replace(TEMPLATES["streams"], name="bad", expects=("state_restored: perhaps",))
    monkeypatch.setattr(writing, "TEMPLATES", {"bad": bad})
    with pytest.raises(InputError, match="state_restored"):
        written(DrillRequest("bad"))


def test_the_schema_is_printed_or_written(tmp_path: Path) -> None:
    printed = CliRunner().invoke(drill_schema_, [])
    assert printed.exit_code == 0
    file = tmp_path / "drill.schema.json"
    assert CliRunner().invoke(drill_schema_, ["--out", str(file)]).output == ""
    assert json.loads(file.read_text()) == json.loads(printed.output)
    failed = CliRunner().invoke(drill_schema_, ["--out", str(tmp_path / "no" / "x")])
    assert "choose another --out" in str(failed.exception)


@pytest.mark.parametrize("template", ["streams", "job", "training", "baseline"])
@pytest.mark.parametrize("policy", ["hash", "link-disjoint"])
def test_a_policy_of_source_ports_is_written(new: Callable[..., Result], template: str, policy: str) -> None:
    done = new("mine", "--template", template, "--topology", "small", "--source-ports", policy)
    assert done.exit_code == 0, done.output
    made = load_drill("./mine.yaml")
    assert (made.job or made.workload).source_ports == policy


def test_a_client_has_no_policy_of_source_ports(new: Callable[..., Result]) -> None:
    done = new("mine", "--template", "client", "--source-ports", "hash")
    assert isinstance(done.exception, InputError)
    assert "a client chooses its own" in str(done.exception)


@pytest.mark.parametrize("name", ["off", "no", "null"])
def test_a_name_that_yaml_reads_as_no_text_is_quoted(new: Callable[..., Result], name: str) -> None:
    """'drill is false; write text such as link-down' was the answer to a drill named 'off'."""
    assert new(name, "--template", "job").exit_code == 0
    assert load_drill(f"./{name}.yaml").name == name
