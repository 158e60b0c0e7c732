"""A NIC that sends pause frames without end, on switches that obey them. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hpn.failover.faults.actions import Action, FaultActions
from hpn.failover.faults.base import (
    AS_OFTEN_AS_A_TOR,
    Fault,
    Need,
    PlannedEdge,
    SwitchPart,
    TargetKind,
    VisibleTo,
    once,
)
from hpn.failover.faults.fields import Unit, parameter
from hpn.failover.faults.streams import NOTHING, Direction, Frames, Stream, streams
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.buffers import lossless_priorities
from hpn.testbed.fabric.model import Fabric, Link

RDMA_PRIORITY = 3  # SONiC's default map has RoCEv2 there (FACTS section 16)


@dataclass(frozen=True, slots=True)
class PauseStorm(Fault):
    """A NIC is stuck: it stops one ``priority`` of the ToRs' ports to it, by PFC (IEEE 802.1Qbb).

    In hardware: a NIC whose receive pipeline hangs, or whose host does not fetch what arrives; Microsoft's fleet had
    it (SIGCOMM 2016). The port sends XOFF again after half of the largest pause, 65535 quanta of 512 bit times. With a
    ``share`` of the time it is a slow receiver: it stops the ToR for so much of every 10,000 quanta. ToR:
    packets to the NIC wait. Their buffer fills, so the ToR stops the ports that they came in by, and so on up to the
    senders: whoever shares the priority and a port with them stands still as well. What the NIC sends goes on.
    Carrier, LACP, BGP and ARP stay: their frames have another priority. Only the switches' PFC watchdog ends it before
    the repair: it drops what goes to the NIC, or sends it in spite of XOFF. Repaired by XON at once.
    """

    KIND: ClassVar[str] = "pause-storm"
    TARGET: ClassVar[TargetKind] = TargetKind.NIC_OR_PORT
    TELLS: ClassVar[VisibleTo] = VisibleTo.NOBODY
    STEADY: ClassVar[bool] = True
    PART: ClassVar[SwitchPart] = SwitchPart.NONE
    REPAIRS_ITSELF: ClassVar[bool] = False
    SESSIONS_DOWN: ClassVar[bool] = False
    NEEDS: ClassVar[frozenset[Need]] = frozenset({Need.LOSSLESS})
    PER_MONTH: ClassVar[float] = AS_OFTEN_AS_A_TOR

    nic: str
    priority: int = parameter("priority", Unit.COUNT, 0, 7, default=RDMA_PRIORITY)
    share: float = parameter("share", Unit.PERCENT, 0.01, 1, default=1.0)

    @property
    def target(self) -> str:
        """Name of the NIC, or of one of its links."""
        return self.nic

    @classmethod
    def misfit(cls, fabric: Fabric) -> str:
        """Return what to write if the switches have no buffer with PFC."""
        if fabric.spec.switch is not None and lossless_priorities(fabric.spec.switch):
            return ""
        return (
            f"{cls.KIND} needs switches with a lossless class, and this topology has none; write one with switch:,"
            " such as topology: {preset: tiny, switch: {buffer: 2 MB}}"
        )

    def on(self, fabric: Fabric) -> PauseStorm:
        """Return the fault itself. InputError when its priority is lossy: ports do not obey PFC for it."""
        known = () if fabric.spec.switch is None else lossless_priorities(fabric.spec.switch)
        if known and self.priority not in known:
            others = " or ".join(map(str, known))
            raise InputError(f"priority {self.priority} is not lossless in this topology; write priority: {others}")
        return self

    def links_hit(self, fabric: Fabric) -> tuple[Link, ...]:
        """Return the link, or that of each port of the NIC."""
        return fabric.links_in(self.nic)

    def nodes_hit(self) -> tuple[str, ...]:
        """Return no node: host and ToRs keep running."""
        return ()

    def edges(self, at_ns: int, for_ns: int | None) -> tuple[PlannedEdge, ...]:
        """Return its begin and its repair."""
        return once(at_ns, for_ns)

    def silences(self) -> frozenset[Stream]:
        """Return no stream: it drops nothing, packets wait."""
        return NOTHING

    def shows_in(self) -> frozenset[Stream]:
        """Return the PFC frames, which go up: whoever drops them hides it."""
        return streams((Direction.UP,), (Frames.OTHER,))

    def act(self, actions: FaultActions) -> Action:
        """Have the host's ports send XOFF."""
        return actions.stick(self, self.links_hit(actions.fabric), self.priority, self.share)
