"""A guest's process group ends with its owner, however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from hpn.testbed.kernel.process.cleanup_process import cleared_up, held
from hpn.testbed.vm.group import ProcessGroup
from tests.product.hpn import until

_FAMILY = 'sleep 600 & echo "$$ $!"; wait'  # a shell with a child, as a UML kernel has its guest's processes


def _start(tmp_path: Path) -> tuple[ProcessGroup, list[int], int]:
    reader, writer = os.pipe2(os.O_CLOEXEC)
    group = ProcessGroup(["/bin/sh", "-c", _FAMILY], cwd=tmp_path, environment={"PATH": os.defpath}, output=writer)
    os.close(writer)
    return group, [int(pid) for pid in os.read(reader, 100).split()], reader


def test_killing_a_group_leaves_none_of_its_processes(tmp_path: Path) -> None:
    group, pids, output = _start(tmp_path)
    assert all(Path(f"/proc/{pid}").exists() for pid in pids)
    assert group.kill() is None
    assert os.read(output, 1) == b""  # the end of the stream: nobody holds it any more


def test_how_a_program_ended_by_itself_is_told(tmp_path: Path) -> None:
    with Path(os.devnull).open("wb") as nowhere:
        group = ProcessGroup(["/bin/sh", "-c", "exit 7"], cwd=tmp_path, environment={}, output=nowhere.fileno())
    assert group.ended(30.0)
    assert group.kill() == 7


def test_a_group_of_which_nobody_is_left_is_no_error(tmp_path: Path) -> None:
    """Seen once, on a loaded machine: the guest had ended, and its warden was gone before we ended it."""
    with Path(os.devnull).open("wb") as nowhere:
        group = ProcessGroup(["/bin/sh", "-c", "exit 7"], cwd=tmp_path, environment={}, output=nowhere.fileno())
    assert group.result() == 7
    os.killpg(group.number, signal.SIGKILL)  # the warden, which nobody but init waits for
    until(lambda: not _is_there(group.number), "nobody of the group is left")
    assert group.kill() == 7


def _is_there(number: int) -> bool:
    try:
        os.killpg(number, 0)
    except ProcessLookupError:
        return False
    return True


_OWNER = f"""
import os, sys, time
from pathlib import Path
from hpn.testbed.kernel.process.cleanup_process import cleared_up, held
from hpn.testbed.vm.group import ProcessGroup
group = ProcessGroup(["/bin/sh", "-c", {_FAMILY!r}], cwd=Path("/"), environment={{"PATH": os.defpath}}, output=1)
sys.stdin.read()
"""


def test_a_group_does_not_outlive_an_owner_that_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", _OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        pids = owner.stdout.readline().split()
        assert len(pids) == 2
        owner.kill()
        assert owner.stdout.read() == b""  # blocks while any process of the group lives


def test_a_group_is_a_session_of_its_own(tmp_path: Path) -> None:
    """The scheduler shares out CPU time among sessions, and a guest's is one CPU."""
    group, pids, output = _start(tmp_path)
    try:
        assert {os.getsid(pid) for pid in pids} == {group.number}
    finally:
        group.kill()
        os.close(output)


def test_nothing_is_cleared_up_before_the_group_has_ended(tmp_path: Path) -> None:
    """It has an end of the pipe at whose other end the one waits that clears up."""
    with cleared_up(lambda: None):
        (fd,) = held()
        group, _, output = _start(tmp_path)
        try:
            assert os.readlink(f"/proc/{group.number}/fd/{fd}") == os.readlink(f"/proc/self/fd/{fd}")
        finally:
            group.kill()
            os.close(output)
