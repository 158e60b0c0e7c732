"""The files of hpn itself, in a checkout and where it is installed.

In a checkout the rooms lie at its top, and ``hpn`` holds links to them.
"""

from __future__ import annotations

from pathlib import Path

PACKAGES = ("commands", "failover", "results", "scenarios", "testbed", "traffic")
"""The packages below ``hpn``. Guests need them as byte code, the workers of a pool must have them alike."""

ROOT = Path(__file__).absolute().parents[2]
"""The folder that holds ``hpn``, as PYTHONPATH names it: the checkout, or site-packages."""

FOLDER = ROOT / "hpn"


def own_files(pattern: str) -> list[Path]:
    """The files of hpn that match, such as '*.py', in order."""
    below = (path for package in PACKAGES for path in (FOLDER / package).rglob(pattern))
    return sorted({*FOLDER.glob(pattern), *below})
