"""Capture process, run as ``python -m hpn.testbed.kernel.packets.capturing``; its order is a line of JSON on stdin.

It writes one file per time window and finally prints the capture counts. It finishes early when its stdin ends.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass

from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.packets.capture import Capture, Tap
from hpn.testbed.kernel.process.sandbox import die_with_parent


@dataclass(frozen=True, slots=True)
class TapOrder:
    """A ``Tap`` with its namespace as an inherited descriptor."""

    link: str
    node: str
    namespace_fd: int
    interface: str
    rate_bps: int


@dataclass(frozen=True, slots=True)
class WindowOrder:
    """A file to be captured between two moments (CLOCK_MONOTONIC)."""

    file: str
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class Order:
    """Capture order: every tap in every window, in order of time."""

    taps: Sequence[TapOrder]
    windows: Sequence[WindowOrder]
    snap_bytes: int
    application: str

    def line(self) -> bytes:
        """Encode the order as the line that is sent."""
        return json.dumps(asdict(self)).encode() + b"\n"


def main() -> None:
    """Execute the order from stdin."""
    die_with_parent()
    given = json.loads(sys.stdin.readline())
    taps = [
        Tap(tap["link"], NetNs(tap["node"], tap["namespace_fd"]), tap["interface"], tap["rate_bps"])
        for tap in given["taps"]
    ]
    found = []
    for window in given["windows"]:
        if _told_to_end(window["start_ns"]):
            break
        with (
            open(window["file"], "wb") as file,
            closing(Capture(taps, file, given["application"], given["snap_bytes"], monotonic=True)) as capture,
        ):
            capture.run(window["end_ns"], sys.stdin.fileno())
        found += [{"file": os.path.basename(window["file"]), **asdict(seen)} for seen in capture.captured]
    print(json.dumps(found, indent=2))


def _told_to_end(start_ns: int) -> bool:
    """Wait for a moment; return True if stdin ended before it."""
    left_s = max(start_ns - time.monotonic_ns(), 0) / 1e9
    return bool(select.select([sys.stdin], [], [], left_s)[0])


if __name__ == "__main__":
    main()
