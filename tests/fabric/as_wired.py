"""Any fabric as a wired one, with the same names or with those of somebody else."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from hpn.testbed.fabric.exporting import settings_of, wiring_of
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.spec import FabricSpec

_NODES = {"host": ("gpu-{}", "node{}", "h_{}", "R1.gpu{}"), "tor": ("leaf{}", "tor-{}", "sw-rack{}"),
          "agg": ("spine{}", "agg-{}", "S.{}"), "core": ("superspine{}", "core-{}")}  # fmt: skip
_PORTS = ("Ethernet{}", "swp{}", "e1-{}", "ens{}f0", "et_0.{}")
_NUMBERS = ("pod", "segment", "index", "plane", "rail")


def as_wired(fabric: Fabric) -> FabricSpec:
    """The specification of the same fabric, wired."""
    wiring = wiring_of(fabric).model_dump(exclude_unset=True)
    return FabricSpec.model_validate({**settings_of(fabric), "wiring": wiring})


def somebody_elses(fabric: Fabric, dice: random.Random) -> dict[str, Any]:
    """A topology file of the fabric with other names; half of them leave to the links what follows from these."""
    wiring = wiring_of(fabric).model_dump(mode="json", exclude_unset=True)
    styles = {role: dice.choice(names) for role, names in _NODES.items()}
    port_style = {node.name: dice.choice(_PORTS) for node in fabric.nodes}
    names = {name: styles[node["role"]].format(at) for at, (name, node) in enumerate(wiring["nodes"].items())}
    ports: dict[str, dict[str, str]] = {name: {} for name in names}
    links = []
    for link in wiring["links"]:
        ends = []
        for end in link["ends"]:
            node, _, port = end.partition(":")
            own = ports[node]
            own.setdefault(port, port_style[node].format(len(own)))
            ends.append(f"{names[node]}:{own[port]}")
        links.append({"ends": ends[:: dice.choice((1, -1))], **({"rate": link["rate"]} if "rate" in link else {})})
    bare = dice.random() < 0.5
    nodes = {names[name]: _node(node, ports[name], bare=bare) for name, node in wiring["nodes"].items()}
    stacks = [{key: names[each[key]] for key in ("primary", "secondary")} for each in wiring.get("stacks", [])]
    settings = {key: value for key, value in settings_of(fabric).items() if key not in ("lacp", "stack") or not stacks}
    return {**settings, "wiring": {"nodes": nodes, "links": links, **({"stacks": stacks} if stacks else {})}}


def _node(node: Mapping[str, Any], ports: Mapping[str, str], *, bare: bool) -> dict[str, Any]:
    found = {key: value for key, value in node.items() if not (bare and key in _NUMBERS)}
    if "nics" in node:
        nics = node["nics"].items()
        found["nics"] = {lag: {**nic, "ports": [ports[port] for port in nic["ports"]]} for lag, nic in nics}
    return found
