"""The claim on a folder in which runs are made."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hpn.results.run import claim
from hpn.results.run.claim import claimed, in_use, place_for
from hpn.results.run.folder import claimed_run, create
from hpn.testbed.errors import InputError, MachineError
from tests.results.sample import MANIFEST

_CHILD = "import os, time; print('up', flush=True); time.sleep(600)"


def test_a_folder_is_one_run_s_and_free_again_afterwards(tmp_path: Path) -> None:
    with claimed_run(tmp_path / "run") as ours:
        assert ours.locked
        assert in_use(tmp_path / "run")
        with pytest.raises(InputError, match=r"another hpn makes runs in .*/run; wait"):
            create(tmp_path / "run")
        (tmp_path / "run" / "events.jsonl").touch()
    assert not in_use(tmp_path / "run")
    assert create(tmp_path / "run").path.is_dir()


def test_what_a_run_has_forked_keeps_its_folder_and_what_it_has_started_does_not(tmp_path: Path) -> None:
    """The sandbox makes the run; a program that somebody left running may outlive it by days."""
    reader, writer = os.pipe()
    with claimed(tmp_path):
        forked = os.fork()
        if forked == 0:
            os.close(writer)
            os.read(reader, 1)
            os._exit(0)
        started = subprocess.Popen([sys.executable, "-c", _CHILD], close_fds=False, stdout=subprocess.PIPE)
        assert started.stdout is not None
        started.stdout.readline()
    try:
        assert in_use(tmp_path)
        os.close(writer)
        os.waitpid(forked, 0)
        assert not in_use(tmp_path)
    finally:
        os.close(reader)
        started.kill()
        started.communicate()


@pytest.mark.parametrize("error", [MachineError("no space"), OSError(2, "No such file or directory")])
def test_what_fails_because_the_folder_is_gone_names_it(tmp_path: Path, error: Exception) -> None:
    def fails() -> None:
        with claimed(tmp_path / "run"):
            shutil.rmtree(tmp_path / "run")
            raise error

    with pytest.raises(MachineError, match="/run was deleted or moved during the run; run it again"):
        fails()


def test_a_run_whose_folder_is_gone_at_its_end_has_failed(tmp_path: Path) -> None:
    def vanishes() -> None:
        with claimed_run(tmp_path / "run"):
            (tmp_path / "run").rename(tmp_path / "moved")
            (tmp_path / "run").mkdir()

    with pytest.raises(MachineError, match="/run was deleted or moved"):
        vanishes()


def test_what_fails_otherwise_is_told_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="disk"), claimed(tmp_path):
        raise OSError(28, "disk")


def test_a_folder_that_nothing_came_into_goes_again(tmp_path: Path) -> None:
    with claimed(tmp_path / "a" / "b"):
        assert (tmp_path / "a" / "b").is_dir()
    assert not (tmp_path / "a").exists()
    (tmp_path / "own").mkdir()
    with claimed(tmp_path / "own"):
        pass
    assert (tmp_path / "own").is_dir(), "it was there before"


def test_runs_that_begin_in_one_second_have_folders_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(time, "strftime", lambda _format: "20261124-120000")
    with place_for(None) as first, place_for(None) as second, place_for(None) as third:
        assert [str(each) for each in (first, second, third)] == [
            "runs/20261124-120000",
            "runs/20261124-120000-2",
            "runs/20261124-120000-3",
        ]
        create(first / "drill").write_manifest(MANIFEST)
    assert [str(path) for path in Path("runs").iterdir()] == ["runs/20261124-120000"], "the others stayed empty"


def test_a_named_place_is_taken_as_it_is(tmp_path: Path) -> None:
    with place_for(tmp_path / "mine") as found:
        assert found == tmp_path / "mine"
    assert not (tmp_path / "mine").exists()


def test_a_folder_that_was_removed_before_it_was_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a command that was refused, and cleared its empty folder away."""
    removals, locked = ["once"], claim._locked

    def removed_and_locked(descriptor: int, path: Path) -> bool:
        if removals:
            path.rmdir()
            removals.pop()
        return locked(descriptor, path)

    monkeypatch.setattr(claim, "_locked", removed_and_locked)
    with claimed(tmp_path / "run") as ours:
        assert ours.lost() is None
