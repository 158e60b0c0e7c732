"""Which pool runs the jobs of a campaign, by what its user asked for."""

from __future__ import annotations

import os
from pathlib import Path

from scenarios.campaign.pools import SCRATCH, Pool, Processes
from testbed.errors import InputError, MachineError


def pool_for(engine: str, folder: Path, jobs: int | None, scheduler: str | None) -> Pool:
    """The pool that was asked for: ``jobs`` (None: one per core) processes here, or the workers of a scheduler.

    MachineError when dask.distributed is not installed or no scheduler with workers answers.
    """
    if scheduler is not None:
        if jobs is not None:
            raise InputError("--jobs is for this machine; with --scheduler the number of workers decides")
        try:
            from scenarios.campaign.machines import Machines  # of an extra that few install
        except ImportError:
            raise MachineError("--scheduler needs dask.distributed: pip install 'hpn[campaign]'") from None
        return Machines(scheduler, engine)
    return Processes(jobs or len(os.sched_getaffinity(0)), folder / SCRATCH, engine)
