"""Compare the client logs in a run folder with their recorded size and checksum.

Changes when more is recorded of such a log. Logs are not analysed, but a reader must know if one is missing. Run
folders are untrusted input.
"""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path

from hpn.failover.analysis.client import ClientFacts, RankLog
from hpn.testbed.files.units import format_size
from hpn.traffic.client.log import FOLDER, name_of

_AT_ONCE = 1 << 20


def gaps(folder: Path, client: ClientFacts) -> Iterator[str]:
    """Yield a line for each log that is not as the run wrote it."""
    for log in client.logs:
        name = f"{FOLDER}/{name_of(log.rank)}"
        try:
            gap = _gap(folder / name, log)
        except OSError as error:
            gap = error.strerror or str(error)
        if gap:
            yield f"{name}: {gap}"


def _gap(path: Path, log: RankLog) -> str:
    """Return how a log differs from what the run wrote, or '' if it does not. OSError when it cannot be read."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            return "no regular file"
        if found.st_size != log.size_bytes:
            return f"{format_size(found.st_size)}, and the run wrote {format_size(log.size_bytes)}"
        crc = 0
        while data := file.read(_AT_ONCE):
            crc = zlib.crc32(data, crc)
    return "" if crc == log.crc32 else "not what the run wrote"
