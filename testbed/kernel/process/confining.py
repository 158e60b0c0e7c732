"""First process of a confined program's PID namespace (``process.confined``): run by its path, not imported.

It enters a network namespace, mounts a /proc, a /sys and a /dev/shm of its own, waits for its order and starts the
program. It reaps orphans, passes SIGTERM on to all, and reports how the program ended. When it ends itself, the
kernel kills all remaining processes of the namespace.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from contextlib import suppress
from types import FrameType
from typing import NoReturn

from hpn.testbed.kernel.ns import CLONE_NEWNET, CLONE_NEWNS, setns, unshare
from hpn.testbed.kernel.process.sandbox import (
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_REC,
    close_all_but,
    die_with_parent,
    let_go_of_terminal,
    mount,
)
from hpn.testbed.kernel.process.sysfs import mount_sys

_CANNOT_START = 127


def main(network: int, control: int, status: int) -> None:
    """Run the order from ``control``; report over ``status`` how its program ended."""
    die_with_parent()
    signal.signal(signal.SIGTERM, _pass_on)
    os.set_inheritable(status, False)
    try:
        setns(network, CLONE_NEWNET)
        _own_mounts()
    except OSError as error:
        _tell(status, {"cannot": error.strerror or str(error)})
        return
    close_all_but({control, status})
    content = _all_of(control)
    if not content:
        return  # the owner closed the pipe without an order
    order = json.loads(content)
    left_ns = order["at_ns"] - time.monotonic_ns()
    if left_ns > 0:
        time.sleep(left_ns / 1e9)
    child = os.fork()
    if child == 0:
        _be(order, status)
    let_go_of_terminal()
    code = _wait_for(child)
    _tell(status, {"code": code, "left": _others()})


def _own_mounts() -> None:
    unshare(CLONE_NEWNS)
    mount("none", "/", "none", MS_REC | MS_PRIVATE)
    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    with suppress(OSError):  # where sysfs must not be mounted, /sys stays as it was
        mount_sys()
    with suppress(OSError):  # hosts share no memory, and it is cleaned up; some systems have no /dev/shm
        mount("hpn", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777")


def _all_of(fd: int) -> bytes:
    found = b""
    while data := os.read(fd, 1 << 16):
        found += data
    os.close(fd)
    return found


def _be(order: dict[str, object], status: int) -> NoReturn:
    """Execute the program in this process."""
    argv, env, cwd = order["argv"], order["env"], order["cwd"]
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if not (isinstance(argv, list) and isinstance(env, dict) and isinstance(cwd, str)):
            raise OSError(0, "the order is none")
        if order["batch"]:
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
        os.chdir(cwd)
        os.execve(argv[0], argv, env)
    except OSError as error:
        _tell(status, {"cannot": error.strerror or str(error)})
    finally:
        os._exit(_CANNOT_START)


def _wait_for(child: int) -> int:
    """Return the exit code of the child, negative for a signal; orphans are reaped meanwhile."""
    while True:
        pid, found = os.waitpid(-1, 0)
        if pid == child:
            return os.waitstatus_to_exitcode(found)


def _others() -> int:
    """Return the number of processes that the program has left running."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    return sum(name.isdigit() for name in os.listdir("/proc")) - 1


def _pass_on(number: int, _frame: FrameType | None) -> None:
    with suppress(ProcessLookupError):
        os.kill(-1, number)  # all in this PID namespace but its first process


def _tell(status: int, words: dict[str, object]) -> None:
    with suppress(BrokenPipeError):  # the reader is gone
        os.write(status, json.dumps(words).encode() + b"\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]))
