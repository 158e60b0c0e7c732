"""What every fault says about itself: target, parameters, links and nodes hit, edges. Pure.

Changes when an analysis needs to know something more of every fault.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Protocol

from failover.model import EdgeKind
from testbed.fabric.model import Fabric, Link, LinkKind

MS = 1_000_000


class TargetKind(StrEnum):
    """What a fault acts on."""

    LINK = "link"
    ACCESS_LINK = "NIC-ToR link"
    UPLINK = "link between two switches"
    NIC = "NIC"
    HOST = "host"
    TOR = "ToR"
    AGG = "Agg"
    CORE = "Core"
    PLANE = "plane"  # 'plane0'
    AREA = "part of the access links"  # 'all', a plane, a ToR or a host


class Need(StrEnum):
    """A kernel feature that some faults cannot do without (``failover.needs`` finds out)."""

    NFT_INGRESS = "nftables at a port's ingress"
    NFT_FORWARD = "nftables where packets are forwarded"
    NETEM = "netem"


class Unit(StrEnum):
    """How a parameter is written in a drill file."""

    DURATION = "duration"  # '400 ms', an int of nanoseconds here
    PERCENT = "percent"  # '50 %', a float of 0..1 here
    COUNT = "count"
    CHOICE = "choice"  # one of a few words
    NAME = "name"  # of something in the fabric


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a fault as a drill file gives it; ``low`` and ``high`` are inclusive, in the field's unit.

    ``choices`` of a choice instead. A parameter with a ``default`` may be left out of the file.
    """

    key: str
    unit: Unit
    low: float = 0
    high: float = 0
    choices: type[StrEnum] | None = None
    default: int | float | str | None = None

    def of(self, value: int | float | str) -> int | float | str:
        """The field's value for what a drill file gave."""
        return self.choices(str(value)) if self.choices is not None else value


@dataclass(frozen=True, slots=True)
class PlannedEdge:
    """A moment at which a fault is to be injected or restored, relative to the start of traffic.

    A fault of several steps, or of one link after the other, names at each edge the ``part`` of it that is meant. A
    repair without ``part`` undoes whatever still stands of the fault.
    """

    at_ns: int
    kind: EdgeKind
    index: int = 0  # over the edges of one kind of a flapping fault
    part: Fault | None = None


class Fault(Protocol):
    """What every fault says about itself. ``REPAIRS_ITSELF``: its edges include the repair, ``for`` has no meaning."""

    KIND: ClassVar[str]
    TARGET: ClassVar[TargetKind]
    REPAIRS_ITSELF: ClassVar[bool]
    TAKES_CARRIER: ClassVar[bool]  # the ports that are hit see it at once; else only what crosses the link can tell
    NEEDS: ClassVar[frozenset[Need]]  # of the kernel, beyond what every lab needs

    def __hash__(self) -> int:
        """Equal faults are the same fault."""

    @property
    def target(self) -> str:
        """Name of the link or node it acts on."""

    def links_hit(self, fabric: Fabric) -> tuple[Link, ...]:
        """The links whose traffic it hits. InputError when the target is not in ``fabric``."""

    def nodes_hit(self) -> tuple[str, ...]:
        """Nodes that are hit as a whole."""

    def edges(self, at_ns: int, for_ns: int | None) -> tuple[PlannedEdge, ...]:
        """Its failures and repairs in order when injected at ``at_ns`` and restored after ``for_ns`` (None: never)."""


@dataclass(frozen=True, slots=True)
class LinkFault:
    """What faults of one link have in common, unless they say otherwise: a carrier taken once and given back once."""

    TARGET: ClassVar[TargetKind] = TargetKind.LINK
    REPAIRS_ITSELF: ClassVar[bool] = False
    TAKES_CARRIER: ClassVar[bool] = True
    NEEDS: ClassVar[frozenset[Need]] = frozenset()

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
        """Done once, undone once."""
        return once(at_ns, for_ns)


def parameter(key: str, unit: Unit, low: float, high: float, default: float | None = None) -> Any:
    """Declare a dataclass field as a parameter of the drill file."""
    return _field(Parameter(key, unit, low, high, default=default))


def choice(key: str, choices: type[StrEnum], default: StrEnum | None = None) -> Any:
    """Declare a dataclass field as a choice of the drill file between the values of ``choices``."""
    return _field(Parameter(key, Unit.CHOICE, choices=choices, default=default))


def name(key: str) -> Any:
    """Declare a dataclass field as a name that the drill file may give; '' when it does not."""
    return _field(Parameter(key, Unit.NAME, default=""))


def _field(declared: Parameter) -> Any:
    default = dataclasses.MISSING if declared.default is None else declared.default
    return dataclasses.field(default=default, metadata={"parameter": declared})


def parameters(fault: type[Fault]) -> dict[str, Parameter]:
    """The parameters of a fault class by field name, target left out."""
    fields = dataclasses.fields(fault)  # type: ignore[arg-type]  # a protocol cannot say 'is a dataclass'
    return {f.name: f.metadata["parameter"] for f in fields if "parameter" in f.metadata}


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

    def edges_of(self, kind: EdgeKind) -> tuple[PlannedEdge, ...]:
        """Those of one kind, in order."""
        return tuple(edge for edge in self.edges if edge.kind is kind)

    @property
    def repaired_at_ns(self) -> int | None:
        """When its last repair is due; None when it is not repaired within the drill."""
        last = self.edges[-1]
        return last.at_ns if last.kind is EdgeKind.REPAIR else None

    @property
    def over_at_ns(self) -> int | None:
        """When it lets go of what it hits; None when not before the end of the drill."""
        if self.fault.REPAIRS_ITSELF:
            return max(edge.at_ns for edge in self.edges)
        return None if self.for_ns is None else self.at_ns + self.for_ns

    def covers(self, other: PlannedFault) -> bool:
        """Whether it is there from before the other until after it."""
        end_ns, other_end_ns = self.over_at_ns, other.over_at_ns
        ends_later = end_ns is None or (other_end_ns is not None and other_end_ns <= end_ns)
        return self.at_ns <= other.at_ns and ends_later

    def meets(self, other: PlannedFault) -> bool:
        """Whether there is a moment at which both are there; one that begins as the other ends does meet it."""
        first, second = sorted((self, other), key=lambda planned: planned.at_ns)
        return first.over_at_ns is None or second.at_ns <= first.over_at_ns


def nics_hit(fault: Fault, fabric: Fabric) -> frozenset[str]:
    """Names of the NICs with a port on a link that is hit."""
    access = [link for link in fault.links_hit(fabric) if link.kind is LinkKind.ACCESS]
    return frozenset(fabric.nic_of_link(link.name).name for link in access)


def once(at_ns: int, for_ns: int | None) -> tuple[PlannedEdge, ...]:
    """A failure and, when it is restored, one repair."""
    failure = PlannedEdge(at_ns, EdgeKind.FAILURE)
    return (failure,) if for_ns is None else (failure, PlannedEdge(at_ns + for_ns, EdgeKind.REPAIR))
