"""Size limits of the files of a run: JSON takes ten times its size in memory, so larger files are not parsed.

Changes when a run has another file, or one that grows faster. The largest run made so far has 1,024 queue pairs.
"""

from __future__ import annotations

import sys

_MIB = 1 << 20
_OF_NAME = {
    "manifest.json": 4 * _MIB,  # facts, and a command line, of which Linux allows 2 MiB
    "verdict.json": 16 * _MIB,  # a line for each expectation
    "suite.json": 64 * _MIB,  # a line for each run of a suite
    "drill.json": 16 * _MIB,  # a drill's file has 256 KiB, and describes ranks and faults in few words
    "workers.json": 4 * _MIB,  # a line for each process
    "hw_counters.json": 16 * _MIB,  # 2 KiB for each NIC
    "series.json": 32 * _MIB,  # 200 bytes for each flow and port
    "fabric.json": 32 * _MIB,  # 250 bytes for each link
    "metrics.json": 64 * _MIB,  # 2 KiB for each flow and edge: 12 MB of 512 flows and twelve edges
    "facts.json": 256 * _MIB,  # every transfer of every flow
}
_OF_LINES = 256 * _MIB  # spans of a job: 100 bytes for each rank and step
LINE = _MIB
"""Maximum bytes of a line: an event, a flow, a rank's step."""


def limit_of(name: str) -> int:
    """Return the maximum bytes of a file of that name; files other than JSON are limited by memory alone."""
    return _OF_NAME.get(name, _OF_LINES if name.endswith(".jsonl") else sys.maxsize - 1)
