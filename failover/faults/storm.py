"""A storm of link flaps over part of the fabric, computed in advance from the fabric's seed. Pure."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import ClassVar

from hpn.failover.analysis.model import EdgeKind
from hpn.failover.faults.actions import NO_ACTION, Action, FaultActions
from hpn.failover.faults.area import access_links
from hpn.failover.faults.base import MS, PlannedEdge, TargetKind
from hpn.failover.faults.fields import Unit, parameter
from hpn.failover.faults.link import LinkDown
from hpn.failover.faults.node import ManyLinksFault
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.model import Fabric, Link

MOST_FLAPS = 200


@dataclass(frozen=True, slots=True)
class Flap:
    """One link goes down ``after_ns`` into the storm, a whole number of milliseconds."""

    after_ns: int
    link: str


@dataclass(frozen=True, slots=True)
class FlapStorm(ManyLinksFault):
    """Links flap at random for ``duration``: a Poisson process with a mean of ``every`` between two flaps.

    Each flap takes a link chosen evenly among those that are up, for ``down``; hosts and ToRs see of it what
    ``LinkDown`` shows them. The first flap opens the storm. Times and links follow from the fabric's seed alone.

    From a fleet to a lab: a fleet of N access links with F flaps a day, of which the lab shows n links and K times as
    fast, has ``every`` = 86,400 s x N / (F x n x K). HPN reports 5,000-60,000 flaps a day; at 60,000 a day on one pod's
    30,720 links, a lab of 16 links flaps once in 46 min, and ``every: 500 ms`` is K = 5,500.
    """

    KIND: ClassVar[str] = "flap-storm"
    TARGET: ClassVar[TargetKind] = TargetKind.AREA
    STEADY: ClassVar[bool] = False
    REPAIRS_ITSELF: ClassVar[bool] = True

    area: str
    every_ns: int = parameter("every", Unit.DURATION, 20 * MS, 60_000 * MS)
    down_ns: int = parameter("down", Unit.DURATION, 10 * MS, 60_000 * MS)
    duration_ns: int = parameter("duration", Unit.DURATION, 100 * MS, 600_000 * MS)
    flaps: tuple[Flap, ...] = ()

    @property
    def target(self) -> str:
        """Name of the part of the access links."""
        return self.area

    def on(self, fabric: Fabric) -> FlapStorm:
        """Return the storm with its flaps on ``fabric``. InputError: an unknown target, or more than MOST_FLAPS."""
        return replace(self, flaps=self._drawn(fabric))

    def links_hit(self, fabric: Fabric) -> tuple[Link, ...]:
        """Return every link that may flap."""
        return access_links(fabric, self.area)

    def nodes_hit(self) -> tuple[str, ...]:
        """Return no node: only links flap."""
        return ()

    def edges(self, at_ns: int, for_ns: int | None) -> tuple[PlannedEdge, ...]:
        """Return down and up of each flap in order of time; ``for_ns`` is ignored. Before ``on``: the whole span."""
        if not self.flaps:
            end_ns = at_ns + self.duration_ns + self.down_ns
            return PlannedEdge(at_ns, EdgeKind.FAILURE), PlannedEdge(end_ns, EdgeKind.REPAIR)
        found = []
        for index, flap in enumerate(self.flaps):
            start_ns, part = at_ns + flap.after_ns, LinkDown(flap.link)
            found.append(PlannedEdge(start_ns, EdgeKind.FAILURE, index, part))
            found.append(PlannedEdge(start_ns + self.down_ns, EdgeKind.REPAIR, index, part))
        return tuple(sorted(found, key=lambda edge: edge.at_ns))

    def act(self, actions: FaultActions) -> Action:
        """Do nothing itself: its flaps are parts."""
        return NO_ACTION

    def _drawn(self, fabric: Fabric) -> tuple[Flap, ...]:
        links = [link.name for link in self.links_hit(fabric)]
        key = f"{fabric.spec.seed}/{self.area}/{self.every_ns}/{self.down_ns}/{self.duration_ns}"
        draw = random.Random(int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "big"))
        up_again = dict.fromkeys(links, 0)
        flaps: list[Flap] = []
        after_ns = 0
        while after_ns < self.duration_ns:
            whole = [link for link in links if up_again[link] <= after_ns]
            if whole:
                flaps.append(Flap(after_ns // MS * MS, draw.choice(whole)))
                # a moment longer than its downtime, so that no link is repaired and cut at one instant
                up_again[flaps[-1].link] = after_ns + self.down_ns + MS
            after_ns += int(draw.expovariate(1.0) * self.every_ns) + 1
            if len(flaps) > MOST_FLAPS:
                raise InputError(
                    f"this storm has more than {MOST_FLAPS} flaps, too many to tell apart; write a longer 'every' or"
                    " a shorter 'duration'"
                )
        return tuple(flaps)
