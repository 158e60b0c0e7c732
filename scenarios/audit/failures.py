"""Failures that an audit tries: a fault for each link, port, host, switch, LAG member and BGP session. Pure.

Silent links are for those who ask: without BFD each costs the hold time, and its drill takes as long.

Changes when an audit tries another kind of failure. Everything is asked of the fabric, nothing is read from names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hpn.failover.faults import (
    AdminDown,
    AggCrash,
    BgpReset,
    CoreCrash,
    End,
    Fault,
    HostDown,
    LacpLoss,
    LinkDown,
    SilentDrop,
    TorCrash,
    make,
)
from hpn.testbed.entries import Registry
from hpn.testbed.fabric.model import Fabric, Link, LinkKind, Role

PAIR = "pair"
"""Kind of two failures at one instant."""


@dataclass(frozen=True, slots=True)
class Breakage:
    """One fault of the catalogue and its target; ``arguments`` by the keys of a drill file."""

    fault: str
    target: str
    arguments: tuple[tuple[str, str], ...] = ()

    @property
    def words(self) -> str:
        """Text: 'admin-down of p0.s0.h0.r0.0 (end host)'."""
        more = ", ".join(f"{key} {value}" for key, value in self.arguments)
        return f"{self.fault} of {self.target}{f' ({more})' if more else ''}"

    @property
    def made(self) -> Fault:
        """The fault itself."""
        return make(self.fault, self.target, dict(self.arguments))


@dataclass(frozen=True, slots=True)
class Failure:
    """One failure to try: a fault, or two at one instant."""

    kind: str
    breakages: tuple[Breakage, ...]

    @property
    def key(self) -> str:
        """Identity, equal in audits of two versions of a fabric: 'link: link-down of p0.s0.h0.r0.0'."""
        return f"{self.kind}: {self.words}"

    @property
    def words(self) -> str:
        """Text of its faults."""
        return " and ".join(each.words for each in self.breakages)

    @property
    def element(self) -> str:
        """Text of what fails, without the fault: 'p0.s0.h0.r0.0 (end host)'."""
        return " and ".join(each.words.partition(" of ")[2] for each in self.breakages)

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of the parts of the fabric that fail."""
        return tuple(each.target for each in self.breakages)


@dataclass(frozen=True, slots=True)
class FailureKind:
    """A kind of single failures. ``breakages`` yields one for each element of the fabric.

    ``by_default``: an audit tries it unless other kinds are named.
    """

    name: str
    summary: str
    breakages: Callable[[Fabric], Iterator[Breakage]]
    by_default: bool = True


def _active_links(fabric: Fabric) -> Iterator[Link]:
    """Yield the links that can carry traffic: all but those of spare hosts, which are idle."""
    return (link for link in fabric.links if not fabric.node(link.lower.node).spare)


def _access(fabric: Fabric) -> Iterator[Link]:
    return (link for link in _active_links(fabric) if link.kind is LinkKind.ACCESS)


def _links(fabric: Fabric) -> Iterator[Breakage]:
    return (Breakage(LinkDown.KIND, link.name) for link in _active_links(fabric))


def _ports(fabric: Fabric) -> Iterator[Breakage]:
    for link in _access(fabric):
        yield from (Breakage(AdminDown.KIND, link.name, (("end", end.value),)) for end in End)


def _hosts(fabric: Fabric) -> Iterator[Breakage]:
    return (Breakage(HostDown.KIND, host.name) for host in fabric.hosts if not host.spare)


_CRASHES: Mapping[Role, str] = {Role.TOR: TorCrash.KIND, Role.AGG: AggCrash.KIND, Role.CORE: CoreCrash.KIND}


def _switches(fabric: Fabric) -> Iterator[Breakage]:
    return (Breakage(_CRASHES[node.role], node.name) for node in fabric.switches)


def _members(fabric: Fabric) -> Iterator[Breakage]:
    several = (link for link in _access(fabric) if len(fabric.nic_of_link(link.name).links) > 1)
    return (Breakage(LacpLoss.KIND, link.name) for link in several)


def _sessions(fabric: Fabric) -> Iterator[Breakage]:
    return (Breakage(BgpReset.KIND, link.name) for link in fabric.links if link.is_routed)


def _silent(fabric: Fabric) -> Iterator[Breakage]:
    return (Breakage(SilentDrop.KIND, link.name) for link in fabric.links if link.is_routed)


KINDS: Registry[FailureKind] = Registry(
    "kind of failure",
    lambda kind: kind.name,
    (
        FailureKind("link", "a cable is cut; both ends lose carrier", _links),
        FailureKind("port", "one end of a NIC-ToR link is shut", _ports),
        FailureKind("host", "a host loses power", _hosts),
        FailureKind("switch", "a ToR, Agg or Core crashes and boots", _switches),
        FailureKind("member", "a port leaves its LAG because LACP is lost; carrier stays", _members),
        FailureKind("session", "a BGP session is reset and set up again", _sessions),
        FailureKind("silent", "a link between switches drops everything; carrier stays", _silent, by_default=False),
    ),
    of=FailureKind,
)
"""Kinds of single failures, in the order of an audit."""

DEFAULT_KINDS = tuple(kind.name for kind in KINDS.values() if kind.by_default)


def single_failures(fabric: Fabric, kinds: Sequence[str]) -> tuple[Failure, ...]:
    """Return every single failure of these kinds, in the order of ``KINDS`` and of the fabric."""
    wanted = (kind for kind in KINDS.values() if kind.name in kinds)
    return tuple(Failure(kind.name, (each,)) for kind in wanted for each in kind.breakages(fabric))
