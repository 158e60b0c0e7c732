"""A file system with room for so many bytes, for one command: in a mount namespace of its own, so nothing is left."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_SCRIPT = (
    'mount -t tmpfs -o size="$1" none "$2" && shift && place=$1 && shift && "$@"; code=$?; ls -sA "$place"; exit $code'
)
_UNSHARED = ("unshare", "--user", "--map-root-user", "--mount")


def hpn_on_full_disk(
    place: Path, arguments: Sequence[str], size: str = "4k", **environment: str
) -> subprocess.CompletedProcess[str]:
    """``hpn`` with a disk of ``size`` at ``place``; the last lines of stdout are what ``ls -sA`` finds there."""
    place.mkdir(exist_ok=True)
    if subprocess.run([*_UNSHARED, "mount", "-t", "tmpfs", "none", place], capture_output=True).returncode:
        pytest.skip("needs user and mount namespaces")
    return subprocess.run(
        [*_UNSHARED, "sh", "-c", _SCRIPT, "sh", size, place, sys.executable, str(ROOT / "cli.py"), *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
