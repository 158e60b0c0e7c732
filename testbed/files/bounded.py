"""User-named files, read up to a size limit. Changes when another type of file must be refused."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from hpn.testbed.errors import InputError


def read_bounded(path: Path, most_bytes: int, what: str) -> bytes:
    """Read a whole file. InputError when it exceeds the limit for ``what`` or is no regular file; OSError as open."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise InputError(f"{path} is not a regular file; name a {what}")
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise InputError(f"{path} is larger than any {what} ({most_bytes / 1e6:.0f} MB); name another file")
    return content
