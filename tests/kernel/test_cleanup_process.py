"""What a process had to clear up is cleared up when it is killed, the inner before the outer."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable
from pathlib import Path

from hpn.testbed.kernel.process.cleanup_process import cleared_up, scratch_folder

_OUT = 200
"""A descriptor that the survivors keep."""


def _dies(body: Callable[[], None]) -> int:
    """Run ``body``, which kills the process that runs it; what survivors write to _OUT, until the last has ended."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.dup2(writer, _OUT)
        os.close(writer)
        body()
    os.close(writer)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    return reader


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _say(words: bytes) -> None:
    os.write(_OUT, words)


def test_a_killed_process_leaves_no_scratch_folder(tmp_path: Path) -> None:
    def body() -> None:
        with cleared_up(lambda: _say(b"over"), {_OUT}), scratch_folder("hpn-", tmp_path) as made:
            (made / "file").touch()
            _kill()

    with os.fdopen(_dies(body), "rb") as said:
        assert said.read() == b"over"
    assert os.listdir(tmp_path) == []


def test_a_scratch_folder_is_private_and_gone_afterwards(tmp_path: Path) -> None:
    with scratch_folder("hpn-", tmp_path) as made:
        assert made.parent == tmp_path
        assert made.stat().st_mode & 0o777 == 0o700
        assert made.name.startswith("hpn-")
    assert os.listdir(tmp_path) == []


def test_the_inner_clears_up_before_the_outer(tmp_path: Path) -> None:
    """The inner one is held up, and the outer has time to be too early."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)

    def inner() -> None:
        gate.read_bytes()
        _say(b"inner ")

    def body() -> None:
        with cleared_up(lambda: _say(b"outer"), {_OUT}), cleared_up(inner, {_OUT}):
            _kill()

    reader = _dies(body)
    poller = select.poll()
    poller.register(reader, select.POLLIN)
    with gate.open("wb"):  # opens once the inner is at it
        assert poller.poll(500) == []
    with os.fdopen(reader, "rb") as said:
        assert said.read() == b"inner outer"
