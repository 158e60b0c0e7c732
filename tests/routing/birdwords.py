"""What BIRD says of its sessions and routes, read out of its answers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Network
from pathlib import Path

from hpn.testbed.routing.bird.control import BirdError, command_now

_TABLE_LINE, _DETAILS, _ROUTE, _ATTRIBUTES = 1002, 1006, 1007, 1012
_ROUTE_LINE = re.compile(
    r"^(?P<prefix>\d\S*)?\s+(?P<kind>[a-z]+) \[(?P<protocol>\S+) (?P<since>[^\]]*?)(?: from \S+)?\](?P<best> \*)?"
)
_VIA = re.compile(r"^\s*via (?P<gateway>\d[0-9.]*) on (?P<port>\S+)")
_DEV = re.compile(r"^\s*dev (?P<port>\S+)")


@dataclass(frozen=True, slots=True)
class BgpSession:
    """One eBGP session. ``name`` is the port; ``since`` is BIRD's own wall-clock text; ``info`` its last words."""

    name: str
    state: str  # BGP state: Established, Connect, Active, Idle, ...; 'Down' when BIRD says nothing more
    since: str
    neighbour: str
    neighbour_as: int
    description: str
    info: str

    @property
    def established(self) -> bool:
        """True when routes flow."""
        return self.state == "Established"


@dataclass(frozen=True, slots=True)
class BirdRoute:
    """One candidate in BIRD's table; ``next_hops`` are (gateway or '', port)."""

    prefix: str
    kind: str  # unicast, blackhole, unreachable
    protocol: str
    best: bool
    next_hops: tuple[tuple[str, str], ...]
    as_path: tuple[int, ...]


def protocols(control: Path) -> list[BgpSession]:
    """Every BGP session, in configuration order."""
    return parse_sessions(command_now(control, "show protocols all").lines)


def routes(control: Path, prefix: str) -> list[BirdRoute]:
    """Every candidate for exactly ``prefix`` ('a.b.c.d/len')."""
    try:
        return parse_routes(command_now(control, f"show route {IPv4Network(prefix)} all").lines)
    except BirdError as error:
        if "Network not found" in str(error):
            return []
        raise


def parse_sessions(lines: Sequence[tuple[int, str]]) -> list[BgpSession]:
    """The BGP sessions in an answer to ``show protocols all``; lines that make no sense are passed over."""
    sessions: list[BgpSession] = []
    in_bgp = False
    for code, text in lines:
        if code == _TABLE_LINE:
            columns = text.split(maxsplit=5)
            in_bgp = len(columns) >= 5 and columns[1] == "BGP"
            if in_bgp:
                info = columns[5].strip() if len(columns) > 5 else ""
                sessions.append(BgpSession(columns[0], "Down", columns[4], "", 0, "", info))
        elif code == _DETAILS and in_bgp:
            key, _, value = text.strip().partition(":")
            sessions[-1] = _with_detail(sessions[-1], key, value.strip())
    return sessions


def _with_detail(session: BgpSession, key: str, value: str) -> BgpSession:
    if key == "Description":
        return replace(session, description=value)
    if key == "BGP state":
        return replace(session, state=value)
    if key == "Neighbor address":
        return replace(session, neighbour=value.partition("%")[0])
    if key == "Neighbor AS":
        return replace(session, neighbour_as=int(value) if value.isdecimal() else 0)
    return session


def parse_routes(lines: Sequence[tuple[int, str]]) -> list[BirdRoute]:
    """The candidates in an answer to ``show route ... all``; lines that make no sense are passed over."""
    routes: list[BirdRoute] = []
    prefix = ""
    for code, text in lines:
        if code == _ROUTE and (found := _ROUTE_LINE.match(text)):
            prefix = found["prefix"] or prefix
            routes.append(BirdRoute(prefix, found["kind"], found["protocol"], found["best"] is not None, (), ()))
        elif code == _ROUTE and routes:
            routes[-1] = replace(routes[-1], next_hops=(*routes[-1].next_hops, *_next_hop(text)))
        elif code == _ATTRIBUTES and routes:
            key, _, value = text.strip().partition(": ")
            if key == "BGP.as_path":
                routes[-1] = replace(routes[-1], as_path=tuple(int(n) for n in value.split() if n.isdecimal()))
    return routes


def _next_hop(text: str) -> Iterator[tuple[str, str]]:
    if via := _VIA.match(text):
        yield via["gateway"], via["port"]
    elif dev := _DEV.match(text):
        yield "", dev["port"]
