"""The machine's neighbour table raised for several labs, each of which may end first, or die."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from testbed.errors import MachineError
from testbed.kernel import neighbour_table
from testbed.kernel.neighbour_table import raise_to


@pytest.fixture
def limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Files in the place of the kernel's: never touch the real ones in a test."""
    files = tmp_path / "gc_thresh2", tmp_path / "gc_thresh3"
    for file, value in zip(files, (512, 1024), strict=True):
        file.write_text(f"{value:<10}")
    monkeypatch.setattr(neighbour_table, "_LIMITS", files)
    return files


def _now(limits: tuple[Path, Path]) -> tuple[int, int]:
    """As the kernel would read what was written: up to the first that is no digit."""
    second, third = (int(file.read_text().split()[0][:10]) for file in limits)
    return second, third


@pytest.fixture(autouse=True)
def _as_the_kernel_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file keeps what is behind a shorter number; the kernel does not."""

    def write(fd: int, value: int) -> None:
        os.pwrite(fd, str(value).encode(), 0)
        os.ftruncate(fd, len(str(value)))

    monkeypatch.setattr(neighbour_table, "_write", write)


def test_the_last_who_ends_puts_the_limits_back(limits: tuple[Path, Path], tmp_path: Path) -> None:
    first = raise_to(tmp_path / "state", 3000)
    assert _now(limits) == (6000, 12_000)
    second = raise_to(tmp_path / "state", 5000)
    assert _now(limits) == (10_000, 20_000)
    first.release()
    assert _now(limits) == (10_000, 20_000)
    first.release()
    second.release()
    assert _now(limits) == (512, 1024)


def test_who_stays_keeps_what_it_needs(limits: tuple[Path, Path], tmp_path: Path) -> None:
    small, large = raise_to(tmp_path / "state", 600), raise_to(tmp_path / "state", 5000)
    large.release()
    assert _now(limits) == (1200, 2400)
    small.release()
    assert _now(limits) == (512, 1024)


def test_a_limit_that_is_high_enough_is_not_lowered(limits: tuple[Path, Path], tmp_path: Path) -> None:
    limits[1].write_text("100000")
    raised = raise_to(tmp_path / "state", 1000)
    assert _now(limits) == (2000, 100_000)
    raised.release()
    assert _now(limits) == (512, 100_000)


def test_one_that_died_without_a_word_holds_nothing(limits: tuple[Path, Path], tmp_path: Path) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    lost = raise_to(tmp_path / "state", 9000)
    lost.belongs_to(dead.pid)
    living = raise_to(tmp_path / "state", 1000)
    living.release()
    assert _now(limits) == (512, 1024), "what it was before the one that died"


def test_a_damaged_state_is_begun_anew(limits: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "state").write_text('{"before": "x", "holders": [1e999]}')
    raised = raise_to(tmp_path / "state", 1000)
    assert _now(limits) == (2000, 4000)
    raised.release()
    assert _now(limits) == (512, 1024)


def test_who_may_not_write_them_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbour_table, "_LIMITS", (tmp_path / "none", tmp_path / "none"))
    assert not neighbour_table.may_raise()
    with pytest.raises(MachineError, match="run as root"):
        raise_to(tmp_path / "state", 1000)
