"""The place of a run folder: made, taken over from an earlier run, and freed of what only analysis needs.

Changes when a run leaves other files. A folder belongs to one run: what an earlier run left is deleted before the next
begins, its verdict first; what no run has written is never touched.
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
_RAW = ("sent-*.bin", "received-*.bin", "spans-*.bin", "messages-*.bin")
_HALF = (".*.new",)
_LOGS = ("events.jsonl", "worker-*.log")
_MANIFEST = "manifest.json"
_EARLIER = "choose another with --out"
SCRATCH = ".hpn-pool-"
"""How the names of folders begin in which runs are made that are renamed into place when they are whole."""


def take(path: Path, is_manifest: Callable[[Path], bool]) -> None:
    """Make the folder, or empty it when a run has left it, as ``is_manifest`` says of its manifest.

    InputError when something else is there or it cannot be made or written; then nothing was made or deleted.
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
    for wanted in (*_RESULTS, *_RAW, *_HALF, *_LOGS, _MANIFEST):  # the manifest last: until then it is a run folder
        for name in names:
            if fnmatch(name, wanted):
                _delete(path / name)


def drop_raw(path: Path) -> None:
    """Delete what a run that ended, however it did, leaves besides results: raw records, halves of files, empty logs.

    What cannot be deleted stays.
    """
    with suppress(OSError):
        for name in os.listdir(path):
            if _fits(name, (*_RAW, *_HALF)) or (_fits(name, ("worker-*.log",)) and not (path / name).stat().st_size):
                _delete(path / name)
        if not (path / "verdict.json").exists():
            _delete(path / "records")


def with_all_above(path: Path) -> list[Path]:
    """mkdir -p that leaves nothing behind when it fails; the folders that it made, the innermost last. OSError."""
    missing = [each for each in (path, *path.parents) if not os.path.lexists(each)]
    made: list[Path] = []
    try:
        for each in reversed(missing):
            try:
                each.mkdir()
            except FileExistsError:  # another hpn was quicker: it is that one's
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
    """The folder itself, or the nearest one above it that exists."""
    return next(each for each in (path, *path.parents) if os.path.isdir(each))


def _fits(name: str, wanted: tuple[str, ...]) -> bool:
    return any(fnmatch(name, each) for each in wanted)


def _delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
