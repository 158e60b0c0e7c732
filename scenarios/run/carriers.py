"""The processes that carry a failover out on a lab, and what they waited for a CPU.

Changes when another process gets a part in a failover: this one has LACP, the LAGs and path control, BGP has daemons.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from hpn.failover.analysis.hostload import Sample
from hpn.failover.analysis.waits import NO_WAITS, Waits, waits_of
from hpn.testbed.lab.lab import Lab
from hpn.testbed.vm.engines import has_virtual_time


class Carriers:
    """Known when the run begins, and again at its end: a fault may have replaced some."""

    def __init__(self, lab: Lab, engine: str) -> None:
        self._lab = lab
        self._virtual = has_virtual_time(engine)
        self._pids = self._now()

    def waits(self, samples: Sequence[Sample]) -> Waits:
        """What they waited; nothing in virtual time, where computing takes none."""
        return NO_WAITS if self._virtual else waits_of(samples, self._pids | self._now())

    def _now(self) -> set[int]:
        return {os.getpid()}.union(*(daemon.pids for daemon in self._lab.bgp.values()))
