"""Faults of complete ports, NICs, hosts, switches and planes. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import ClassVar

from hpn.failover.faults.actions import Action, FaultActions
from hpn.failover.faults.area import links_of_any, switches_of
from hpn.failover.faults.base import AS_OFTEN_AS_A_TOR, CarrierFault, Need, SwitchPart, TargetKind, VisibleTo
from hpn.failover.faults.fields import choice
from hpn.failover.faults.streams import Direction, Frames, Stream, streams
from hpn.testbed.fabric.model import Fabric, Link, Role


@dataclass(frozen=True, slots=True)
class ManyLinksFault(CarrierFault):
    """Faults that take the carrier of many links at one instant."""

    PER_MONTH: ClassVar[float] = AS_OFTEN_AS_A_TOR


@dataclass(frozen=True, slots=True)
class NicDown(ManyLinksFault):
    """A NIC dies: its ports lose carrier at one instant.

    Host: the LAG has no port left; what the NIC's queue pairs send is dropped, nothing arrives. ToRs: each port loses
    carrier, the host route goes in every plane, so no plane is left to move to. Restored by carrier; LACP agrees again
    on each port, the host announces itself.
    """

    KIND: ClassVar[str] = "nic-down"
    TARGET: ClassVar[TargetKind] = TargetKind.NIC

    nic: str

    @property
    def target(self) -> str:
        """Name of the NIC."""
        return self.nic

    def links_hit(self, fabric: Fabric) -> tuple[Link, ...]:
        """Return the link of each of its ports."""
        return fabric.nic(self.nic).links

    def act(self, actions: FaultActions) -> Action:
        """Take all ports of the NIC down."""
        return actions.cut([(link, link.lower.node) for link in self.links_hit(actions.fabric)])

    def nodes_hit(self) -> tuple[str, ...]:
        """Return no node: the host keeps running."""
        return ()


@dataclass(frozen=True, slots=True)
class HostDown(ManyLinksFault):
    """A host loses power: every port of every NIC loses carrier at one instant.

    ToRs see what ``NicDown`` shows them, for every rail. The host sends and receives nothing; who sends to it runs into
    the retry limit of its queue pairs. Restored by carrier: the emulated host comes back with its queue pairs as they
    were, where a real one would boot and its job start again; on a spare host, that is ``HostReplaced``.
    """

    KIND: ClassVar[str] = "host-down"
    TARGET: ClassVar[TargetKind] = TargetKind.HOST

    host: str

    @property
    def target(self) -> str:
        """Name of the host."""
        return self.host

    def links_hit(self, fabric: Fabric) -> tuple[Link, ...]:
        """Return the link of each port of each NIC."""
        return fabric.links_of(fabric.node(self.host).name)

    def act(self, actions: FaultActions) -> Action:
        """Take all ports of the host down."""
        return actions.cut([(link, link.lower.node) for link in self.links_hit(actions.fabric)])

    def nodes_hit(self) -> tuple[str, ...]:
        """Return the host."""
        return (self.host,)


@dataclass(frozen=True, slots=True)
class SwitchFault(ManyLinksFault):
    """Faults of one whole switch."""

    PART: ClassVar[SwitchPart] = SwitchPart.WHOLE

    switch: str

    @property
    def target(self) -> str:
        """Name of the switch."""
        return self.switch

    def links_hit(self, fabric: Fabric) -> tuple[Link, ...]:
        """Return every link of the switch."""
        return fabric.links_of(fabric.node(self.switch).name)

    def nodes_hit(self) -> tuple[str, ...]:
        """Return the switch."""
        return (self.switch,)


@dataclass(frozen=True, slots=True)
class _Crash(SwitchFault):
    """It dies as a whole."""

    def act(self, actions: FaultActions) -> Action:
        """Kill the switch: its ports and its daemons."""
        return actions.crash((actions.fabric.node(self.switch).name,))


@dataclass(frozen=True, slots=True)
class TorCrash(_Crash):
    """A ToR dies: every one of its ports loses carrier in one batch, its BGP daemon and LACP speaker die with it.

    Hosts: the port towards it loses carrier. Aggs: the port towards it loses carrier, BGP drops the session at once.
    The ToR itself sees nothing any more. Restored by a boot with empty state: carrier, daemons, LACP, BGP, ARP; a
    reboot is this fault with the boot time as its 'for'.
    """

    KIND: ClassVar[str] = "tor-crash"
    TARGET: ClassVar[TargetKind] = TargetKind.TOR


@dataclass(frozen=True, slots=True)
class AggCrash(_Crash):
    """An Agg dies: every one of its ports loses carrier in one batch, its BGP daemon dies with it.

    ToRs: one uplink loses carrier, ECMP goes on over the others at once, BGP drops the session. Cores: the same below.
    Hosts see nothing. Restored by a boot with empty state.
    """

    KIND: ClassVar[str] = "agg-crash"
    TARGET: ClassVar[TargetKind] = TargetKind.AGG


@dataclass(frozen=True, slots=True)
class CoreCrash(_Crash):
    """A Core dies, as an Agg does; only traffic between pods can notice.

    Aggs: one uplink loses carrier, ECMP goes on over the others, BGP drops the session. Hosts and ToRs see nothing.
    """

    KIND: ClassVar[str] = "core-crash"
    TARGET: ClassVar[TargetKind] = TargetKind.CORE


@dataclass(frozen=True, slots=True)
class _DataplaneDeath(SwitchFault):
    """Death of a switch's forwarding while its control plane lives: packets through it vanish."""

    TELLS: ClassVar[VisibleTo] = VisibleTo.NOBODY
    PART: ClassVar[SwitchPart] = SwitchPart.FORWARDING
    SESSIONS_DOWN: ClassVar[bool] = False
    NEEDS: ClassVar[frozenset[Need]] = frozenset({Need.NFT_FORWARD})

    def silences(self) -> frozenset[Stream]:
        """Return data: all traffic through the switch that is not for the switch itself."""
        return streams(Direction, (Frames.DATA,))

    def act(self, actions: FaultActions) -> Action:
        """Stop the switch's forwarding."""
        return actions.stop_forwarding(actions.fabric.node(self.switch).name)


@dataclass(frozen=True, slots=True)
class TorDataplaneDeath(_DataplaneDeath):
    """A ToR's forwarding dies while its control plane lives (the paper's MMU overflow): packets through it vanish.

    Hosts: LACPDUs still come, so the port stays in the LAG. Aggs: BGP keepalives still come, so its routes stay. Nobody
    notices; whatever is sent its way is lost until the fault ends. Restored by forwarding again.
    """

    KIND: ClassVar[str] = "tor-dataplane-death"
    TARGET: ClassVar[TargetKind] = TargetKind.TOR


@dataclass(frozen=True, slots=True)
class AggDataplaneDeath(_DataplaneDeath):
    """An Agg's forwarding dies while its control plane lives: packets through it vanish.

    ToRs and Cores: carrier, BGP keepalives and BFD go on, so ECMP goes on over the Agg. Hosts: path control sees each
    destination's route and stays. Flows that hash onto the Agg lose everything until the fault ends, others nothing.
    Restored by forwarding again.
    """

    KIND: ClassVar[str] = "agg-dataplane-death"
    TARGET: ClassVar[TargetKind] = TargetKind.AGG


class Tier(StrEnum):
    """Switches of a plane, by tier."""

    AGGS = "aggs"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class PlaneDown(ManyLinksFault):
    """Every Agg of a plane dies at once, or every switch: each loses its ports in one batch, its daemons die.

    ``tier: aggs``: ToRs lose every uplink, hosts keep their port and LACP, so only path control can tell them that
    nothing behind that port can be reached. ``tier: all``: every NIC loses its port of that plane as well.
    """

    KIND: ClassVar[str] = "plane-down"
    TARGET: ClassVar[TargetKind] = TargetKind.PLANE
    PART: ClassVar[SwitchPart] = SwitchPart.WHOLE

    plane: str
    tier: Tier = choice("tier", Tier)  # noqa: RUF009 - a field
    switches: tuple[str, ...] = ()  # filled in by ``on``

    @property
    def target(self) -> str:
        """Name of the plane."""
        return self.plane

    def on(self, fabric: Fabric) -> PlaneDown:
        """Return the fault with its switches. InputError when there is no such plane."""
        return replace(self, switches=self.dying(fabric))

    def dying(self, fabric: Fabric) -> tuple[str, ...]:
        """Return the switches that fail. InputError when there is no such plane."""
        found = switches_of(fabric, self.plane)
        return tuple(node.name for node in found if self.tier is Tier.ALL or node.role is Role.AGG)

    def links_hit(self, fabric: Fabric) -> tuple[Link, ...]:
        """Return every link of these switches."""
        return links_of_any(fabric, self.dying(fabric))

    def nodes_hit(self) -> tuple[str, ...]:
        """Return these switches; none before ``on``."""
        return self.switches

    def act(self, actions: FaultActions) -> Action:
        """Kill all these switches in one batch."""
        return actions.crash(self.dying(actions.fabric))
