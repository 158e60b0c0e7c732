"""The run folder: what is written comes back the same, and what is not a run folder is said in one line."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from hpn.results.run import lifecycle
from hpn.results.run.folder import create, load, prepare
from hpn.results.run.lifecycle import drop_raw
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.fabric.switch_spec import SwitchSpec
from tests.results.sample import EVENTS, MANIFEST, buffers, metrics, ports, verdict


def test_everything_comes_back_as_it_was(tmp_path: Path) -> None:
    found = metrics()
    folder = create(tmp_path / "runs" / "one")
    folder.write_manifest(MANIFEST)
    folder.write_events(EVENTS)
    folder.write_metrics(found)
    folder.write_verdict(verdict(found, "starved"))
    again = load(tmp_path / "runs" / "one")
    assert again.manifest() == MANIFEST
    assert again.events() == EVENTS
    assert again.metrics() == found
    assert again.verdict() == verdict(found, "starved")
    assert not [path for path in again.path.iterdir() if path.name.endswith(".new")]


def test_flows_are_flat_lines_one_per_flow_and_edge(tmp_path: Path) -> None:
    folder = create(tmp_path)
    folder.write_metrics(metrics())
    lines = [json.loads(line) for line in (tmp_path / "flows.jsonl").read_text().splitlines()]
    assert len(lines) == 3 * 2
    assert {line["edge"] for line in lines} == {"link failure 0", "link repair 0"}
    assert lines[0]["outage_plbm_ms"] == pytest.approx(20, abs=2)
    assert lines[0]["relation"] == "sender"


def test_files_are_plain_json_with_units_in_the_names(tmp_path: Path) -> None:
    folder = create(tmp_path)
    folder.write_metrics(metrics())
    stored = json.loads((tmp_path / "metrics.json").read_text())
    assert stored["noise"]["noise_floor_ms"] > 0
    assert stored["edges"][0]["phases"]["detect"] == {
        "ms": 0.5,
        "at_ns": 4_000_500_000,
        "by": "p0.s0.h0 r0.0 carrier-down",
        "reason": "",
        "late_ms": 0.0,
        "early_ms": 0.0,
    }


def test_ports_are_a_file_of_their_own_when_they_were_sampled(tmp_path: Path) -> None:
    folder = create(tmp_path)
    folder.write_metrics(replace(metrics(), ports=ports()))
    stored = json.loads((tmp_path / "ports.json").read_text())
    assert stored["ports"][0]["queue_p99_ms"] == 19.94
    assert stored["balance"][0] == {"nic": "p0.s0.h0.r0", "bps": [198e6, 80e6], "packets": [6000, 2400]}
    assert folder.metrics().ports == ports()
    folder.write_metrics(metrics())
    assert not (tmp_path / "ports.json").exists(), "it would be that of an earlier run"


def test_classes_at_ports_are_a_file_of_their_own_where_the_topology_has_a_switch(tmp_path: Path) -> None:
    folder = create(tmp_path)
    folder.write_metrics(replace(metrics(), buffers=buffers()))
    stored = json.loads((tmp_path / "buffers.json").read_text())
    assert len(stored) == len(buffers())
    assert {name: stored[1][name] for name in ("node", "priority", "pausing_ns", "headroom_max_bytes")} == {
        "node": "p0.s0.t0.0",
        "priority": 3,
        "pausing_ns": 4_500_000_000,
        "headroom_max_bytes": 12_600,
    }
    assert folder.metrics().buffers == buffers()
    folder.write_metrics(metrics())
    assert not (tmp_path / "buffers.json").exists(), "it would be that of an earlier run"
    assert "buffers" not in json.loads((tmp_path / "metrics.json").read_text())


def test_a_fabric_without_a_switch_is_stored_as_before_there_was_one(tmp_path: Path) -> None:
    folder = create(tmp_path)
    for topology in (PRESETS["tiny"].spec, PRESETS["tiny"].spec.model_copy(update={"switch": SwitchSpec()})):
        fabric = build(topology)
        folder.write_fabric(fabric)
        assert ("switch" in json.loads((tmp_path / "fabric.json").read_text())["spec"]) == (topology.switch is not None)
        assert folder.fabric() == fabric


def test_what_is_not_a_run_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is not a run folder \(no manifest.json\)"):
        load(tmp_path)
    (tmp_path / "letters.txt").write_text("dear")
    with pytest.raises(InputError, match="not empty and not a run folder; choose another with --out"):
        create(tmp_path)
    with pytest.raises(InputError, match="cannot make run folder"):
        create(tmp_path / "letters.txt" / "run")


def test_a_damaged_file_is_named_with_the_place(tmp_path: Path) -> None:
    folder = create(tmp_path)
    folder.write_manifest(MANIFEST)
    text = (tmp_path / "manifest.json").read_text()
    (tmp_path / "manifest.json").write_text(text.replace('"started_ns": 1000000000', '"started_ns": "noon"'))
    with pytest.raises(InputError, match=r"manifest.json is damaged or of another version \(started_ns: "):
        load(tmp_path).manifest()
    with pytest.raises(InputError, match=r"verdict\.json: No such file"):
        load(tmp_path).verdict()


def test_a_name_too_long_for_any_folder_is_not_a_run_folder() -> None:
    with pytest.raises(InputError, match="is not a run folder"):
        load(Path("a" * 300))


def test_what_a_damaged_file_holds_is_told_without_steering_the_terminal(tmp_path: Path) -> None:
    folder = create(tmp_path)
    folder.write_manifest(MANIFEST)
    stored = json.loads((tmp_path / "manifest.json").read_text())
    (tmp_path / "manifest.json").write_text(json.dumps(stored | {"seeds": {"\x1b[2J\n": "x"}}))
    with pytest.raises(InputError, match=r"seeds.\\x1b\[2J\\n: Input should be") as caught:
        folder.manifest()
    assert str(caught.value).isprintable()


def test_an_out_folder_that_cannot_be_made_is_refused_before_anything_runs(tmp_path: Path) -> None:
    prepare(tmp_path / "a" / "b")
    (tmp_path / "file").touch()
    for wrong in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/nowhere")):
        with pytest.raises(InputError, match="choose another --out"):
            prepare(wrong)


def test_a_new_run_finds_nothing_of_the_one_before(tmp_path: Path) -> None:
    folder, found = create(tmp_path), metrics()
    folder.write_metrics(replace(found, ports=ports()))
    folder.write_verdict(verdict(found, "pass"))
    folder.write_manifest(MANIFEST)
    for name in ("sent-0.bin", "received-0.bin", "worker-0.log", ".verdict.json.new"):
        (tmp_path / name).touch()
    (tmp_path / "bonding").mkdir()
    create(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "content"), [("thesis.tex", "years of work"), ("manifest.json", '{"name": "a web page"}')]
)
def test_what_no_run_has_written_is_refused_and_stays(tmp_path: Path, name: str, content: str) -> None:
    if name != "manifest.json":
        create(tmp_path).write_manifest(MANIFEST)
    (tmp_path / name).write_text(content)
    (tmp_path / "verdict.json").write_text("{}")
    with pytest.raises(InputError, match="choose another with --out"):
        create(tmp_path)
    assert (tmp_path / name).read_text() == content
    assert (tmp_path / "verdict.json").exists()


def test_a_run_that_never_began_leaves_a_folder_that_can_be_used(tmp_path: Path) -> None:
    create(tmp_path).write_events(EVENTS)
    create(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_raw_records_and_halves_go_whatever_happened_results_stay(tmp_path: Path) -> None:
    folder, found = create(tmp_path), metrics()
    folder.write_verdict(verdict(found, "pass"))
    for name in ("sent-0.bin", "received-0.bin", ".metrics.json.new", "worker-0.log"):
        (tmp_path / name).touch()
    (tmp_path / "worker-1.log").write_text("last words")
    drop_raw(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["verdict.json", "worker-1.log"]


def test_a_folder_above_that_another_run_makes_meanwhile_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two runs begin at once below a folder that is not there yet."""
    above, looked = tmp_path / "new", os.path.lexists

    def another_is_quicker(path: Path) -> bool:
        found = looked(path)
        if path == above:
            above.mkdir(exist_ok=True)
        return found

    monkeypatch.setattr(os.path, "lexists", another_is_quicker)
    lifecycle.with_all_above(above / "mine" / "drill")
    assert (above / "mine" / "drill").is_dir()


def test_what_is_in_the_way_of_a_folder_is_told_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="Not a directory"):
        lifecycle.with_all_above(tmp_path / "file" / "drill")
    with pytest.raises(FileExistsError):
        lifecycle.with_all_above(tmp_path / "file")
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
