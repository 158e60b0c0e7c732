"""``hpn results export``: what stands in the tables is what the runs say, bounds stay bounds, and damage is named."""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from pydantic import JsonValue

import hpn
from hpn import cli
from hpn.results.run.folder import RunFolder, create
from hpn.results.tables.registry import TABLES
from hpn.testbed.errors import HpnError, InputError, MachineError
from tests.results.hostile import NASTY, Place, poisoned, put
from tests.results.measured import client, everything, job
from tests.results.sample import MANIFEST, metrics, verdict
from tests.results.whole import whole_run


def export(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli.command_line, ["results", "export", *map(str, arguments)])


def tables(folder: Path) -> dict[str, list[dict[str, str]]]:
    return {name: list(csv.DictReader((folder / f"{name}.csv").open(encoding="utf-8", newline=""))) for name in TABLES}


def exported(tmp_path: Path, *runs: Path) -> dict[str, list[dict[str, str]]]:
    ended = export(*runs, "--csv", tmp_path / "tables")
    assert ended.exit_code == 0, ended.output
    return tables(tmp_path / "tables")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A run that passed, below one folder, and beside it one that is under way."""
    whole_run(tmp_path / "runs" / "one" / "link-down")
    create(tmp_path / "runs" / "two").write_manifest(replace(MANIFEST, phase=3))
    return tmp_path / "runs"


def test_runs_below_a_folder_are_a_row_each(root: Path, tmp_path: Path) -> None:
    found = exported(tmp_path, root)
    one, two = found["runs"]
    assert (one["run"], one["drill"], one["outcome"]) == (str(root / "one" / "link-down"), "link-down", "pass")
    assert (one["engine"], one["started"], one["hpn_version"]) == ("host", "2025-01-02T03:04:05+00:00", "0.1.0")
    assert one["fabric_digest"]
    assert (two["outcome"], two["phase"], two["noise_floor_ms"]) == ("none", "3", "")
    assert {row["run"] for name in TABLES.keys() - {"runs"} for row in found[name]} == {one["run"]}


def test_each_setting_that_differs_between_the_runs_is_a_column(tmp_path: Path) -> None:
    """Two policies were two digests, and no column said which run had which."""
    for name, ports in (("one", "drawn"), ("two", "link-disjoint")):
        run = whole_run(tmp_path / "runs" / name)
        asked: Mapping[str, JsonValue] = {
            "job": {"source_ports": ports, "queue_pairs": 2, "nvlink_bps": 1e9 if name == "one" else 2e9}
        }
        run.write_drill(replace(run.drill(), asks=asked))
        run.write_manifest(replace(run.manifest(), files={}))
    create(tmp_path / "runs" / "under-way").write_manifest(MANIFEST)
    rows = exported(tmp_path, tmp_path / "runs")["runs"]
    assert [key for key in rows[0] if key.startswith("setting_")] == [
        "setting_job_source_ports",
        "setting_job_nvlink_rate",
    ]
    told = [(row["setting_job_source_ports"], row["setting_job_nvlink_rate"]) for row in rows]
    assert told == [("drawn", "1G"), ("link-disjoint", "2G"), ("", "")]
    alone = exported(tmp_path, tmp_path / "runs" / "one")["runs"]
    assert not [key for key in alone[0] if key.startswith("setting_")]


def test_settings_with_one_name_are_columns_of_their_own(tmp_path: Path) -> None:
    """Folders are untrusted: a key may have any characters."""
    for name in ("one", "two"):
        run = whole_run(tmp_path / "runs" / name)
        run.write_drill(
            replace(run.drill(), asks={"job": {"a-b": name, "a b": name, "a b 2": name, "=\n\u202e": name}})
        )
        run.write_manifest(replace(run.manifest(), files={}))
    (first, _) = exported(tmp_path, tmp_path / "runs")["runs"]
    names = [key for key in first if key.startswith("setting_")]
    assert names == ["setting_job_a_b", "setting_job_a_b_2", "setting_job_a_b_2_2", "setting_job"]
    assert {first[name] for name in names} == {"one"}


def test_figures_have_their_intervals(root: Path, tmp_path: Path) -> None:
    rows = exported(tmp_path, root)["figures"]
    edge = metrics().edges[0]
    worst = next(row for row in rows if (row["kind"], row["figure"]) == ("failure", "worst outage"))
    assert float(worst["measured_ms"]) == edge.worst_outage_plbm_ms
    assert (float(worst["low_ms"]), float(worst["high_ms"])) == edge.worst_outage_interval_ms
    assert worst["open_ended"] == "false"


def test_a_run_that_is_named_twice_is_there_once(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root)
    assert len(exported(tmp_path, root, root / "two", tmp_path / "link")["runs"]) == 2


def test_a_lower_bound_has_no_upper_end(tmp_path: Path) -> None:
    """Of figures, of checks and of flows: a program that plots the interval finds none."""
    run, found = whole_run(tmp_path / "run"), metrics()
    first, *others = found.edges
    flow = found.flows[0]
    stuck = replace(flow, edges=(replace(flow.edges[0], recovered=False), *flow.edges[1:]))
    edges = (replace(first, flows_unrecovered=1), *others)
    run.write_metrics(replace(found, edges=edges, flows=(stuck, *found.flows[1:])))
    run.write_manifest(replace(run.manifest(), files=run.sizes()))
    judged = verdict(found)
    bound = replace(judged.checks[0], open_ended=True, high=None)
    run.write_verdict(replace(judged, checks=(bound, *judged.checks[1:])))
    made = exported(tmp_path, run.path)
    (worst,) = (row for row in made["figures"] if (row["kind"], row["figure"]) == ("failure", "worst outage"))
    assert (worst["open_ended"], worst["high_ms"]) == ("true", "")
    assert (made["expectations"][0]["open_ended"], made["expectations"][0]["high"]) == ("true", "")
    assert (made["expectations"][1]["open_ended"], made["expectations"][1]["high"]) == ("false", "99.0")
    lossy = made["flows"][0]
    assert (lossy["open_ended"], lossy["high_ms"]) == ("true", "")
    assert lossy["outage_ms"] == lossy["low_ms"] == worst["low_ms"] == worst["measured_ms"]
    assert float(worst["measured_ms"]) == pytest.approx(2000, abs=3), "until the window ended, not 20 ms of packets"


def test_a_flow_that_had_died_before_has_no_outage_of_0(tmp_path: Path) -> None:
    run, found = whole_run(tmp_path / "run"), metrics()
    flow = found.flows[0]
    silent = replace(flow, stopped_at_ns=1, edges=(flow.edges[0], replace(flow.edges[1], sent=0)))
    run.write_metrics(replace(found, flows=(silent, *found.flows[1:])))
    run.write_manifest(replace(run.manifest(), files=run.sizes()))
    row = next(row for row in exported(tmp_path, run.path)["flows"] if (row["flow"], row["kind"]) == ("0", "repair"))
    assert (row["sent"], row["outage_ms"], row["open_ended"]) == ("0", "", "false")


def with_all(folder: Path) -> RunFolder:
    run = whole_run(folder)
    run.write_metrics(everything())
    return run


def test_iterations_have_the_edge_that_met_them_and_the_one_cut_off_is_a_bound(tmp_path: Path) -> None:
    rows = [row for row in exported(tmp_path, with_all(tmp_path / "run").path)["iterations"] if row["program"] == "job"]
    told = [(row["number"], row["kind"], row["ms"], row["low_ms"], row["high_ms"], row["open_ended"]) for row in rows]
    assert told == [
        ("0", "", "1000.0", "999.5", "1000.5", "false"),
        ("1", "", "1000.0", "999.5", "1000.5", "false"),
        ("2", "failure", "2500.0", "2499.5", "2500.5", "false"),
        ("3", "repair", "1000.0", "999.5", "1000.5", "false"),
        ("", "repair", "2400.0", "2399.5", "", "true"),
    ]


def test_a_job_that_an_edge_stopped_for_good_was_met_by_that_edge_and_not_by_the_repair(tmp_path: Path) -> None:
    run = whole_run(tmp_path / "run")
    run.write_metrics(replace(metrics(), job=replace(job(), iterations=job().iterations[:2], open_ms=6000.0)))
    *_, cut_off = exported(tmp_path, run.path)["iterations"]
    assert (cut_off["kind"], cut_off["ms"], cut_off["open_ended"]) == ("failure", "6000.0", "true")


def test_a_client_that_had_done_its_work_was_not_cut_off(tmp_path: Path) -> None:
    run = whole_run(tmp_path / "run")
    run.write_metrics(replace(metrics(), job=client(done=True)))
    made = exported(tmp_path, run.path)
    assert {(row["program"], row["open_ended"]) for row in made["iterations"]} == {("client", "false")}
    assert [(row["rank"], row["ended_at_ns"], row["died"]) for row in made["ranks"]] == [
        ("0", "8000000000", "false"),
        ("1", "5000000000", "false"),
    ]


def test_stalls_collectives_and_counters_of_a_job(tmp_path: Path) -> None:
    made = exported(tmp_path, with_all(tmp_path / "run").path)
    failed, repaired, *of_client = made["stalls"]
    assert (failed["longest_ms"], failed["high_ms"], failed["deaths"], failed["undone"]) == (
        "2500.0",
        "2500.5",
        "1",
        "1",
    )
    assert (failed["promised"], failed["done_low"], failed["done_high"]) == ("6.0", "4.25", "4.75")
    assert (repaired["longest_ms"], repaired["high_ms"], repaired["open_ended"]) == ("2400.0", "", "true")
    assert [row["program"] for row in of_client] == ["client", "client"]
    assert [(row["label"], row["busbw_bps"]) for row in made["collectives"]] == [("sum", "36408.0")] * 2
    assert [(row["counter"], row["value"]) for row in made["counters"]] == [
        ("np_cnp_sent", "4"),
        ("out_of_sequence", "7"),
    ]


def test_transfers_and_ports_tell_what_was_measured_and_leave_the_rest_empty(tmp_path: Path) -> None:
    made = exported(tmp_path, with_all(tmp_path / "run").path)
    assert [(row["kind"], row["fate"], row["ms"], row["high_ms"]) for row in made["transfers"]] == [
        ("", "complete", "21.5", "22.0"),
        ("failure", "incomplete", "", ""),
        ("repair", "unfinished", "", ""),
    ]
    assert [(row["nic"], row["drops"], row["queue_max_ms"], row["marked"]) for row in made["ports"]] == [
        ("p0.s0.h0.r0", "42", "19.94", ""),
        ("p0.s0.h0.r0", "0", "0.5", ""),
        ("", "0", "0.5", ""),
    ]


def test_an_expectation_tells_its_metric(tmp_path: Path) -> None:
    run = whole_run(tmp_path / "run")
    drill, text = run.drill(), verdict(metrics()).checks[0].text
    run.write_drill(replace(drill, expects=(replace(drill.expects[0], text=text),)))
    first, second, *_ = exported(tmp_path, run.path)["expectations"]
    assert (first["metric"], first["limit"], first["unit"], second["metric"]) == ("worst_outage", "50.0", "ms", "")


@pytest.mark.parametrize("file", ["manifest.json", "metrics.json", "verdict.json", "drill.json"])
def test_a_damaged_run_is_named_and_the_others_are_exported(root: Path, tmp_path: Path, file: str) -> None:
    """Nothing of it stands in any table, and the exit code says so."""
    broken = whole_run(root / "broken")
    (broken.path / file).write_bytes((broken.path / file).read_bytes()[:-20])
    ended = export(root, "--csv", tmp_path / "tables")
    assert isinstance(ended.exception, InputError)
    assert ended.exception.exit_code == 2
    (problem,) = ended.exception.problems
    assert str(broken.path / file) in problem
    found = tables(tmp_path / "tables")
    assert len(found["runs"]) == 2
    assert not [row for rows in found.values() for row in rows if row["run"] == str(broken.path)]


def test_a_judged_run_without_its_metrics_is_damaged(tmp_path: Path) -> None:
    run = whole_run(tmp_path / "run")
    (run.path / "metrics.json").unlink()
    ended = export(run.path, "--csv", tmp_path / "tables")
    assert str(run.path / "metrics.json") in str(ended.exception)
    assert not (tmp_path / "tables").exists()


@pytest.mark.parametrize(
    ("file", "way", "value"),
    [
        ("metrics.json", ("flows", 0, "edges"), []),
        ("metrics.json", ("flows", 0, "edges", 0, "sent"), 2**64),
        ("metrics.json", ("job", "edges"), []),
        ("metrics.json", ("transfers", "transfers", 1, "edge"), 2),
        ("metrics.json", ("transfers", "transfers", 1, "edge"), -1),
        ("metrics.json", ("transfers", "transfers", 1, "flow"), 99),
        ("manifest.json", ("attempt",), 2**64),
    ],
)
def test_figures_that_fit_no_table_are_damage_of_a_file(
    tmp_path: Path, file: str, way: tuple[str | int, ...], value: object
) -> None:
    run = with_all(tmp_path / "run")
    put(run.path, Place(file, way), value)
    refused = export(run.path, "--csv", tmp_path / "tables").exception
    assert isinstance(refused, InputError)
    assert f"{run.path / file} is damaged" in str(refused)


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1+1", " =1+1", "\r=1+1", "＝1+1"])
def test_no_name_becomes_a_formula(tmp_path: Path, name: str) -> None:
    run = create(tmp_path / "run")
    run.write_manifest(replace(MANIFEST, drill=name, phase_ms=-1.5))
    (row,) = exported(tmp_path, run.path)["runs"]
    assert row["drill"].startswith(("'", "?"))
    assert float(row["phase_ms"]) == -1.5


def test_a_poisoned_run_stays_in_its_cells(tmp_path: Path) -> None:
    run = whole_run(tmp_path / "run")
    assert poisoned(run.path)
    made = exported(tmp_path, run.path)
    (row,) = made["runs"]
    assert row["fabric"] == NASTY.replace("\n", "?").replace("\x1b", "?").replace("\u202e", "?")
    for name, rows in made.items():
        assert all(None not in row and None not in row.values() for row in rows), name
        lines = (tmp_path / "tables" / f"{name}.csv").read_text().splitlines()
        assert len(lines) == len(rows) + 1


def test_a_folder_whose_name_is_no_utf_8_is_exported(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/r\xff"))
    whole_run(folder)
    assert exported(tmp_path, folder)["runs"][0]["run"].endswith("r\\xff")


def test_nothing_to_export_is_a_mistake_of_who_asks(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    cases: list[tuple[list[str | Path], str]] = [
        ([tmp_path / "empty", "--csv", tmp_path / "t"], "no run folder is at or below"),
        ([tmp_path / "gone", "--csv", tmp_path / "t"], "is no folder"),
        ([tmp_path / "empty"], "give --csv DIR, --parquet DIR"),
    ]
    for arguments, said in cases:
        ended = export(*arguments)
        assert isinstance(ended.exception, InputError)
        assert said in str(ended.exception)


def test_a_place_that_cannot_be_written_is_told(root: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ended = export(root, "--csv", tmp_path / "file" / "tables")
    assert isinstance(ended.exception, HpnError)
    assert "--csv" in str(ended.exception)


def test_what_is_not_installed_is_told_before_anything_is_written(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pandas", None)
    ended = export(root, "--csv", tmp_path / "tables", "--parquet", tmp_path / "parquet")
    assert isinstance(ended.exception, MachineError)
    assert "python -m pip install pyarrow" in str(ended.exception)
    assert not (tmp_path / "tables").exists()
    with pytest.raises(MachineError, match="python -m pip install pandas"):
        hpn.frames(root)


def test_parquet_holds_the_same_rows_with_types_and_units(root: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="no pyarrow: pip install hpn[tables]")
    found = exported(tmp_path, root)
    assert export(root, "--parquet", tmp_path / "parquet").exit_code == 0
    for name, table in TABLES.items():
        made = parquet.read_table(tmp_path / "parquet" / f"{name}.parquet")
        assert made.num_rows == len(found[name])
        assert [field.name for field in made.schema] == [column.name for column in table.columns]
    (first, *_) = parquet.read_table(tmp_path / "parquet" / "figures.parquet").to_pylist()
    assert (first["measured_ms"], first["open_ended"]) == (20.0, False)
    told = parquet.read_schema(tmp_path / "parquet" / "figures.parquet").field("low_ms").metadata
    assert told[b"unit"] == b"ms"


def test_frames_hold_the_same_rows_and_the_damaged_run_is_told(root: Path, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="no pandas: pip install hpn[tables]")
    made = hpn.frames([root])
    for name, rows in exported(tmp_path, root).items():
        assert len(made[name]) == len(rows)
    figures = made["figures"].merge(made["runs"], on="run")
    assert set(figures["drill"]) == {"link-down"}
    assert figures["high_ms"].dtype == "float64"
    assert pandas.isna(made["runs"]["workload_seed"]).all()
    (root / "two" / "manifest.json").write_text("{")
    with pytest.raises(InputError, match=r"manifest\.json"):
        hpn.frames(root)
    told: list[HpnError] = []
    assert len(hpn.frames(root, on_problem=told.append)["runs"]) == 1
    assert len(told) == 1


@pytest.mark.parametrize("name", ["iterations.jsonl", "spans.jsonl", "flows.jsonl", "queue_pairs.jsonl"])
def test_a_run_whose_file_was_cut_is_left_out_though_no_row_is_made_of_it(tmp_path: Path, name: str) -> None:
    """Rows came out whole, and nothing was said."""
    run = whole_run(tmp_path / "runs" / "one")
    path = run.path / name
    path.write_bytes(b'{"a": 1}\n{"a": 2}\n')
    run.write_manifest(replace(run.manifest(), files={name: path.stat().st_size}))
    assert export(run.path, "--csv", tmp_path / "whole").exit_code == 0
    path.write_bytes(b'{"a": 1}\n')
    cut = export(run.path, "--csv", tmp_path / "cut")
    assert isinstance(cut.exception, InputError)
    assert f"{name} has 9 bytes and the run left 18" in str(cut.exception)


def test_a_run_whose_counters_were_cut_is_left_out(tmp_path: Path) -> None:
    run = whole_run(tmp_path / "runs" / "one")
    (run.path / "counters.json").write_bytes(b'{"p0": {"sent"')
    assert isinstance(export(run.path, "--csv", tmp_path / "cut").exception, InputError)
