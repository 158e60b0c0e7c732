"""A repository: the topology file of a drawn network and its switches' configurations, to be edited and written."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from tests.misconfigured import bird, frr
from tests.misconfigured.drawn import Drawn

TOPOLOGY = "network.yaml"
_CONFIG = MappingProxyType({"frr": frr.config, "bird": bird.config})


@dataclass(frozen=True)
class Repository:
    """Texts of configurations by switch, and what the topology file holds."""

    net: Drawn
    configs: dict[str, str]
    topology: dict[str, Any]

    @classmethod
    def of(cls, net: Drawn) -> Repository:
        """The correct repository of a network."""
        return cls(net, {name: _CONFIG[net.daemons[name]](net, name) for name in net.daemons}, _topology(net))

    def edited(self, switch: str, old: str, new: str, *, times: int = 0) -> Repository:
        """With ``old`` of a configuration replaced, ``times`` at most or everywhere; it must have one."""
        text = self.configs[switch]
        assert old in text, f"{switch} has no {old!r}:\n{text}"
        return replace(self, configs={**self.configs, switch: text.replace(old, new, times or -1)})

    def with_key(self, value: object, *keys: str) -> Repository:
        """With another value at a key of the topology file."""
        topology: dict[str, Any] = yaml.safe_load(yaml.safe_dump(self.topology))
        place = topology
        for key in keys[:-1]:
            place = place.setdefault(key, {})
        place[keys[-1]] = value
        return replace(self, topology=topology)

    def write(self, folder: Path) -> Path:
        """Write it; the topology file."""
        for name, text in self.configs.items():
            path = folder / name / f"{self.net.daemons[name]}.conf"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        place = folder / TOPOLOGY
        place.write_text(yaml.safe_dump(self.topology, sort_keys=False, width=118))
        return place


def _topology(net: Drawn) -> dict[str, Any]:
    nodes: dict[str, Any] = {
        host.name: {"role": "host", "nics": {"bond0": {"ports": ["eth0", "eth1"], "ip": f"{host.ip}/24"}}}
        for host in net.hosts
    }
    for name, daemon in net.daemons.items():
        nodes[name] = {"role": "leaf" if name in net.leaves else "spine", "config": f"{name}/{daemon}.conf"}
    links: list[dict[str, Any]] = [
        {"ends": [f"{host.name}:eth{at}", f"{leaf}:{host.leaf_ports[at]}"]}
        for host in net.hosts
        for at, leaf in enumerate(host.leaves)
    ]
    for cable in net.cables:
        ends = [f"{cable.leaf}:{cable.leaf_port}", f"{cable.spine}:{cable.spine_port}"]
        links.append({"ends": ends, "addresses": [f"{cable.leaf_ip}/31", f"{cable.spine_ip}/31"]})
    more: dict[str, Any] = {"path_control": {}} if net.planes == 2 else {}
    return {
        "name": "own",
        "architecture": "wired",
        "bgp": {"asn": "per-switch"},
        **more,
        "wiring": {"nodes": nodes, "links": links},
    }
