"""A run folder belongs to one run: two commands in one are kept apart, and one that vanishes ends its run by name."""

from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.product.chaos import DRILL
from tests.product.hpn import Hpn, processes_of, skip_without_sandbox, until

VIRTUAL = ("--engine", "uml", "--virtual-time")


@pytest.fixture(scope="module", autouse=True)
def _needs_sandbox() -> None:
    skip_without_sandbox()


def begun(hpn: Hpn, *arguments: str, until_it_says: str = "healthy") -> subprocess.Popen[str]:
    """A run of the quiet drill, which takes five minutes, that has come so far."""
    (hpn.state / "quiet.yaml").write_text(DRILL.replace("20 s", "300 s"))
    started = hpn.start("drill", "run", "quiet.yaml", *arguments)
    assert started.stdout is not None
    for line in started.stdout:
        if until_it_says in line:
            break
    return started


def ended(started: subprocess.Popen[str]) -> tuple[int, list[str]]:
    """Exit code and lines on standard error, without the one that tells how long it would have taken."""
    _, err = started.communicate(timeout=60)
    return started.returncode, [line for line in err.splitlines() if not line.startswith("takes about")]


def vanishes(state: Path, *arguments: str, when: str = "healthy") -> None:
    """Start a run, delete its folder, and see how it ends."""
    hpn = Hpn(state)
    started = begun(hpn, "--out", "out", *arguments, until_it_says=when)
    shutil.rmtree(state / "out")
    folder = state / "out" / "quiet"
    gone = f"hpn: quiet: {folder} was deleted or moved during the run; run it again, and leave that folder alone"
    assert ended(started) == (3, [gone])
    assert not (state / "out").exists(), "nothing was left behind"
    until(lambda: processes_of(state) == [], "everything is gone", 20)


@pytest.mark.parametrize("when", ["starting", "healthy"])
def test_a_folder_that_vanishes_ends_its_run_by_name(tmp_path: Path, when: str) -> None:
    vanishes(tmp_path, when=when)


def test_a_folder_that_another_run_takes_the_place_of_is_not_written_into(tmp_path: Path) -> None:
    started = begun(Hpn(tmp_path), "--out", "out")
    (tmp_path / "out").rename(tmp_path / "moved")
    other = tmp_path / "out" / "quiet"
    other.mkdir(parents=True)
    (other / "sent-0.bin").write_bytes(b"of another run")
    code, said = ended(started)
    assert (code, len(said)) == (3, 1)
    assert f"{other} was deleted or moved during the run" in said[0]
    assert [path.name for path in other.iterdir()] == ["sent-0.bin"]


def test_a_folder_in_use_is_refused_until_its_run_has_ended(tmp_path: Path) -> None:
    hpn = Hpn(tmp_path)
    first = begun(hpn, "--out", "out")
    before = sorted(path.name for path in (tmp_path / "out" / "quiet").iterdir())
    (tmp_path / "other.yaml").write_text(DRILL.replace("quiet", "other", 1))
    for again in (("quiet.yaml",), ("other.yaml",), ("quiet.yaml", "--jobs", "2"), ("quiet.yaml", *VIRTUAL)):
        said = hpn.run("drill", "run", *again, "--out", "out", code=2)
        assert said == "hpn: another hpn makes runs in out; wait for it, or choose another --out\n", again
    assert sorted(path.name for path in (tmp_path / "out" / "quiet").iterdir()) == before
    first.send_signal(signal.SIGINT)
    assert ended(first)[0] == 130
    second = begun(hpn, "--out", "out")
    second.send_signal(signal.SIGINT)
    assert ended(second)[0] == 130
    until(lambda: processes_of(tmp_path) == [], "everything is gone", 20)
