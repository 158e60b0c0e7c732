"""Which pool carries tasks out, by what its user asked for."""

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
    """The pool that was asked for: ``jobs`` (None: one per core) processes here, or the workers of a scheduler.

    Attempts are made in a folder ``below`` that one, on whose file system results shall lie, and which nobody else may
    make runs in meanwhile. InputError for that and for both at once, MachineError when dask.distributed is not
    installed or no scheduler with workers answers. ``on_wait``: see ``Processes``; a scheduler's workers tell nothing.
    """
    with _opened(below, jobs, scheduler, on_wait) as pool, taken(below):
        yield pool


def _opened(below: Path, jobs: int | None, scheduler: str | None, on_wait: Begun) -> AbstractContextManager[Pool]:
    if scheduler is None:
        return Processes(jobs or len(os.sched_getaffinity(0)), below, on_wait=on_wait)
    if jobs is not None:
        raise InputError("--jobs is for this machine; with --scheduler the number of workers decides")
    try:
        from hpn.scenarios.batch.pool.cluster import Cluster  # of an extra that few install
    except ImportError:
        raise MachineError("--scheduler needs dask.distributed: pip install 'hpn[cluster]'") from None
    return Cluster(address_of(scheduler), below)


def address_of(scheduler: str) -> str:
    """The address itself, or the one in a scheduler file as 'dask scheduler --scheduler-file' writes it.

    InputError for a file that is none, and for nothing: dask would start a scheduler of its own then.
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
