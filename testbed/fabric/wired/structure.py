"""The structure of a wired network, from its links: segments, pods, planes, and numbers in them. Pure.

* Hosts and ToRs that access links join are one segment.
* What is joined without Cores is one pod.
* Switches that links join are one network. Where each network serves one port of every NIC, it is a plane.
* A ToR whose NICs are all of one rail, of several, is that rail's.
* Where each network serves one rail, rails do not meet.

A number that the file gives wins.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from hpn.testbed.fabric.groups import groups
from hpn.testbed.fabric.wired.cables import Cabling
from hpn.testbed.fabric.wired.wiring_spec import WiredNode, WiringSpec


@dataclass(frozen=True)
class Structure:
    """Place of each node, by name: only nodes for which it has a meaning. ``blocks``: segments by (pod, segment)."""

    pods: Mapping[str, int]
    segments: Mapping[str, int]
    planes_of: Mapping[str, int]
    rails_of: Mapping[str, int]
    indexes: Mapping[str, int]
    blocks: Mapping[tuple[int, int], int]
    planes: int
    rails_meet: bool


def structure_of(wiring: WiringSpec, cabling: Cabling) -> Structure:
    """Return the structure of a wiring without problems (``rules``)."""
    nodes = wiring.nodes
    below_cores = groups(cabling.pairs(lambda a, b: "core" not in (nodes[a].role, nodes[b].role)), nodes)
    pods = {name: _given(nodes[name].pod, below_cores[name]) for name in nodes if nodes[name].role != "core"}
    if any(nodes[name].pod is not None for name in pods):
        pods = {name: nodes[name].pod or 0 for name in pods}
    racks = {name for name, node in nodes.items() if node.role in ("host", "tor")}
    segments = _segments(nodes, cabling, pods, racks)
    planes_of, planes = _planes(nodes, cabling)
    blocks = sorted({(pods[name], segments[name]) for name in racks if nodes[name].role == "host"})
    return Structure(
        pods,
        segments,
        planes_of,
        _rails(nodes, cabling),
        _indexes(nodes, cabling, pods, segments, planes_of),
        {block: number for number, block in enumerate(blocks)},
        planes,
        _rails_meet(nodes, cabling) if wiring.rails_meet is None else wiring.rails_meet,
    )


def _given(number: int | None, otherwise: int) -> int:
    return otherwise if number is None else number


def _segments(
    nodes: Mapping[str, WiredNode], cabling: Cabling, pods: Mapping[str, int], racks: Collection[str]
) -> dict[str, int]:
    """Return the segment of each host and ToR, numbered per pod."""
    joined = groups(cabling.pairs(lambda a, b: "host" in (nodes[a].role, nodes[b].role)), nodes)
    numbers: dict[int, dict[int, int]] = defaultdict(dict)
    found: dict[str, int] = {}
    for name in (each for each in nodes if each in racks):
        of_pod = numbers[pods[name]]
        derived = of_pod.setdefault(joined[name], len(of_pod))
        found[name] = _given(nodes[name].segment, derived)
    for tor in (name for name in found if nodes[name].role == "tor" and nodes[name].segment is None):
        hosts = [found[end] for end in cabling.neighbours[tor] if nodes[end].role == "host"]
        found[tor] = min(hosts, default=found[tor])
    return found


def _planes(nodes: Mapping[str, WiredNode], cabling: Cabling) -> tuple[dict[str, int], int]:
    """Return the plane of each switch and the number of planes."""
    switches = [name for name, node in nodes.items() if node.role != "host"]
    given = {name: nodes[name].plane for name in switches}
    if any(plane is not None for plane in given.values()):
        planes_of = {name: plane or 0 for name, plane in given.items()}
        return planes_of, max(planes_of.values()) + 1
    network = groups(cabling.pairs(lambda a, b: "host" not in (nodes[a].role, nodes[b].role)), nodes)
    serves: dict[int, set[int]] = defaultdict(set)
    for nic in cabling.nics:
        for port, tor in enumerate(nic.tors):
            serves[network[tor]].add(port)
    ports = max((len(nic.tors) for nic in cabling.nics), default=1)
    if ports == 1 or any(len(each) > 1 for each in serves.values()):
        return dict.fromkeys(switches, 0), 1
    return {name: min(serves.get(network[name], {0})) for name in switches}, ports


def _rails(nodes: Mapping[str, WiredNode], cabling: Cabling) -> dict[str, int]:
    """Return the rail of each ToR that serves one of several, and those that the file gives."""
    serves: dict[str, set[int]] = defaultdict(set)
    for nic in cabling.nics:
        for tor in nic.tors:
            serves[tor].add(nic.rail)
    several = len(set[int]().union(*serves.values())) > 1
    found = {tor: min(rails) for tor, rails in serves.items() if several and len(rails) == 1}
    return found | {name: node.rail for name, node in nodes.items() if node.rail is not None}


def _rails_meet(nodes: Mapping[str, WiredNode], cabling: Cabling) -> bool:
    """Return False if there are rails, and no switch leads from one to another."""
    network = groups(cabling.pairs(lambda a, b: "host" not in (nodes[a].role, nodes[b].role)), nodes)
    rails: dict[int, set[int]] = defaultdict(set)
    for nic in cabling.nics:
        for tor in nic.tors:
            rails[network[tor]].add(nic.rail)
    several = len({nic.rail for nic in cabling.nics}) > 1
    return not several or any(len(each) > 1 for each in rails.values())


def _indexes(
    nodes: Mapping[str, WiredNode],
    cabling: Cabling,
    pods: Mapping[str, int],
    segments: Mapping[str, int],
    planes_of: Mapping[str, int],
) -> dict[str, int]:
    """Return each node's number among its like; ToRs that share a NIC get different ones (their LACP port IDs)."""
    found = {name: node.index for name, node in nodes.items() if node.index is not None}
    taken: dict[tuple[object, ...], set[int]] = defaultdict(set)
    for name, node in nodes.items():
        if node.role == "tor":
            continue
        place = _place(node, name, pods, segments, planes_of)
        if node.index is None:
            found[name] = next(number for number in range(len(nodes) + 4097) if number not in taken[place])
        taken[place].add(found[name])
    beside, wanted = cabling.tors_beside, cabling.port_of_tor
    for name in (each for each, node in nodes.items() if node.role == "tor" and each not in found):
        used = {found[other] for other in beside.get(name, ()) if other in found}
        first = wanted.get(name, 0)
        found[name] = next(number for number in (first, *range(len(nodes) + 1)) if number not in used)
    return found


def _place(
    node: WiredNode, name: str, pods: Mapping[str, int], segments: Mapping[str, int], planes_of: Mapping[str, int]
) -> tuple[object, ...]:
    if node.role == "host":
        return "host", pods[name], segments[name]
    return (node.role, pods.get(name), planes_of[name], node.rail)
