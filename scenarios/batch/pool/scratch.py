"""The folder below --out in which attempts are made: on its file system, so that a whole run is renamed into place.

Changes when attempts are to be kept elsewhere. What a killed command left there is cleared away by the next one.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from hpn.results.run.claim import claimed
from hpn.results.run.place import SCRATCH
from hpn.scenarios.batch.pool.task import Done
from hpn.testbed.errors import InputError, MachineError
from hpn.testbed.kernel.process.survivor import scratch_folder


@contextmanager
def taken(below: Path) -> Iterator[None]:
    """Have that folder to oneself (``claimed``), and free of what a killed command left.

    Where the file system locks no folders nothing is cleared away: it may be somebody's.
    """
    with claimed(below) as claim:
        if claim.locked:
            for left in below.glob(f"{SCRATCH}*"):
                shutil.rmtree(left, ignore_errors=True)  # which follows no link
        yield


@contextmanager
def scratch(below: Path) -> Iterator[Path]:
    """A folder of one's own, absolute, gone at the end with all that is in it. InputError when it cannot be made."""
    with ExitStack() as stack:
        try:
            below.mkdir(parents=True, exist_ok=True)
            made = stack.enter_context(scratch_folder(SCRATCH, below))
        except OSError as error:
            raise _unusable(below, error) from error
        yield made


def handed_over(ended: Iterable[Done]) -> Iterator[Done]:
    """Each, and its attempt's folder cleared away when the next is asked for."""
    for done in ended:
        if not done.folder.is_dir():
            raise MachineError(f"{done.folder} was deleted or moved; run it again, and leave that folder alone")
        yield done
        shutil.rmtree(done.folder.parent, ignore_errors=True)


def _unusable(below: Path, error: OSError) -> InputError:
    return InputError(f"cannot work in {below}: {error.strerror}; choose another --out")
