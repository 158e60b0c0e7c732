"""Processes that carry out a failover on a lab, and how long they waited for a CPU.

Changes when another process takes part in a failover. This process runs LACP, the LAGs and path control; BGP runs in
daemons.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from hpn.failover.analysis.cpu_waits import NO_WAITS, Waits, waits_of
from hpn.failover.analysis.hostload import Sample
from hpn.testbed.lab.lab import Lab
from hpn.testbed.vm.engines import has_virtual_time


class Carriers:
    """Processes known at the start of the run and again at its end, as a fault may have replaced some."""

    def __init__(self, lab: Lab, engine: str) -> None:
        self._lab = lab
        self._virtual = has_virtual_time(engine)
        self._pids = self._now()

    def waits(self, samples: Sequence[Sample]) -> Waits:
        """Return their CPU waits; no waits in virtual time, where computing takes no time."""
        return NO_WAITS if self._virtual else waits_of(samples, self._pids | self._now())

    def _now(self) -> set[int]:
        return {os.getpid()}.union(*(daemon.pids for daemon in self._lab.bgp.values()))
