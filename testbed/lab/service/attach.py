"""Access to a running lab from outside: run a command in a node, open Mininet's CLI."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable, Sequence
from typing import TextIO

from hpn.testbed.errors import InputError, MachineError
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.kernel.ns import CLONE_NEWNET, setns
from hpn.testbed.kernel.process import sandbox
from hpn.testbed.kernel.process.sysfs import own_sys
from hpn.testbed.lab.wire import NETNS_DIR


def execute(first_pid: int, fabric: Fabric, node: str, command: Sequence[str]) -> int:
    """Run ``command`` in ``node`` on our terminal; return its exit code (128 + signal when killed).

    InputError for an unknown node or command, MachineError when the lab cannot be entered.
    """
    fabric.node(node)

    def body() -> int:
        fd = os.open(NETNS_DIR / node, os.O_RDONLY | os.O_CLOEXEC)
        setns(fd, CLONE_NEWNET)
        own_sys()
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and the command would inherit that
            signal.signal(number, signal.SIG_DFL)
        try:
            os.execvp(command[0], list(command))
        except OSError as error:
            os.write(2, f"hpn: cannot run {command[0]!r}: {error.strerror}\n".encode())
            return 127 if isinstance(error, FileNotFoundError) else 126

    if not command:
        raise InputError("nothing to run; write: hpn exec NODE -- COMMAND")
    return _inside(first_pid, body)


def shell(first_pid: int, fabric: Fabric, stdin: TextIO, script: str | None = None) -> int:
    """Run Mininet's CLI on the lab; return when the user leaves."""

    def body() -> int:
        from hpn.testbed.lab.service import mininet_net

        mininet_net.shell(fabric, stdin, script)
        return 0

    return _inside(first_pid, body)


def _inside(first_pid: int, body: Callable[[], int]) -> int:
    """Run ``body`` in a child inside the lab's namespaces, in the same working directory."""
    directory = os.getcwd()
    sandbox.enter(first_pid)
    child = os.fork()
    if child == 0:
        code = MachineError.exit_code
        try:
            sandbox.die_with_parent()
            os.chdir(directory if os.path.isdir(directory) else "/")
            code = body()
        except Exception:  # noqa: BLE001 - the edge of a process: nothing above it could report
            traceback.print_exc()
        finally:
            os._exit(code)
    # The terminal sends Ctrl-C to the child too: the child handles it, this process waits.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code if code >= 0 else 128 - code
