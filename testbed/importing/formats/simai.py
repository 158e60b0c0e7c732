"""SimAI's topology files, as its gen_Topo_Template.py writes them. Pure.

The first line has the numbers of nodes, GPUs per server, NVLink switches, other switches and links, and the type of
GPU. The second lists switches. Each further line is a link: two nodes, bandwidth, latency, error rate. GPUs of a server
become one host with a NIC for each GPU. Tiers follow from the distance to GPUs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.values import parse_rate
from hpn.testbed.fabric.wired.wiring_spec import RoleName
from hpn.testbed.files.document import Document, shorten
from hpn.testbed.importing.found import Cable, End, Found, FoundNode, Left, Place
from hpn.testbed.importing.importer import Importer, SourceText
from hpn.testbed.importing.mistakes import ImportMistakes

_HEAD = re.compile(r"\s*(\d{1,7}) (\d{1,4}) (\d{1,7}) (\d{1,7}) (\d{1,8}) (\S+)\s*", re.ASCII)
_LINK = re.compile(r"\s*(\d{1,7})\s+(\d{1,7})\s+(\S+)\s+(\S+)\s+(\S+)\s*", re.ASCII)
_MOST_ROWS = 500_000
_HEAD_HINT = "the first line is NODES GPUS_PER_SERVER NVSWITCHES SWITCHES LINKS GPU_TYPE"
_TIERS: tuple[RoleName, ...] = ("host", "tor", "agg", "core")


@dataclass(frozen=True, slots=True)
class _Line:
    """A link of the file by the numbers of its nodes."""

    one: int
    two: int
    rate_bps: int
    place: Place


class _Topology:
    """The numbers of a file: GPUs first, then NVLink switches, then the others."""

    def __init__(self, source: SourceText) -> None:
        self.rows = source.text.splitlines()
        if len(self.rows) > _MOST_ROWS:
            raise InputError(f"{source.name}: more than {_MOST_ROWS:,} lines; import a smaller topology")
        self.document = Document(source.name, {}, {(n,): n for n in range(1, len(self.rows) + 2)})
        match = _HEAD.fullmatch(self.rows[0]) if self.rows else None
        if match is None:
            raise InputError(f"{source.name}:1: no topology of SimAI; {_HEAD_HINT}")
        self.nodes, self.per_server, nv_switches, switches, self.links = (int(match[n]) for n in range(1, 6))
        self.gpus = self.nodes - nv_switches - switches
        self.gpu_type = match[6]
        if self.gpus < 1 or self.per_server < 1:
            raise InputError(
                f"{source.name}:1: no GPUs are left beside {nv_switches + switches} switches; {_HEAD_HINT}"
            )
        listed = self.rows[1].split() if len(self.rows) > 1 else []
        if len(listed) != nv_switches + switches or not all(re.fullmatch(r"[0-9]{1,7}", each) for each in listed):
            what = f"{len(listed)} switches are listed, the first line says {nv_switches + switches}"
            raise InputError(f"{source.name}:2: {what}; list their numbers, NVLink switches first")
        self.nv_switches = {int(each) for each in listed[:nv_switches]}

    def lines(self, mistakes: ImportMistakes) -> Iterator[_Line]:
        """Yield the links that have no mistake."""
        for number, row in enumerate(self.rows[2:], 3):
            if not row.strip():
                continue
            place = Place(self.document, (number,))
            match = _LINK.fullmatch(row)
            if match is None:
                mistakes.add(place, f"{shorten(row)} is no link; write SOURCE DESTINATION BANDWIDTH LATENCY ERROR_RATE")
                continue
            one, two = int(match[1]), int(match[2])
            if max(one, two) >= self.nodes:
                mistakes.add(place, f"there is no node {max(one, two)}: the first line says {self.nodes}; correct one")
                continue
            try:
                yield _Line(one, two, parse_rate(match[3]), place)
            except ValueError as error:
                mistakes.add(place, f"bandwidth: {error}")


def read(sources: Sequence[SourceText]) -> Found:
    """Return the network of one file. InputError with every mistake."""
    if len(sources) != 1:
        raise InputError(f"{sources[1].name}: a second topology; SimAI has one file per network, import one")
    topology = _Topology(sources[0])
    mistakes = ImportMistakes()
    every = list(topology.lines(mistakes))
    mistakes.check()
    lines = [each for each in every if not {each.one, each.two} & topology.nv_switches]
    tiers = _tiers(topology, lines)
    names = {number: _name(number, topology, tiers) for number in tiers}
    cables = tuple(_cables(topology, lines, names))
    nodes: dict[str, FoundNode] = {}
    for number, tier in sorted(tiers.items()):
        role = _TIERS[tier] if tier < len(_TIERS) else None
        nodes.setdefault(names[number], FoundNode(names[number], Place(topology.document, (2,)), role, f"tier {tier}"))
    return Found(tuple(nodes.values()), cables, tuple(_left(topology, len(every) - len(lines))), (_note(topology),))


def _tiers(topology: _Topology, lines: Sequence[_Line]) -> Mapping[int, int]:
    """Return the number of links between each node and the nearest GPU."""
    near: dict[int, list[int]] = {}
    for line in lines:
        near.setdefault(line.one, []).append(line.two)
        near.setdefault(line.two, []).append(line.one)
    tiers = {number: 0 for number in near if number < topology.gpus}
    edge = list(tiers)
    while edge:
        tier = tiers[edge[0]] + 1
        edge = [far for far in dict.fromkeys(far for number in edge for far in near[number]) if far not in tiers]
        tiers |= dict.fromkeys(edge, tier)
    return tiers


def _name(number: int, topology: _Topology, tiers: Mapping[int, int]) -> str:
    if number < topology.gpus:
        return f"server{number // topology.per_server}"
    return f"{({1: 'asw', 2: 'psw', 3: 'dsw'}).get(tiers[number], 'switch')}{number}"


def _cables(topology: _Topology, lines: Sequence[_Line], names: Mapping[int, str]) -> Iterator[Cable]:
    """Yield the links with ports numbered in the order of the file; those of a GPU are one NIC."""
    used: dict[str, int] = {}
    for line in lines:
        ends = []
        for number in (line.one, line.two):
            is_gpu = number < topology.gpus
            place = f"gpu{number % topology.per_server}" if is_gpu else names.get(number, "")
            key = f"{names.get(number, f'switch{number}')}:{place}"
            port = used[key] = used.get(key, -1) + 1
            name = f"{place}p{port}" if is_gpu else f"eth{port}"
            nic = place if is_gpu else None
            ends.append(End(names.get(number, f"switch{number}"), name, nic=nic))
        yield Cable((ends[0], ends[1]), line.place, line.rate_bps)


def _left(topology: _Topology, nv_links: int) -> Iterator[Left]:
    if topology.nv_switches:
        why = "GPUs of a host are joined without a network here"
        yield Left("NVLink switches", why, (f"{len(topology.nv_switches)} switches", f"{nv_links} links"))
    yield Left("latencies and error rates of links", "hpn has no such settings", ())
    yield Left("type of GPU", "a drill's job says how long GPUs compute", (shorten(topology.gpu_type),))


def _note(topology: _Topology) -> str:
    servers = -(-topology.gpus // topology.per_server)
    return f"{topology.gpus} GPUs in {servers} servers; a GPU's links are one NIC; tiers by distance to GPUs"


def _recognises(source: SourceText) -> bool:
    return bool(_HEAD.fullmatch(source.text.partition("\n")[0]))


IMPORTER = Importer("simai", "a topology of SimAI, as its gen_Topo_Template.py writes it", _recognises, read)
