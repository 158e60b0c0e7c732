"""The folders that a guest may write, as this machine sees them while the guest runs."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from hpn.testbed.errors import MachineError
from hpn.testbed.vm.guest import GuestJob, Terminal, Writable


def _job(folder: Path) -> GuestJob:
    return GuestJob(("true",), folder, (folder,), {}, 512, 1, 60.0)


def test_a_folder_that_is_none_is_told_before_the_guest_boots(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match=r"/out, which the guest should write, is no folder here; create it"):
        Writable(_job(tmp_path / "out"))


@pytest.mark.parametrize("replaced", [False, True])
def test_a_folder_that_vanishes_is_told_also_when_another_has_its_name(tmp_path: Path, replaced: bool) -> None:
    out = tmp_path / "out"
    out.mkdir()
    writable = Writable(_job(out))
    writable.check()
    out.rename(tmp_path / "moved")
    if replaced:
        out.mkdir()
    with pytest.raises(MachineError, match="/out, which the guest writes, was deleted or moved; run it again"):
        writable.check()


def test_who_sits_at_a_terminal_may_delete_them(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    here, there = socket.socketpair()
    with here, there:
        writable = Writable(replace(_job(out), terminal=Terminal(there.fileno(), 24, 80)))
        out.rmdir()
        writable.check()
