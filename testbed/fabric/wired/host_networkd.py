"""Reader of systemd-networkd's files: systemd.netdev(5) with Kind=bond, and systemd.network(5). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from hpn.testbed.fabric.wired import host_words as why
from hpn.testbed.fabric.wired.host_words import BondWords, HostFiles, HostWords, Reading, Said, logical_lines
from hpn.testbed.files.document import shorten

_OPTIONS: Mapping[str, str] = {
    "Mode": "mode",
    "TransmitHashPolicy": "xmit_hash_policy",
    "LACPTransmitRate": "lacp_rate",
    "MIIMonitorSec": "miimon",
    "UpDelaySec": "updelay",
    "DownDelaySec": "downdelay",
    "MinLinks": "min_links",
    "AdSelect": "ad_select",
}
"""Keys of [Bond], and the driver's names."""
_KINDS = {"vlan": why.VLANS, "bridge": why.BRIDGES, "vrf": why.VRFS}
_OF_NETWORK = {"VLAN": why.VLANS, "Bridge": why.BRIDGES, "VRF": why.VRFS, "DHCP": why.DHCP}
_TIME = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(us|usec|ms|msec|s|sec|seconds?|m|min|minutes?|)(?=[\s\d]|$)")
_MS = {"us": 0.001, "usec": 0.001, "ms": 1, "msec": 1, "m": 60_000, "min": 60_000, "minute": 60_000, "minutes": 60_000}
_MOST_NAMES, _LONGEST = 64, 64
_IN_PLAIN = {"Description", "LinkLocalAddressing", "LLDP", "EmitLLDP", "IPv6AcceptRA", "ConfigureWithoutCarrier"}
"""Keys of [Network] that change nothing in a namespace with static IPv4 addresses."""


@dataclass(frozen=True, slots=True)
class _Unit:
    """A file: ``entries`` of (section, key and value), in order. Sections of one name, as [Route], have numbers."""

    name: str
    entries: tuple[tuple[str, Said], ...]
    values: Mapping[tuple[str, str], Sequence[Said]]
    """Values by section and key; an empty one has taken back those before it."""

    def all(self, section: str, key: str) -> Sequence[Said]:
        """Return the values of a key."""
        return self.values.get((section, key), ())

    def last(self, section: str, key: str) -> Said | None:
        """Return the value that counts."""
        return next(reversed(self.all(section, key)), None)


def read_networkd(files: HostFiles, ports: Sequence[str]) -> HostWords:
    """Return the words of *.netdev and *.network; of the latter the first by name that matches an interface counts."""
    reading = Reading(ports)
    units = {name: _unit(name, files, text, reading) for name, text in sorted(files.parts)}
    for name, unit in units.items():
        if name.endswith(".netdev"):
            _netdev(unit, files.place(name), reading)
        elif not name.endswith(".network"):
            reading.leave(files.place(name), "hpn reads *.netdev and *.network of this folder only")
    networks = [unit for name, unit in units.items() if name.endswith(".network")]
    bonds = list(reading.bonds)
    used: dict[str, list[str]] = {unit.name: [] for unit in networks}
    for interface in (*ports, *bonds):
        first = next((each for each in networks if _matches(each, interface, reading)), None)
        if first is not None:
            used[first.name].append(interface)
            _of_interface(first, interface, reading)
    for unit in networks:
        _rest(unit, files.place(unit.name), used[unit.name], reading)
    return reading.words()


def _unit(name: str, files: HostFiles, text: str, reading: Reading) -> _Unit:
    entries: list[tuple[str, Said]] = []
    values: dict[tuple[str, str], list[Said]] = {}
    section = ""
    for number, line in logical_lines(text, ("#", ";"), inside=True):
        where = files.place(name, number)
        if line.startswith("[") and line.endswith("]"):
            section = f"{line[1:-1]}#{number}"
        elif "=" in line and section:
            key, _, value = line.partition("=")
            said = Said(key.strip(), value.strip().strip('"'), where)
            entries.append((section, said))
            found = values.setdefault((section.partition("#")[0], said.word), [])
            found.append(said)
            if not said.text:
                found.clear()
        else:
            reading.refuse(where, f"{shorten(line)} is no Key=Value of a section; write one")
    return _Unit(name, tuple(entries), values)


def _netdev(unit: _Unit, start: str, reading: Reading) -> None:
    name, kind = unit.last("NetDev", "Name"), unit.last("NetDev", "Kind")
    if name is None or kind is None:
        reading.refuse(start, "a .netdev needs [NetDev] with Name= and Kind=; write both")
        return
    if kind.text != "bond":
        told = _KINDS.get(kind.text, "hpn makes bonds only")
        reading.leave(kind.where, f"{shorten(name.text, quoted=False)} of kind {shorten(kind.text)}: {told}")
        return
    if name.text in reading.bonds:
        there = reading.bonds[name.text].where
        reading.refuse(name.where, f"{shorten(name.text)} is at {there} too; write it once")
        return
    bond = reading.bond(name.text, name.where)
    for section, said in unit.entries:
        match section.partition("#")[0], said.word:
            case "Bond", key if key in _OPTIONS:
                bond.options[_OPTIONS[key]] = _timed(said, reading) if key.endswith("Sec") else said
            case "NetDev", "MTUBytes":
                bond.mtu = said
            case ("NetDev", "Name" | "Kind" | "Description") | ("Match", _):
                pass
            case _, key:
                reading.leave(said.where, f"{shorten(key, quoted=False)} of {bond.name}: hpn does not know it")


def _timed(said: Said, reading: Reading) -> Said:
    """Return a span of time (systemd.time(7)) in ms, as the driver has it."""
    total, at, text = 0.0, 0, said.text if len(said.text) <= _LONGEST else ""
    while at < len(text) and (match := _TIME.match(text, at)):
        total, at = total + float(match[1]) * _MS.get(match[2], 1000), match.end()
    if at < len(text.rstrip()) or not text:
        reading.refuse(
            said.where, f"{said.word}={shorten(said.text, quoted=False)} is no time; write one such as 100ms"
        )
    return Said(said.word, str(int(total)), said.where)


def _matches(unit: _Unit, interface: str, reading: Reading) -> bool:
    names = unit.all("Match", "Name")
    kinds = unit.all("Match", "Kind")
    if kinds and not any((interface in reading.bonds) == (said.text == "bond") for said in kinds):
        return False
    if not names:
        return bool(kinds)
    words = [word for said in names for word in said.text.split()]
    if len(words) > _MOST_NAMES:
        reading.refuse(names[0].where, f"Name= has more than {_MOST_NAMES} words; write fewer, such as eth*")
        return False
    turned = words[:1] == ["!"] or words[0].startswith("!") if words else False
    found = any(fnmatchcase(interface, word.removeprefix("!")) for word in words)
    return found != turned


def _of_interface(unit: _Unit, interface: str, reading: Reading) -> None:
    if interface in reading.bonds:
        _of_bond(unit, reading.bonds[interface], reading)
        return
    said = unit.last("Network", "Bond")
    if said is None:
        return
    if said.text not in reading.bonds:
        reading.refuse(said.where, f"no .netdev makes {shorten(said.text)}; add one, or write another Bond=")
        return
    reading.port(reading.bonds[said.text], Said("Bond", interface, said.where))


def _of_bond(unit: _Unit, bond: BondWords, reading: Reading) -> None:
    for said in (*unit.all("Network", "Address"), *unit.all("Address", "Address")):
        reading.address(bond, said)
    bond.gateway = unit.last("Network", "Gateway") or next(_default_routes(unit), None)
    bond.mtu = unit.last("Link", "MTUBytes") or bond.mtu


def _default_routes(unit: _Unit) -> Iterator[Said]:
    routes: dict[str, dict[str, Said]] = {}
    for section, said in unit.entries:
        if section.startswith("Route#"):
            routes.setdefault(section, {})[said.word] = said
    for keys in routes.values():
        if "Gateway" in keys and ("Destination" not in keys or keys["Destination"].text == "0.0.0.0/0"):
            yield keys["Gateway"]


def _rest(unit: _Unit, start: str, used: Sequence[str], reading: Reading) -> None:
    """Note what a .network asks for beyond bonds and addresses."""
    if not used:
        reading.leave(start, "it matches no port with a link by [Match] Name=, and no bond")
        return
    bonds = set(used).intersection(reading.bonds)
    default = set(_default_routes(unit))
    routes = {section for section, said in unit.entries if said in default and section.startswith("Route#")}
    for section, said in unit.entries:
        name = section.partition("#")[0]
        told = f"[{shorten(name, quoted=False)}] {shorten(said.word, quoted=False)}={shorten(said.text, quoted=False)}"
        match name, said.word:
            case ("Match", "Name" | "Kind") | ("Network", "Bond") | ("Link", "MTUBytes" | "RequiredForOnline"):
                pass
            case ("Network", "Address" | "Gateway") | ("Address", "Address") if bonds:
                pass
            case "Network", key if key in _IN_PLAIN or said.text in ("no", "false"):
                pass
            case "Network", key if key in _OF_NETWORK:
                reading.leave(said.where, f"{told}: {_OF_NETWORK[key]}")
            case "Match", _:
                reading.refuse(said.where, f"{told}: hpn matches by Name= and Kind=; write the interface's name")
            case "Route", _ if section in routes and bonds:
                pass
            case "Route" | "RoutingPolicyRule", _:
                reading.leave(said.where, f"{told}: {why.ROUTES}")
            case _ if re.search(r"Queue|QDisc|Codel|Class|Bucket|FIFO|DCB|NetworkEmulator|CAKE", name):
                reading.leave(said.where, f"{told}: {why.QUEUES}")
            case _:
                reading.leave(said.where, f"{told}: hpn does not know it")
