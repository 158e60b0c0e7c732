"""Files that are far too large, in a run folder or named by a user: refused before they are parsed."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from hpn.results.run import size_limits
from hpn.results.run.files import content
from hpn.results.run.folder import RunFolder
from hpn.results.run.reading import read
from hpn.testbed.errors import InputError
from tests.results.large import large_run
from tests.results.sample import metrics
from tests.results.test_index import add

ROOT = Path(__file__).parents[2]
_MB = 1_000_000
_MOST_MEMORY_MB = 300


@dataclass(frozen=True)
class Ended:
    code: int
    said: str
    memory_mb: float


_MEASURED = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:], stderr=subprocess.STDOUT)
print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)
"""


def hpn(tmp_path: Path, *arguments: str) -> Ended:
    """A command, and the most memory that it had; beside this process, whose own a child would be counted with."""
    words = [sys.executable, "-c", _MEASURED, sys.executable, str(ROOT / "cli.py"), *arguments]
    environment = {**os.environ, "HPN_CACHE_DIR": str(tmp_path), "COLUMNS": "500"}
    told = subprocess.run(words, env=environment, stdout=subprocess.PIPE, text=True, timeout=300).stdout
    said, _, last = told.rstrip().rpartition("\n")
    code, memory_mb = last.split()
    return Ended(int(code), said, float(memory_mb))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    found = add(tmp_path / "runs", "run")
    RunFolder(found).write_metrics(metrics(20))
    return found


def _of_numbers(path: Path, begin: str) -> None:
    """100 MB of JSON, all of it right."""
    path.write_bytes(begin.encode() + b"1," * (50 * _MB) + b"1]}")


def test_a_manifest_of_100_mb_is_told_in_the_list(tmp_path: Path, run: Path) -> None:
    _of_numbers(run / "manifest.json", '{"format": 2, "x": [')
    found = hpn(tmp_path, "results", "list", "--runs", str(run.parent))
    assert found.code == 0
    assert "manifest.json has 100.0 MB, and no manifest.json of a run has more than 4.2 MB" in found.said
    assert found.memory_mb < _MOST_MEMORY_MB


@pytest.mark.parametrize("words", [["compare", "RUN"], ["report", "RUN"]])
def test_figures_of_100_mb_are_refused_or_a_gap(tmp_path: Path, run: Path, words: list[str]) -> None:
    _of_numbers(run / "metrics.json", '{"x": [')
    found = hpn(tmp_path, *(str(run) if word == "RUN" else word for word in words))
    said = found.said if words[0] == "compare" else (run / "report.html").read_text()
    assert "metrics.json has 100.0 MB, and no metrics.json of a run has more than 67.1 MB" in said
    assert found.code == (2 if words[0] == "compare" else 0)
    assert found.memory_mb < _MOST_MEMORY_MB


def test_a_line_without_end_is_refused(tmp_path: Path, run: Path) -> None:
    with (run / "events.jsonl").open("wb") as file:
        file.truncate(100 * _MB)
    with pytest.raises(InputError, match=r"events.jsonl is damaged .*line 1: longer than 1048576 bytes"):
        RunFolder(run).events()
    found = hpn(tmp_path, "report", str(run))
    assert "line 1: longer than 1048576 bytes" in (run / "report.html").read_text()
    assert (found.code, found.memory_mb < _MOST_MEMORY_MB) == (0, True)


@pytest.mark.parametrize("name", ["manifest.json", "metrics.json", "events.jsonl", "fabric.json", "facts.json"])
def test_a_file_as_large_as_its_kind_gets_is_read(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(size_limits, "limit_of", lambda _: 1000)
    path = tmp_path / name
    path.write_bytes(bytes(1000))
    assert len(content(path)) == 1000
    path.write_bytes(bytes(1001))
    with pytest.raises(InputError, match=f"{name} has 0.0 MB, and no {name} of a run has more than 0.0 MB"):
        content(path)


def test_the_largest_runs_are_far_below_the_limits(tmp_path: Path) -> None:
    """512 flows and twelve edges; four times as much is read too."""
    folder = large_run(tmp_path / "large").path
    for path in folder.glob("*.json*"):
        assert 4 * path.stat().st_size < size_limits.limit_of(path.name), path.name
    assert [gap.why for gap in read(folder).gaps] == []


@pytest.mark.parametrize("words", [["compare", "RUN", "--baseline", "X"], ["model", "link-down", "--times", "X"]])
def test_a_user_s_file_that_is_too_large_or_no_file_is_refused(tmp_path: Path, run: Path, words: list[str]) -> None:
    def refused(place: Path) -> str:
        places = {"RUN": str(run), "X": str(place)}
        found = hpn(tmp_path, *(places.get(word, word) for word in words))
        assert (found.code, found.memory_mb < _MOST_MEMORY_MB) == (2, True)
        return found.said

    with (tmp_path / "large").open("wb") as file:
        file.truncate(100 * _MB)
    assert f"hpn: {tmp_path}/large is larger than any" in refused(tmp_path / "large")
    os.mkfifo(tmp_path / "pipe")
    assert f"hpn: {tmp_path}/pipe is not a regular file; name a " in refused(tmp_path / "pipe")
