"""Making room: which runs are old, and deleting one of them whole.

Changes when other runs are kept. A run that is under way is never old: its verdict is written last, and of a folder
that another run takes over it is deleted first. What changed since the index looked at it stays.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hpn.results.index.queries import NEWEST_FIRST, Wanted
from hpn.results.index.scan import Stamp, stamp_of
from hpn.results.index.store import Index
from hpn.results.run.claim import in_use
from hpn.testbed.errors import InputError

_MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class Old:
    """A run that may go, as the index knew it."""

    path: Path
    stamp: Stamp


def old_runs(index: Index, drill: str, keep: int) -> tuple[Old, ...]:
    """All but the newest ``keep`` of each drill (all with ''), experiment and engine, the newest first.

    Runs without a verdict are none of them.
    """
    where, values = Wanted(drill=drill).where
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
    """Delete a run's folder, in one step for whoever looks at it. InputError where that cannot be done.

    False, and nothing was touched, where the folder is no longer what the index knew: another run has begun there, it
    was analysed anew, or it is gone; and where a command makes runs in it or beside it, as of one drill that is
    repeated.
    """
    if in_use(old.path.parent) or in_use(old.path) or stamp_of(old.path) != old.stamp:
        return False
    try:
        aside = Path(tempfile.mkdtemp(prefix=f".{old.path.name}.", dir=old.path.parent))
        os.rename(old.path, aside / "run")
        (aside / "run" / _MANIFEST).unlink(missing_ok=True)  # what an end in the middle leaves is no run
        shutil.rmtree(aside)
    except OSError as error:
        raise InputError(f"cannot delete {old.path}: {error.strerror}; delete it by hand, or leave it") from error
    return True
