"""Faults of cabling: two cables whose far ends are exchanged. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from hpn.failover.faults.actions import Action, FaultActions
from hpn.failover.faults.base import AS_OFTEN_AS_A_TOR, MS, CarrierFault, Need, TargetKind
from hpn.failover.faults.fields import Unit, name, parameter
from hpn.failover.faults.streams import NOTHING, Stream
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.model import Fabric, Link


@dataclass(frozen=True, slots=True)
class CablesSwapped(CarrierFault):
    """Two cables of one kind are pulled and plugged back with their upper ends exchanged.

    Each is out for ``unplugged``; meanwhile all four ports have no carrier. Then light is back and the neighbour is
    wrong. Access links: the key of an HPN ToR's port belongs to one NIC, so the LAG refuses the port unless it has no
    other. Between switches: addresses do not match, so BGP sessions stay down. Where nothing refuses, such as a NIC of
    one port, traffic flows and only ``hpn inspect cabling`` tells. Without ``with``, the next link of the same kind and
    rate is meant, in its plane if there is one. Restored by plugging both back in the same way.
    """

    KIND: ClassVar[str] = "cables-swapped"
    TARGET: ClassVar[TargetKind] = TargetKind.LINK
    STEADY: ClassVar[bool] = False
    MOVES_CABLES: ClassVar[bool] = True
    NEEDS: ClassVar[frozenset[Need]] = frozenset({Need.CROSSING})
    PER_MONTH: ClassVar[float] = AS_OFTEN_AS_A_TOR

    link: str
    other: str = name("with", example="p0.s0.h1.r0.0")  # '' until ``on`` has chosen one
    unplugged_ns: int = parameter("unplugged", Unit.DURATION, 10 * MS, 60_000 * MS, default=200 * MS)

    @property
    def target(self) -> str:
        """Name of the first link."""
        return self.link

    def on(self, fabric: Fabric) -> CablesSwapped:
        """Return the fault with its second link. InputError when there is none that it can be exchanged with."""
        return replace(self, other=self._other(fabric).name)

    def links_hit(self, fabric: Fabric) -> tuple[Link, ...]:
        """Return both links; before ``on`` has chosen the second one, the first alone."""
        mine, other = fabric.link(self.link), fabric.link_by_name.get(self.other)
        return (mine,) if other is None else (mine, other)

    def nodes_hit(self) -> tuple[str, ...]:
        """Return no node: all keep running."""
        return ()

    def rate_left(self) -> float | None:
        """Return None: what is left depends on who refuses the wrong neighbour."""
        return None

    def silences(self) -> frozenset[Stream]:
        """Return no stream: both cables carry frames, to other ports."""
        return NOTHING

    def act(self, actions: FaultActions) -> Action:
        """Pull both cables and plug them back exchanged."""
        return actions.swap(actions.fabric.link(self.link), self._other(actions.fabric), self.unplugged_ns)

    def _other(self, fabric: Fabric) -> Link:
        mine = fabric.link(self.link)
        fitting = [each for each in fabric.links if each.kind is mine.kind and each.rate_bps == mine.rate_bps]
        if len(fitting) < 2:
            raise InputError(f"{self.link} has no other cable of its kind and rate; write another target")
        if not self.other:
            beside = [each for each in fitting if each.plane == mine.plane]
            among = beside if len(beside) > 1 else fitting
            return among[(among.index(mine) + 1) % len(among)]
        chosen = fabric.link(self.other)
        if chosen is mine:
            raise InputError(f"{self.link} cannot be exchanged with itself; write another link under 'with'")
        if chosen not in fitting:
            raise InputError(
                f"{self.other} is not of the kind and rate of {self.link}; write one such as "
                f"{next(each.name for each in fitting if each is not mine)} under 'with'"
            )
        return chosen
