"""Choice of the pool by the user's options."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from hpn.scenarios.batch.pool.processes import Processes
from hpn.scenarios.batch.pool.scratch import taken
from hpn.scenarios.batch.pool.task import Begun, Pool, unheard
from hpn.testbed.errors import InputError, MachineError

_LONGEST = 1 << 20


@contextmanager
def pool_for(
    below: Path, jobs: int | None = None, scheduler: str | None = None, on_wait: Begun = unheard
) -> Iterator[Pool]:
    """Open the selected pool: ``jobs`` (None: one per core) processes here, or the workers of a scheduler.

    Attempts are made in a folder inside ``below``, on the file system of the results. No other command may make runs
    there meanwhile. InputError for that and for both options at once. MachineError when dask.distributed is not
    installed or no scheduler with workers answers. ``on_wait``: see ``Processes``; a scheduler's workers report
    nothing.
    """
    with _opened(below, jobs, scheduler, on_wait) as pool, taken(below):
        yield pool


def _opened(below: Path, jobs: int | None, scheduler: str | None, on_wait: Begun) -> AbstractContextManager[Pool]:
    if scheduler is None:
        return Processes(jobs or len(os.sched_getaffinity(0)), below, on_wait=on_wait)
    if jobs is not None:
        raise InputError("--jobs is for this machine; with --scheduler the number of workers decides")
    try:
        from hpn.scenarios.batch.pool.cluster import Cluster  # an extra that few install
    except ImportError:
        raise MachineError("--scheduler needs dask.distributed: pip install 'hpn[cluster]'") from None
    return Cluster(address_of(scheduler), below)


def address_of(scheduler: str) -> str:
    """Return the address itself, or the one in a scheduler file of 'dask scheduler --scheduler-file'.

    InputError for an invalid file, and for an empty text: dask would start its own scheduler then.
    """
    if not scheduler.strip():
        raise InputError("--scheduler takes an address such as tcp://HOST:8786, or a scheduler file")
    if not scheduler.endswith(".json"):
        return scheduler
    try:
        with Path(scheduler).open("rb") as file:
            told = json.loads(file.read(_LONGEST))
    except OSError as error:
        raise InputError(f"cannot read the scheduler file {scheduler}: {error.strerror}") from error
    except (ValueError, RecursionError):
        told = None
    match told:
        case {"address": str() as address}:
            return address
    raise InputError(f"{scheduler} is no scheduler file; dask scheduler --scheduler-file {scheduler} writes one")
