"""Where programs are found: administrators' tools lie in sbin, FRR's daemons apart from all; PATH names neither."""

from __future__ import annotations

import os
import shutil

_SBIN = ("/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/lib/frr")


def find(program: str) -> str | None:
    """Path of an installed program, looked for in PATH and then there; None when there is none."""
    return shutil.which(program, path=os.pathsep.join((os.environ.get("PATH", os.defpath), *_SBIN)))
