"""Reader of /etc/network/interfaces (interfaces(5)) with bonds by ifenslave or ifupdown2. Pure.

An option of a bond is written to the driver as it is: what the file leaves out is the driver's default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from hpn.testbed.fabric.wired import host_words as why
from hpn.testbed.fabric.wired.host_words import BondWords, HostFiles, HostWords, Reading, Said, logical_lines
from hpn.testbed.files.document import shorten

_STANZAS = re.compile(r"auto|allow-\S+|no-auto-down|no-scripts|iface|mapping|rename|template|source|source-directory")
_PORTS = ("bond_slaves", "bond_ports", "slaves")
_ADDRESSES = ("address", "netmask", "gateway")
_MOST_NAMED, _LONGEST = 64, 200
_COMMANDS = re.compile(r"(pre_|post_)?(up|down)")
_OTHERS: Mapping[str, str] = {
    r"vlan_.*": why.VLANS,
    r"bridge_.*": why.BRIDGES,
    r"vrf.*": why.VRFS,
    r"hwaddress|bond_fail_over_mac": "hpn gives the MACs",
    r"dns_.*|metric|broadcast|network|scope|pointopoint": "hpn has no use for it",
}
_OF_COMMANDS: Mapping[str, str] = {
    r"\b(tc|mlnx_qos|cma_roce_tos|dcb|lldptool)\b|_ecn\b": why.QUEUES,
    r"\bip\b.*\broute\b|\broute add\b": why.ROUTES,
    r"\bip\b.*\brule\b": why.ROUTES,
}


@dataclass(slots=True)
class _Stanza:
    """One ``iface``."""

    name: str
    family: str
    method: str
    where: str
    options: list[Said] = field(default_factory=list)


@dataclass(slots=True)
class _File:
    """Stanzas of a file and of those that it names, which were ``read``; interfaces that come up at boot."""

    stanzas: list[_Stanza] = field(default_factory=list)
    auto: set[str] = field(default_factory=set)
    read: set[str] = field(default_factory=set)
    named: int = 0


def read_ifupdown(files: HostFiles, ports: Sequence[str]) -> HostWords:
    """Return the words of 'interfaces' and of the files that it names."""
    reading, found = Reading(ports), _File()
    _read(files, "interfaces", reading, found)
    for stanza in found.stanzas:
        _ports(stanza, reading)
    seen: dict[tuple[str, str], str] = {}
    for stanza in found.stanzas:
        before = seen.setdefault((stanza.name, stanza.family), stanza.where)
        if before != stanza.where and stanza.name in {*reading.bonds, *reading.ports}:
            told = f"iface {stanza.name} {shorten(stanza.family, quoted=False)} is at {before} too; write it once"
            reading.refuse(stanza.where, told)
        else:
            _stanza(stanza, reading)
    named = {stanza.name for stanza in found.stanzas}
    for bond in reading.bonds.values():
        if bond.name not in named:
            reading.refuse(
                bond.where, f"no iface {shorten(bond.name, quoted=False)}; add it, or write another bond-master"
            )
        _of_ifenslave(bond, found.auto, reading)
    return reading.words()


def _read(files: HostFiles, name: str, reading: Reading, found: _File) -> None:
    stanza: _Stanza | None = None
    for number, line in logical_lines(dict(files.parts)[name], ("#",), inside=False):
        where = files.place(name, number)
        word, rest = (*line.split(None, 1), "")[:2]
        if not _STANZAS.fullmatch(word):
            if stanza is None:
                reading.refuse(where, f"{shorten(word)} belongs to no stanza; write it below an iface line")
            else:
                stanza.options.append(Said(word, rest, where))
            continue
        stanza = None
        match [word, *rest.split()]:
            case ["iface", of, family, method, *more]:
                stanza = _Stanza(of, family, method, where)
                found.stanzas.append(stanza)
                if more:
                    reading.leave(where, f"{shorten(' '.join(more))}: hpn knows no templates")
            case ["iface", of]:  # ifupdown2
                stanza = _Stanza(of, "inet", "", where)
                found.stanzas.append(stanza)
            case ["iface", *_]:
                reading.refuse(where, "write iface NAME inet static, or manual")
            case ["source" | "source-directory", *given]:
                _source(files, name, given, where, reading, found)
            case ["auto" | "allow-auto" | "allow-hotplug", *names]:
                found.auto.update(names)
            case _:
                reading.leave(where, f"hpn knows no {shorten(word)}")


def _source(files: HostFiles, name: str, given: list[str], where: str, reading: Reading, found: _File) -> None:
    """Read other files of the same folder, as /etc/network is one; others are refused."""
    if name != "interfaces":
        reading.refuse(where, "a file that another one names may name none itself; write its stanzas here")
        return
    found.named += len(given)
    if found.named > _MOST_NAMED:
        reading.refuse(where, f"source is here more than {_MOST_NAMED} times; write source interfaces.d/*")
        return
    for pattern in given:
        wanted = re.sub(r"^(/etc/network/|\./)", "", pattern)
        wanted += "/*" if wanted == "interfaces.d" else ""
        met = [each for each, _ in sorted(files.parts) if each != name and fnmatchcase(each, wanted)]
        for each in met:
            if each in found.read:
                reading.refuse(where, f"{each} is named twice; name it once")
            else:
                found.read.add(each)
                _read(files, each, reading, found)
        if not met and (files.alone or not wanted.startswith("interfaces.d/")):
            text = f"{shorten(pattern)} is not read with this file"
            reading.refuse(where, f"{text}; write config: FOLDER with interfaces and interfaces.d, or its stanzas here")


def _key(word: str) -> str:
    return word.lower().replace("-", "_")


def _ports(stanza: _Stanza, reading: Reading) -> None:
    """Find a bond and its ports; either end may name the other."""
    for said in stanza.options:
        key = _key(said.word)
        if key in (*_PORTS, "bond_mode"):
            bond = reading.bond(stanza.name, stanza.where)
            bond.where = stanza.where
        if key in _PORTS and said.text != "none":
            for port in reading.ports if said.text == "all" else said.text.split():
                reading.port(bond, Said(said.word, port, said.where))
        elif key == "bond_master":
            master = reading.bond(said.text, said.where)
            reading.port(master, Said(said.word, stanza.name, said.where))


def _stanza(stanza: _Stanza, reading: Reading) -> None:
    bond = reading.bonds.get(stanza.name)
    if stanza.family != "inet" or stanza.method not in ("static", "manual", "loopback", ""):
        told = why.DHCP if stanza.method == "dhcp" else "hpn has IPv4 addresses only: inet static or manual"
        if bond is not None:
            reading.leave(stanza.where, f"iface {bond.name} {shorten(stanza.family)} {shorten(stanza.method)}: {told}")
    if bond is None and stanza.name not in reading.ports:
        _other(stanza, reading)
        return
    for said in stanza.options:
        if bond is not None and stanza.method == "manual" and _key(said.word) in _ADDRESSES:
            reading.leave(said.where, f"{said.word}: inet manual sets no address; write iface {bond.name} inet static")
        elif bond is None or stanza.family != "inet" or not _of_bond(bond, said, reading):
            _left(stanza, said, reading)
    if bond is not None and stanza.method == "static" and stanza.family == "inet" and bond.address is None:
        reading.refuse(stanza.where, f"inet static of {bond.name} needs an address; write one, or inet manual")


def _of_bond(bond: BondWords, said: Said, reading: Reading) -> bool:
    """Take what hpn does; False for anything else."""
    match _key(said.word):
        case "address":
            reading.address(bond, said)
        case "netmask" if bond.address is not None:
            if "/" not in bond.address.text:
                bond.address = Said("address", f"{bond.address.text}/{said.text}", bond.address.where)
        case "gateway":
            bond.gateway = said
        case "mtu":
            bond.mtu = said
        case key if key in _PORTS or key == "bond_master":
            return True
        case key if key.startswith("bond_"):
            reading.option(bond, key.removeprefix("bond_"), said)
        case _:
            return False
    return True


def _left(stanza: _Stanza, said: Said, reading: Reading) -> None:
    key = _key(said.word)
    if key == "bond_master" or (key == "mtu" and stanza.name in reading.ports):
        return
    if _COMMANDS.fullmatch(key):
        found = (text for pattern, text in _OF_COMMANDS.items() if re.search(pattern, said.text[:_LONGEST]))
        reason = next(found, why.NO_COMMANDS)
        reading.leave(said.where, f"{said.word} {shorten(said.text, quoted=False)}: {reason}")
        return
    reason = next((text for pattern, text in _OTHERS.items() if re.fullmatch(pattern, key)), "hpn does not know it")
    reading.leave(said.where, f"{shorten(said.word, quoted=False)} of {stanza.name}: {reason}")


def _other(stanza: _Stanza, reading: Reading) -> None:
    """Leave an interface that is neither a bond nor a port with a link."""
    if stanza.name == "lo":
        return
    keys = {_key(said.word) for said in stanza.options}
    reason = "it has no link in the wiring"
    if re.search(r"\.\d+$|^vlan", stanza.name) or any(key.startswith("vlan_") for key in keys):
        reason = why.VLANS
    elif any(key.startswith("bridge_") for key in keys):
        reason = why.BRIDGES
    elif any(key.startswith("vrf") for key in keys):
        reason = why.VRFS
    reading.leave(stanza.where, f"iface {shorten(stanza.name, quoted=False)}: {reason}")


def _of_ifenslave(bond: BondWords, auto: set[str], reading: Reading) -> None:
    """Say what ifenslave makes of a bond that its author may not expect."""
    if not bond.ports:
        return
    if not auto.intersection((bond.name, *bond.ports)):
        reading.note(bond.where, f"no auto {bond.name}: nothing brings it up at boot; hpn does")
    miimon = bond.options.get("miimon")
    if miimon is None or not miimon.text.strip("0"):
        for name in ("updelay", "downdelay"):
            if (said := bond.options.pop(name, None)) is not None:
                text = "ifenslave sets it while there is no miimon, and the driver refuses it; write bond-miimon"
                reading.leave(said.where, f"{said.word}: {text}")
    if (said := bond.options.get("min_links")) is not None:
        told = f"{said.word}: Debian's ifenslave ignores it, ifupdown2 does not, and neither does hpn"
        reading.note(said.where, told)
