"""Where programs are found: administrators' tools lie in sbin, which an ordinary user's PATH does not name."""

from __future__ import annotations

import os
import shutil

_SBIN = ("/usr/local/sbin", "/usr/sbin", "/sbin")


def find(program: str) -> str | None:
    """Path of an installed program, looked for in PATH and then in sbin; None when there is none."""
    return shutil.which(program, path=os.pathsep.join((os.environ.get("PATH", os.defpath), *_SBIN)))
