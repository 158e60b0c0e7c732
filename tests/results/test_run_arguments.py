"""Which runs the words of hpn compare mean: the shapes of the examples in its help."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from hpn.commands.compare import compare_
from hpn.results.comparison.run_arguments import gathered
from hpn.results.run.folder import RunFolder
from hpn.testbed.errors import InputError
from tests.results.whole import whole_run


def _out(out: Path, version: str, runs: int = 2) -> Path:
    """A folder as ``hpn drill run --repeat 2 --out`` leaves it, of one version of hpn."""
    for number in range(1, runs + 1):
        run = whole_run(out / f"link-down-{number}")
        run.write_drill(replace(run.drill(), job={}))
        run.write_manifest(
            replace(run.manifest(), job={}, client={}, phase=number, repeat=number, versions={"hpn": version})
        )
    (out / "repeats.json").write_text("[]")
    (out / "summary.md").write_text("")
    (out / "junit.xml").write_text("")
    return out


def _runs_of(*named: Path) -> list[str]:
    shown = CliRunner().invoke(compare_, [*map(str, named)])
    assert shown.exit_code == 0, (shown.output, shown.exception)
    groups = shown.output[shown.output.index("groups") :].splitlines()
    return [line.split()[1] for line in groups if line.startswith(("0.1.0", "0.2.0"))]


def test_the_examples_in_help_take_what_a_shell_makes_of_them(tmp_path: Path) -> None:
    """'runs/A/*' names repeats.json too, and was refused: 'Directory ... is a file'."""
    one, other = _out(tmp_path / "A", "0.1.0"), _out(tmp_path / "B", "0.2.0")
    assert "hpn compare runs/A/* runs/B/* --html comparison.html" in (click.unstyle(compare_.help or ""))
    assert _runs_of(*sorted(one.iterdir()), *sorted(other.iterdir())) == ["2", "2"]
    assert _runs_of(one, other) == ["2", "2"]
    assert _runs_of(one / "repeats.json", other / "repeats.json") == ["2", "2"]
    kept = tmp_path / "baseline.json"
    for way in ("--save", "--baseline"):
        done = CliRunner().invoke(compare_, [*map(str, sorted(one.iterdir())), way, str(kept)])
        assert done.exit_code == 0, done.exception


def test_a_run_is_one_by_whatever_way_it_is_named(tmp_path: Path) -> None:
    out = _out(tmp_path / "A", "0.1.0")
    assert gathered([out / "link-down-2", out, out / "repeats.json"]) == [out / "link-down-2", out / "link-down-1"]


def test_of_a_folder_only_runs_with_a_verdict_count(tmp_path: Path) -> None:
    out = _out(tmp_path / "A", "0.1.0", runs=3)
    (out / "link-down-3" / "verdict.json").unlink()
    assert [found.name for found in gathered([out])] == ["link-down-1", "link-down-2"]
    for run in ("link-down-1", "link-down-2"):
        shutil.rmtree(out / run)
    with pytest.raises(InputError, match="holds no run with a verdict"):
        gathered([out])


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("")
    (tmp_path / "junit.xml").write_text("")
    with pytest.raises(InputError, match=r"notes\.txt is a file"):
        gathered([tmp_path / "notes.txt"])
    with pytest.raises(InputError, match="no run folder"):
        gathered([tmp_path / "junit.xml"])
    with pytest.raises(InputError):
        RunFolder(gathered([tmp_path / "nowhere"])[0]).manifest()
