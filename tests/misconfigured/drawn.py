"""A correct leaf-spine network that nobody chose, from a seed: names, ASNs, addresses, daemons and spelling.

``Wishes`` fix what a planted mistake needs; the dice choose the rest. At most 12 nodes, so that FRR starts in a guest.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

LEAF_NAMES = ("leaf{}", "tor-{}", "sw-rack{}", "R1.L{}", "l_{}")
SPINE_NAMES = ("spine{}", "agg-{}", "S.{}", "core-sw{}")
HOST_NAMES = ("gpu-{}", "node{}", "h_{}", "R1.gpu{}")
PORT_NAMES = ("Ethernet{}", "swp{}", "e1-{}", "ens{}f0", "et_0.{}")
SCHEMES = ("unique", "spines", "tiers", "racks")
"""Whose ASN: everybody's own; one for the spines (RFC 7938); one a tier; one a rack's leaves and one for the spines."""
DAEMONS = ("frr", "bird", "mixed")
FEW = "few"
"""One leaf and one spine of FRR: in virtual time a guest with FRR in all of seven switches takes a minute."""
FILTERS = ("none", "prefix-list", "route-map")


@dataclass(frozen=True)
class Wishes:
    """What is not left to the dice; '' and 0: the dice choose."""

    scheme: str = ""
    daemon: str = ""
    planes: int = 0
    filters: str = ""
    bfd: bool | None = False  # None: the dice choose
    next_hop_self: bool = False


@dataclass(frozen=True)
class Style:
    """How configurations are written; each way is correct."""

    peer_groups: bool
    traditional: bool  # FRR's defaults
    filters: str
    keepalive_s: int
    hold_s: int
    connect_s: int
    most_paths: int
    activate: bool
    next_hop_self: bool
    interfaces_last: bool
    inline: bool  # BIRD: no template
    spaces: str
    bfd: bool


@dataclass(frozen=True)
class Cable:
    """A link between two switches and its /31."""

    leaf: str
    leaf_port: str
    spine: str
    spine_port: str
    leaf_ip: str
    spine_ip: str


@dataclass(frozen=True)
class Host:
    """A host with one NIC of two ports, to two leaves."""

    name: str
    ip: str
    leaves: tuple[str, str]
    leaf_ports: tuple[str, str]


@dataclass(frozen=True)
class Drawn:
    """A whole network."""

    leaves: tuple[str, ...]
    spines: tuple[str, ...]
    hosts: tuple[Host, ...]
    cables: tuple[Cable, ...]
    asns: Mapping[str, int]
    daemons: Mapping[str, str]
    scheme: str
    planes: int
    pool: str  # hosts' addresses
    style: Style
    numbers: Mapping[str, int] = field(default_factory=dict)  # of switches, for router IDs

    def sessions(self, switch: str) -> tuple[tuple[str, str, str, str], ...]:
        """Port, own address, neighbour's address and neighbour of each link of a switch."""
        found = []
        for cable in self.cables:
            if cable.leaf == switch:
                found.append((cable.leaf_port, cable.leaf_ip, cable.spine_ip, cable.spine))
            elif cable.spine == switch:
                found.append((cable.spine_port, cable.spine_ip, cable.leaf_ip, cable.leaf))
        return tuple(found)

    def of(self, daemon: str, switches: tuple[str, ...]) -> tuple[str, ...]:
        """Those of the switches that run a daemon."""
        return tuple(name for name in switches if self.daemons[name] == daemon)


def draw(seed: int | str, wishes: Wishes | None = None) -> Drawn:
    """The network of a seed."""
    dice, wanted = random.Random(f"misconfigured/{seed}"), wishes or Wishes()
    planes = wanted.planes or dice.choice((1, 1, 2))
    leaves = _names(dice, LEAF_NAMES, 4)
    spines = _names(dice, SPINE_NAMES, 4 if planes == 2 else dice.choice((2, 3)))
    scheme = wanted.scheme or dice.choice(SCHEMES)
    switches = (*leaves, *spines)
    ports = {name: iter(_ports(dice)) for name in switches}
    hosts = _hosts(dice, leaves, ports)
    return Drawn(
        leaves,
        spines,
        hosts,
        _cables(dice, leaves, spines, planes, ports),
        _asns(dice, scheme, leaves, spines, planes),
        _daemons(dice, wanted.daemon, switches),
        scheme,
        planes,
        hosts[0].ip.partition(".")[0],
        _style(dice, wanted),
        {name: number for number, name in enumerate(switches, 1)},
    )


def _names(dice: random.Random, styles: tuple[str, ...], many: int) -> tuple[str, ...]:
    style, first = dice.choice(styles), dice.randint(0, 40)
    return tuple(style.format(first + at) for at in range(many))


def _ports(dice: random.Random) -> list[str]:
    style, step = dice.choice(PORT_NAMES), dice.choice((1, 4))
    return [style.format(1 + step * at) for at in range(16)]


def _hosts(dice: random.Random, leaves: tuple[str, ...], ports: Mapping[str, Iterator[str]]) -> tuple[Host, ...]:
    names, first = _names(dice, HOST_NAMES, 4), dice.choice(("10", "172"))
    second = dice.randint(16, 30)
    found = []
    for at, name in enumerate(names):
        rack = at // 2
        pair = (leaves[2 * rack], leaves[2 * rack + 1])
        ip = f"{first}.{second}.{rack}.{1 + at}"
        found.append(Host(name, ip, pair, (next(ports[pair[0]]), next(ports[pair[1]]))))
    return tuple(found)


def _cables(
    dice: random.Random,
    leaves: tuple[str, ...],
    spines: tuple[str, ...],
    planes: int,
    ports: Mapping[str, Iterator[str]],
) -> tuple[Cable, ...]:
    base = dice.choice(("100.64", "192.168", "169.254"))
    third = dice.randint(0, 200)
    pairs = [
        (leaf, spine)
        for at, leaf in enumerate(leaves)
        for where, spine in enumerate(spines)
        if planes == 1 or at % 2 == where % 2
    ]
    dice.shuffle(pairs)
    return tuple(
        Cable(leaf, next(ports[leaf]), spine, next(ports[spine]), *_ends(f"{base}.{third}", number))
        for number, (leaf, spine) in enumerate(pairs)
    )


def _ends(base: str, number: int) -> tuple[str, str]:
    return f"{base}.{2 * number}", f"{base}.{2 * number + 1}"


def _asns(
    dice: random.Random, scheme: str, leaves: tuple[str, ...], spines: tuple[str, ...], planes: int
) -> dict[str, int]:
    first = dice.choice((64512, 65001, 4_200_000_000 + dice.randrange(1000)))
    of_spines = {name: first + (at % planes) for at, name in enumerate(spines)}
    if scheme == "unique":
        return {name: first + at for at, name in enumerate((*spines, *leaves))}
    if scheme == "spines":
        return of_spines | {name: first + 10 + at for at, name in enumerate(leaves)}
    if scheme == "racks":
        return of_spines | {name: first + 10 + at // 2 for at, name in enumerate(leaves)}
    return of_spines | dict.fromkeys(leaves, first + 10)


def _daemons(dice: random.Random, wanted: str, switches: tuple[str, ...]) -> dict[str, str]:
    daemon = wanted or dice.choice(DAEMONS)
    if daemon == FEW:
        of_frr = {dice.choice(switches[:4]), dice.choice(switches[4:])}
        return {name: "frr" if name in of_frr else "bird" for name in switches}
    return {name: dice.choice(("frr", "bird")) if daemon == "mixed" else daemon for name in switches}


def _style(dice: random.Random, wanted: Wishes) -> Style:
    keepalive_s = dice.choice((1, 2, 3))
    return Style(
        peer_groups=dice.random() < 0.5,
        traditional=dice.random() < 0.5,
        filters=wanted.filters or dice.choice(FILTERS),
        keepalive_s=keepalive_s,
        hold_s=3 * keepalive_s,
        connect_s=dice.choice((1, 2)),
        most_paths=dice.choice((8, 16, 64)),
        activate=dice.random() < 0.5,
        next_hop_self=dice.random() < 0.3 or wanted.next_hop_self,
        interfaces_last=dice.random() < 0.3,
        inline=dice.random() < 0.5,
        spaces=dice.choice(("  ", "\t", "    ")),
        bfd=dice.random() < 0.3 if wanted.bfd is None else wanted.bfd,
    )
