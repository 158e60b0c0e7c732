"""What a BGP daemon is to the lab, whichever program it is: one object per switch, and what is said of the program."""

from __future__ import annotations

import signal
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

from hpn.testbed.events import Event, EventKind, EventSink, now_ns
from hpn.testbed.fabric.architectures.architecture import Problem
from hpn.testbed.fabric.model import Fabric, Node
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.routing.child import Child
from hpn.testbed.routing.sessions import Sessions


class BgpDaemon(ABC):
    """The BGP daemon of one switch: one process or several, which live and die together.

    It learns the host routes in its kernel (``rtnl.PROTO_HOST_ROUTE``), announces them and the subnets of its ToR, and
    puts what it hears into the kernel as multipath routes. It finds out by itself what happens to links and neighbours.
    The timeline hears of sessions that come and go (BGP, BFD) and of its processes (DAEMON) as the daemon's own log
    tells of them: nothing is polled. Use it inside a running loop.
    """

    TITLE: ClassVar[str]
    """What messages call it: 'BIRD'."""

    def __init__(self, node: Node, ns: NetNs, emit: EventSink) -> None:
        self.node = node
        self.sessions = Sessions(node.name, emit)
        self.held = False
        """Stopped by ``freeze``."""
        self.trouble: str | None = None
        """How it died when nobody here had asked for that; None once it is started again."""
        self.large = False
        """Whether it is one of a lab so large that the kernel is to be spared; set before ``start``."""
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
        """Its processes."""
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
        """Start it in the switch's namespace with empty state; returns at once. MachineError when it cannot be.

        May be called again after a death. ``holding``: where the program can do that, a ToR announces no host until
        ``hear``, and what it hears is kept from its kernel until ``deliver``.
        """
        if self._children:
            raise RuntimeError(f"{self.node.name}: {self.TITLE} is running")
        self._ending, self.held, self.trouble = False, False, None
        self._holding = self._deaf = holding
        self._launch()

    def hear(self) -> None:
        """Announce the hosts in the kernel, and from now on those that come; otherwise as ``deliver``."""
        self._deaf = False

    def deliver(self) -> None:
        """Put into the kernel what was held, and from now on what comes; blocks until the program has understood.

        MachineError when it refuses. May be called from another thread than the loop's.
        """
        self._holding = False

    @abstractmethod
    def _launch(self) -> None:
        """Write its configuration and ``_spawn`` its first process. MachineError when it is not installed."""

    @abstractmethod
    def withdraw(self) -> None:
        """Announce the host routes of this ToR no longer, only its subnets. MachineError when it refuses."""

    @abstractmethod
    def announce(self) -> None:
        """Announce them again, as after each ``start``. MachineError when it refuses."""

    @abstractmethod
    def reset(self, port: str) -> None:
        """End the BGP session of this port, which comes back by itself. MachineError when it refuses."""

    def freeze(self) -> None:
        """Stop it in its tracks (SIGSTOP): it neither forwards news nor says farewell until killed or thawed."""
        if self._children:
            self._signal(signal.SIGSTOP)
            self.held = True

    def thaw(self) -> None:
        """Let it run on (SIGCONT)."""
        if self._children:
            self._signal(signal.SIGCONT)
            self.held = False

    def kill(self) -> None:
        """Crash it (SIGKILL): peers see their sessions reset, its kernel routes stay."""
        if self._children:
            self._ending = True
            self._signal(signal.SIGKILL)

    async def gone(self) -> None:
        """Wait until it has died; returns at once when it does not run."""
        for child in list(self._children.values()):
            await child.gone()

    def _spawn(self, program: str, command: Sequence[str], heard: Callable[[str], None]) -> None:
        """Start a process of this daemon; ``heard`` gets each line that it writes.

        One that follows another's words comes into what has become of the daemon meanwhile: it may be held, or dying.
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
        """A process is dead; unless somebody here wanted that, the others go with it."""
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
        """What messages call one of its processes."""
        return self.TITLE

    def _say(self, program: str, what: str, **detail: int) -> None:
        self._emit(Event(now_ns(), EventKind.DAEMON, self.node.name, program, what, detail))


@dataclass(frozen=True, slots=True)
class DaemonKind:
    """A program, or a suite of them, that speaks BGP in the switches of a lab.

    ``missing``: why this machine cannot run it, with the way out. ``contradictions``: what of a topology it cannot
    honour, each with its key and the way out. ``folder``: of the files of all its switches, in the
    sandbox's own /run; it is to be there when the first is started. ``route_protocol``: of its routes in the kernel.
    ``scan_ms``: how often it looks at its interfaces by itself, 0 when never. ``memory``: bytes per switch, measured.
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
