"""The folder below --out in which attempts are made: on its file system, so that a whole run is renamed into place.

Changes when attempts are to be kept elsewhere. One command at a time makes runs below a folder: two would write over
each other's runs and reports. What a killed command left there is cleared away by the next one.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from results.run.place import SCRATCH
from scenarios.pool.task import Done
from testbed.errors import InputError


@contextmanager
def taken(below: Path) -> Iterator[None]:
    """Have that folder to oneself, made when needed, and free of what a killed command left.

    InputError when it cannot be made, or another command makes runs there. A file system that locks no folders (NFS)
    keeps nobody apart, and nothing is cleared away there: it may be somebody's.
    """
    try:
        below.mkdir(parents=True, exist_ok=True)
        number = os.open(below, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise _unusable(below, error) from error
    try:
        if _locked(number, below):
            for left in below.glob(f"{SCRATCH}*"):
                shutil.rmtree(left, ignore_errors=True)  # which follows no link
        yield
    finally:
        os.close(number)


def _locked(number: int, below: Path) -> bool:
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(f"another hpn makes runs in {below}; wait for it, or choose another --out") from None
    except OSError:
        return False
    return True


@contextmanager
def scratch(below: Path) -> Iterator[Path]:
    """A folder of one's own, absolute, gone at the end with all that is in it. InputError when it cannot be made."""
    try:
        below.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=SCRATCH, dir=below)).absolute()
    except OSError as error:
        raise _unusable(below, error) from error
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def handed_over(ended: Iterable[Done]) -> Iterator[Done]:
    """Each, and its attempt's folder cleared away when the next is asked for."""
    for done in ended:
        yield done
        shutil.rmtree(done.folder.parent, ignore_errors=True)


def _unusable(below: Path, error: OSError) -> InputError:
    return InputError(f"cannot work in {below}: {error.strerror}; choose another --out")
