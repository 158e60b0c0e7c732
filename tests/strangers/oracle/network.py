"""A fabric as a run folder tells it: who is wired to whom, and whether a way is left. Standard library only."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

HOST, TOR, AGG, CORE = "host", "tor", "agg", "core"


@dataclass(frozen=True)
class Link:
    """A cable; ``ends``: lower and upper node; ``flat``: between two ToRs, where there is no up and down."""

    name: str
    ends: tuple[str, str]
    bps: int
    access: bool
    flat: bool = False

    def other(self, node: str) -> str:
        """The node at the other end."""
        return self.ends[1] if self.ends[0] == node else self.ends[0]


@dataclass(frozen=True)
class Network:
    """Everything of ``fabric.json`` that decides about ways."""

    roles: Mapping[str, str]
    links: Mapping[str, Link]
    ports: Mapping[str, tuple[str, ...]]  # NIC to its access links, by port
    planes: int
    plane_of: Mapping[str, int | None]
    spec: Mapping[str, Any]

    @classmethod
    def read(cls, run: Path) -> Network:
        """Of a run folder."""
        told = json.loads((run / "fabric.json").read_text())
        links = {}
        for each in told["links"]:
            ends = each["lower"]["node"], each["upper"]["node"]
            kind = each["kind"]
            links[each["name"]] = Link(each["name"], ends, each["rate_bps"], kind == "access", kind == "mesh")
        peers = {each["name"] for each in told["links"] if each["kind"] == "peer"}
        return cls(
            {node["name"]: node["role"] for node in told["nodes"]},
            {name: link for name, link in links.items() if name not in peers},
            {nic["name"]: tuple(nic["links"]) for nic in told["nics"]},
            told["planes"],
            {node["name"]: node["plane"] for node in told["nodes"]},
            told["spec"],
        )

    @cached_property
    def _at(self) -> Mapping[str, tuple[Link, ...]]:
        found: dict[str, list[Link]] = {}
        for link in self.links.values():
            for end in link.ends:
                found.setdefault(end, []).append(link)
        return {node: tuple(links) for node, links in found.items()}

    def links_of(self, node: str) -> tuple[Link, ...]:
        """Every link with an end there."""
        return self._at.get(node, ())

    def host(self, nic: str) -> str:
        """The host of a NIC."""
        return self.links[self.ports[nic][0]].ends[0]

    def has_way(self, src: str, dst: str, dead: Collection[str], port: int | None = None) -> bool:
        """Whether any way is left between two NICs, up and then down; from one port of the sender only, when named."""
        return any(True for _ in self._ways(src, dst, dead, port))

    def _ways(self, src: str, dst: str, dead: Collection[str], port: int | None) -> Iterator[tuple[str, str]]:
        """The ToRs at both ends of each pair of ports with a way between them."""
        downs = {self.links[name].ends[1] for name in self.ports[dst] if name not in dead}
        for number, name in enumerate(self.ports[src]):
            if name in dead or port not in (None, number):
                continue
            tor = self.links[name].ends[1]
            for end in downs & self._below(self._above(tor, dead), dead):
                yield tor, end

    def _above(self, tor: str, dead: Collection[str]) -> set[str]:
        """What can be climbed to from a ToR, or gone to where all is flat, itself included."""
        seen, new = {tor}, [tor]
        while new:
            node = new.pop()
            for link in self.links_of(node):
                up = link.flat or link.ends[0] == node
                if up and link.name not in dead and link.other(node) not in seen:
                    seen.add(link.other(node))
                    new.append(link.other(node))
        return seen

    def _below(self, tops: set[str], dead: Collection[str]) -> set[str]:
        """The ToRs that can be descended to."""
        seen, new = set(tops), list(tops)
        while new:
            node = new.pop()
            for link in self.links_of(node):
                if link.ends[1] == node and not link.access and link.name not in dead and link.ends[0] not in seen:
                    seen.add(link.ends[0])
                    new.append(link.ends[0])
        return {node for node in seen if self.roles[node] == TOR}

    def directions(self, src: str, way: Collection[str]) -> Iterator[tuple[str, str]]:
        """Each link of a way with the node that it is entered from. ValueError when they are no way."""
        node = self.host(src)
        for name in way:
            link = self.links[name]
            if node not in link.ends:
                raise ValueError(f"{name} does not begin at {node}")
            yield name, node
            node = link.other(node)
