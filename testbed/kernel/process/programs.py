"""Where programs are found: administrators' tools lie in sbin, FRR's daemons apart from all; PATH names neither."""

from __future__ import annotations

import os
import shutil

_SBIN = ("/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/lib/frr")


def find(program: str, beside: str | None = None) -> str | None:
    """Path of an installed program, looked for in PATH and then there; None when there is none.

    First of all where the program ``beside`` lies: pip puts programs where its Python is, which need not be in PATH.
    """
    first = () if beside is None else (os.path.dirname(beside),)
    return shutil.which(program, path=os.pathsep.join((*first, os.environ.get("PATH", os.defpath), *_SBIN)))
