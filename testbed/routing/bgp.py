"""Interface of a BGP daemon to the lab, for any program: one object per switch, and a description of the program."""

from __future__ import annotations

import signal
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

from hpn.testbed.errors import MachineError
from hpn.testbed.events import Event, EventKind, EventSink, now_ns
from hpn.testbed.fabric.architectures.architecture import Problem
from hpn.testbed.fabric.model import Fabric, Node
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.routing.child import Child


class Sessions:
    """Sessions of one switch, as its daemon's log reports them."""

    def __init__(self, node: str, emit: EventSink) -> None:
        self._node = node
        self._emit = emit
        self._established: set[str] = set()
        self._bfd: dict[str, str] = {}

    @property
    def established(self) -> frozenset[str]:
        """Ports whose BGP session is up."""
        return frozenset(self._established)

    @property
    def bfd(self) -> Mapping[str, str]:
        """State of the BFD session of each port that has one: Up, Init, Down, AdminDown."""
        return self._bfd

    def up(self, port: str) -> None:
        """Record that the BGP session of this port is established."""
        if port not in self._established:
            self._established.add(port)
            self._say(EventKind.BGP, port, "established")

    def down(self, port: str, reason: str) -> None:
        """Record that the BGP session of this port is down."""
        if port in self._established:
            self._established.remove(port)
            self._say(EventKind.BGP, port, "down", reason=reason)

    def on_bfd(self, port: str, state: str) -> None:
        """Record the state of this port's BFD session; '' when it was removed."""
        before = self._bfd.pop(port, "")
        if state:
            self._bfd[port] = state
        if (before == "Up") != (state == "Up"):
            self._say(EventKind.BFD, port, "up" if state == "Up" else "down" if state else "removed")

    def end(self, reason: str) -> None:
        """End every session, since the daemon is dead."""
        for port in sorted(self._established):
            self._say(EventKind.BGP, port, "down", reason=reason)
        self._established.clear()
        self._bfd.clear()

    def _say(self, kind: EventKind, port: str, what: str, **detail: str) -> None:
        self._emit(Event(now_ns(), kind, self._node, port, what, detail))


class BgpDaemon(ABC):
    """BGP daemon of one switch: one process or several, which live and die together.

    It learns the host routes in its kernel (``rtnl.PROTO_HOST_ROUTE``) and announces them and the subnets of its ToR.
    It installs received routes in the kernel as multipath routes. It detects changes of links and neighbours by itself.
    The timeline gets session events (BGP, BFD) and process events (DAEMON) from the daemon's own log: nothing is
    polled. Use it inside a running loop.
    """

    TITLE: ClassVar[str]
    """Name in messages: 'BIRD'."""

    def __init__(self, node: Node, ns: NetNs, emit: EventSink) -> None:
        self.node = node
        self.sessions = Sessions(node.name, emit)
        self.held = False
        """True if stopped by ``freeze``."""
        self.trouble: str | None = None
        """Description of an unexpected death; None once it is started again."""
        self.large = False
        """True in a large lab, which has to spare the kernel; set before ``start``."""
        self._ns = ns
        self._emit = emit
        self._children: dict[str, Child] = {}
        self._ending = False
        self._holding = False
        self._deaf = False

    @property
    def running(self) -> bool:
        """True from ``start`` until all processes have died."""
        return bool(self._children)

    @property
    def pids(self) -> frozenset[int]:
        """Process IDs of the daemon."""
        return frozenset(child.pid for child in self._children.values())

    @property
    def established(self) -> frozenset[str]:
        """Ports whose BGP session is up."""
        return self.sessions.established

    @property
    def bfd(self) -> Mapping[str, str]:
        """State of the BFD session of each port that has one: Up, Init, Down, AdminDown."""
        return self.sessions.bfd

    def start(self, *, holding: bool = False) -> None:
        """Start it in the switch's namespace with empty state; return at once. MachineError when that fails.

        May be called again after a death. ``holding``, if the program supports it: a ToR announces no host until
        ``hear``, and received routes stay out of its kernel until ``deliver``.
        """
        if self._children:
            raise RuntimeError(f"{self.node.name}: {self.TITLE} is running")
        self._ending, self.held, self.trouble = False, False, None
        self._holding = self._deaf = holding
        self._launch()

    def hear(self) -> None:
        """Announce the hosts in the kernel, and new ones from now on; otherwise as ``deliver``."""
        self._deaf = False

    def deliver(self) -> None:
        """Install held routes in the kernel, and new ones from now on; block until the program has confirmed.

        MachineError when it refuses. May be called from another thread than the loop's.
        """
        self._holding = False

    @abstractmethod
    def _launch(self) -> None:
        """Write its configuration and ``_spawn`` its first process. MachineError when it is not installed."""

    @abstractmethod
    def withdraw(self) -> None:
        """Withdraw the host routes of this ToR, but not its subnets. MachineError when it refuses."""

    @abstractmethod
    def announce(self) -> None:
        """Announce them again, as after each ``start``. MachineError when it refuses."""

    @abstractmethod
    def reset(self, port: str) -> None:
        """End the BGP session of this port, which recovers by itself. MachineError when it refuses."""

    def shut(self, port: str) -> None:
        """End the BGP session of this port until ``unshut`` or a new start. MachineError if it refuses or cannot."""
        raise MachineError(f"{self.TITLE} cannot shut the session of {port}: hpn does not know how")

    def unshut(self, port: str) -> None:
        """Let the session of this port come up again. MachineError when it refuses."""
        raise MachineError(f"{self.TITLE} cannot open the session of {port}: hpn does not know how")

    def freeze(self) -> None:
        """Freeze it (SIGSTOP): it sends neither updates nor a farewell until killed or thawed."""
        if self._children:
            self._signal(signal.SIGSTOP)
            self.held = True

    def thaw(self) -> None:
        """Resume it (SIGCONT)."""
        if self._children:
            self._signal(signal.SIGCONT)
            self.held = False

    def kill(self) -> None:
        """Crash it (SIGKILL): peers see their sessions reset, its kernel routes stay."""
        if self._children:
            self._ending = True
            self._signal(signal.SIGKILL)

    async def gone(self) -> None:
        """Wait until it has died; return at once when it is not running."""
        for child in list(self._children.values()):
            await child.gone()

    def _spawn(self, program: str, command: Sequence[str], heard: Callable[[str], None]) -> None:
        """Start a process of this daemon; ``heard`` gets each line that it writes.

        A process started on another's output may find the daemon frozen or dying, and then gets the same state.
        """
        if self._ending:
            return
        child = Child(command, self._ns, heard, partial(self._died, program))
        self._children[program] = child
        if self.held:
            child.signal(signal.SIGSTOP)
        self._say(program, "started", pid=child.pid)

    def _signal(self, number: signal.Signals) -> None:
        for child in self._children.values():
            child.signal(number)

    def _died(self, program: str, code: int) -> None:
        """Handle the death of a process; if it was unexpected, kill the others."""
        child = self._children.pop(program)
        if not self._ending:
            how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
            who = f"{self.node.name}: {self._called(program)} (process {child.pid})"
            self.trouble = f"{who} died, {how}: {child.last_words}"
            self.kill()
        self._say(program, "died", exit_code=code)
        if not self._children:
            self.sessions.end(f"{self.TITLE} died")

    def _called(self, _program: str) -> str:
        """Return the name of one of its processes in messages."""
        return self.TITLE

    def _say(self, program: str, what: str, **detail: int) -> None:
        self._emit(Event(now_ns(), EventKind.DAEMON, self.node.name, program, what, detail))


@dataclass(frozen=True, slots=True)
class DaemonKind:
    """A program, or a suite of them, for BGP in the switches of a lab.

    ``missing``: why this machine cannot run it, with a remedy. ``contradictions``: parts of a topology that it cannot
    honour, each with its key and a remedy. ``folder``: for the files of all its switches, in the sandbox's own /run; it
    must exist when the first is started. ``route_protocol``: of its routes in the kernel. ``scan_ms``: period of its
    interface scans, 0 for none. ``memory``: bytes per switch, measured. ``sorts_next_hops``: the kernel gets equal next
    hops in the order of their gateways' addresses, as ``hpn model`` assumes.
    """

    name: str
    missing: Callable[[], str | None]
    version: Callable[[], str]
    make: Callable[[Fabric, Node, NetNs, EventSink], BgpDaemon]
    contradictions: Callable[[FabricSpec], Iterable[Problem]]
    folder: Path
    route_protocol: int
    scan_ms: int
    memory: int
    sorts_next_hops: bool = False
