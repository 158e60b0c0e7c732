"""Words of a switch's own configuration that hpn needs: ASN, router ID, addresses, neighbours; each with its line.

A line that is not known here is the daemon's business, which reads the file unchanged. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import PurePath

from hpn.testbed.fabric.addresses import interface_in
from hpn.testbed.fabric.model import Port

_NUMBER = r"(\d{1,10})"
_IP = r"(\d{1,3}(?:\.\d{1,3}){3})"
RemoteAs = int | str | None
"""ASN that a configuration awaits of a neighbour: a number, 'external' (not its own), 'internal'; None: it has none."""


@dataclass(frozen=True)
class SwitchConfig:
    """Content of a configuration that hpn reads. ``lines``: of 'asn', 'router_id', 'neighbour A.B.C.D', 'address PORT'.

    ``neighbours``: ASN awaited of each neighbour, by its address, or by our port where it needs none (BGP unnumbered).
    ``interfaces``: those ports; True: its session never runs over IPv4. ``bfd``: neighbours with BFD. ``sessions``:
    BIRD's protocol names, by the neighbour's address. ``daemons``: further daemons of FRR that the lines are for.
    ``left``: lines that a namespace cannot give, with the reason. ``own_asn_times``: how often it takes its own ASN in
    a path, from any neighbour.
    """

    daemon: str
    file: str
    text: str
    asn: int | None = None
    router_id: str | None = None
    addresses: Mapping[str, str] = field(default_factory=dict)
    neighbours: Mapping[str, RemoteAs] = field(default_factory=dict)
    interfaces: Mapping[str, bool] = field(default_factory=dict)
    bfd: frozenset[str] = frozenset()
    sessions: Mapping[str, str] = field(default_factory=dict)
    daemons: tuple[str, ...] = ()
    lines: Mapping[str, int] = field(default_factory=dict)
    left: tuple[tuple[int, str], ...] = ()
    own_asn_times: int = 0

    def where(self, what: str) -> str:
        """Return 'leaf1/frr.conf:12', the line of what was found; of the file without one."""
        line = self.lines.get(what)
        return self.file if line is None else f"{self.file}:{line}"

    def peer(self, here: Port, there: Port) -> str | None:
        """Return the name of the neighbour at the other end of a link, as in ``neighbours``; None if it has none."""
        if here.name in self.interfaces:
            return here.name
        return there.ip if there.address is not None and there.ip in self.neighbours else None


@lru_cache(maxsize=4096)  # a lab asks for each switch's, several times
def words_of(file: str, text: str) -> SwitchConfig:
    """Return what the configuration says. KeyError for a file of no kind."""
    return KINDS[kind_of(file) or ""](file, text)


def kind_of(file: str) -> str | None:
    """Return the kind of a configuration by its file's name: 'frr.conf' of 'leaf1-frr.conf' too, else None."""
    name = PurePath(file).name
    return next(
        (kind for kind in KINDS if name == kind or name.endswith(tuple(f"{mark}{kind}" for mark in "-_."))), None
    )


_ALLOWAS_IN, _ANY_TIMES = 3, 255
"""Times without a number: FRR's default ('origin' too, which is once at the end); BIRD's check is off then."""

_CANNOT: Mapping[str, str] = {
    r"router (ospf6?|isis|rip|ripng|eigrp|babel|openfabric)\b": "hpn runs BGP and static routes only",
    r"(vrf \S|(router bgp|interface) .*\bvrf \S)": "hpn has no VRFs",
    r"\s*(evpn mh|advertise-all-vni|vni \d+)": "EVPN needs VXLAN devices, which hpn does not make",
    r"mpls\b|\s*mpls ": "hpn's kernel has no MPLS",
}
_DAEMONS: Mapping[str, str] = {"bfdd": r"bfd$|\s*neighbor \S+ bfd\b|ip route .* bfd\b"}
"""Daemons of FRR that run only where a line is for them."""


@dataclass
class _FrrWords:
    """Words of a frr.conf so far. ``peers``: what is written of each neighbour and peer group, by its name."""

    asn: int | None = None
    router: str | None = None
    interface: str = ""
    addresses: dict[str, str] = field(default_factory=dict)
    peers: dict[str, dict[str, str]] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    own_asn_times: int = 0

    def read(self, number: int, words: list[str]) -> None:
        """Read one line."""
        match words:
            case ["router", "bgp", as_number, *_] if self.asn is None and as_number.isdecimal():
                self.asn, self.lines["asn"] = int(as_number), number
            case ["bgp", "router-id", address] | ["ip", "router-id", address]:
                self.router, self.lines["router_id"] = address, number
            case ["ip", "address", address, *_] if self.interface and "/" in address and interface_in(address):
                self.addresses[self.interface], self.lines[f"address {self.interface}"] = address, number
            case ["neighbor", peer, *said]:
                self._peer(peer, said)
                if "remote-as" in said or f"neighbour {peer}" not in self.lines:
                    self.lines[f"neighbour {peer}"] = number

    def _peer(self, peer: str, said: list[str]) -> None:
        found = self.peers.setdefault(peer, {})
        match said:
            case ["interface", *more]:
                found["interface"] = "v6only" if "v6only" in more else found.get("interface", "")
                self._peer(peer, [word for word in more if word != "v6only"])
            case ["remote-as" | "peer-group" as word, value]:
                found[word] = value
            case ["bfd", *_]:
                found["bfd"] = ""
            case ["allowas-in", *times]:
                often = int(times[0]) if times and times[0].isdecimal() else _ALLOWAS_IN
                self.own_asn_times = max(self.own_asn_times, often)

    def all_of(self, peer: str) -> Mapping[str, str]:
        """Return what is written of a neighbour, and of its group where it says nothing itself."""
        own = self.peers[peer]
        return {**self.peers.get(own.get("peer-group", ""), {}), **own}


def _frr(file: str, text: str) -> SwitchConfig:
    found = _FrrWords()
    left: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("!"):
            continue
        if why := _left(line):
            left.append((number, why))
        if not line[0].isspace():
            found.interface = words[1] if words[0] == "interface" and len(words) > 1 else ""
        found.read(number, words)
    peers = {peer: found.all_of(peer) for peer in found.peers}
    peers = {peer: said for peer, said in peers.items() if re.fullmatch(_IP, peer) or "interface" in said}
    return SwitchConfig(
        "frr",
        file,
        text,
        found.asn,
        found.router,
        found.addresses,
        {peer: _remote_as(said.get("remote-as")) for peer, said in peers.items()},
        {peer: said["interface"] == "v6only" for peer, said in peers.items() if "interface" in said},
        frozenset(peer for peer, said in peers.items() if "bfd" in said),
        daemons=tuple(name for name, line in _DAEMONS.items() if re.search(f"^(?:{line})", text, re.MULTILINE)),
        lines=found.lines,
        left=tuple(left),
        own_asn_times=found.own_asn_times,
    )


def _remote_as(said: str | None) -> RemoteAs:
    return int(said) if said is not None and said.isdecimal() else said


def _left(line: str) -> str:
    return next((why for pattern, why in _CANNOT.items() if re.match(pattern, line)), "")


_BIRD_LOCAL = re.compile(rf"\blocal\s+(?:{_IP}\s+)?as\s+{_NUMBER}\s*;")
_BIRD_NEIGHBOUR = re.compile(rf"\bneighbor\s+{_IP}(?:%\S+)?(?:\s+port\s+\d+)?(?:\s+as\s+{_NUMBER})?")
_BIRD_BLOCK = re.compile(r"^\s*(?:protocol|template)\s+(\w+)\s*(?:'([^']+)'|(\w+))?(?:\s+from\s+(?:'([^']+)'|(\w+)))?")
_BIRD_OWN_ASN = re.compile(r"\ballow\s+local\s+as(?:\s+(\d{1,10}))?\s*;")
_BIRD_BFD = re.compile(r"(?:^|[;{])\s*bfd\b\s*(off|no|false)?")
_BIRD_ROUTER = re.compile(rf"^\s*router\s+id\s+{_IP}\s*;")


@dataclass
class _BirdWords:
    """Words of a bird.conf so far. ``block``: name of the BGP protocol or template that the lines are of, '' of others.

    ``parents``: template of each block; ``bfd``: what a block says of it; ``blocks``: of each neighbour's address.
    """

    asn: int | None = None
    router: str | None = None
    block: str = ""
    neighbours: dict[str, RemoteAs] = field(default_factory=dict)
    blocks: dict[str, str] = field(default_factory=dict)
    parents: dict[str, str] = field(default_factory=dict)
    bfd: dict[str, bool] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    own_asn_times: int = 0

    def read(self, number: int, line: str) -> None:
        """Read one line, without its comment."""
        if match := _BIRD_ROUTER.match(line):
            self.router, self.lines["router_id"] = match[1], number
        if match := _BIRD_BLOCK.match(line):
            name = match[2] or match[3] or f"line {number}"
            self.block = name if match[1] == "bgp" else ""
            self.parents[self.block] = match[4] or match[5] or ""
            line = line[match.end() :]
        if (match := _BIRD_LOCAL.search(line)) and self.asn is None:
            self.asn, self.lines["asn"] = int(match[2]), number
        if match := _BIRD_OWN_ASN.search(line):
            self.own_asn_times = max(self.own_asn_times, int(match[1]) if match[1] else _ANY_TIMES)
        if match := _BIRD_BFD.search(line):
            self.bfd[self.block] = not match[1]
        if match := _BIRD_NEIGHBOUR.search(line):
            self.neighbours[match[1]] = int(match[2]) if match[2] else None
            self.lines[f"neighbour {match[1]}"] = number
            self.blocks[match[1]] = self.block

    def has_bfd(self, block: str) -> bool:
        """Return True if a block, or the template that it is from, asks for BFD."""
        seen: set[str] = set()
        while block and block not in seen and block not in self.bfd:
            seen.add(block)
            block = self.parents.get(block, "")
        return bool(block) and self.bfd.get(block, False)


def _bird(file: str, text: str) -> SwitchConfig:
    found = _BirdWords()
    for number, whole in enumerate(text.splitlines(), 1):
        found.read(number, whole.partition("#")[0])
    return SwitchConfig(
        "bird",
        file,
        text,
        found.asn,
        found.router,
        neighbours=found.neighbours,
        bfd=frozenset(address for address, block in found.blocks.items() if found.has_bfd(block)),
        sessions=found.blocks,
        lines=found.lines,
        own_asn_times=found.own_asn_times,
    )


KINDS: Mapping[str, Callable[[str, str], SwitchConfig]] = {"frr.conf": _frr, "bird.conf": _bird}
"""Readers by the kind of the file."""
