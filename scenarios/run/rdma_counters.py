"""What a lab's Soft-RoCE devices counted through a run: read at its begin and its end.

Changes when something else is read of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from hpn.testbed.lab.lab import Lab

FILE = "hw_counters.json"
"""In a run folder: by NIC and counter, what it was before and after."""

_Counters = Mapping[str, Mapping[str, int]]


class DeviceCounters:
    """Of one run. Use: ``before``, ``after``; then what there is to tell. Nothing where the lab has no Soft-RoCE."""

    def __init__(self, lab: Lab) -> None:
        self._devices = lab.soft_roce
        self._before: _Counters = {}
        self._after: _Counters = {}

    def before(self) -> None:
        """The run begins."""
        self._before = {} if self._devices is None else self._devices.counters()

    def after(self) -> None:
        """The run is over."""
        self._after = {} if self._devices is None else self._devices.counters()

    def counted(self) -> dict[str, dict[str, int]]:
        """By NIC and by the driver's names, what the run added; of NICs whose device was there all the time."""
        return {
            nic: {name: value - self._before[nic].get(name, 0) for name, value in of.items()}
            for nic, of in self._after.items()
            if nic in self._before
        }

    def write(self, folder: Path) -> None:
        """``hw_counters.json``, where there are devices."""
        if self._devices is None:
            return
        found: dict[str, dict[str, dict[str, int | None]]] = {}
        for nic, of in self._before.items():
            after = self._after.get(nic, {})
            found[nic] = {name: {"before": value, "after": after.get(name)} for name, value in of.items()}
        (folder / FILE).write_text(json.dumps(found, indent=2) + "\n")
