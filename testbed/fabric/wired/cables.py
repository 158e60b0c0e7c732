"""A wiring with its links sorted by tier: lower end first, NICs with their ToRs. Pure.

Needs a wiring without problems (``rules``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from hpn.testbed.fabric.wired.wiring_spec import WiredLink, WiredNic, WiringSpec

TIERS = {"host": 0, "tor": 1, "agg": 2, "core": 3}
End = tuple[str, str]
"""A node and its port."""


@dataclass(frozen=True, slots=True)
class WiredCable:
    """A link with its lower end first; ``turned``: the file has the upper end first."""

    link: WiredLink
    lower: End
    upper: End
    turned: bool

    @property
    def name(self) -> str:
        """Name that the file gives it, else both ends."""
        return self.link.name or f"{':'.join(self.lower)}-{':'.join(self.upper)}"


@dataclass(frozen=True, slots=True)
class HostNic:
    """A host's NIC: its LAG interface, rail, cables in port order."""

    host: str
    lag: str
    rail: int
    given: WiredNic
    cables: tuple[WiredCable, ...]

    @property
    def tors(self) -> tuple[str, ...]:
        """ToR of each port."""
        return tuple(cable.upper[0] for cable in self.cables)


@dataclass(frozen=True)
class Cabling:
    """Cables in the file's order, and NICs in the order of their first cable."""

    cables: tuple[WiredCable, ...]
    nics: tuple[HostNic, ...]
    neighbours: Mapping[str, tuple[str, ...]]

    @cached_property
    def _place(self) -> Mapping[End, int]:
        return {cable.lower: at for at, cable in enumerate(self.cables)}

    def first_end(self, nic: HostNic) -> End:
        """Return the host's end of the NIC's first cable in the file."""
        return min((cable.lower for cable in nic.cables), key=self._place.__getitem__)

    def pairs(self, wanted: Callable[[str, str], bool]) -> Iterator[tuple[str, str]]:
        """Yield the nodes of each cable, lower first, where ``wanted`` says so."""
        for cable in self.cables:
            if wanted(cable.lower[0], cable.upper[0]):
                yield cable.lower[0], cable.upper[0]

    @property
    def tors_beside(self) -> Mapping[str, set[str]]:
        """ToRs that share a NIC with each ToR."""
        found: dict[str, set[str]] = defaultdict(set)
        for nic in self.nics:
            for tor in nic.tors:
                found[tor].update(other for other in nic.tors if other != tor)
        return found

    @property
    def port_of_tor(self) -> Mapping[str, int]:
        """Number of the first NIC port that goes to each ToR."""
        found: dict[str, int] = {}
        for nic in self.nics:
            for port, tor in enumerate(nic.tors):
                found.setdefault(tor, port)
        return found


def end_of(text: str) -> End:
    """Split 'node:port'; the port is '' if there is no colon."""
    node, _, port = text.partition(":")
    return node, port


def cabling_of(wiring: WiringSpec) -> Cabling:
    """Return the sorted cables. KeyError for a wiring with problems."""
    cables = tuple(_sorted(wiring, link) for link in wiring.links)
    by_end = {cable.lower: cable for cable in cables}
    first = {cable.lower: at for at, cable in enumerate(cables)}
    nics = [nic for host in wiring.nodes for nic in _nics(wiring, host, by_end)]
    nics.sort(key=lambda nic: min(first[cable.lower] for cable in nic.cables))
    neighbours: dict[str, list[str]] = {name: [] for name in wiring.nodes}
    for cable in cables:
        neighbours[cable.lower[0]].append(cable.upper[0])
        neighbours[cable.upper[0]].append(cable.lower[0])
    return Cabling(cables, tuple(nics), {name: tuple(each) for name, each in neighbours.items()})


def _sorted(wiring: WiringSpec, link: WiredLink) -> WiredCable:
    one, other = (end_of(end) for end in link.ends)
    tiers = [TIERS[wiring.nodes[end[0]].role] for end in (one, other)]
    turned = tiers[0] > tiers[1] or (tiers[0] == tiers[1] and one[0] in {each.primary for each in wiring.stacks})
    return WiredCable(link, other, one, True) if turned else WiredCable(link, one, other, False)


def _nics(wiring: WiringSpec, host: str, by_end: Mapping[End, WiredCable]) -> Iterator[HostNic]:
    node = wiring.nodes[host]
    if node.role != "host":
        return
    given = node.nics or _only_nic(host, by_end)
    for number, (lag, nic) in enumerate(given.items()):
        cables = tuple(by_end[host, port] for port in nic.ports)
        yield HostNic(host, lag, number if nic.rail is None else nic.rail, nic, cables)


def _only_nic(host: str, by_end: Mapping[End, WiredCable]) -> dict[str, WiredNic]:
    ports = [port for node, port in by_end if node == host]
    return {"bond0": WiredNic(ports=ports)} if ports else {}
