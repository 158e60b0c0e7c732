"""SONiC's ``config_db.json``, one file per switch. Pure.

Cables are in DEVICE_NEIGHBOR; where a port has none, two ports with addresses of one subnet are a cable. Hosts are
neighbours of type Server. Members of port channels of one name that face the same host are one NIC. The AS number is
bgp_asn, the router ID Loopback0, as SONiC's own bgpcfgd has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Interface

from pydantic import BaseModel, ConfigDict, Field

from hpn.testbed.fabric.wired.wiring_spec import RoleName
from hpn.testbed.files.check import check
from hpn.testbed.files.document import Document, shorten
from hpn.testbed.importing.addresses import ipv4
from hpn.testbed.importing.found import Cable, End, Found, FoundNode, Left, Place
from hpn.testbed.importing.importer import Importer, SourceText
from hpn.testbed.importing.json_document import document_of
from hpn.testbed.importing.mistakes import ImportMistakes

_MBPS = 10**6
_THREE_TIERS: Mapping[str, RoleName] = {
    "torrouter": "tor",
    "leafrouter": "agg",
    "spinerouter": "core",
    "backendtorrouter": "tor",
    "backendleafrouter": "agg",
    "server": "host",
}
_TWO_TIERS: Mapping[str, RoleName] = {"leafrouter": "tor", "spinerouter": "agg", "server": "host"}
_QOS = re.compile(r"DSCP|PFC|QOS|QUEUE|SCHEDULER|WRED|BUFFER|_TC_|TC_TO")
_WHY_QOS = "classes of traffic and PFC: not used yet; say switch: in the topology"
_TABLES = frozenset(
    (
        *("DEVICE_METADATA", "DEVICE_NEIGHBOR", "DEVICE_NEIGHBOR_METADATA", "PORT", "INTERFACE", "LOOPBACK_INTERFACE"),
        *("PORTCHANNEL", "PORTCHANNEL_MEMBER"),
    )
)


class _Loose(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Metadata(_Loose):
    hostname: str | None = None
    bgp_asn: str | int | None = None
    type: str | None = None


class _Port(_Loose):
    alias: str | None = None
    speed: str | int | None = Field(default=None, description="Mbit/s")


class _Neighbour(_Loose):
    name: str
    port: str | None = None


class _Peer(_Loose):
    type: str | None = None


class _Channel(_Loose):
    members: list[str] = Field(default_factory=list)


class _File(_Loose):
    DEVICE_METADATA: dict[str, _Metadata] = Field(examples=['{"localhost": {"hostname": "leaf1"}}'])
    PORT: dict[str, _Port] = Field(default_factory=dict)
    INTERFACE: dict[str, object] = Field(default_factory=dict)
    LOOPBACK_INTERFACE: dict[str, object] = Field(default_factory=dict)
    PORTCHANNEL: dict[str, _Channel] = Field(default_factory=dict)
    PORTCHANNEL_MEMBER: dict[str, object] = Field(default_factory=dict)
    DEVICE_NEIGHBOR: dict[str, _Neighbour] = Field(default_factory=dict)
    DEVICE_NEIGHBOR_METADATA: dict[str, _Peer] = Field(default_factory=dict)


class _Switch:
    """One file, with what its tables say by port."""

    def __init__(self, document: Document, file: _File) -> None:
        self.document = document
        self.file = file
        metadata = file.DEVICE_METADATA.get("localhost", _Metadata())
        self.metadata = metadata
        self.name = metadata.hostname or ""
        self.addresses = dict(_addresses(file.INTERFACE))
        self.channel_of = {port: name for name, channel in file.PORTCHANNEL.items() for port in channel.members}
        self.channel_of |= {port: name for name, _, port in (k.partition("|") for k in file.PORTCHANNEL_MEMBER) if port}
        self._by_alias = {port.alias: name for name, port in file.PORT.items() if port.alias}

    def place(self, *where: str) -> Place:
        """Return a place in this file."""
        return Place(self.document, where)

    def port(self, name: str) -> str:
        """Return the port's name for its name or alias."""
        return name if name in self.file.PORT else self._by_alias.get(name, name)

    def end(self, port: str) -> End:
        """Return the end of a cable at a port."""
        speed = str(self.file.PORT[port].speed) if port in self.file.PORT else ""
        rate = int(speed) * _MBPS if re.fullmatch(r"[1-9][0-9]{0,8}", speed, re.ASCII) else None
        return End(self.name, port, self.addresses.get(port), rate)


def read(sources: Sequence[SourceText]) -> Found:
    """Return the network of several switches. InputError with every mistake."""
    mistakes = ImportMistakes()
    switches: dict[str, _Switch] = {}
    for source in sources:
        document = document_of(source)
        switch = _Switch(document, check(document, _File))
        where = ("DEVICE_METADATA", "localhost", "hostname")
        if not switch.name:
            mistakes.add(switch.place(*where[:1]), "the switch has no name; add localhost: hostname to DEVICE_METADATA")
        elif switch.name in switches:
            first = switches[switch.name].place(*where)
            mistakes.add(switch.place(*where), f"switch {shorten(switch.name)} is there already ({first}); rename one")
        switches.setdefault(switch.name, switch)
    mistakes.check()
    roles = _THREE_TIERS if _has_tor(switches) else _TWO_TIERS
    cables = [*_neighbours(switches, mistakes)]
    cables += _same_subnet(switches, {end.label for cable in cables for end in cable.ends})
    mistakes.check()
    nodes = [_node(switch, roles) for switch in switches.values()]
    nodes += _others(switches, roles)
    return Found(tuple(nodes), tuple(cables), tuple(_left(switches)), tuple(_notes(switches, cables)))


def _addresses(interfaces: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield port and IPv4 address of keys such as 'Ethernet0|10.0.0.0/31'."""
    for key in interfaces:
        port, _, text = key.partition("|")
        address = ipv4(text)
        if address is not None:
            yield port, address


def _has_tor(switches: Mapping[str, _Switch]) -> bool:
    """Return True if a switch is called a ToR: then LeafRouter is the tier above."""
    types = [switch.metadata.type for switch in switches.values()]
    types += [peer.type for switch in switches.values() for peer in switch.file.DEVICE_NEIGHBOR_METADATA.values()]
    return any("torrouter" in (each or "").lower() for each in types)


def _role(kind: str | None, roles: Mapping[str, RoleName]) -> RoleName | None:
    return roles.get((kind or "").lower())


def _node(switch: _Switch, roles: Mapping[str, RoleName]) -> FoundNode:
    loopback = dict(_addresses(switch.file.LOOPBACK_INTERFACE)).get("Loopback0")
    asn = str(switch.metadata.bgp_asn)
    known = re.fullmatch(r"[1-9][0-9]{0,9}", asn, re.ASCII) and int(asn) <= 2**32 - 2
    return FoundNode(
        switch.name,
        switch.place("DEVICE_METADATA", "localhost", "hostname"),
        role=_role(switch.metadata.type, roles),
        kind=f"type {shorten(switch.metadata.type)}" if switch.metadata.type else "no type in DEVICE_METADATA",
        asn=int(asn) if known else None,
        router_id=loopback.partition("/")[0] if loopback else None,
    )


def _others(switches: Mapping[str, _Switch], roles: Mapping[str, RoleName]) -> Iterator[FoundNode]:
    """Yield neighbours that have no file of their own: hosts, above all."""
    seen = set(switches)
    for switch in switches.values():
        for port, neighbour in switch.file.DEVICE_NEIGHBOR.items():
            if neighbour.name not in seen:
                seen.add(neighbour.name)
                kind = switch.file.DEVICE_NEIGHBOR_METADATA.get(neighbour.name, _Peer()).type
                about = f"type {shorten(kind)}" if kind else "no file, no type in DEVICE_NEIGHBOR_METADATA"
                yield FoundNode(neighbour.name, switch.place("DEVICE_NEIGHBOR", port), _role(kind, roles), about)


def _neighbours(switches: Mapping[str, _Switch], mistakes: ImportMistakes) -> Iterator[Cable]:
    """Yield the cables of DEVICE_NEIGHBOR, each once although both switches list it."""
    seen: set[frozenset[str]] = set()
    for switch in switches.values():
        for local, neighbour in switch.file.DEVICE_NEIGHBOR.items():
            place = switch.place("DEVICE_NEIGHBOR", local)
            if not neighbour.port:
                text = f"{switch.name}:{local} leads to {shorten(neighbour.name)}, but no port of it is named; add port"
                mistakes.add(place, text)
                continue
            far = switches.get(neighbour.name)
            near = switch.end(switch.port(local))
            end = far.end(far.port(neighbour.port)) if far is not None else None
            if far is not None and end is not None and far.file.PORT and end.port not in far.file.PORT:
                text = f"{far.name} has no port {shorten(neighbour.port)} (PORT in {far.document.name}); correct one"
                mistakes.add(place, text)
            end = end or End(neighbour.name, neighbour.port, nic=switch.channel_of.get(near.port))
            if (both := frozenset({near.label, end.label})) not in seen:
                seen.add(both)
                yield Cable((near, end), place)


def _same_subnet(switches: Mapping[str, _Switch], cabled: set[str]) -> list[Cable]:
    """Return a cable for each two ports, without a neighbour, whose addresses are all of one subnet."""
    by_subnet: dict[str, list[tuple[_Switch, str]]] = {}
    for switch in switches.values():
        for port, address in switch.addresses.items():
            if port in switch.file.PORT and f"{switch.name}:{port}" not in cabled:
                by_subnet.setdefault(str(IPv4Interface(address).network), []).append((switch, port))
    pairs = (ports for ports in by_subnet.values() if len(ports) == 2 and ports[0][0] is not ports[1][0])
    return [Cable((one.end(port), two.end(far)), one.place("PORT", port)) for (one, port), (two, far) in pairs]


def _left(switches: Mapping[str, _Switch]) -> Iterator[Left]:
    tables = sorted({table for switch in switches.values() for table in switch.document.data} - _TABLES)
    qos = tuple(table for table in tables if _QOS.search(table))
    if qos:
        yield Left("tables", _WHY_QOS, qos)
    others = tuple(table for table in tables if table not in qos)
    if others:
        yield Left("tables", "hpn configures its own switches", others)


def _notes(switches: Mapping[str, _Switch], cables: Sequence[Cable]) -> Iterator[str]:
    if not _has_tor(switches):
        yield "no switch is a ToRRouter, so LeafRouter is a tor and SpineRouter an agg"
    else:
        yield "ToRRouter is a tor, LeafRouter an agg, SpineRouter a core"
    guessed = sum(cable.place.where[0] == "PORT" for cable in cables)
    if guessed:
        yield f"cables that no DEVICE_NEIGHBOR names, but addresses of one subnet at both ends: {guessed}"


def _recognises(source: SourceText) -> bool:
    return source.name.lower().endswith(".json") and '"DEVICE_METADATA"' in source.text


IMPORTER = Importer(
    "sonic",
    "config_db.json of several switches: DEVICE_NEIGHBOR, PORT, PORTCHANNEL, INTERFACE, DEVICE_METADATA",
    _recognises,
    read,
)
