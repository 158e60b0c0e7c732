"""BIRD as a child process, one per switch: started inside the switch's namespace, watched without polling.

Readiness, session changes and death all arrive as readable descriptors: BIRD's log on a pipe, the process as a pidfd.
A switch costs one posix-style spawn (vfork), no shell. Whatever is forgotten dies with the lab's PID namespace.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from testbed.errors import MachineError
from testbed.events import Event, EventKind, EventSink, now_ns
from testbed.fabric.model import Node
from testbed.kernel import programs
from testbed.kernel.ns import NetNs
from testbed.routing.birdc import command_now
from testbed.routing.birdlog import BfdChange, LogReader, SessionChange


def find_bird() -> str:
    """Path of the BIRD executable, looked for in sbin too. MachineError when there is none."""
    found = programs.find("bird")
    if found is None:
        raise MachineError("BIRD, the routing daemon, is missing: apt install bird2")
    return found


def bird_version() -> str:
    """'2.0.12', or what BIRD says instead. MachineError when there is none."""
    said = subprocess.run([find_bird(), "--version"], capture_output=True, text=True, check=False)
    return (said.stdout + said.stderr).strip().removeprefix("BIRD version ")


class BirdDaemon:
    """BIRD of one switch. Use it inside a running loop; ``start`` may be called again after a death."""

    def __init__(
        self,
        node: Node,
        ns: NetNs,
        config_dir: Path,
        config: str,
        emit: EventSink,
        *,
        program: str | None = None,
        peers: Mapping[str, str] | None = None,
    ) -> None:
        """``peers``: port by the address at its far end, for BFD, whose sessions are known by address."""
        self.node = node
        self.control = config_dir / f"{node.name}.ctl"
        self._ns = ns
        self._config_path = config_dir / f"{node.name}.conf"
        self._pid_path = config_dir / f"{node.name}.pid"
        self._config = config
        self._emit = emit
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None
        self._pidfd = -1
        self._log = LogReader()
        self._ready: asyncio.Future[None] | None = None
        self._gone: asyncio.Future[None] | None = None
        self._established: set[str] = set()
        self._ending = False
        self.held = False
        """Stopped by ``freeze``."""
        self.trouble: str | None = None
        """How it died when nobody here had asked for that; None once it is started again."""
        self._peers = peers or {}
        self._bfd: dict[str, str] = {}

    @property
    def running(self) -> bool:
        """True from ``start`` until the process has died."""
        return self._process is not None

    @property
    def established(self) -> frozenset[str]:
        """Ports whose BGP session is up."""
        return frozenset(self._established)

    @property
    def bfd(self) -> Mapping[str, str]:
        """State of the BFD session of each port that has one: Up, Init, Down, AdminDown."""
        return self._bfd

    def start(self) -> None:
        """Spawn BIRD in the switch's namespace; returns at once. MachineError when it is not installed."""
        assert self._process is None, f"{self.node.name}: BIRD is running"
        program = self._program or find_bird()
        self._config_path.write_text(self._config)
        loop = asyncio.get_running_loop()
        command = [program, "-f", "-c", str(self._config_path), "-s", str(self.control)]
        command += ["-P", str(self._pid_path)]
        with self._ns.entered():
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
            )
        assert process.stderr is not None
        os.set_blocking(process.stderr.fileno(), False)
        self._process, self._pidfd = process, os.pidfd_open(process.pid)
        self._ending, self.held, self.trouble = False, False, None
        self._log, self._ready, self._gone = LogReader(), loop.create_future(), loop.create_future()
        loop.add_reader(process.stderr.fileno(), self._read_log)
        loop.add_reader(self._pidfd, self._reap)
        self._say(EventKind.DAEMON, "bird", "started", pid=process.pid)

    async def wait_ready(self, deadline_ns: int) -> None:
        """Wait until BIRD answers on its control socket. MachineError with its last words when it died or is slow."""
        assert self._ready is not None, "start it first"
        try:
            async with asyncio.timeout(_seconds_until(deadline_ns)):
                await asyncio.shield(self._ready)
        except TimeoutError:
            raise MachineError(
                f"{self.node.name}: BIRD was not ready in time: {self._log.last or 'it said nothing'}"
            ) from None

    @property
    def pid(self) -> int | None:
        """Process ID while it runs."""
        return None if self._process is None else self._process.pid

    def freeze(self) -> None:
        """Stop it in its tracks (SIGSTOP): it neither forwards news nor says farewell until killed or thawed."""
        if self._process is not None:
            self._process.send_signal(signal.SIGSTOP)
            self.held = True

    def thaw(self) -> None:
        """Let it run on (SIGCONT)."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
            self.held = False

    def configure(self, config: str) -> None:
        """Have it take another configuration now; ``start`` goes back to the first. BirdError when it refuses.

        Through the control socket: at SIGHUP BIRD does so when something else wakes it, up to seconds later.
        """
        self._config_path.write_text(config)
        command_now(self.control, "configure")

    async def gone(self) -> None:
        """Wait until the process has died; returns at once when none runs."""
        if self._gone is not None:
            await self._gone

    def kill(self) -> None:
        """Crash it (SIGKILL): peers see their sessions reset, its kernel routes stay."""
        if self._process is not None:
            self._ending = True
            self._process.send_signal(signal.SIGKILL)

    async def stop(self, deadline_ns: int) -> None:
        """Have BIRD withdraw its routes and end; SIGKILL when it is not gone by the deadline. Idempotent."""
        if self._process is None or self._gone is None:
            return
        self._ending = True
        self._process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(_seconds_until(deadline_ns)):
                await asyncio.shield(self._gone)
        except TimeoutError:
            self.kill()
            await self._gone

    def _read_log(self) -> None:
        process = self._process
        assert process is not None
        assert process.stderr is not None
        try:
            data = os.read(process.stderr.fileno(), 1 << 16)
        except BlockingIOError:
            return
        if not data:
            asyncio.get_running_loop().remove_reader(process.stderr.fileno())
            return
        changes = self._log.feed(data)
        if self._log.started and self._ready is not None and not self._ready.done():
            self._ready.set_result(None)
        for change in changes:
            if isinstance(change, BfdChange):
                self._on_bfd(change)
            else:
                self._on_session(change)

    def _on_bfd(self, change: BfdChange) -> None:
        port = self._peers.get(change.peer, change.peer)
        before = self._bfd.pop(port, "")
        if change.state:
            self._bfd[port] = change.state
        if (before == "Up") != (change.state == "Up"):
            self._say(EventKind.BFD, port, "up" if change.state == "Up" else "down" if change.state else "removed")

    def _on_session(self, change: SessionChange) -> None:
        if change.up and change.session not in self._established:
            self._established.add(change.session)
            self._say(EventKind.BGP, change.session, "established")
        elif not change.up and change.session in self._established:
            self._established.remove(change.session)
            self._say(EventKind.BGP, change.session, "down", reason=change.reason)

    def _reap(self) -> None:
        """The process is dead: drain its log, close everything, tell whoever waits."""
        process, loop = self._process, asyncio.get_running_loop()
        assert process is not None
        assert process.stderr is not None
        code = process.wait()
        self._read_log()
        loop.remove_reader(process.stderr.fileno())
        loop.remove_reader(self._pidfd)
        process.stderr.close()
        os.close(self._pidfd)
        self._process, self._pidfd = None, -1
        if not self._ending:
            how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
            self.trouble = f"{self.node.name}: BIRD (process {process.pid}) died, {how}: {self._log.last or 'no word'}"
        self._say(EventKind.DAEMON, "bird", "died", exit_code=code)
        for session in sorted(self._established):
            self._say(EventKind.BGP, session, "down", reason="BIRD died")
        self._established.clear()
        self._bfd.clear()
        if self._ready is not None and not self._ready.done():
            self._ready.set_exception(
                MachineError(f"{self.node.name}: BIRD died: {self._log.last or f'exit code {code}'}")
            )
            self._ready.exception()  # mark as seen: nobody may be waiting
        if self._gone is not None and not self._gone.done():
            self._gone.set_result(None)

    def _say(self, kind: EventKind, subject: str, what: str, **detail: str | int | float) -> None:
        self._emit(Event(now_ns(), kind, self.node.name, subject, what, detail))


def _seconds_until(deadline_ns: int) -> float:
    return max(0.0, (deadline_ns - now_ns()) / 1e9)
