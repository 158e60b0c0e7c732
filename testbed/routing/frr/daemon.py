"""FRR as the BGP daemon of a switch: zebra has the FIB, bgpd runs BGP, and on ToRs staticd has the subnets.

They start one after the other: a daemon without zebra would retry only ten seconds later. Their logs on standard
output report when each listens, and changes of sessions.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from hpn.testbed.errors import MachineError
from hpn.testbed.events import EventSink
from hpn.testbed.fabric.model import Fabric, Node
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.process import programs
from hpn.testbed.kernel.rtnetlink.rtnl import PROTO_BGP
from hpn.testbed.routing.bgp import BgpDaemon, DaemonKind
from hpn.testbed.routing.frr import config
from hpn.testbed.routing.frr.limits import contradictions
from hpn.testbed.routing.frr.log import has_started, session_change
from hpn.testbed.routing.frr.vty import command_now
from hpn.testbed.routing.neighbours import access_subnets, neighbours

FOLDER = Path("/run/hpn/frr")
_GROUP = FOLDER / "group"
_MOUNTS = 'mount -n --bind "$1" /etc/group && mount -n -t tmpfs hpn /var/tmp && shift && exec "$@"'
_ALONE = ("unshare", "--mount", "sh", "-c", _MOUNTS, "sh", str(_GROUP))
"""Command prefix with FRR's file system requirements, in a mount namespace of its own.

FRR requires its user to be in the group frrvty. No root is, and a user namespace with one group cannot have it: here it
is root's own group. FRR also leaves a folder in /var/tmp, where its logs are while it runs.
"""

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
        found = neighbours(fabric, node)
        self._ports = {neighbour.address: neighbour.port for neighbour in found}
        self._addresses = {neighbour.port: neighbour.address for neighbour in found}

    def _launch(self) -> None:
        self._paths = {program: find_frr(program) for program in PROGRAMS}
        self._draining = self._listening = False
        self.folder.mkdir(exist_ok=True)
        if not _GROUP.exists():  # another switch may be reading it
            _GROUP.write_text("root:x:0:\nfrrvty:x:0:\n")
        self._run("zebra", config.zebra(self.node), self._heard_zebra)

    def _run(self, program: str, text: str, heard: Callable[[str], None]) -> None:
        path = self.folder / f"{program}.conf"
        path.write_text(text)
        options = f"-f {path} -i {self.folder}/{program}.pid -z {self.folder}/zserv.api --vty_socket {self.folder}"
        options += " -P 0 -u root -g root --log stdout --log-level informational"
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
            self._tell("clear ip bgp " + self._addresses[port])

    def _drain(self, draining: bool) -> None:
        """Configure bgpd, and its file, which it reads if it does not listen yet."""
        self._draining = draining
        (self.folder / "bgpd.conf").write_text(self._bgpd())
        if self._listening:
            line = "no redistribute kernel" if draining else config.HOST_ROUTES
            self._tell("configure terminal", f"router bgp {self.node.asn}", "address-family ipv4 unicast", line)

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
