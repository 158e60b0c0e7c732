"""The log of a lab's supervisor, which stays small however long the lab lives and whatever is written to it.

It begins with what was written first and ends with what was written last; what a full log drops lies in between.
"""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import TextIO

MOST = 1 << 20  # bytes
FIRST = LAST = MOST // 4  # so much of the beginning and of the end is left of a full log
_GAP = b"[lines left out: this log is kept small]\n"


def create(path: Path) -> int:
    """The descriptor of an empty log. OSError when there is no place for it."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)


def write_to(log: int) -> None:
    """Have everything that this process and its forks print go to the log; its standard error is the log already."""
    sys.stdout = sys.stderr = _text(_Log(log, "rb+", closefd=False))


def _text(log: io.FileIO) -> TextIO:
    return io.TextIOWrapper(log, encoding="utf-8", errors="backslashreplace", write_through=True)


class _Log(io.FileIO):
    """A log that makes room for what is written to it."""

    def write(self, data: bytes, /) -> int:  # type: ignore[override]  # bytes are all that a text wrapper writes
        """Write all of it, or the end of what is more than has place."""
        size = os.fstat(self.fileno()).st_size
        fits = size + len(data) <= MOST
        if not fits:
            _shorten(self.fileno(), size)
        super().write(data if fits else data[-LAST:])
        return len(data)


def _shorten(log: int, size: int) -> None:
    """Leave whole lines of the beginning and of the end."""
    first = os.pread(log, FIRST, 0).partition(_GAP)[0]
    rest = os.pread(log, LAST, max(len(first), size - LAST))
    os.ftruncate(log, first.rfind(b"\n") + 1)
    os.write(log, _GAP + rest[rest.find(b"\n") + 1 :])
