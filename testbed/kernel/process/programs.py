"""Search paths of programs: administrators' tools are in sbin, FRR's daemons in a folder of their own, not in PATH."""

from __future__ import annotations

import os
import shutil

_SBIN = ("/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/lib/frr")


def find(program: str, beside: str | None = None) -> str | None:
    """Return the path of an installed program, searched in PATH and then there; None when there is none.

    The folder of the program ``beside`` is searched first: pip installs programs next to its Python, which need not be
    in PATH.
    """
    first = () if beside is None else (os.path.dirname(beside),)
    return shutil.which(program, path=os.pathsep.join((*first, os.environ.get("PATH", os.defpath), *_SBIN)))
