"""Counters of a lab's Soft-RoCE devices, read at the start and the end of a run.

Changes when something else is read of the devices.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from hpn.testbed.lab.lab import Lab

FILE = "hw_counters.json"
"""File in a run folder: by NIC and counter, the values before and after."""

_Counters = Mapping[str, Mapping[str, int]]


class DeviceCounters:
    """Device counters of one run; empty if the lab has no Soft-RoCE.

    Use: ``before``, ``after``, then ``counted`` and ``write``.
    """

    def __init__(self, lab: Lab) -> None:
        self._devices = lab.soft_roce
        self._before: _Counters = {}
        self._after: _Counters = {}

    def before(self) -> None:
        """Read the counters at the start of the run."""
        self._before = {} if self._devices is None else self._devices.counters()

    def after(self) -> None:
        """Read the counters at the end of the run."""
        self._after = {} if self._devices is None else self._devices.counters()

    def counted(self) -> dict[str, dict[str, int]]:
        """Return the increase during the run by NIC and driver counter, for NICs whose device existed throughout."""
        return {
            nic: {name: value - self._before[nic].get(name, 0) for name, value in of.items()}
            for nic, of in self._after.items()
            if nic in self._before
        }

    def write(self, folder: Path) -> None:
        """Write ``hw_counters.json`` if there are devices."""
        if self._devices is None:
            return
        found: dict[str, dict[str, dict[str, int | None]]] = {}
        for nic, of in self._before.items():
            after = self._after.get(nic, {})
            found[nic] = {name: {"before": value, "after": after.get(name)} for name, value in of.items()}
        (folder / FILE).write_text(json.dumps(found, indent=2) + "\n")
