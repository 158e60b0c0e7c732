"""Reader of netplan's YAML: ``bonds`` of a version 2 file. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.wired import host_words as why
from hpn.testbed.fabric.wired.host_words import HostFiles, HostWords, Reading, Said
from hpn.testbed.files.document import Document, Plain, Where, parse, shorten

_OPTIONS: Mapping[str, str] = {
    "mode": "mode",
    "lacp-rate": "lacp_rate",
    "mii-monitor-interval": "miimon",
    "min-links": "min_links",
    "transmit-hash-policy": "xmit_hash_policy",
    "up-delay": "updelay",
    "down-delay": "downdelay",
    "ad-select": "ad_select",
}
_DEVICES = {"vlans": why.VLANS, "bridges": why.BRIDGES, "vrfs": why.VRFS}


def read_netplan(files: HostFiles, ports: Sequence[str]) -> HostWords:
    """Return the words of all files; times without a unit are ms."""
    reading = Reading(ports)
    for name, text in sorted(files.parts):
        try:
            document = parse(text, files.place(name).removesuffix(":1"))
        except InputError as error:
            for problem in error.problems:
                reading.refuse(*problem.split(": ", 1))
            continue
        for kind in document.section("network") or ():
            if kind not in ("version", "renderer", "ethernets", "bonds"):
                told = _DEVICES.get(kind, "hpn does not know it")
                reading.leave(_place(document, ("network", kind)), f"{shorten(kind)}: {told}")
        bonds = document.value(("network", "bonds"))
        for bond in bonds if isinstance(bonds, dict) else ():
            _bond(document, ("network", "bonds", bond), reading)
    return reading.words()


def _place(document: Document, where: Where) -> str:
    return f"{document.name}:{document.line(where)}"


def _bond(document: Document, at: Where, reading: Reading) -> None:
    place = _place(document, at)
    name = str(at[-1])
    if name in reading.bonds:
        reading.refuse(place, f"{shorten(name)} is at {reading.bonds[name].where} too; write it once")
        return
    bond = reading.bond(name, place)
    for where, text in _scalars(document.value(at), at):
        said = Said(str(where[-1]), text, _place(document, where))
        match where[len(at) :]:
            case ("interfaces", int()):
                reading.port(bond, Said("interfaces", text, said.where))
            case ("parameters", str() as key) if key in _OPTIONS:
                unit = text.removesuffix("ms") if key.endswith(("delay", "interval")) else text
                bond.options[_OPTIONS[key]] = Said(key, unit, said.where)
            case ("addresses", int()):
                reading.address(bond, Said("addresses", text, said.where))
            case ("mtu",):
                bond.mtu = said
            case ("gateway4",):
                bond.gateway = said
            case ("dhcp4" | "dhcp6" | "optional" | "link-local" | "accept-ra", *_) if text in ("no", ""):
                pass
            case ("dhcp4" | "dhcp6",):
                reading.leave(said.where, f"{said.word}: {why.DHCP}")
            case ("routes", *_):
                reading.leave(said.where, f"{said.word} {shorten(text, quoted=False)}: {why.ROUTES}")
            case _:
                reading.leave(said.where, f"{shorten(said.word, quoted=False)} of {name}: hpn does not know it")


def _scalars(data: Plain, at: Where) -> Iterator[tuple[Where, str]]:
    """Yield each scalar below a place, as text."""
    below = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else None
    if below is None:
        yield at, "" if data is None else str(data) if not isinstance(data, bool) else "yes" if data else "no"
        return
    for key, value in below:
        yield from _scalars(value, (*at, key))
