"""The versions of hpn and of Mininet, as their packages say.

Found when this is imported, which a guest does before its clock counts: how many files it takes depends on where they
lie, and in virtual time opening a file moves the clock.
"""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from hpn.testbed.package import ROOT


def _of_checkout(project: Path) -> str:
    """What the project file of a checkout says that is not installed; 'unknown' where there is none."""
    text = project.read_text() if project.is_file() else ""
    found = re.search(r'^version = "([^"]+)"$', text, re.MULTILINE)
    return found.group(1) if found else "unknown"


try:
    HPN = version("hpn")
except PackageNotFoundError:
    HPN = _of_checkout(ROOT / "pyproject.toml")
MININET = version("mininet")
