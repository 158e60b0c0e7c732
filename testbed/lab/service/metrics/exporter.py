"""The process that serves a lab's metrics over HTTP: a child of the lab's first process, which it does not outlive.

It reads the ports' counters itself, in the lab's namespaces, and requests only the lab's condition from the
supervisor. A scrape costs the event loop nothing but that answer. The listening socket is created by the command that
starts the lab, in the machine's own network; the lab has another.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from hpn.testbed.condition import Condition
from hpn.testbed.errors import InputError, MachineError
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.process import sandbox
from hpn.testbed.lab.service import status
from hpn.testbed.lab.service.control import ControlServer
from hpn.testbed.lab.service.load import PortReader
from hpn.testbed.lab.service.metrics.samples import Scrape
from hpn.testbed.lab.wire import NETNS_DIR

LOOPBACK = "127.0.0.1"
PATH = "/metrics"
_ANSWER_S = 5.0
_BACKLOG = 128  # room for a burst, so that no client waits a second for a SYN retransmission


def listen(port: int) -> socket.socket:
    """Open a TCP socket on the machine's loopback; ``port`` 0: the kernel chooses. InputError when it is taken.

    MachineError if the package that serves it is not installed.
    """
    try:
        import prometheus_client  # noqa: F401  # checks that it is installed
    except ImportError as error:
        raise MachineError(
            "--metrics needs the Python package prometheus-client: pip install prometheus-client"
        ) from error
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((LOOPBACK, port))
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        way_out = "choose another: --metrics PORT, or --metrics 0 for any that is free"
        raise InputError(f"cannot serve metrics on {LOOPBACK}:{port} ({error.strerror}); {way_out}") from error
    return listening


def url(listening: socket.socket) -> str:
    """Return the URL of the metrics."""
    host, port = listening.getsockname()
    return f"http://{host}:{port}{PATH}"


@dataclass(frozen=True, slots=True)
class Exporter:
    """The process, seen by the supervisor: ``asks`` is our end of the connection for its condition requests."""

    pid: int
    asks: socket.socket
    listening: socket.socket

    async def answer(self, server: ControlServer) -> None:
        """Answer the process while it lives; then refuse scrapes, because other processes hold its socket open."""
        await server.serve_own(self.asks)
        self.listening.shutdown(socket.SHUT_RDWR)
        sys.stderr.write("the metrics endpoint is gone; for another start the lab anew: hpn down, hpn up --metrics\n")
        sys.stderr.flush()


def start(lab: str, fabric: Fabric, listening: socket.socket | None) -> Exporter | None:
    """Fork the process if there is a socket to serve on; in the lab's first process, before its event loop."""
    if listening is None:
        return None
    ours, theirs = socket.socketpair()
    sandbox.flush()
    pid = os.fork()
    if pid == 0:
        _be_exporter(lab, fabric, listening, theirs)
    theirs.close()
    ours.setblocking(False)
    return Exporter(pid, ours, listening)


def _be_exporter(lab: str, fabric: Fabric, listening: socket.socket, asking: socket.socket) -> NoReturn:
    try:
        sandbox.die_with_parent()
        sandbox.close_all_but({listening.fileno(), asking.fileno()})
        from hpn.testbed.lab.service.metrics.server import Server  # its import time delays only this process

        Server(listening, Look(lab, fabric, ScrapeRequest(asking).condition)).serve_forever()
    except BaseException as error:  # noqa: BLE001 - the edge of a process: nothing above it could report
        sys.stderr.write(f"the metrics endpoint died: {type(error).__name__}: {error}\n")
    finally:
        sandbox.flush()
        os._exit(1)


class ScrapeRequest:
    """Client of the supervisor over a connection of our own."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._rest = b""
        self._owed = 0  # outstanding answers to requests that timed out

    def condition(self) -> Condition:
        """Request the lab's condition. MachineError without an answer in time: it still starts, or is stopped."""
        end = time.monotonic() + _ANSWER_S
        self._connection.sendall(b'{"op": "status"}\n')
        self._owed += 1
        while True:
            answer = self._line(end)
            self._owed -= 1
            if self._owed == 0:
                break
        told = json.loads(answer)
        if "error" in told:
            raise MachineError(str(told["error"]))
        return status.from_json(told.get("ok"))

    def _line(self, end: float) -> bytes:
        while b"\n" not in self._rest:
            self._connection.settimeout(max(0.001, end - time.monotonic()))
            try:
                data = self._connection.recv(1 << 16)
            except TimeoutError as error:
                raise MachineError(f"the lab's supervisor did not answer within {_ANSWER_S:g} s") from error
            if not data:
                raise MachineError("the lab's supervisor is gone")
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return line


class Look:
    """Scraper of one lab, one scrape at a time."""

    def __init__(self, lab: str, fabric: Fabric, ask: Callable[[], Condition]) -> None:
        self._lab, self._fabric, self._ask = lab, fabric, ask
        self._started_at = time.time()
        self._one_at_a_time = threading.Lock()
        self._ports: PortReader | None = None  # opened at the first scrape of a running lab

    def __call__(self) -> Scrape:
        """Collect the data of one scrape. MachineError when the lab cannot be read."""
        with self._one_at_a_time:
            condition = self._ask()
            if self._ports is None:
                self._ports = PortReader(self._fabric, _space_of)
            began = time.monotonic()
            readings = {reading.ifindex: reading for reading in self._ports.read()}
            took_s = time.monotonic() - began
        return Scrape(self._lab, self._fabric, self._started_at, condition, readings, took_s)


def _space_of(node: str) -> NetNs:
    return NetNs(node, os.open(NETNS_DIR / node, os.O_RDONLY | os.O_CLOEXEC))
