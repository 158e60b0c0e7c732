"""The fault catalogue: what can be broken, what host and switch see of it, and when its edges are due. Pure.

A new fault is one frozen dataclass here, listed in ``FAULTS``: its first field is the target, every other field a
parameter of the drill file (``parameter`` carries its unit and range). How a fault is done to a running lab, and its
inverse, is ``failover.injector``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Protocol

from failover.model import EdgeKind
from testbed.fabric.model import Fabric, Link, LinkKind

MS = 1_000_000


class TargetKind(StrEnum):
    """What a fault acts on."""

    LINK = "link"
    TOR = "ToR"


class Unit(StrEnum):
    """How a parameter is written in a drill file."""

    DURATION = "duration"  # '400 ms', an int of nanoseconds here
    PERCENT = "percent"  # '50 %', a float of 0..1 here
    COUNT = "count"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a fault as a drill file gives it; ``low`` and ``high`` are inclusive, in the field's unit."""

    key: str
    unit: Unit
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class PlannedEdge:
    """A moment at which a fault is to be injected or restored, relative to the start of traffic."""

    at_ns: int
    kind: EdgeKind
    index: int = 0  # over the edges of one kind of a flapping fault


class Fault(Protocol):
    """What every fault says about itself. ``REPAIRS_ITSELF``: its edges include the repair, ``for`` has no meaning."""

    KIND: ClassVar[str]
    TARGET: ClassVar[TargetKind]
    REPAIRS_ITSELF: ClassVar[bool]

    @property
    def target(self) -> str:
        """Name of the link or node it acts on."""

    def links_hit(self, fabric: Fabric) -> tuple[Link, ...]:
        """The links that lose carrier. InputError when the target is not in ``fabric``."""

    def nodes_hit(self) -> tuple[str, ...]:
        """Nodes that are hit as a whole."""

    def edges(self, at_ns: int, for_ns: int | None) -> tuple[PlannedEdge, ...]:
        """Its failures and repairs in order when injected at ``at_ns`` and restored after ``for_ns`` (None: never)."""


def parameter(key: str, unit: Unit, low: float, high: float) -> Any:
    """Declare a dataclass field as a parameter of the drill file."""
    return dataclasses.field(metadata={"parameter": Parameter(key, unit, low, high)})


def parameters(fault: type[Fault]) -> dict[str, Parameter]:
    """The parameters of a fault class by field name, target left out."""
    fields = dataclasses.fields(fault)  # type: ignore[arg-type]  # a protocol cannot say 'is a dataclass'
    return {f.name: f.metadata["parameter"] for f in fields if "parameter" in f.metadata}


@dataclass(frozen=True, slots=True)
class LinkDown:
    """A cable is cut: both ends lose carrier at once.

    Host: the port of the NIC loses carrier, the LAG drops it at once (no LACP timeout is needed). ToR: the port loses
    carrier, its neighbours and host routes go, BGP withdraws them. Restored by giving carrier back; LACP then has to
    agree again before the port carries traffic.
    """

    KIND: ClassVar[str] = "link-down"
    TARGET: ClassVar[TargetKind] = TargetKind.LINK
    REPAIRS_ITSELF: ClassVar[bool] = False

    link: str

    @property
    def target(self) -> str:
        """The link."""
        return self.link

    def links_hit(self, fabric: Fabric) -> tuple[Link, ...]:
        """The link itself."""
        return (fabric.link(self.link),)

    def nodes_hit(self) -> tuple[str, ...]:
        """None: both ends live on."""
        return ()

    def edges(self, at_ns: int, for_ns: int | None) -> tuple[PlannedEdge, ...]:
        """Down once, up once."""
        return _once(at_ns, for_ns)


@dataclass(frozen=True, slots=True)
class LinkFlap:
    """A link that goes down and up ``count`` times, down for ``duty`` of every ``period``.

    Host and ToR see what ``LinkDown`` shows them, again and again; a period shorter than LACP's or BGP's recovery means
    that the port never gets back into use between two flaps. The last period ends with the repair.
    """

    KIND: ClassVar[str] = "link-flap"
    TARGET: ClassVar[TargetKind] = TargetKind.LINK
    REPAIRS_ITSELF: ClassVar[bool] = True

    link: str
    period_ns: int = parameter("period", Unit.DURATION, 10 * MS, 60_000 * MS)
    duty: float = parameter("duty", Unit.PERCENT, 0.01, 0.99)
    count: int = parameter("count", Unit.COUNT, 1, 1000)

    @property
    def target(self) -> str:
        """The link."""
        return self.link

    def links_hit(self, fabric: Fabric) -> tuple[Link, ...]:
        """The link itself."""
        return (fabric.link(self.link),)

    def nodes_hit(self) -> tuple[str, ...]:
        """None: both ends live on."""
        return ()

    def edges(self, at_ns: int, for_ns: int | None) -> tuple[PlannedEdge, ...]:
        """Down at the start of each period, up after ``duty`` of it; ``for_ns`` is ignored."""
        down_ns = int(self.period_ns * self.duty)
        starts = [at_ns + i * self.period_ns for i in range(self.count)]
        pairs = [
            (PlannedEdge(start, EdgeKind.FAILURE, i), PlannedEdge(start + down_ns, EdgeKind.REPAIR, i))
            for i, start in enumerate(starts)
        ]
        return tuple(edge for pair in pairs for edge in pair)


@dataclass(frozen=True, slots=True)
class TorCrash:
    """A ToR dies: every one of its ports loses carrier in one batch, its BGP daemon and LACP speaker die with it.

    Hosts: the port towards it loses carrier. Aggs: the port towards it loses carrier, BGP drops the session at once.
    The ToR itself sees nothing any more. Restored by a boot with empty state: carrier, daemons, LACP, BGP, ARP.
    """

    KIND: ClassVar[str] = "tor-crash"
    TARGET: ClassVar[TargetKind] = TargetKind.TOR
    REPAIRS_ITSELF: ClassVar[bool] = False

    tor: str

    @property
    def target(self) -> str:
        """The ToR."""
        return self.tor

    def links_hit(self, fabric: Fabric) -> tuple[Link, ...]:
        """Every link of the ToR."""
        return fabric.links_of(fabric.node(self.tor).name)

    def nodes_hit(self) -> tuple[str, ...]:
        """The ToR."""
        return (self.tor,)

    def edges(self, at_ns: int, for_ns: int | None) -> tuple[PlannedEdge, ...]:
        """Dead once, booted once."""
        return _once(at_ns, for_ns)


FAULTS: Mapping[str, type[Fault]] = {fault.KIND: fault for fault in (LinkDown, LinkFlap, TorCrash)}


def make(kind: str, target: str, arguments: Mapping[str, int | float]) -> Fault:
    """The fault of that kind; ``arguments`` by field name. KeyError for an unknown kind."""
    maker: Callable[..., Fault] = FAULTS[kind]
    return maker(target, **arguments)


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """A fault and when it is due; times are relative to the start of traffic."""

    id: str
    fault: Fault
    at_ns: int
    for_ns: int | None = None  # restored after this; None: by itself, or not before the end of the drill

    @property
    def edges(self) -> tuple[PlannedEdge, ...]:
        """Its failures and repairs in order."""
        return self.fault.edges(self.at_ns, self.for_ns)

    @property
    def repaired_at_ns(self) -> int | None:
        """When its last repair is due; None when it is not repaired within the drill."""
        last = self.edges[-1]
        return last.at_ns if last.kind is EdgeKind.REPAIR else None


def nics_hit(fault: Fault, fabric: Fabric) -> frozenset[str]:
    """Names of the NICs that lose a port."""
    access = [link for link in fault.links_hit(fabric) if link.kind is LinkKind.ACCESS]
    return frozenset(fabric.nic_of_link(link.name).name for link in access)


def _once(at_ns: int, for_ns: int | None) -> tuple[PlannedEdge, ...]:
    failure = PlannedEdge(at_ns, EdgeKind.FAILURE)
    return (failure,) if for_ns is None else (failure, PlannedEdge(at_ns + for_ns, EdgeKind.REPAIR))
