"""Repeats whose flows have the same source ports are no draws of them, and say so: by what the runs recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from hpn.commands.compare import compare_
from hpn.failover.analysis.paths import PathAt
from hpn.results.judge.repeats.judging import judge_repeats
from hpn.results.judge.repeats.source_ports import shared_source_ports
from hpn.results.judge.repeats.view import repeats_summary
from hpn.results.page.runs_page import many_page
from hpn.results.run.folder import RunFolder, create
from tests.results.sample import MANIFEST, metrics, verdict
from tests.results.shown import as_text

Ports = dict[int, tuple[int, int]]
SAME: Ports = {0: (50344, 0), 1: (50345, 1)}
NOTE = "all 3 runs have the same source ports and NIC ports: one draw of them"
REMEDY = "'source_ports: drawn' draws new ones in each run"


def made(folder: Path, ports: Sequence[Ports], seeds: Sequence[int] = (7, 8, 9)) -> list[RunFolder]:
    """Repeats with these source ports and NIC ports of each flow, and seeds of the fabric."""
    runs = []
    for number, (of, seed) in enumerate(zip(ports, seeds, strict=False), start=1):
        run = create(folder / f"cut-{number}")
        run.write_paths(PathAt(10**9, flow, "begin", sport, port, port) for flow, (sport, port) in of.items())
        run.write_metrics(metrics())
        run.write_verdict(verdict(metrics()))
        run.write_manifest(replace(MANIFEST, repeat=number, phase=number, seeds={"fabric": seed}))
        runs.append(run)
    return runs


def test_the_same_ports_in_runs_with_seeds_of_their_own_are_one_draw(tmp_path: Path) -> None:
    note = shared_source_ports(made(tmp_path, [SAME] * 3))
    assert note == f"{NOTE}; {REMEDY}"


def test_nic_ports_that_a_lag_chose_otherwise_are_not_claimed(tmp_path: Path) -> None:
    other = {flow: (sport, 1 - port) for flow, (sport, port) in SAME.items()}
    note = shared_source_ports(made(tmp_path, [SAME, SAME, other]))
    assert note.startswith("all 3 runs have the same source ports: one draw of them")


@pytest.mark.parametrize(
    ("ports", "seeds"),
    [
        ([SAME, SAME, {0: (50344, 0), 1: (50999, 1)}], (7, 8, 9)),
        ([SAME, SAME, {0: (50344, 0)}], (7, 8, 9)),
        ([SAME, {}, SAME], (7, 8, 9)),
        ([SAME] * 3, (7, 7, 7)),
        ([SAME], (7,)),
        ([], ()),
    ],
    ids=["other ports", "fewer flows", "no flows", "one seed", "one run", "no run"],
)
def test_nothing_is_said_of_other_runs(tmp_path: Path, ports: Sequence[Ports], seeds: Sequence[int]) -> None:
    assert shared_source_ports(made(tmp_path, ports, seeds)) == ""


def test_a_run_without_or_with_damaged_paths_is_no_evidence(tmp_path: Path) -> None:
    runs = made(tmp_path, [SAME] * 3)
    (runs[1].path / "paths.jsonl").write_text("{")
    assert shared_source_ports(runs) == ""
    (runs[1].path / "paths.jsonl").unlink()
    assert shared_source_ports(runs) == ""


def test_summary_page_and_comparison_say_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    runs = made(tmp_path, [SAME] * 3)
    (tmp_path / "repeats.json").write_text("[]")
    found = judge_repeats("cut", [run.verdict() for run in runs])
    assert NOTE in as_text(repeats_summary(replace(found, note=shared_source_ports(runs))), 300)
    assert NOTE in many_page(tmp_path, tmp_path / "report.html")
    compared = CliRunner().invoke(compare_, [str(tmp_path)])
    assert NOTE in compared.stdout
