"""Words of a host's own network configuration about its bonds, each with its file and line; common to all formats.

Pure. Changes when hpn takes something more of a host's configuration.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from hpn.testbed.files.document import shorten

_MOST = 100
"""Most lines of one host that are told one by one."""


@dataclass(frozen=True, slots=True)
class HostFiles:
    """Files of one host: ``parts`` are names and texts, below ``folder``. ``alone``: the topology names one file."""

    folder: str
    parts: tuple[tuple[str, str], ...]
    alone: bool

    def place(self, name: str, line: int = 1) -> str:
        """Return 'gpu-a/interfaces:9'."""
        return f"{(PurePath(self.folder) / name).as_posix()}:{line}"


@dataclass(frozen=True, slots=True)
class Said:
    """A value as the file has it: 'bond-miimon', '100', 'gpu-a/interfaces:9'."""

    word: str
    text: str
    where: str


@dataclass(slots=True)
class BondWords:
    """One bond, complete once its files are read. ``options``: by the driver's names and in its words, times in ms."""

    name: str
    where: str
    ports: dict[str, Said] = field(default_factory=dict)
    options: dict[str, Said] = field(default_factory=dict)
    address: Said | None = None
    gateway: Said | None = None
    mtu: Said | None = None


@dataclass(frozen=True, slots=True)
class HostWords:
    """Bonds in the file's order; what hpn leaves, and what it refuses, each line with its place and reason."""

    bonds: tuple[BondWords, ...]
    left: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()


class Reading:
    """Collector of one host's words. ``ports``: its interfaces with a link in the wiring."""

    def __init__(self, ports: Sequence[str]) -> None:
        self.ports = tuple(ports)
        self.bonds: dict[str, BondWords] = {}
        self._strange: dict[str, list[Said]] = {}  # ports without a link, by bond
        self._bond_of: dict[str, BondWords] = {}
        self._left: list[str] = []
        self._wrong: list[str] = []

    def bond(self, given: str, where: str) -> BondWords:
        """Return the bond of that name, new where it was not named yet."""
        name = shorten(given, quoted=False)  # a name that no interface has is refused by the wiring's own rules
        return self.bonds.setdefault(name, BondWords(name, where))

    def leave(self, where: str, why: str) -> None:
        """Note what hpn does not do."""
        self._left.append(f"{where}: not done: {why}")

    def note(self, where: str, text: str) -> None:
        """Note what the file's author may not expect."""
        self._left.append(f"{where}: {text}")

    def refuse(self, where: str, why: str) -> None:
        """Note a mistake, with the way out."""
        self._wrong.append(f"{where}: {why}")

    def option(self, bond: BondWords, name: str, said: Said) -> None:
        """Set an option of a bond; one that the file sets twice is refused."""
        before = bond.options.setdefault(name, said)
        if before is not said:
            self.refuse(said.where, f"{said.word} of {bond.name} is at {before.where} too; write it once")

    def address(self, bond: BondWords, said: Said) -> None:
        """Set the address of a bond, which has one."""
        if ":" in said.text:
            self.leave(said.where, f"{shorten(said.text)}: hpn's hosts have IPv4 addresses")
        elif bond.address is not None:
            self.leave(said.where, f"{shorten(said.text)}: a NIC of hpn has one address, {bond.address.text}")
        else:
            bond.address = said

    def port(self, bond: BondWords, said: Said) -> None:
        """Add a port to a bond; one in two bonds is refused."""
        if said.text not in self.ports:
            self._strange.setdefault(bond.name, []).append(said)
        elif (other := self._bond_of.setdefault(said.text, bond)) is not bond:
            told = f"{said.text} is a port of {other.name} at {other.ports[said.text].where} too"
            self.refuse(said.where, f"{told}; a port belongs to one bond")
        else:
            bond.ports.setdefault(said.text, said)

    def words(self) -> HostWords:
        """Return what was read. A bond without a port that has a link, such as one for management, is left."""
        for bond in self.bonds.values():
            for said in self._strange.get(bond.name, ()) if bond.ports else ():
                told = f"{shorten(said.text, quoted=False)} has no link in the wiring"
                self.refuse(said.where, f"{told}; its ports are {', '.join(self.ports)}")
            if not bond.ports:
                self.leave(
                    bond.where, f"{shorten(bond.name, quoted=False)}: none of its ports has a link in the wiring"
                )
        return HostWords(tuple(each for each in self.bonds.values() if each.ports), _cut(self._left), _cut(self._wrong))


def logical_lines(text: str, comments: tuple[str, ...], *, inside: bool) -> Iterator[tuple[int, str]]:
    """Yield lines, joined where one ends in a backslash, with the number of the first; ``inside``: so are comments."""
    parts: list[str] = []
    first = 0
    for number, line in enumerate((*text.splitlines(), ""), 1):
        stripped = line.strip()
        if stripped.startswith(comments) and (inside or not parts):
            continue
        first = first if parts else number
        parts.append(stripped.removesuffix("\\"))
        if not stripped.endswith("\\"):
            if whole := " ".join(parts).strip():
                yield first, whole
            parts = []


def _cut(lines: Sequence[str]) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(lines))
    if len(found) <= _MOST:
        return found
    return *found[:_MOST], f"{found[_MOST].partition(': ')[0]}: and {len(found) - _MOST} lines more like these"


NO_COMMANDS = "hpn runs no commands of a host's configuration"
QUEUES = "RDMA bypasses the kernel's queues; classes, PFC and ECN are the topology's switch"
ROUTES = "a host of hpn has the routes to its rails, and no others"
VLANS = "hpn has no VLANs"
BRIDGES = "hpn has no bridges on hosts"
VRFS = "hpn has no VRFs"
DHCP = "hpn's addresses are static; write ip and gateway of the NIC in the topology"
"""Reasons that formats share."""
