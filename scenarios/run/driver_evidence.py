"""Evidence of the kernel's LAG driver in a run folder, read when the lab has converged.

Changes when a driver says something else of a LAG.
"""

from __future__ import annotations

from pathlib import Path

from hpn.testbed.lab.lab import Lab


def write_driver_evidence(folder: Path, lab: Lab) -> None:
    """Write /proc/net/bonding of each NIC, if the kernel's driver is the LAG. OSError."""
    for name, nic in lab.nics.items():
        text = nic.driver_text()
        if text:
            (folder / "bonding").mkdir(exist_ok=True)
            (folder / "bonding" / f"{name}.txt").write_text(text)
