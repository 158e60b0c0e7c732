"""Faults of one link that leave its carrier up: loss in one direction or of one kind, corruption, delay, a lower rate.

Pure. No message reports them; a host or switch detects them by missing frames. LACP's receiver gives a partner up in
two steps (802.1AX 6.4.12, Short Timeout 3 s). Three seconds after the last LACPDU it is *expired*, signals that in its
own LACPDUs and no longer considers its partner in sync. Three seconds later it is *defaulted* and out of sync itself.
Only that stops an end that still receives everything, when its Mux has coupled control, as Linux bonding and ours have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import ClassVar

from hpn.failover.faults.actions import Action, FaultActions, LostFrames
from hpn.failover.faults.base import AS_OFTEN_AS_A_TOR, MS, LinkFault, Need, TargetKind, VisibleTo
from hpn.failover.faults.fields import Unit, choice, parameter
from hpn.failover.faults.streams import EVERYTHING, NOTHING, Direction, Directions, Frames, Stream, streams
from hpn.testbed.fabric.model import Fabric


class Dropped(StrEnum):
    """Packets that a silent drop takes."""

    EVERYTHING = "everything"
    DATA = "data"
    NOT_CONTROL = "all-but-control"

    @property
    def frames(self) -> tuple[Frames, ...]:
        """Frames that are dropped in each direction."""
        return _DROPPED[self]


_DROPPED: Mapping[Dropped, tuple[Frames, ...]] = {
    Dropped.EVERYTHING: tuple(Frames),
    Dropped.DATA: (Frames.DATA,),
    Dropped.NOT_CONTROL: (Frames.ARP, Frames.DATA, Frames.OTHER),
}


@dataclass(frozen=True, slots=True)
class SilentFault(LinkFault):
    """Faults that no protocol notices. Each says what it hides, and what hides it."""

    TELLS: ClassVar[VisibleTo] = VisibleTo.NOBODY
    STEADY: ClassVar[bool] = True
    SESSIONS_DOWN: ClassVar[bool] = False
    NEEDS: ClassVar[frozenset[Need]] = frozenset({Need.NFT_INGRESS})
    PER_MONTH: ClassVar[float] = AS_OFTEN_AS_A_TOR


def _wholly(lost: frozenset[Stream], share: float) -> frozenset[Stream]:
    """Return the streams of which nothing is left when this share of them is lost."""
    return lost if share == 1.0 else NOTHING


@dataclass(frozen=True, slots=True)
class OneWayLoss(SilentFault):
    """Everything sent in one direction is lost, or a share of it, and neither end loses carrier.

    In hardware the deaf end's PHY reports a local fault, which its MAC answers with remote fault (link fault
    signalling, 802.3 clauses 46.3.4 and 81.3.4): where that works the carrier goes at both ends within microseconds
    and it is a ``link-down``. What is done here is the rest: signalling that is off or broken, a retimer or media
    converter in between that keeps its own light on, a transmitter that idles correctly and garbles frames.

    The deaf end misses LACPDUs, expires after 2 to 3 s (Short Timeout, one LACPDU a second) and takes the port out of
    use; the other end hears LACPDUs all the time, with Expired set, goes on sending into the hole, and stops 3 s later,
    when the deaf end is defaulted and no longer in sync. Direction up, host to ToR: what the NIC sends through the port
    is lost for 5 to 6 s, acknowledgements included, what it receives moves after 2 to 3 s, without loss until then.
    Direction down: the other way round. Above the ToRs BGP's hold timer is what ends it, at both ends at once.

    At a small ``share``, a dirty fibre of the pair: three LACPDUs in a row hardly ever get lost and nobody notices.
    """

    KIND: ClassVar[str] = "one-way-loss"

    direction: Direction = choice("direction", Direction)  # noqa: RUF009 - a field
    share: float = parameter("share", Unit.PERCENT, 0.0001, 1.0, default=1.0)

    def silences(self) -> frozenset[Stream]:
        """Return all frames in that direction, if all of them are lost."""
        return _wholly(streams((self.direction,), Frames), self.share)

    def shows_in(self) -> frozenset[Stream]:
        """Return all frames in that direction."""
        return streams((self.direction,), Frames)

    def act(self, actions: FaultActions) -> Action:
        """Drop a share of the frames where that direction arrives."""
        link = actions.fabric.link(self.link)
        return actions.lose(self, link, (self.direction,), LostFrames.EVERYTHING, self.share)


@dataclass(frozen=True, slots=True)
class SilentDrop(SilentFault):
    """A share of the frames is lost in both directions, and no counter, carrier or message says so.

    ``traffic: everything`` at 100 %: both ends miss LACPDUs and take the port out of use after 2 to 3 s, each by its
    own timer, so at most a second apart. At a small share three LACPDUs in a row hardly ever get lost: nobody
    notices, and every queue pair of the port suffers until somebody does. ``data`` (RoCEv2, acknowledgements too)
    and ``all-but-control`` (everything but LACP and BGP): the control plane is well and keeps traffic on the port for
    as long as the fault lasts, whatever the share.
    """

    KIND: ClassVar[str] = "silent-drop"

    share: float = parameter("share", Unit.PERCENT, 0.0001, 1.0, default=1.0)
    traffic: Dropped = choice("traffic", Dropped, default=Dropped.EVERYTHING)  # noqa: RUF009 - a field

    def silences(self) -> frozenset[Stream]:
        """Return the dropped frames, if all of them are dropped."""
        return _wholly(streams(Direction, self.traffic.frames), self.share)

    def shows_in(self) -> frozenset[Stream]:
        """Return data; the little else that ``all-but-control`` drops is hardly ever sent."""
        return EVERYTHING if self.traffic is Dropped.EVERYTHING else streams(Direction, (Frames.DATA,))

    def act(self, actions: FaultActions) -> Action:
        """Drop a share of the frames at both ends."""
        return actions.lose(
            self, actions.fabric.link(self.link), Directions.BOTH.each, LostFrames(self.traffic.value), self.share
        )


@dataclass(frozen=True, slots=True)
class LacpLoss(SilentFault):
    """LACPDUs alone are lost, in one direction or both; everything else passes.

    In hardware: a control-plane policer, a CPU path or an ACL that eats slow-protocol frames. Both: either end
    expires 2 to 3 s after it began, by its own timer, and stops using the port; for up to a second the ToR may
    still send to a host that no longer collects, and that is lost. One way: the deaf end stops after 2 to 3 s, the
    other, which learns only from its partner's state, 3 s later; a ToR that forwards to a host which no longer collects
    loses what it sends for these 3 s. Direction up, where the ToR is the deaf end, costs no more than the ToR's
    withdrawal does: a router goes on taking what a host sends it.
    """

    KIND: ClassVar[str] = "lacp-loss"
    TARGET: ClassVar[TargetKind] = TargetKind.ACCESS_LINK

    direction: Directions = choice("direction", Directions, default=Directions.BOTH)  # noqa: RUF009 - a field

    def silences(self) -> frozenset[Stream]:
        """Return LACPDUs."""
        return streams(self.direction.each, (Frames.LACP,))

    def shows_in(self) -> frozenset[Stream]:
        """Return LACPDUs."""
        return streams(self.direction.each, (Frames.LACP,))

    def act(self, actions: FaultActions) -> Action:
        """Drop LACPDUs where they arrive."""
        return actions.lose(self, actions.fabric.link(self.link), self.direction.each, LostFrames.LACP)


@dataclass(frozen=True, slots=True)
class ArpLoss(SilentFault):
    """ARP alone is lost, in one direction or both; everything else passes.

    In hardware: a control-plane policer that is busy with other hosts, a table that is full. LACP is well and carries
    the port; a host route that stands lives on as long as nobody asks whether the host is still there. What it keeps
    from happening is that a ToR learns a host: after a repair the port distributes and has no host route, so that the
    host's traffic arrives through the other plane alone. Host and ToR try again with back-off
    (``testbed.routing.retry``).
    """

    KIND: ClassVar[str] = "arp-loss"
    TARGET: ClassVar[TargetKind] = TargetKind.ACCESS_LINK

    direction: Directions = choice("direction", Directions, default=Directions.BOTH)  # noqa: RUF009 - a field

    def silences(self) -> frozenset[Stream]:
        """Return ARP."""
        return streams(self.direction.each, (Frames.ARP,))

    def shows_in(self) -> frozenset[Stream]:
        """Return ARP."""
        return streams(self.direction.each, (Frames.ARP,))

    def act(self, actions: FaultActions) -> Action:
        """Drop ARP where it arrives."""
        return actions.lose(self, actions.fabric.link(self.link), self.direction.each, LostFrames.ARP)


@dataclass(frozen=True, slots=True)
class BitCorruption(SilentFault):
    """One bit of the payload is flipped in a share of the RoCE data packets, in both directions.

    On a wire the Ethernet FCS catches this and the port that receives drops the frame and counts it; what is done here
    is corruption behind the FCS check, in a switch's or NIC's memory, which only RoCE's own invariant CRC sees. Host:
    the NIC drops the packet and counts an ICRC error; the requester hears of it as of any loss. ToR: nothing.
    LACP, BGP and acknowledgements pass unharmed.
    """

    KIND: ClassVar[str] = "bit-corruption"

    share: float = parameter("share", Unit.PERCENT, 0.0001, 1.0)

    def silences(self) -> frozenset[Stream]:
        """Return no stream: corrupted packets still arrive, and are counted."""
        return NOTHING

    def shows_in(self) -> frozenset[Stream]:
        """Return data."""
        return streams(Direction, (Frames.DATA,))

    def act(self, actions: FaultActions) -> Action:
        """Flip bits in arriving packets at both ends."""
        return actions.corrupt(self, actions.fabric.link(self.link), self.share)


@dataclass(frozen=True, slots=True)
class LinkDelay(SilentFault):
    """Every frame takes ``delay`` longer in each direction, give or take up to ``jitter``.

    In hardware: a detour in an optical transport network, a retimer in trouble. Host and ToR see nothing but later
    frames: LACP's 3 s and BGP's hold time do not mind. Each frame draws its own jitter, so that one above the time from
    packet to packet reorders them, which a wire would not.
    """

    KIND: ClassVar[str] = "link-delay"
    NEEDS: ClassVar[frozenset[Need]] = frozenset({Need.NETEM})

    delay_ns: int = parameter("delay", Unit.DURATION, MS // 1000, 1000 * MS)
    jitter_ns: int = parameter("jitter", Unit.DURATION, 0, 1000 * MS, default=0)

    @classmethod
    def misfit(cls, fabric: Fabric) -> str:
        """Refuse switches with a buffer: netem would take its place at the port."""
        if fabric.spec.switch is None:
            return ""
        return (
            f"{cls.KIND} would take the buffer of switch: away from its ports; write the cables' length as"
            " switch.cable_m, or leave switch: out of the topology"
        )

    def silences(self) -> frozenset[Stream]:
        """Return no stream: all frames arrive, later."""
        return NOTHING

    def shows_in(self) -> frozenset[Stream]:
        """Return every frame."""
        return EVERYTHING

    def act(self, actions: FaultActions) -> Action:
        """Delay departing frames at both ends."""
        return actions.delay(self, actions.fabric.link(self.link), self.delay_ns, self.jitter_ns)


@dataclass(frozen=True, slots=True)
class RateDrop(SilentFault):
    """The link goes on at a share of its rate, in both directions; the queue in front of it keeps its size.

    In hardware: lanes of a port that are lost, a PCIe link that trained down behind a NIC port. LACP and BGP are small,
    find room in a full queue and stay up, so the LAG and ECMP go on giving the link its share of the traffic: what does
    not fit waits, then is lost. With priority flow control it would wait instead, and spread.
    """

    KIND: ClassVar[str] = "rate-drop"
    NEEDS: ClassVar[frozenset[Need]] = frozenset()

    rate: float = parameter("rate", Unit.PERCENT, 0.001, 0.99)

    def silences(self) -> frozenset[Stream]:
        """Return no stream: the link still carries its reduced rate."""
        return NOTHING

    def shows_in(self) -> frozenset[Stream]:
        """Return every frame: all of them queue."""
        return EVERYTHING

    def slowed(self, times: int) -> RateDrop:
        """Return the fault with a ``times``-th of the rate, for a ``times``-th of the traffic."""
        return replace(self, rate=self.rate / times)

    def rate_left(self) -> float | None:
        """Return its ``rate``."""
        return self.rate

    def act(self, actions: FaultActions) -> Action:
        """Lower the rate of both ends."""
        return actions.slow(self, actions.fabric.link(self.link), self.rate)
