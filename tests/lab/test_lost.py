"""Who is taken for a lab that has lost its folder: who holds a removed lock of ours, and nobody else."""

from __future__ import annotations

import fcntl
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hpn.testbed.lab.service import lost, registry
from hpn.testbed.lab.service.labfolder import hold_as_first

NOBODY = 65534


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    base = tmp_path / "home"
    base.mkdir(mode=0o700)
    monkeypatch.setenv("HPN_STATE_DIR", str(base))
    return base


@contextmanager
def _held(file: Path, *, first: bool = True) -> Iterator[int]:
    """A process that holds the lock as the first process of a lab does, whose warden we are; else it has it open."""
    file.parent.mkdir(exist_ok=True)
    lock = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if first:
                hold_as_first(lock)
            os.write(writer, b"held")
            signal.pause()
        finally:
            os._exit(0)
    try:
        assert os.read(reader, 4) == b"held"
        yield child
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        for fd in (lock, reader, writer):
            os.close(fd)


def _found(base: Path) -> list[tuple[str, int | None]]:
    return [(place.name, place.holder()) for place in lost.labs_of(base)]


def test_it_is_found_by_its_lock_once_that_is_removed_and_only_in_its_state_directory(home: Path) -> None:
    lock = home / "tiny" / "lock"
    with _held(lock) as first:
        assert _found(home) == [], "its folder is there"
        lock.unlink()
        assert _found(home) == [("tiny", first)]
        lock.parent.rmdir()
        assert _found(home) == [("tiny", first)]
        assert _found(home.parent) == []
        assert [(record.first_pid, record.state) for _, record in registry.everything()] == [(first, "lost")]
    assert _found(home) == []


def test_who_merely_has_a_removed_lock_open_is_no_lab(home: Path) -> None:
    """Such as a ``hpn down`` that removes what is left of one."""
    with _held(home / "tiny" / "lock", first=False):
        (home / "tiny" / "lock").unlink()
        assert _found(home) == []


@pytest.mark.parametrize("place", ["tiny/key", "Not A Name/lock", "tiny/lock (deleted)"])
def test_no_other_file_that_is_locked_so_makes_a_lab(home: Path, place: str) -> None:
    with _held(home / place):
        if "deleted" not in place:
            (home / place).unlink()
        assert _found(home) == []


def test_a_file_of_another_user_makes_no_lab_whatever_its_name(home: Path) -> None:
    """It would have us end a process of that user's choice."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    with _held(home / "tiny" / "lock"):
        os.chown(home / "tiny" / "lock", NOBODY, NOBODY)
        (home / "tiny" / "lock").unlink()
        assert _found(home) == []


def test_a_leftover_without_its_lock_is_removed_once_nobody_lives(home: Path) -> None:
    lock = home / "tiny" / "lock"
    with _held(lock):
        (home / "tiny" / "lab.json").touch()
        lock.unlink()
        assert [record.state for _, record in registry.everything()] == ["lost"]
        assert os.listdir(home / "tiny") == ["lab.json"]
    assert list(registry.everything()) == []
    assert os.listdir(home) == []
