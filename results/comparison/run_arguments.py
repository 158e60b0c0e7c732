"""Resolution of command-line arguments to run folders: run folders, folders that contain some, and other files there.

Changes when runs are named in another way. A shell expands ``runs/A/*`` to all names of a folder, so files that drills
and suites write next to run folders are accepted there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from hpn.results.comparison.groups import Compared
from hpn.results.index.scan import each_once, run_folders
from hpn.results.run.folder import load
from hpn.results.run.identity import identity_in
from hpn.results.run.lifecycle import SCRATCH
from hpn.testbed.errors import InputError

_NAMED = re.compile(r"(?P<name>[\w.+-][\w .+-]{0,39})=(?P<run>.+)")
_MANIFEST = "manifest.json"
REPEATS = "repeats.json"
"""File with the verdict over all runs of its folder."""
_BESIDE = frozenset({"junit.xml", "summary.md", "suite.json", "report.html"})


def gathered(named: Sequence[Path]) -> list[Path]:
    """Return every run named, once, in the order of names. InputError for a path that is no run and contains none."""
    found = each_once(folder for each in named for folder in _meant(each))
    if not found:
        raise InputError(f"{', '.join(map(str, named[:4]))}: no run folder; name one, or a folder that holds some")
    return found


def labelled(words: Sequence[Path]) -> list[tuple[str, Path]]:
    """Return the same with the name of each run's group, '' without one: an argument may be NAME=RUN.

    InputError as for ``gathered``.
    """
    split = [_split(word) for word in words]
    names: dict[Path, str] = {}
    for name, named in split:
        if name:
            names |= dict.fromkeys((folder.resolve() for folder in gathered([named])), name)
    return [(names.get(folder.resolve(), ""), folder) for folder in gathered([named for _, named in split])]


def _split(word: Path) -> tuple[str, Path]:
    found = _NAMED.fullmatch(str(word))
    return (found["name"], Path(found["run"])) if found and not word.exists() else ("", word)


def opened(folder: Path, name: str = "") -> Compared:
    """Return the run of a run folder, for the group of that name. InputError for missing or damaged parts."""
    run = load(folder)
    manifest = run.manifest()
    return Compared(str(folder), manifest, run.metrics(), run.verdict(), identity_in(run, manifest), name)


def _meant(named: Path) -> Iterator[Path]:
    """Yield the runs of one path; for a folder those with a verdict, as ``hpn results`` lists them."""
    if named.is_file():
        if named.name == REPEATS:
            yield from _below(named.parent)
        elif named.name not in _BESIDE:
            raise InputError(f"{named} is a file; name run folders, or folders that hold some")
    elif (named / _MANIFEST).exists() or not named.is_dir():
        yield named  # loading it reports the mistake
    elif not named.name.startswith(SCRATCH):
        yield from _below(named)


def _below(folder: Path) -> Iterator[Path]:
    runs = [Path(found.path) for found in run_folders(folder) if found.stamp.verdict_bytes >= 0]
    if not runs:
        raise InputError(f"{folder} holds no run with a verdict; hpn drill run --out {folder} makes some")
    yield from runs
