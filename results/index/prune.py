"""Pruning: selection of old runs, and deletion of a run.

Changes when other runs are retained. A run in progress is never old: its verdict is written last, and if another run
takes over a folder, the verdict is deleted first. Runs that changed since they were indexed stay.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hpn.results.index.queries import NEWEST_FIRST, RunFilter
from hpn.results.index.scan import Stamp, stamp_of
from hpn.results.index.store import Index
from hpn.results.run.claim import in_use
from hpn.testbed.errors import InputError

_MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class Old:
    """A run that may be deleted, as the index knew it."""

    path: Path
    stamp: Stamp


def old_runs(index: Index, drill: str, keep: int) -> tuple[Old, ...]:
    """Return all but the newest ``keep`` runs of each drill (all with ''), experiment and engine, the newest first.

    Runs without a verdict are excluded.
    """
    where, values = RunFilter(drill=drill).where
    sql = f"""select drill, experiment, engine, path, manifest_bytes, manifest_ns, verdict_bytes, verdict_ns
        from runs where {where} and outcome <> 'none' {NEWEST_FIRST}"""
    seen: dict[tuple[object, object, object], int] = {}
    found = []
    for name, experiment, engine, path, *stamp in index.rows(sql, values):
        of = name, experiment, engine
        seen[of] = seen.get(of, 0) + 1
        if seen[of] > keep:
            found.append(Old(Path(str(path)), Stamp(*stamp)))  # type: ignore[arg-type]  # as the schema says
    return tuple(found)


def delete(old: Old) -> bool:
    """Delete a run's folder, in one step for other processes. InputError if that fails.

    Return False, without any change, if the folder differs from the index: another run began there, it was analysed
    again, or it is gone. False also if a command makes runs in it or in its parent, such as repeats of one drill.
    """
    if in_use(old.path.parent) or in_use(old.path) or stamp_of(old.path) != old.stamp:
        return False
    try:
        aside = Path(tempfile.mkdtemp(prefix=f".{old.path.name}.", dir=old.path.parent))
        os.rename(old.path, aside / "run")
        (aside / "run" / _MANIFEST).unlink(missing_ok=True)  # if interrupted, the rest is no run folder
        shutil.rmtree(aside)
    except OSError as error:
        raise InputError(f"cannot delete {old.path}: {error.strerror}; delete it by hand, or leave it") from error
    return True
