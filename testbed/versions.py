"""Versions of hpn and of Mininet, from their packages.

They are read at import, which a guest does before its clock counts. The number of files read depends on the
installation, and in virtual time opening a file moves the clock.
"""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from hpn.testbed.package import ROOT


def _of_checkout(project: Path) -> str:
    """Return the version in the project file of a checkout that is not installed; 'unknown' if there is none."""
    text = project.read_text() if project.is_file() else ""
    found = re.search(r'^version = "([^"]+)"$', text, re.MULTILINE)
    return found.group(1) if found else "unknown"


try:
    HPN = version("hpn")
except PackageNotFoundError:
    HPN = _of_checkout(ROOT / "pyproject.toml")
MININET = version("mininet")
