"""Disk space of a run: estimated before it starts, watched while it lasts.

The records of every packet are by far the largest files of a run. They are deleted after the analysis.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from hpn.testbed.errors import MachineError
from hpn.traffic.flows.flow import FlowSpec

_RECORD_BYTES = 32  # traffic.records: per packet received, per burst sent
_JOB_BYTES = 256  # traffic.rdma.records: per message of one packet and the spans it ends, also as text
RESERVE_BYTES = 16 << 20
"""Upper limit of results, logs and events, with some margin."""


def record_bytes(flows: Iterable[FlowSpec], duration_ns: int, tick_ns: int, keep: bool) -> int:
    """Return the maximum size in bytes of the raw records of these flows, twice that if they are stored as well."""
    ticks = duration_ns // tick_ns + 1
    records = 0
    for flow in flows:
        packets = int(flow.rate_pps * duration_ns / 1e9) + 1
        records += packets + min(packets, ticks)
    return records * _RECORD_BYTES * (2 if keep else 1)


def job_record_bytes(queue_pairs: Iterable[FlowSpec], duration_ns: int, keep: bool) -> int:
    """Return the maximum size in bytes of a job's records, as if each NIC always sent messages of one packet."""
    of_nic: dict[str, float] = {}
    for pair in queue_pairs:
        of_nic[pair.src_nic] = max(of_nic.get(pair.src_nic, 0.0), pair.rate_pps)
    return round(sum(of_nic.values()) * duration_ns / 1e9) * _JOB_BYTES * (2 if keep else 1)


def free_bytes(path: Path) -> int:
    """Return the bytes that an ordinary user may still write at ``path``."""
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize


def check(path: Path, wanted: int) -> None:
    """Raise MachineError when records of ``wanted`` bytes and the results do not fit at ``path``."""
    need, free = wanted + RESERVE_BYTES, free_bytes(path)
    if free < need:
        raise MachineError(
            f"this run needs up to {_megabytes(need)} of disk and {_megabytes(free)} are free at {path};"
            " free some, or choose another --out"
        )


def watch(path: Path) -> None:
    """Raise MachineError when a run cannot continue because space or the folder itself is missing."""
    try:
        free = free_bytes(path)
    except OSError as error:
        why = f"cannot write to {path} any more: {error.strerror}; run it again, and leave that folder alone"
        raise MachineError(why) from error
    if free < RESERVE_BYTES // 2:
        raise MachineError(f"only {_megabytes(free)} of disk are left at {path}; free some, or choose another --out")


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.0f} MB"
