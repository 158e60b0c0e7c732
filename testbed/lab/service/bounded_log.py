"""The log of a lab's supervisor, bounded in size for any lifetime and output.

It keeps the first and the last lines; a full log drops those in between.
"""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import TextIO

MOST = 1 << 20  # bytes
FIRST = LAST = MOST // 4  # size of the beginning and of the end that remain of a full log
_GAP = b"[lines left out: this log is kept small]\n"


def create(path: Path) -> int:
    """Create an empty log and return its descriptor. OSError if that fails."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)


def write_to(log: int) -> None:
    """Send everything that this process and its forks print to the log, which is already its standard error."""
    sys.stdout = sys.stderr = _text(_Log(log, "rb+", closefd=False))


def _text(log: io.FileIO) -> TextIO:
    return io.TextIOWrapper(log, encoding="utf-8", errors="backslashreplace", write_through=True)


class _Log(io.FileIO):
    """A log that frees space before it writes."""

    def write(self, data: bytes, /) -> int:  # type: ignore[override]  # bytes are all that a text wrapper writes
        """Write all of it, or only its end if it does not fit."""
        size = os.fstat(self.fileno()).st_size
        fits = size + len(data) <= MOST
        if not fits:
            _shorten(self.fileno(), size)
        super().write(data if fits else data[-LAST:])
        return len(data)


def _shorten(log: int, size: int) -> None:
    """Keep only whole lines of the beginning and of the end."""
    first = os.pread(log, FIRST, 0).partition(_GAP)[0]
    rest = os.pread(log, LAST, max(len(first), size - LAST))
    os.ftruncate(log, first.rfind(b"\n") + 1)
    os.write(log, _GAP + rest[rest.find(b"\n") + 1 :])
