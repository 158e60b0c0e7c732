"""Files of hpn itself, in a checkout and when installed.

In a checkout the packages are at its top level, and ``hpn`` contains links to them.
"""

from __future__ import annotations

from pathlib import Path

PACKAGES = ("commands", "failover", "results", "scenarios", "testbed", "traffic")
"""Packages below ``hpn``. Guests need them as byte code, and a pool's workers must have the same versions."""

ROOT = Path(__file__).absolute().parents[2]
"""Folder that contains ``hpn``, as PYTHONPATH names it: the checkout, or site-packages."""

FOLDER = ROOT / "hpn"


def own_files(pattern: str) -> list[Path]:
    """Return the files of hpn that match a pattern such as '*.py', sorted."""
    below = (path for package in PACKAGES for path in (FOLDER / package).rglob(pattern))
    return sorted({*FOLDER.glob(pattern), *below})
