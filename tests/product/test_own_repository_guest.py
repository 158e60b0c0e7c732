"""examples/own-repository as its users have it: a repository of their own, gated by the commands of its CI files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.product.hpn import ROOT, skip_without_virtual_time
from tests.scenarios.own_repository import EXAMPLE, GITHUB, GITLAB, runs

KEPT = "black-hole.uml-virtual-time.json"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A git repository made of the example, with this hpn in the place of what its CI files install."""
    skip_without_virtual_time()
    place = tmp_path / "mine"
    shutil.copytree(EXAMPLE, place)
    suite = place / "suite.yaml"  # one phase: five take minutes, and the commands are what is tried here
    assert "repeats: 5" in suite.read_text()
    suite.write_text(suite.read_text().replace("repeats: 5", "repeats: 1"))
    (place / ".venv" / "bin").mkdir(parents=True)
    hpn = place / ".venv" / "bin" / "hpn"
    hpn.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{ROOT / "cli.py"}" "$@"\n')
    hpn.chmod(0o755)
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "our fabric"]):
        git(place, *words)
    return place


def git(place: Path, *words: str) -> str:
    author = ["-c", "user.name=me", "-c", "user.email=me@example.org"]
    return subprocess.run(["git", *author, *words], cwd=place, check=True, capture_output=True, text=True).stdout


def shell(place: Path, script: str) -> tuple[int, str]:
    """A script as both CI systems call bash: it ends with the first command that fails."""
    ended = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=place,
        env=os.environ | {"GITHUB_STEP_SUMMARY": str(place.parent / "summary.md"), "COLUMNS": "400"},
        capture_output=True,
        text=True,
    )
    return ended.returncode, ended.stdout + ended.stderr


@pytest.mark.guest
@pytest.mark.timeout(900)
def test_a_copied_ci_file_gates_a_repository_on_its_baseline(repository: Path) -> None:
    (drills, _, summary), (gitlab,) = runs(GITHUB), runs(GITLAB)
    # The clock of virtual time goes by what a guest's programs ask of it: another Python or kernel is another baseline.
    assert shell(repository, ".venv/bin/hpn ci run suite.yaml --save baseline --out first")[0] == 0

    code, said = shell(repository, drills)
    assert code == 0, said
    assert said.count("no figure differs: each interval overlaps that of the baseline") == 2
    assert shell(repository, summary) == (0, "")
    assert "# failover: pass, 2 runs" in (repository.parent / "summary.md").read_text()
    assert baseline(repository, "results")["figures"] == baseline(repository)["figures"], "to the last digit"
    assert git(repository, "status", "--porcelain", "--", "results", ".venv") == "", "ignored"

    change(repository, "interval_ms: 100", "interval_ms: 150")
    code, said = shell(repository, gitlab)
    assert code == 1, said
    assert "against its baseline worse: worst outage of transit flows at failure: " in said, (
        "the limits of both drills hold"
    )
    assert "black-hole on uml-virtual-time: worse: hole failure 0: worst outage: " in said
    assert "since the baseline: bgp.bfd.interval_ms was 100, is 150" in said
    assert "worse by at least " in (repository / "results" / "junit.xml").read_text()

    change(repository, "rails: 1", "rails: 1\nhosts: 3")
    code, said = shell(repository, drills)
    assert code == 2, said
    assert "the baseline is of fabric 'mine (hpn)', these runs of another (hosts was 2, is 3" in said
    assert "starting" not in said


def baseline(repository: Path, within: str = "") -> dict[str, dict[str, str]]:
    found = json.loads((repository / within / "baseline" / KEPT).read_text())
    assert isinstance(found, dict)
    return found


def change(repository: Path, before: str, after: str) -> None:
    file = repository / "topology.yaml"
    assert before in file.read_text()
    file.write_text(file.read_text().replace(before, after))
