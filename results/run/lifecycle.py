"""Life cycle of a run folder: create it, reuse that of an earlier run, delete files only analysis needs.

Changes when a run leaves other files. A folder belongs to one run: files of an earlier run are deleted before the next
begins, its verdict first. Files that no run wrote are never touched.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path

from hpn.testbed.errors import InputError

_RESULTS = (
    "verdict.json",
    "report.html",
    "metrics.json",
    "flows.jsonl",
    "ports.json",
    "buffers.json",
    "transfers.jsonl",
    "iterations.jsonl",
    "spans.jsonl",
    "client-iterations.jsonl",
    "client-spans.jsonl",
    "counters.json",
    "hw_counters.json",
    "placement.jsonl",
    "fabric.json",
    "drill.json",
    "series.json",
    "series.npz",
    "host.jsonl",
    "paths.jsonl",
    "queue_pairs.jsonl",
    "workers.json",
    "records",
    "captures",
    "bonding",
    "clients",
)
_RAW = ("sent-*.bin", "received-*.bin", "spans-*.bin", "messages-*.bin", "retries-*.bin", "stamps-*.bin")
_HALF = (".*.new",)
_LOGS = ("events.jsonl", "worker-*.log")
_MANIFEST = "manifest.json"
_EARLIER = "choose another with --out"
SCRATCH = ".hpn-pool-"
"""Prefix of temporary folders: runs are made there and renamed into place when complete."""


def take(path: Path, is_manifest: Callable[[Path], bool]) -> None:
    """Create the folder, or empty it if ``is_manifest`` recognises its manifest as a run's.

    InputError when something else is there or it cannot be created or written. Then nothing was created or deleted.
    """
    try:
        with_all_above(path)
        names = sorted(os.listdir(path))
        writable = os.access(path, os.W_OK | os.X_OK)
    except OSError as error:
        raise InputError(f"cannot make run folder {path}: {error.strerror}; {_EARLIER}") from error
    if not writable:
        raise InputError(f"cannot write to run folder {path}; {_EARLIER}")
    foreign = [name for name in names if not _fits(name, (*_RESULTS, *_RAW, *_HALF, *_LOGS, _MANIFEST))]
    if foreign and _MANIFEST in names:
        raise InputError(f"{path} holds {foreign[0]!r}, which no run has written; {_EARLIER}")
    if _MANIFEST in names and not is_manifest(path / _MANIFEST):
        raise InputError(f"{path} is not empty and not a run folder; {_EARLIER}")
    if _MANIFEST not in names and (foreign or any(_fits(name, _RESULTS) for name in names)):
        raise InputError(f"{path} is not empty and not a run folder; {_EARLIER}")
    for wanted in (*_RESULTS, *_RAW, *_HALF, *_LOGS, _MANIFEST):  # the manifest last: it marks a run folder
        for name in names:
            if fnmatch(name, wanted):
                _delete(path / name)


def drop_raw(path: Path) -> None:
    """Delete everything except results after a run ended in any way: raw records, partial files, empty logs.

    Files that cannot be deleted stay.
    """
    with suppress(OSError):
        for name in os.listdir(path):
            if _fits(name, (*_RAW, *_HALF)) or (_fits(name, ("worker-*.log",)) and not (path / name).stat().st_size):
                _delete(path / name)
        if not (path / "verdict.json").exists():
            _delete(path / "records")


def with_all_above(path: Path) -> list[Path]:
    """Create a folder and its parents, or nothing on failure; return those created, the innermost last. OSError."""
    missing = [each for each in (path, *path.parents) if not os.path.lexists(each)]
    made: list[Path] = []
    try:
        for each in reversed(missing):
            try:
                each.mkdir()
            except FileExistsError:  # another hpn created it first and owns it
                continue
            made.append(each)
        path.mkdir(exist_ok=True)
    except OSError:
        for each in reversed(made):
            with suppress(OSError):
                each.rmdir()
        raise
    return made


def nearest(path: Path) -> Path:
    """Return the folder itself, or its nearest ancestor that exists."""
    return next(each for each in (path, *path.parents) if os.path.isdir(each))


def _fits(name: str, wanted: tuple[str, ...]) -> bool:
    return any(fnmatch(name, each) for each in wanted)


def _delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
