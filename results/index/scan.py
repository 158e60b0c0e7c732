"""Run folders below a folder, and the index entry of each. Reads untrusted files.

Changes when the index stores more of a run. A figure is the measurement of an expectation. It has a limit, a unit and
an interval, and is the same in every run of a drill. ``metrics.json`` is not read, since it is a hundred times larger.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from hpn.results.judge.verdict import Verdict
from hpn.results.run.folder import RunFolder
from hpn.results.run.identity import experiment_of, identity_in
from hpn.results.run.lifecycle import SCRATCH
from hpn.results.run.manifest import Manifest
from hpn.testbed.errors import InputError, MachineError

_MANIFEST, _VERDICT = "manifest.json", "verdict.json"


@dataclass(frozen=True, slots=True)
class Stamp:
    """Fingerprint of an unchanged run: size and modification time of its manifest and its verdict."""

    manifest_bytes: int
    manifest_ns: int
    verdict_bytes: int  # -1: there is none
    verdict_ns: int


@dataclass(frozen=True, slots=True)
class FoundRun:
    """A run folder in the file system."""

    path: str  # absolute
    stamp: Stamp


@dataclass(frozen=True, slots=True)
class Indexed:
    """Index entry of a run; ``problem``: why it could not be read, '' if it could.

    ``experiment`` as in ``results.run.identity``.
    """

    found: FoundRun
    manifest: Manifest | None
    verdict: Verdict | None
    problem: str = ""
    experiment: str = ""


def run_folders(root: Path) -> Iterator[FoundRun]:
    """Yield every run folder at or below ``root``, in order of path; links to folders are not followed.

    Incomplete runs, in the folder of a pool, are left out.
    """
    pending = [str(root)]
    while pending:
        here = pending.pop()
        entries = _entries(here)
        if _MANIFEST in entries:
            stamp = _stamp(entries)
            if stamp is not None:
                yield FoundRun(here, stamp)
            continue
        folders = (entry for entry in entries.values() if entry.is_dir(follow_symlinks=False))
        pending.extend(sorted((each.path for each in folders if not each.name.startswith(SCRATCH)), reverse=True))


def each_once(folders: Iterable[Path]) -> list[Path]:
    """Return the folders in their order, each once; other spellings and links count as the same run."""
    found: dict[str, Path] = {}
    for folder in folders:
        found.setdefault(os.path.realpath(folder), folder)
    return list(found.values())


def read(found: FoundRun) -> Indexed:
    """Return the entry of a run folder; a run without a verdict reached none."""
    folder = RunFolder(Path(found.path))
    try:
        manifest = folder.manifest()
        verdict = folder.verdict() if found.stamp.verdict_bytes >= 0 else None
    except (InputError, MachineError) as error:
        return Indexed(found, None, None, str(error).replace(f"{found.path}/", ""))
    digests = manifest.digests or identity_in(folder, manifest).digests
    return Indexed(found, manifest, verdict, experiment=experiment_of(digests))


def stamp_of(folder: Path) -> Stamp | None:
    """Return the folder's current fingerprint; None if it is no run folder."""
    return _stamp(_entries(str(folder)))


def _entries(folder: str) -> Mapping[str, os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return {entry.name: entry for entry in entries}
    except OSError:  # gone meanwhile, or not ours to read
        return {}


def _stamp(entries: Mapping[str, os.DirEntry[str]]) -> Stamp | None:
    """Return the fingerprint; None if the manifest is no file, or gone by now."""
    if _MANIFEST not in entries:
        return None
    try:
        manifest = _sizes(entries[_MANIFEST])
        verdict = _sizes(entries[_VERDICT]) if _VERDICT in entries else (-1, 0)
    except OSError:
        return None
    return None if manifest is None or verdict is None else Stamp(*manifest, *verdict)


def _sizes(entry: os.DirEntry[str]) -> tuple[int, int] | None:
    if not entry.is_file(follow_symlinks=False):
        return None
    told = entry.stat(follow_symlinks=False)
    return told.st_size, told.st_mtime_ns
