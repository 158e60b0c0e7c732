"""A machine without a core to spare: made so, or found so."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_STARVED = 0.8
"""Share of the time in which somebody waited: with that much, a process got what others left of the cores."""


@contextmanager
def all_cores_busy() -> Iterator[None]:
    """Two processes for every core that never wait for anything, as ``stress`` makes them."""
    count = 2 * (os.cpu_count() or 1)
    hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()


class Waiting:
    """How long some task of this machine has waited for a CPU, from when this is made (PSI, /proc/pressure/cpu)."""

    def __init__(self) -> None:
        self._from_s, self._waited_s = time.monotonic(), _waited_s()

    def skip_if_starved(self, what: str) -> None:
        """Skip the test that found ``what`` where the machine was too full for that to say anything."""
        share = (_waited_s() - self._waited_s) / max(time.monotonic() - self._from_s, 1e-9)
        if share > _STARVED:
            pytest.skip(f"{what}, and tasks of this machine waited for a CPU {100 * share:.0f} % of the time")


def _waited_s() -> float:
    """0 where the kernel does not say."""
    pressure = Path("/proc/pressure/cpu")
    try:
        return int(pressure.read_text().split("\n", 1)[0].rsplit("total=", 1)[1]) / 1e6
    except (OSError, IndexError):
        return 0.0
