"""Run folders below a folder, and what the index keeps of each. Reads files that anybody may have written.

Changes when the index keeps more of a run. A figure is what an expectation measured: it has a limit, a unit and an
interval, and is the same in every run of a drill. ``metrics.json`` is not read: it is a hundred times as large.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from hpn.results.judge.verdict import Verdict
from hpn.results.run.folder import RunFolder
from hpn.results.run.identity import experiment_of, identity_in
from hpn.results.run.manifest import Manifest
from hpn.results.run.place import SCRATCH
from hpn.testbed.errors import InputError, MachineError

_MANIFEST, _VERDICT = "manifest.json", "verdict.json"


@dataclass(frozen=True, slots=True)
class Stamp:
    """What tells that a run has not changed: of its manifest and its verdict, size and time of the last change."""

    manifest_bytes: int
    manifest_ns: int
    verdict_bytes: int  # -1: there is none
    verdict_ns: int


@dataclass(frozen=True, slots=True)
class Found:
    """A run folder as the file system has it."""

    path: str  # absolute
    stamp: Stamp


@dataclass(frozen=True, slots=True)
class Indexed:
    """What the index keeps of a run; ``problem`` says why it could not be read, '' when it could.

    ``experiment`` as ``results.run.identity`` has it.
    """

    found: Found
    manifest: Manifest | None
    verdict: Verdict | None
    problem: str = ""
    experiment: str = ""


def run_folders(root: Path) -> Iterator[Found]:
    """Every run folder below ``root``, itself included, in order of path; links to folders are not followed.

    What is not yet whole, in the folder of a pool, is left out.
    """
    pending = [str(root)]
    while pending:
        here = pending.pop()
        entries = _entries(here)
        if _MANIFEST in entries:
            stamp = _stamp(entries)
            if stamp is not None:
                yield Found(here, stamp)
            continue
        folders = (entry for entry in entries.values() if entry.is_dir(follow_symlinks=False))
        pending.extend(sorted((each.path for each in folders if not each.name.startswith(SCRATCH)), reverse=True))


def each_once(folders: Iterable[Path]) -> list[Path]:
    """The folders in their order; one that is named twice, by another spelling or a link too, is one run."""
    found: dict[str, Path] = {}
    for folder in folders:
        found.setdefault(os.path.realpath(folder), folder)
    return list(found.values())


def read(found: Found) -> Indexed:
    """What a run folder says of itself; a run without a verdict came to none."""
    folder = RunFolder(Path(found.path))
    try:
        manifest = folder.manifest()
        verdict = folder.verdict() if found.stamp.verdict_bytes >= 0 else None
    except (InputError, MachineError) as error:
        return Indexed(found, None, None, str(error).replace(f"{found.path}/", ""))
    digests = manifest.digests or identity_in(folder, manifest).digests
    return Indexed(found, manifest, verdict, experiment=experiment_of(digests))


def stamp_of(folder: Path) -> Stamp | None:
    """What the index would know the folder by now; None where it is no run folder."""
    return _stamp(_entries(str(folder)))


def _entries(folder: str) -> Mapping[str, os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return {entry.name: entry for entry in entries}
    except OSError:  # gone meanwhile, or not ours to read
        return {}


def _stamp(entries: Mapping[str, os.DirEntry[str]]) -> Stamp | None:
    """None where the manifest is no file, or gone by now."""
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
