"""BIRD with a switch's own bird.conf, included from a file that adds what hpn listens to: the log, changes of state."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

from hpn.testbed.events import EventSink
from hpn.testbed.fabric.model import Fabric, Node
from hpn.testbed.fabric.wired.config_words import SwitchConfig
from hpn.testbed.fabric.wired.configs import own_configs
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.routing.bird.config import LOG
from hpn.testbed.routing.bird.daemon import BIRD, FOLDER, BirdDaemon, find_bird
from hpn.testbed.routing.own.refused import no_drain

_TIMEOUT_S = 30
_AROUND = 'debug protocols { states, events };\ninclude "%s";\n'
_BAD_LINE = re.compile(r"^bird: \S*?:(\d+):\d+ (.*)$")


class OwnBird(BirdDaemon):
    """BIRD of one switch, by its own configuration."""

    def __init__(self, fabric: Fabric, node: Node, ns: NetNs, emit: EventSink) -> None:
        super().__init__(fabric, node, ns, emit)
        self._own = own_configs(fabric)[node.name]
        self._names = {name: self._ports.get(address, name) for address, name in self._own.sessions.items()}
        self._protocols = {port: name for name, port in self._names.items()}

    def _words(self, *, draining: bool = False) -> str:
        if draining:
            raise no_drain(self.node, self._own)
        path = FOLDER / f"{self.node.name}.own.conf"
        path.write_text(self._own.text)
        return LOG + _AROUND % path

    def _session(self, name: str) -> str | None:
        return self._names.get(name)

    def reset(self, port: str) -> None:
        """Restart the session of this port, by its name in the configuration. BirdError when BIRD refuses."""
        super().reset(self._protocols.get(port, port))


def problems(config: SwitchConfig, folder: Path) -> list[str]:
    """Return what bird -p finds wrong, by file and line; ``folder``: for its copy of the file."""
    path = folder / "bird.conf"
    path.write_text(config.text)
    command = [find_bird(), "-p", "-c", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    if done.returncode == 0:
        return []
    said = (done.stdout + done.stderr).strip()
    found = (_BAD_LINE.match(line) for line in said.splitlines())
    return [f"{config.file}:{match[1]}: {match[2]}" for match in found if match] or [f"{config.file}: {said}"]


def _make(fabric: Fabric, node: Node, ns: NetNs, emit: EventSink) -> OwnBird:
    return OwnBird(fabric, node, ns, emit)


OWN_BIRD = replace(BIRD, make=_make)
