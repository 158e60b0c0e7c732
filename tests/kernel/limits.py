"""Files in the place of the machine's limits of the neighbour table: a test never touches the real ones."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hpn.testbed.kernel import neighbour_table
from hpn.testbed.kernel.neighbour_table import Machine

Limits = tuple[Path, Path]
"""gc_thresh2, gc_thresh3."""


def stand_in(folder: Path, values: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Limits of these values, and the record of who has them raised, in ``folder``."""
    files = folder / "gc_thresh2", folder / "gc_thresh3"
    for file, value in zip(files, values, strict=True):
        file.write_text(str(value))
    machine = Machine(files, folder / "machine" / "record")
    monkeypatch.setattr(neighbour_table, "_MACHINE", machine)
    monkeypatch.setattr(neighbour_table, "_write", _write)
    return machine


def now(limits: Limits) -> tuple[int, int]:
    """What they are."""
    second, third = (int(file.read_text()) for file in limits)
    return second, third


def _write(fd: int, value: int) -> None:
    """A file keeps what is behind a shorter number; the kernel does not."""
    os.pwrite(fd, str(value).encode(), 0)
    os.ftruncate(fd, len(str(value)))
