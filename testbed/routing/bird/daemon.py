"""BIRD as the BGP daemon of a switch: one process, whose log on standard error reports its sessions."""

from __future__ import annotations

import re
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hpn.testbed.errors import MachineError
from hpn.testbed.events import EventSink
from hpn.testbed.fabric.architectures.architecture import nothing_more
from hpn.testbed.fabric.model import Fabric, Node
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.process import programs
from hpn.testbed.kernel.rtnetlink.rtnl import PROTO_BIRD
from hpn.testbed.routing.bgp import BgpDaemon, DaemonKind
from hpn.testbed.routing.bird.config import SCAN_S, config, symbol
from hpn.testbed.routing.bird.control import command_now
from hpn.testbed.routing.neighbours import neighbours

_LINE = re.compile(r"^\S+ \S+ <(?P<level>[A-Z]+)> (?P<text>.*)$")
_STATE = re.compile(r"^(?P<name>[A-Za-z_][A-Za-z0-9_.-]*): State changed to (?P<state>[a-z]+)$")
_ABOUT = re.compile(r"^(?P<name>[A-Za-z_][A-Za-z0-9_.-]*): (?P<what>.+)$")
_BFD = re.compile(r"^\S+: Session to (?P<peer>\S+) (?:changed state from \S+ to (?P<state>\S+)|(?P<gone>removed))$")
_NO_REASON = "BGP session closed"


@dataclass(frozen=True, slots=True)
class SessionChange:
    """A protocol of BIRD went up or left the up state; ``reason`` is BIRD's last message about it before."""

    session: str
    up: bool
    reason: str


@dataclass(frozen=True, slots=True)
class BfdChange:
    """The BFD session with the address ``peer`` has a new ``state`` (RFC 5880: Up, Init, Down, AdminDown), or ''.

    '' when the session was removed: BFD follows a BGP session and ends with it.
    """

    peer: str
    state: str


class LogReader:
    """Filter for the relevant lines of BIRD's log."""

    def __init__(self) -> None:
        self._reasons: dict[str, str] = {}

    def read(self, line: str) -> SessionChange | BfdChange | None:
        """Return the change that this line reports, if any."""
        parts = _LINE.match(line)
        text = parts["text"] if parts else line
        state = _STATE.match(text)
        if state is not None:
            up = state["state"] == "up"
            return SessionChange(state["name"], up, "" if up else self._reasons.pop(state["name"], ""))
        if bfd := _BFD.match(text):
            return BfdChange(bfd["peer"], bfd["state"] or "")
        if (about := _ABOUT.match(text)) and about["what"] != _NO_REASON:
            self._reasons[about["name"]] = about["what"]
        return None


_BUSY_S = 20.0
"""Timeout for a BIRD that learns a whole fabric: it answers only after processing what it has received."""

_SLACK_NS = 100_000_000

FOLDER = Path("/run/hpn/bird")


def find_bird() -> str:
    """Return the path of the BIRD executable, searched in sbin too. MachineError when there is none."""
    found = programs.find("bird")
    if found is None:
        raise MachineError("BIRD, the routing daemon, is missing: apt install bird2")
    return found


def bird_version() -> str:
    """Return '2.0.12', or BIRD's output as it is. MachineError when there is none."""
    said = subprocess.run([find_bird(), "--version"], capture_output=True, text=True, check=False)
    return (said.stdout + said.stderr).strip().removeprefix("BIRD version ")


def timer_slack_ns(fabric: Fabric, node: Node) -> int:
    """Return how late its timers may be in a large lab; 0: the default.

    A ToR with many sessions wakes as often to send keepalives as to receive them, and each time polls all its sockets.
    A late keepalive leaves at the next wake-up. So slack is only allowed if wake-ups are more frequent than the slack.
    BFD's timers must not be late.
    """
    heard_hz = len(neighbours(fabric, node)) / fabric.spec.bgp.keepalive_s
    return 0 if fabric.spec.bgp.bfd is not None or heard_hz * _SLACK_NS < 1e9 else _SLACK_NS


def slacken(pid: int, slack_ns: int) -> None:
    """Set the timer slack of a process (proc(5), timerslack_ns); no-op without the privilege."""
    if slack_ns:
        with suppress(OSError):
            Path(f"/proc/{pid}/timerslack_ns").write_text(str(slack_ns))


class BirdDaemon(BgpDaemon):
    """BIRD of one switch."""

    TITLE = "BIRD"

    def __init__(self, fabric: Fabric, node: Node, ns: NetNs, emit: EventSink) -> None:
        super().__init__(node, ns, emit)
        self.control = FOLDER / f"{node.name}.ctl"
        self._config = FOLDER / f"{node.name}.conf"
        self._fabric = fabric
        self._log = LogReader()
        # BFD's log identifies sessions by address.
        self._ports = {neighbour.name: neighbour.port for neighbour in neighbours(fabric, node)}

    def _launch(self) -> None:
        program = find_bird()
        self._config.write_text(self._words())
        self._log = LogReader()
        pid_file = FOLDER / f"{self.node.name}.pid"
        command = [program, "-f", "-c", str(self._config), "-s", str(self.control), "-P", str(pid_file)]
        self._spawn("bird", command, self._heard)
        if self.large and "bird" in self._children:
            slacken(self._children["bird"].pid, timer_slack_ns(self._fabric, self.node))

    def deliver(self) -> None:
        """Install every held route in the kernel once, with all its next hops. BirdError when BIRD refuses."""
        if self._holding:
            super().deliver()
            self._reconfigure()

    def hear(self) -> None:
        """Make it learn the host routes of its kernel. BirdError when BIRD refuses."""
        if self._deaf:
            super().hear()
            self._reconfigure()

    def _reconfigure(self) -> None:
        self._config.write_text(self._words())
        command_now(self.control, "configure", _BUSY_S)

    def withdraw(self) -> None:
        """Withdraw the host routes of this ToR, but not its subnets. BirdError when BIRD refuses."""
        self._configure(draining=True)

    def announce(self) -> None:
        """Announce them again. BirdError when BIRD refuses."""
        self._configure(draining=False)

    def reset(self, port: str) -> None:
        """Restart the session of this port, which recovers by itself. BirdError when BIRD refuses."""
        command_now(self.control, f"restart {symbol(port)}")

    def shut(self, port: str) -> None:
        """Disable the session of this port. BirdError when BIRD refuses."""
        command_now(self.control, f"disable {symbol(port)}")

    def unshut(self, port: str) -> None:
        """Enable the session of this port. BirdError when BIRD refuses."""
        command_now(self.control, f"enable {symbol(port)}")

    def _configure(self, *, draining: bool) -> None:
        """Reconfigure through the control socket: on SIGHUP BIRD reacts at its next wake-up, up to seconds later."""
        self._config.write_text(self._words(draining=draining))
        command_now(self.control, "configure")

    def _words(self, *, draining: bool = False) -> str:
        return config(
            self._fabric, self.node, draining=draining, deaf=self._deaf, holding=self._holding, large=self.large
        )

    def _heard(self, line: str) -> None:
        change = self._log.read(line)
        if isinstance(change, BfdChange):
            self.sessions.on_bfd(self._ports.get(change.peer, change.peer), change.state)
        elif change is not None and (port := self._session(change.session)) is not None:
            if change.up:
                self.sessions.up(port)
            else:
                self.sessions.down(port, change.reason)

    def _session(self, name: str) -> str | None:
        """Return the port of a BGP session, None for another protocol; hpn names a session after its port."""
        return name


def _missing() -> str | None:
    try:
        find_bird()
    except MachineError as error:
        return str(error)
    return None


BIRD = DaemonKind(
    name="bird",
    missing=_missing,
    version=bird_version,
    make=BirdDaemon,
    contradictions=nothing_more,
    folder=FOLDER,
    route_protocol=PROTO_BIRD,
    scan_ms=SCAN_S * 1_000,
    memory=1_500_000,
    sorts_next_hops=True,  # nest/rt-attr.c, nexthop_compare_node
)
