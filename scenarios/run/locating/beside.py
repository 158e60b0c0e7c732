"""Location beside a drill's streams, as far as the runner sees it: a no-op for a drill without ``locate:``.

The rest imports numpy, which only such a drill needs while it is measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpn.failover.locating.methods import METHODS
from hpn.scenarios.drill.locate_section import Locating
from hpn.scenarios.run.queue_pairs_on_lab import LabQueuePairs
from hpn.scenarios.run.traffic_on_lab import LabTraffic
from hpn.testbed.lab.lab import Lab
from hpn.traffic.streams.engine import Follow

if TYPE_CHECKING:
    from hpn.scenarios.run.locating.online import OnlineLocation


def import_for(asked: Locating | None) -> None:
    """Import what locating needs, before the run begins: an import afterwards shifts the times of a guest."""
    if asked is not None:
        import hpn.scenarios.run.locating.online  # noqa: F401  # to have it

        METHODS[asked.method].load()


class LocatingBeside:
    """Location during one run; ``follow`` hears the progress of streams, None if nobody locates."""

    def __init__(self, lab: Lab, asked: Locating | None) -> None:
        self._online: OnlineLocation | None = None
        self.follow: Follow | None = None
        if asked is not None:
            from hpn.scenarios.run.locating.online import OnlineLocation

            self._online = OnlineLocation(lab, asked)
            self.follow = self._online.hear

    async def begin(self, traffic: LabQueuePairs, start_ns: int) -> None:
        """Locate from ``start_ns`` on."""
        if self._online is not None and isinstance(traffic, LabTraffic):
            await self._online.begin(traffic, start_ns)

    def end(self) -> None:
        """Stop locating; what is drained stays so."""
        if self._online is not None:
            self._online.end()

    def heal(self) -> None:
        """Put back what was drained. HpnError if it is refused."""
        if self._online is not None:
            self._online.end()
            self._online.heal()
