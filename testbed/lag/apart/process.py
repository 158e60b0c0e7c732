"""The process that speaks LACP for a lab, started and watched: it dies with the lab, and not in silence before.

Fork, not exec: it has the lab's namespaces and the modules that it needs. It takes nothing from the lab's process but
those, and shares no descriptor with it but one end of a socket pair.
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
from hpn.testbed.lag.apart.messages import Failed, encode
from hpn.testbed.lag.apart.station import Station

_GRACE_S = 2.0
_FAREWELL_S = 1.0


class StationProcess:
    """The process, seen by the lab; made on a running loop. ``died`` is told how it died, unless it was closed."""

    def __init__(self, namespaces: Collection[int], died: Callable[[str], None]) -> None:
        """``namespaces`` are the descriptors that orders may name."""
        ours, theirs = socket.socketpair()
        sandbox.flush()
        self.pid = os.fork()
        if self.pid == 0:
            _be_station(theirs, namespaces)
        theirs.close()
        self.socket = opened_for_packets(ours)  # whoever closes all lets go of it: it then closes its own at that time
        self._died = died
        self._pidfd = os.pidfd_open(self.pid)
        asyncio.get_running_loop().add_reader(self._pidfd, self._reap)

    def close(self) -> None:
        """End it: it closes its sockets side by side when it is hung up on."""
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
        gc.freeze()  # what the lab has left may not be taken apart here: its descriptors are others by now
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM):
            signal.signal(number, signal.SIG_IGN)  # who ends the lab hangs up
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        sandbox.die_with_parent()
        sandbox.close_all_but({lab.fileno(), *namespaces})
        priority.go_first()
        Station(lab).run()
    except BaseException as error:  # noqa: BLE001 - the edge of a process: nothing above it could report
        code = 1
        with suppress(OSError):
            lab.settimeout(_FAREWELL_S)
            lab.sendall(encode(Failed(f"{type(error).__name__}: {error}")))
    finally:
        close_all()
        sys.stderr.flush()
        os._exit(code)
