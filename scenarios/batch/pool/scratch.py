"""Folder for attempts, below --out: on its file system, so that a complete run is renamed into place.

Changes when attempts are stored elsewhere. The next command removes what a killed one left there.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from hpn.results.run.claim import claimed
from hpn.results.run.lifecycle import SCRATCH
from hpn.scenarios.batch.pool.task import Done
from hpn.testbed.errors import InputError, MachineError
from hpn.testbed.kernel.process.cleanup_process import scratch_folder


@contextmanager
def taken(below: Path) -> Iterator[None]:
    """Claim that folder exclusively (``claimed``) and remove what a killed command left.

    If the file system cannot lock folders, nothing is removed, as it may belong to another command.
    """
    with claimed(below) as claim:
        if claim.locked:
            for left in below.glob(f"{SCRATCH}*"):
                shutil.rmtree(left, ignore_errors=True)  # follows no link
        yield


@contextmanager
def scratch(below: Path) -> Iterator[Path]:
    """Create a private folder with an absolute path, removed at the end. InputError when it cannot be made."""
    with ExitStack() as stack:
        try:
            below.mkdir(parents=True, exist_ok=True)
            made = stack.enter_context(scratch_folder(SCRATCH, below))
        except OSError as error:
            raise _unusable(below, error) from error
        yield made


def handed_over(ended: Iterable[Done]) -> Iterator[Done]:
    """Yield each result; the folder of its attempt is removed when the next is requested."""
    for done in ended:
        if not done.folder.is_dir():
            raise MachineError(f"{done.folder} was deleted or moved; run it again, and leave that folder alone")
        yield done
        shutil.rmtree(done.folder.parent, ignore_errors=True)


def _unusable(below: Path, error: OSError) -> InputError:
    return InputError(f"cannot work in {below}: {error.strerror}; choose another --out")
