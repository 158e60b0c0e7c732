"""FRR with a switch's own frr.conf: vtysh gives it to the daemons once they listen, as at the boot of a machine.

After it come lines that make them log what hpn listens to.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from functools import partial
from pathlib import Path

from hpn.testbed.errors import MachineError
from hpn.testbed.events import EventSink
from hpn.testbed.fabric.model import Fabric, Node
from hpn.testbed.fabric.wired.config_words import SwitchConfig
from hpn.testbed.fabric.wired.configs import own_configs
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.process import programs
from hpn.testbed.routing.child import Child
from hpn.testbed.routing.frr.daemon import FRR, PROGRAMS, FrrDaemon, bfd_change, find_frr, has_started
from hpn.testbed.routing.own.refused import no_drain

_TIMEOUT_S = 30
_BAD_LINE = re.compile(r"^line (\d+): (.*)$")
_REFUSED = re.compile(r"^Failure to communicate\[\d+\] to (?=\w+, line: )")


def find_vtysh() -> str:
    """Return the path of FRR's shell, preferably of its daemons' prefix. MachineError when there is none."""
    daemons = Path(find_frr("zebra")).parent
    found = programs.find("vtysh", beside=str(daemons.parent / "bin" / "vtysh"))
    if found is None:
        raise MachineError("FRR's vtysh is missing, which loads a frr.conf: apt install frr")
    return found


class OwnFrr(FrrDaemon):
    """FRR of one switch, by its own configuration."""

    def __init__(self, fabric: Fabric, node: Node, ns: NetNs, emit: EventSink) -> None:
        super().__init__(fabric, node, ns, emit)
        self._own = own_configs(fabric)[node.name]
        self._programs = (*PROGRAMS, *self._own.daemons)
        self._peers |= {port: port for port in self._own.interfaces}
        self._waiting: set[str] = set()

    def _heard_zebra(self, line: str) -> None:
        if not has_started(line):
            return
        self._waiting = set(self._programs[1:])
        for program in self._programs[1:]:
            self._run(program, f"hostname {self.node.name}\n", partial(self._heard_one, program))

    def _heard_one(self, program: str, line: str) -> None:
        if has_started(line) and program in self._waiting:
            self._waiting.remove(program)
            if not self._waiting:
                self._configure()
        if program == "bgpd":
            self._heard_bgpd(line)
        if program == "bfdd" and (change := bfd_change(line)) is not None:
            self.sessions.on_bfd(change.port or self._ports.get(change.peer, change.peer), change.state)

    def _configure(self) -> None:
        path = self.folder / "frr.conf"
        path.write_text(self._own.text + _after(self._own))
        said: list[str] = []
        command = (find_vtysh(), "--vty_socket", str(self.folder), "--config_dir", str(self.folder), "-f", str(path))
        Child(command, self._ns, said.append, partial(self._configured, said))

    def _configured(self, said: list[str], code: int) -> None:
        if code and self.running:
            self.trouble = "; ".join(_in_its_file(self._own, said)) or f"{self._own.file}: vtysh ended with code {code}"

    def withdraw(self) -> None:
        """Refuse: a drain is a change of the configuration. MachineError always."""
        raise no_drain(self.node, self._own)

    def announce(self) -> None:
        """Refuse, as ``withdraw``."""
        raise no_drain(self.node, self._own)


def _after(config: SwitchConfig) -> str:
    """Return lines after the user's: changes of sessions are logged, which 'frr defaults traditional' leaves out."""
    instance = f"router bgp {config.asn}"
    has_one = any(line.split() == instance.split() for line in config.text.splitlines())
    return "\n!\ndebug bfd peer\n" + (f"{instance}\n bgp log-neighbor-changes\nexit\n" if has_one else "")


def problems(config: SwitchConfig, folder: Path) -> list[str]:
    """Return what vtysh finds wrong, by file and line; ``folder``: for its copy of the file."""
    path = folder / "frr.conf"
    path.write_text(config.text)
    command = [find_vtysh(), "--config_dir", str(folder), "-C", "-f", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    if done.returncode == 0:
        return []
    found = _in_its_file(config, (done.stdout + done.stderr).splitlines())
    return found or [f"{config.file}: vtysh ended with code {done.returncode}"]


def _in_its_file(config: SwitchConfig, said: list[str]) -> list[str]:
    found = (_BAD_LINE.match(line.strip()) for line in said)
    return [f"{config.file}:{match[1]}: {_REFUSED.sub('refused by ', match[2])}" for match in found if match]


def _missing() -> str | None:
    try:
        find_vtysh()
    except MachineError as error:
        return str(error)
    return FRR.missing()


def _make(fabric: Fabric, node: Node, ns: NetNs, emit: EventSink) -> OwnFrr:
    return OwnFrr(fabric, node, ns, emit)


OWN_FRR = replace(FRR, missing=_missing, make=_make)
