"""Common interface of faults: target, parameters, affected parts, edges, visibility, and streams they hide. Pure.

Changes when other code needs a further property of every fault.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from typing import ClassVar

from hpn.failover.analysis.model import EdgeKind
from hpn.failover.faults.actions import Action, FaultActions
from hpn.failover.faults.streams import EVERYTHING, NOTHING, Frames, Stream
from hpn.testbed.fabric.model import Fabric, Link, LinkKind

MS = 1_000_000

AS_OFTEN_AS_A_TOR = 0.00051
"""Failures a month of a ToR (HPN, SIGCOMM 2024), also used for most other kinds, which lack published rates."""


class TargetKind(StrEnum):
    """Kind of part that a fault acts on."""

    LINK = "link"
    ACCESS_LINK = "NIC-ToR link"
    UPLINK = "link between two switches"
    NIC = "NIC"
    NIC_OR_PORT = "NIC or NIC-ToR link"
    HOST = "host"
    TOR = "ToR"
    AGG = "Agg"
    CORE = "Core"
    PLANE = "plane"  # 'plane0'
    AREA = "part of the access links"  # 'all', a plane, a ToR or a host


class Need(StrEnum):
    """A kernel feature that some faults cannot do without (``failover.inject.needs`` finds out)."""

    NFT_INGRESS = "nftables at a port's ingress"
    NFT_FORWARD = "nftables where packets are forwarded"
    NETEM = "netem"
    LOSSLESS = "queue discipline with PFC"
    CROSSING = "exchange of cables by nftables and tc"


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


class VisibleTo(Enum):
    """Whom a fault tells that it is there."""

    CARRIER = auto()  # the ports that are hit: they lose carrier
    NEIGHBOURS = auto()  # a switch signals it while carrier stays
    NOBODY = auto()  # only missing frames reveal it


class SwitchPart(Enum):
    """Part of a switch that stops working."""

    NONE = auto()  # no complete switch is affected
    WHOLE = auto()
    CONTROL = auto()  # BGP, LACP, ARP to host routes; it keeps forwarding
    FORWARDING = auto()


@dataclass(frozen=True, slots=True)
class Replacement:
    """A spare host that goes on with the work of a dead one ``after_ns`` after its death; ``spare`` '': any."""

    host: str
    spare: str
    after_ns: int


class Fault(ABC):
    """A fault and everything it says about itself. Equal faults are the same fault, and hash alike.

    What has neither a value here nor a body must be said by each kind or by the base it shares with others; the
    catalogue (``failover.faults``) cannot be imported with one that does not.
    """

    __slots__ = ()

    KIND: ClassVar[str]
    TARGET: ClassVar[TargetKind]
    TELLS: ClassVar[VisibleTo]
    STEADY: ClassVar[bool]  # its effect is continuous, without interruption
    PART: ClassVar[SwitchPart]  # of the switches that are affected as a whole
    REPAIRS_ITSELF: ClassVar[bool]  # its edges include the repair, ``for`` has no meaning
    SESSIONS_DOWN: ClassVar[bool]  # BGP sessions over its links may be down, or one end's daemon not listening
    NEEDS: ClassVar[frozenset[Need]]  # kernel features beyond those that every lab needs
    PER_MONTH: ClassVar[float]  # failures of one element; campaigns draw by it
    WANTS_SESSIONS: ClassVar[bool] = False  # it acts on a BGP session, which must be up
    MOVES_CABLES: ClassVar[bool] = False  # its links have other ends meanwhile
    REPLACES_HOST: ClassVar[bool] = False  # it has a ``replacement``

    @property
    @abstractmethod
    def target(self) -> str:
        """Name of the link or node it acts on."""

    @abstractmethod
    def links_hit(self, fabric: Fabric) -> tuple[Link, ...]:
        """Return the links whose traffic it affects. InputError when the target is not in ``fabric``."""

    @abstractmethod
    def nodes_hit(self) -> tuple[str, ...]:
        """Return the nodes that are affected as a whole."""

    @abstractmethod
    def edges(self, at_ns: int, for_ns: int | None) -> tuple[PlannedEdge, ...]:
        """Return its failures and repairs in order; injected at ``at_ns``, restored after ``for_ns`` (None: never)."""

    @abstractmethod
    def act(self, actions: FaultActions) -> Action:
        """Return the action that injects it into a lab, with its inverse. Nothing is executed or stored yet."""

    @abstractmethod
    def silences(self) -> frozenset[Stream]:
        """Return the streams that it drops completely on its links: no other fault shows in them."""

    @abstractmethod
    def shows_in(self) -> frozenset[Stream]:
        """Return the streams that alone reveal it; none when it also shows elsewhere."""

    @property
    def timers_alone_notice(self) -> bool:
        """True if nobody is told and a protocol's messages stop: the outage depends on the phase of its timer."""
        lost = {frames for _, frames in self.silences()}
        return self.TELLS is VisibleTo.NOBODY and bool(lost & {Frames.LACP, Frames.BGP})

    @property
    def reaches_data(self) -> bool:
        """True if it can lose, hold or change data packets on its links; False if it acts on protocols alone."""
        named = {frames for _, frames in self.silences() | self.shows_in()}
        protocols_alone = bool(named) and named <= {Frames.LACP, Frames.ARP, Frames.BGP}
        return self.TELLS is not VisibleTo.NEIGHBOURS and not protocols_alone

    @classmethod
    def misfit(cls, fabric: Fabric) -> str:
        """Return why no fault of this kind can be on ``fabric``, with the solution; '' when one can."""
        return ""

    def on(self, fabric: Fabric) -> Fault:
        """Return the fault with its fabric data. InputError when it does not fit the fabric."""
        return self

    def slowed(self, times: int) -> Fault:
        """Return the equivalent fault for a ``times``-th of the traffic."""
        return self

    def last_step(self, planned: PlannedFault) -> PlannedFault | None:
        """Return its last step, if that hides more than the first, else None."""
        return None

    def bears(self, mine: PlannedFault, other: PlannedFault) -> bool:
        """Return True if it composes with another fault of the same switch; ``mine`` is itself as planned."""
        return False

    def rate_left(self) -> float | None:
        """Return the share of its links' rate that is left, for ``hpn model``; None: the model does not support it."""
        return None

    @property
    def replacement(self) -> Replacement | None:
        """Spare host that takes over the work of the host it kills, or None."""
        return None

    def with_spare(self, spare: str) -> Fault:
        """Return the fault with this spare as replacement."""
        return self

    @property
    def takes_over(self) -> tuple[str, str] | None:
        """Dead host and its spare, if this is the step of the takeover."""
        return None


@dataclass(frozen=True, slots=True)
class CarrierFault(Fault):
    """Defaults of faults that take carrier once and give it back once."""

    TELLS: ClassVar[VisibleTo] = VisibleTo.CARRIER
    STEADY: ClassVar[bool] = True
    PART: ClassVar[SwitchPart] = SwitchPart.NONE
    REPAIRS_ITSELF: ClassVar[bool] = False
    SESSIONS_DOWN: ClassVar[bool] = True
    NEEDS: ClassVar[frozenset[Need]] = frozenset()

    def edges(self, at_ns: int, for_ns: int | None) -> tuple[PlannedEdge, ...]:
        """Return one loss of carrier and its repair."""
        return once(at_ns, for_ns)

    def rate_left(self) -> float | None:
        """Return 0 if its links lose carrier."""
        return 0.0 if self.TELLS is VisibleTo.CARRIER else None

    def silences(self) -> frozenset[Stream]:
        """Return all streams: its links carry nothing."""
        return EVERYTHING

    def shows_in(self) -> frozenset[Stream]:
        """Return no stream: it shows in carrier, or on more than one link."""
        return NOTHING


@dataclass(frozen=True, slots=True)
class LinkFault(Fault):
    """Faults of one link that come and go once. Each says what it does to the link."""

    TARGET: ClassVar[TargetKind] = TargetKind.LINK
    PART: ClassVar[SwitchPart] = SwitchPart.NONE
    REPAIRS_ITSELF: ClassVar[bool] = False

    link: str

    def edges(self, at_ns: int, for_ns: int | None) -> tuple[PlannedEdge, ...]:
        """Return one failure and its repair."""
        return once(at_ns, for_ns)

    @property
    def target(self) -> str:
        """Name of the link."""
        return self.link

    def links_hit(self, fabric: Fabric) -> tuple[Link, ...]:
        """Return the link itself."""
        return (fabric.link(self.link),)

    def nodes_hit(self) -> tuple[str, ...]:
        """Return no node: both ends keep running."""
        return ()


@dataclass(frozen=True, slots=True)
class LinkCarrierFault(CarrierFault, LinkFault):
    """Defaults of faults that take the carrier of one link."""


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """A fault and when it is due; times are relative to the start of traffic."""

    id: str
    fault: Fault
    at_ns: int
    for_ns: int | None = None  # restored after this; None: by itself, or not before the end of the drill

    @property
    def edges(self) -> tuple[PlannedEdge, ...]:
        """Failures and repairs in order."""
        return self.fault.edges(self.at_ns, self.for_ns)

    def edges_of(self, kind: EdgeKind) -> tuple[PlannedEdge, ...]:
        """Return its edges of one kind, in order."""
        return tuple(edge for edge in self.edges if edge.kind is kind)

    @property
    def repaired_at_ns(self) -> int | None:
        """Time of its last repair; None when it is not repaired within the drill."""
        last = self.edges[-1]
        return last.at_ns if last.kind is EdgeKind.REPAIR else None

    @property
    def over_at_ns(self) -> int | None:
        """Time when it ends; None when not before the end of the drill."""
        if self.fault.REPAIRS_ITSELF:
            return max(edge.at_ns for edge in self.edges)
        return None if self.for_ns is None else self.at_ns + self.for_ns

    def covers(self, other: PlannedFault) -> bool:
        """Return True if it lasts from before the other's begin until after its end."""
        end_ns, other_end_ns = self.over_at_ns, other.over_at_ns
        ends_later = end_ns is None or (other_end_ns is not None and other_end_ns <= end_ns)
        return self.at_ns <= other.at_ns and ends_later

    def meets(self, other: PlannedFault) -> bool:
        """Return True if both are active at some moment; a begin at the other's end counts."""
        first, second = sorted((self, other), key=lambda planned: planned.at_ns)
        return first.over_at_ns is None or second.at_ns <= first.over_at_ns


def nics_hit(fault: Fault, fabric: Fabric) -> frozenset[str]:
    """Return the names of the NICs with a port on an affected link."""
    access = [link for link in fault.links_hit(fabric) if link.kind is LinkKind.ACCESS]
    return frozenset(fabric.nic_of_link(link.name).name for link in access)


def once(at_ns: int, for_ns: int | None) -> tuple[PlannedEdge, ...]:
    """Return a failure and, when it is restored, one repair."""
    failure = PlannedEdge(at_ns, EdgeKind.FAILURE)
    return (failure,) if for_ns is None else (failure, PlannedEdge(at_ns + for_ns, EdgeKind.REPAIR))
