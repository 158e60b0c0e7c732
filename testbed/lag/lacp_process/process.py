"""The LACP process of a lab, started and monitored: it dies with the lab, and an earlier death is reported.

It is forked without exec, so it has the lab's namespaces and the modules it needs. It uses nothing else of the lab's
process, and shares no descriptor with it but one end of a socket pair.
"""

from __future__ import annotations

import asyncio
import gc
import os
import select
import signal
import socket
import sys
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import NoReturn

from hpn.testbed.kernel.packets.packet import close_all, opened_for_packets
from hpn.testbed.kernel.process import priority, sandbox
from hpn.testbed.lag.lacp_process.main_loop import LacpMainLoop
from hpn.testbed.lag.lacp_process.messages import Failed, encode

_GRACE_S = 2.0
_FAREWELL_S = 1.0


class StationProcess:
    """The process, seen by the lab; needs a running loop. ``died`` gets the cause of death, unless it was closed."""

    def __init__(self, namespaces: Collection[int], died: Callable[[str], None]) -> None:
        """Fork the process; ``namespaces`` are the descriptors that orders may name."""
        ours, theirs = socket.socketpair()
        sandbox.flush()
        self.pid = os.fork()
        if self.pid == 0:
            _be_station(theirs, namespaces)
        theirs.close()
        self.socket = opened_for_packets(ours)  # close_all closes it too, which ends the process
        self._died = died
        self._pidfd = os.pidfd_open(self.pid)
        asyncio.get_running_loop().add_reader(self._pidfd, self._reap)

    def close(self) -> None:
        """End the process: it closes its sockets in parallel when the connection closes."""
        if self._pidfd < 0:
            return
        self.socket.close()
        poller = select.poll()
        poller.register(self._pidfd, select.POLLIN)
        if not poller.poll(_GRACE_S * 1000):
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        self._wait()

    def _reap(self) -> None:
        code = self._wait()
        self._died(f"killed by signal {-code}" if code < 0 else f"exit code {code}")

    def _wait(self) -> int:
        asyncio.get_running_loop().remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._pidfd = -1
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def _be_station(lab: socket.socket, namespaces: Collection[int]) -> NoReturn:
    code = 0
    try:
        gc.freeze()  # objects left from the lab must not be finalised here: their descriptor numbers are reused by now
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM):
            signal.signal(number, signal.SIG_IGN)  # the lab ends this process by closing the connection
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        sandbox.die_with_parent()
        sandbox.close_all_but({lab.fileno(), *namespaces})
        priority.go_first()
        LacpMainLoop(lab).run()
    except BaseException as error:  # noqa: BLE001 - the edge of a process: nothing above it could report
        code = 1
        with suppress(OSError):
            lab.settimeout(_FAREWELL_S)
            lab.sendall(encode(Failed(f"{type(error).__name__}: {error}")))
    finally:
        close_all()
        sys.stderr.flush()
        os._exit(code)
