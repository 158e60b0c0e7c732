"""The preset ports of a Core: which egress port belongs to which ingress port and pod (HPN paper). Pure.

Rule: traffic enters Core c by the k-th port of one pod. It leaves by the (k + c)-th port of the destination pod, modulo
the number of ports there. Ports are counted per pod, in the order of the Aggs. So a pod's ingress ports spread one by
one over the egress ports of every other pod. Traffic that one Agg sends up through several Cores comes down by
different Aggs: a failed Agg does not idle its counterpart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hpn.testbed.fabric.model import Fabric, Node, Port, Role

FIRST_TABLE = 1000
"""Number of the first routing table; clear of the kernel's own."""


@dataclass(frozen=True, slots=True)
class PresetTable:
    """A routing table of a Core: maps an ingress port in ``ingress`` to ``egress`` of the destination pod.

    Both are the Core's own ports by pod. Ingress ports of different pods with the same position in theirs share a
    table.
    """

    number: int
    ingress: Mapping[int, Port]
    egress: Mapping[int, Port]

    @property
    def name(self) -> str:
        """Name of the table in BIRD: 'preset0'."""
        return f"preset{self.number - FIRST_TABLE}"


def preset_tables(fabric: Fabric, node: Node) -> tuple[PresetTable, ...]:
    """Return the tables of ``node``; none unless it is a Core with preset ports that joins several pods."""
    if node.role is not Role.CORE or fabric.core_ports != "preset":
        return ()
    ports: dict[int, list[Port]] = {}
    for link in fabric.links_of(node.name):
        ports.setdefault(fabric.node(link.lower.node).pod, []).append(link.upper)
    if len(ports) < 2:
        return ()
    return tuple(
        PresetTable(
            FIRST_TABLE + place,
            {pod: ours[place] for pod, ours in ports.items() if place < len(ours)},
            {pod: ours[(place + node.index) % len(ours)] for pod, ours in ports.items()},
        )
        for place in range(max(map(len, ports.values())))
    )
