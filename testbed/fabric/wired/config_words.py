"""Words of a switch's own configuration that hpn needs: ASN, router ID, addresses, neighbours; each with its line.

A line that is not known here is the daemon's business, which reads the file unchanged. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import PurePath

_NUMBER = r"(\d{1,10})"
_IP = r"(\d{1,3}(?:\.\d{1,3}){3})"


@dataclass(frozen=True)
class SwitchConfig:
    """Content of a configuration that hpn reads. ``lines``: of 'asn', 'router_id', 'neighbour A.B.C.D', 'address PORT'.

    ``neighbours``: ASN of each neighbour's address, None where it is not a number ('external'). ``sessions``: BIRD's
    protocol names, by the neighbour's address. ``left``: lines that a namespace cannot give, with the reason.
    """

    daemon: str
    file: str
    text: str
    asn: int | None = None
    router_id: str | None = None
    addresses: Mapping[str, str] = field(default_factory=dict)
    neighbours: Mapping[str, int | None] = field(default_factory=dict)
    sessions: Mapping[str, str] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)
    left: tuple[tuple[int, str], ...] = ()

    def where(self, what: str) -> str:
        """Return 'leaf1/frr.conf:12', the line of what was found; of the file without one."""
        line = self.lines.get(what)
        return self.file if line is None else f"{self.file}:{line}"


@lru_cache(maxsize=4096)  # a lab asks for each switch's, several times
def words_of(file: str, text: str) -> SwitchConfig:
    """Return what the configuration says. KeyError for a file name that is not in ``KINDS``."""
    return KINDS[PurePath(file).name](file, text)


_CANNOT: Mapping[str, str] = {
    r"router (ospf6?|isis|rip|ripng|eigrp|babel|openfabric)\b": "hpn runs BGP and static routes only",
    r"\s*(neighbor \S+ interface\b)": "a neighbour without an address (BGP unnumbered); give the link addresses",
    r"vrf \S+": "hpn has no VRFs",
    r"\s*(evpn mh|advertise-all-vni|vni \d+)": "EVPN needs VXLAN devices, which hpn does not make",
    r"mpls\b|\s*mpls ": "hpn's kernel has no MPLS",
    r"\s*bfd$|\s*neighbor \S+ bfd": "FRR's bfdd is not run; sessions end by carrier and hold timer",
}


def _frr(file: str, text: str) -> SwitchConfig:
    asn: int | None = None
    router: str | None = None
    found: dict[str, int] = {}
    addresses: dict[str, str] = {}
    neighbours: dict[str, int | None] = {}
    groups: dict[str, int | None] = {}
    left: list[tuple[int, str]] = []
    interface = ""
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("!"):
            continue
        if why := _left(line):
            left.append((number, why))
        if not line[0].isspace():
            interface = words[1] if words[0] == "interface" and len(words) > 1 else ""
        match words:
            case ["router", "bgp", as_number, *_] if asn is None and as_number.isdecimal():
                asn, found["asn"] = int(as_number), number
            case ["bgp", "router-id", address] | ["ip", "router-id", address]:
                router, found["router_id"] = address, number
            case ["ip", "address", address, *_] if interface:
                addresses[interface], found[f"address {interface}"] = address, number
            case ["neighbor", peer, "remote-as", as_number]:
                of = neighbours if re.fullmatch(_IP, peer) else groups
                of[peer] = int(as_number) if as_number.isdecimal() else None
                found[f"neighbour {peer}"] = number
            case ["neighbor", peer, "peer-group", group] if group in groups and re.fullmatch(_IP, peer):
                neighbours[peer], found[f"neighbour {peer}"] = groups[group], number
    return SwitchConfig("frr", file, text, asn, router, addresses, neighbours, {}, found, tuple(left))


def _left(line: str) -> str:
    return next((why for pattern, why in _CANNOT.items() if re.match(pattern, line)), "")


_BIRD_LOCAL = re.compile(rf"\blocal\s+(?:{_IP}\s+)?as\s+{_NUMBER}\s*;")
_BIRD_NEIGHBOUR = re.compile(rf"\bneighbor\s+{_IP}(?:%\S+)?(?:\s+port\s+\d+)?(?:\s+as\s+{_NUMBER})?")
_BIRD_PROTOCOL = re.compile(r"^\s*protocol\s+bgp\s+(?:'([^']+)'|([A-Za-z_]\w*))?")
_BIRD_ROUTER = re.compile(rf"^\s*router\s+id\s+{_IP}\s*;")


def _bird(file: str, text: str) -> SwitchConfig:
    asn: int | None = None
    router: str | None = None
    found: dict[str, int] = {}
    neighbours: dict[str, int | None] = {}
    sessions: dict[str, str] = {}
    protocol = ""
    for number, whole in enumerate(text.splitlines(), 1):
        line = whole.partition("#")[0]
        if match := _BIRD_ROUTER.match(line):
            router, found["router_id"] = match[1], number
        if match := _BIRD_PROTOCOL.match(line):
            protocol = match[1] or match[2] or ""
        if (match := _BIRD_LOCAL.search(line)) and asn is None:
            asn, found["asn"] = int(match[2]), number
        if match := _BIRD_NEIGHBOUR.search(line):
            neighbours[match[1]] = int(match[2]) if match[2] else None
            found[f"neighbour {match[1]}"] = number
            sessions[match[1]] = protocol
    return SwitchConfig("bird", file, text, asn, router, {}, neighbours, sessions, found)


KINDS: Mapping[str, Callable[[str, str], SwitchConfig]] = {"frr.conf": _frr, "bird.conf": _bird}
"""Readers by the name of the file."""
