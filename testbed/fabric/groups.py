"""Connected groups: of any names, and of Aggs that only Cores join. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hpn.testbed.fabric.model import Link, LinkKind, Node, Role

FIRST_GROUP_ASN = 4_210_000_000
"""First ASN of Aggs that only Cores join: of the private ones with 32 bits (RFC 6996)."""


def groups(pairs: Iterable[tuple[str, str]], names: Iterable[str]) -> dict[str, int]:
    """Return for each name the number of its connected group, numbered by first appearance (union-find)."""
    parent = {name: name for name in names}

    def root(name: str) -> str:
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    for one, other in pairs:
        parent[root(other)] = root(one)
    numbers: dict[str, int] = {}
    return {name: numbers.setdefault(root(name), len(numbers)) for name in parent}


def asns_apart(nodes: Sequence[Node], links: Sequence[Link]) -> Mapping[str, int]:
    """Return ASNs of Aggs in the same pod and plane that only Cores join, such as those of two rails; by name.

    With their pod's ASN each would refuse what a Core announces of the other. Empty where a pod and plane is one group.
    """
    if not any(node.role is Role.CORE for node in nodes):
        return {}
    fabric = [(link.lower.node, link.upper.node) for link in links if link.kind is LinkKind.FABRIC]
    group = groups(fabric, dict.fromkeys(name for pair in fabric for name in pair))
    aggs = [node for node in nodes if node.role is Role.AGG and node.name in group]
    of_tier: dict[tuple[int, int | None], set[int]] = {}
    for agg in aggs:
        of_tier.setdefault((agg.pod, agg.plane), set()).add(group[agg.name])
    apart = [agg for agg in aggs if len(of_tier[agg.pod, agg.plane]) > 1]
    numbers: dict[int, int] = {}
    return {agg.name: FIRST_GROUP_ASN + numbers.setdefault(group[agg.name], len(numbers)) for agg in apart}
