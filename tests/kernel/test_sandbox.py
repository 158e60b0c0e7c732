"""The sandbox stands, is separate, and leaves nothing."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from hpn.testbed.kernel import ns
from hpn.testbed.kernel.process import sandbox


@pytest.mark.kernel
def test_inside_we_are_process_one_with_only_loopback() -> None:
    assert os.getpid() == 1
    assert os.listdir("/proc/self/task") == ["1"]
    assert Path("/proc/net/dev").read_text().count(":") <= 3  # lo, and ifb devices where that module is built in
    assert os.listdir("/run") == []


@pytest.mark.kernel
def test_a_made_namespace_is_another_one_and_we_come_back() -> None:
    before = os.readlink("/proc/thread-self/ns/net")
    made = ns.create("x")
    assert os.readlink("/proc/thread-self/ns/net") == before
    with made.entered():
        assert os.readlink("/proc/thread-self/ns/net") != before
    assert os.readlink("/proc/thread-self/ns/net") == before


def test_killing_the_first_process_ends_every_process_in_the_sandbox() -> None:
    reader, writer = os.pipe()

    def body() -> int:
        if os.fork() == 0:
            signal.pause()
        os.write(writer, b"x")
        signal.pause()
        return 0

    box = sandbox.spawn(body)
    os.close(writer)
    assert os.read(reader, 1) == b"x"
    os.kill(box.first_pid, signal.SIGKILL)
    assert box.wait() == 128 + signal.SIGKILL
    # The pipe's last writer was the grandchild: end of file proves that it is gone.
    assert os.read(reader, 1) == b""
    os.close(reader)


def test_exit_code_of_the_body_comes_back() -> None:
    assert sandbox.spawn(lambda: 7).wait() == 7


def test_ctrl_c_in_a_sandbox_is_no_traceback(capfd: pytest.CaptureFixture[str]) -> None:
    """The terminal tells every process of the group: ``hpn doctor``'s trials too."""

    def interrupted() -> int:
        raise KeyboardInterrupt

    assert sandbox.spawn(interrupted).wait() == 128 + signal.SIGINT
    assert capfd.readouterr().err == ""


def test_the_warden_does_what_is_left_when_the_sandbox_was_killed(tmp_path: Path) -> None:
    done = tmp_path / "done"
    fd = os.open(done, os.O_WRONLY | os.O_CREAT)

    def body() -> int:
        signal.pause()
        return 0

    def put_back() -> None:
        os.write(fd, b"put back")

    box = sandbox.spawn(body, afterwards=put_back)
    assert done.read_bytes() == b""
    os.kill(box.first_pid, signal.SIGKILL)
    assert box.wait() == 128 + signal.SIGKILL
    assert done.read_bytes() == b"put back"
    os.close(fd)
