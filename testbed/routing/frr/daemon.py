"""FRR as the BGP daemon of a switch: zebra has the FIB, bgpd runs BGP, and on ToRs staticd has the subnets.

They start one after the other: a daemon without zebra would retry only ten seconds later. Their logs on standard
output report when each listens, and changes of sessions.
"""

from __future__ import annotations

import re
import socket
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hpn.testbed.errors import MachineError
from hpn.testbed.events import EventSink
from hpn.testbed.fabric.architectures import ARCHITECTURES
from hpn.testbed.fabric.architectures.architecture import Problem
from hpn.testbed.fabric.model import Fabric, Node
from hpn.testbed.fabric.spec import BgpSpec, FabricSpec
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.process import programs
from hpn.testbed.kernel.rtnetlink.rtnl import PROTO_BGP
from hpn.testbed.routing.bgp import BgpDaemon, DaemonKind
from hpn.testbed.routing.frr import config
from hpn.testbed.routing.neighbours import access_subnets, neighbours

_END = b"\0\0\0"
_LONGEST_ANSWER = 1 << 24


class FrrError(MachineError):
    """An FRR daemon refused a command, closed the connection, or did not answer."""


def command_now(path: Path, commands: Sequence[str], timeout_s: float = 2.0) -> str:
    """Run commands in sequence on one connection, starting in the privileged node; return the last one's output.

    The caller blocks until all are answered. FrrError when one is refused, or without an answer in time.
    """
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as connection:
            connection.settimeout(timeout_s)
            connection.connect(str(path))
            said = ""
            for command in ("enable", *commands):
                connection.sendall(command.encode() + b"\0")
                said = _answer(connection, command)
            return said
    except OSError as error:
        raise FrrError(f"FRR at {path} did not carry out {commands!r}: {error.strerror or error}") from error


def _answer(connection: socket.socket, command: str) -> str:
    data = b""
    while data[-4:-1] != _END:
        more = connection.recv(1 << 16)
        if not more or len(data) > _LONGEST_ANSWER:
            raise FrrError(f"FRR closed the connection in the middle of its answer to {command!r}")
        data += more
    text = data[:-4].decode(errors="replace").strip()
    if data[-1] != 0:
        raise FrrError(f"FRR refused {command!r}: {text or f'status {data[-1]}'}")
    return text


_CHANGE = re.compile(
    r"%ADJCHANGE: neighbor (?P<peer>[^\s(]+)\S* in vrf \S+ (?P<state>Up|Down)(?: (?P<reason>.*\S))?\s*$"
)
_BFD = re.compile(
    r" state-change: \[.*?peer:(?P<peer>\S+) .*?vrf:[^\s\]]+(?: ifname:(?P<port>[^\s\]]+))?\] \S+ -> (?P<state>[a-z-]+)"
)
_BFD_GONE = re.compile(r" session-delete: .*?peer:(?P<peer>\S+) .*?vrf:\S+(?: ifname:(?P<port>\S+))?")
_STATES = {"up": "Up", "init": "Init", "down": "Down", "adm-down": "AdminDown"}
_STARTED = re.compile(r" starting: \S*vty@\d+")


@dataclass(frozen=True, slots=True)
class SessionChange:
    """The session with the address ``peer`` (or over this port) is established, or went down for FRR's ``reason``."""

    peer: str
    up: bool
    reason: str


@dataclass(frozen=True, slots=True)
class BfdChange:
    """The BFD session with the address ``peer`` over ``port`` ('': not said) is in ``state``; '': it was removed."""

    peer: str
    port: str
    state: str


def bfd_change(line: str) -> BfdChange | None:
    """Return the change of a BFD session that this line of bfdd reports ('debug bfd peer'), if any."""
    if (found := _BFD.search(line)) is not None and found["state"] in _STATES:
        return BfdChange(found["peer"], found["port"] or "", _STATES[found["state"]])
    gone = _BFD_GONE.search(line)
    return None if gone is None else BfdChange(gone["peer"], gone["port"] or "", "")


def has_started(line: str) -> bool:
    """Return True if this line reports that its daemon listens on its sockets."""
    return _STARTED.search(line) is not None


def session_change(line: str) -> SessionChange | None:
    """Return the change of a BGP session that this line reports, if any."""
    found = _CHANGE.search(line)
    return None if found is None else SessionChange(found["peer"], found["state"] == "Up", found["reason"] or "")


def contradictions(spec: FabricSpec) -> Iterator[Problem]:
    """Yield the parts of a specification that it cannot honour, with a remedy."""
    if spec.bgp.bfd is not None:
        yield ("bgp", "bfd"), "bgp.bfd runs beside BIRD alone here; leave it out, or write daemon: bird"
    usual = BgpSpec()
    for key in ("connect_delay_s", "error_wait_min_s", "error_wait_max_s"):
        if getattr(spec.bgp, key) != getattr(usual, key):
            yield ("bgp", key), f"bgp.{key} means nothing to frr, whose waits are its own; leave it out"
    if ARCHITECTURES[spec.architecture].presets_ports(spec):
        text = "FRR does not fill the tables of the Cores' preset ports; write core_ports: hash, or bgp: {daemon: bird}"
        yield ("bgp", "daemon"), text


FOLDER = Path("/run/hpn/frr")
_GROUP = FOLDER / "group"
_MOUNTS = 'mount -n --bind "$1" /etc/group && mount -n -t tmpfs hpn /var/tmp && shift && exec "$@"'
_ALONE = ("unshare", "--mount", "sh", "-c", _MOUNTS, "sh", str(_GROUP))
"""Command prefix with FRR's file system requirements, in a mount namespace of its own.

FRR requires its user to be in the group frrvty. No root is, and a user namespace with one group cannot have it: here it
is root's own group. FRR also leaves a folder in /var/tmp, where its logs are while it runs.
"""

_USUAL = "--log-level informational"
_OPTIONS = {"bfdd": "--log-level debugging --bfdctl {folder}/bfdd.sock"}
"""Options of programs that differ: bfdd reports changes of sessions as debugging messages only."""

PROGRAMS = ("zebra", "bgpd", "staticd")


def find_frr(program: str) -> str:
    """Return the path of a daemon of FRR. MachineError when there is none."""
    found = programs.find(program)
    if found is None:
        raise MachineError(f"FRR's {program} is missing: apt install frr, or write bgp: {{daemon: bird}}")
    return found


def frr_version() -> str:
    """Return '8.4.4', or bgpd's output as it is. MachineError when there is none."""
    said = subprocess.run([find_frr("bgpd"), "--version"], capture_output=True, text=True, check=False)
    first = (said.stdout + said.stderr).strip().partition("\n")[0]
    return first.removeprefix("bgpd version ")


class FrrDaemon(BgpDaemon):
    """FRR of one switch."""

    TITLE = "FRR"

    def __init__(self, fabric: Fabric, node: Node, ns: NetNs, emit: EventSink) -> None:
        super().__init__(node, ns, emit)
        self.folder = FOLDER / node.name
        self._fabric = fabric
        self._paths: dict[str, str] = {}
        self._draining = self._listening = False
        self._programs: Sequence[str] = PROGRAMS
        found = neighbours(fabric, node)
        self._ports = {neighbour.name: neighbour.port for neighbour in found}
        self._peers = {neighbour.port: neighbour.name for neighbour in found}

    def _launch(self) -> None:
        self._paths = {program: find_frr(program) for program in self._programs}
        self._draining = self._listening = False
        self.folder.mkdir(exist_ok=True)
        if not _GROUP.exists():  # another switch may be reading it
            _GROUP.write_text("root:x:0:\nfrrvty:x:0:\n")
        self._run("zebra", config.zebra(self.node), self._heard_zebra)

    def _run(self, program: str, text: str, heard: Callable[[str], None]) -> None:
        path = self.folder / f"{program}.conf"
        path.write_text(text)
        options = f"-f {path} -i {self.folder}/{program}.pid -z {self.folder}/zserv.api --vty_socket {self.folder}"
        options += f" -P 0 -u root -g root --log stdout {_OPTIONS.get(program, _USUAL).format(folder=self.folder)}"
        command = (*_ALONE, self._paths[program], *options.split())
        self._spawn(program, command, heard)

    def _heard_zebra(self, line: str) -> None:
        if not has_started(line):
            return
        if access_subnets(self._fabric, self.node):
            self._run("staticd", config.staticd(self._fabric, self.node), _ignore)
        self._run("bgpd", self._bgpd(), self._heard_bgpd)

    def _bgpd(self) -> str:
        return config.bgpd(self._fabric, self.node, draining=self._draining)

    def _heard_bgpd(self, line: str) -> None:
        self._listening = self._listening or has_started(line)
        change = session_change(line)
        if change is None:
            return
        port = self._ports.get(change.peer, change.peer)
        if change.up:
            self.sessions.up(port)
        else:
            self.sessions.down(port, change.reason)

    def withdraw(self) -> None:
        """Withdraw the host routes of this ToR, but not its subnets. FrrError when bgpd refuses."""
        self._drain(True)

    def announce(self) -> None:
        """Announce them again. FrrError when bgpd refuses."""
        self._drain(False)

    def reset(self, port: str) -> None:
        """Reset the session of this port, which recovers by itself. FrrError when bgpd refuses."""
        if self._listening:  # else there is no session yet
            self._tell("clear ip bgp " + self._peers[port])

    def shut(self, port: str) -> None:
        """Shut the neighbour of this port down. FrrError when bgpd refuses."""
        self._shut(f"neighbor {self._peers[port]} shutdown")

    def unshut(self, port: str) -> None:
        """Let the neighbour of this port come up. FrrError when bgpd refuses."""
        self._shut(f"no neighbor {self._peers[port]} shutdown")

    def _shut(self, line: str) -> None:
        if self._listening:
            self._tell("configure terminal", f"router bgp {self.node.asn}", line)

    def _drain(self, draining: bool) -> None:
        """Configure bgpd, and its file, which it reads if it does not listen yet."""
        self._draining = draining
        (self.folder / "bgpd.conf").write_text(self._bgpd())
        if self._listening:
            lines = config.drain_commands(self._fabric, self.node, draining=draining)
            self._tell("configure terminal", f"router bgp {self.node.asn}", "address-family ipv4 unicast", *lines)

    def _tell(self, *commands: str) -> None:
        command_now(self.folder / "bgpd.vty", commands)

    def _called(self, program: str) -> str:
        return f"{self.TITLE}'s {program}"


def _ignore(_line: str) -> None:
    """Ignore the log of a daemon without relevant lines."""


def _missing() -> str | None:
    try:
        for program in PROGRAMS:
            find_frr(program)
    except MachineError as error:
        return str(error)
    return None


FRR = DaemonKind(
    name="frr",
    missing=_missing,
    version=frr_version,
    make=FrrDaemon,
    contradictions=contradictions,
    folder=FOLDER,
    route_protocol=PROTO_BGP,
    scan_ms=0,
    memory=23_000_000,
)
