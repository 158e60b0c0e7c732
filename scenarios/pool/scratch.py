"""The folder below --out in which attempts are made: on its file system, so that a whole run is renamed into place.

Changes when attempts are to be kept elsewhere. A folder that a killed command left is cleared away by the next one.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from results.run.place import SCRATCH
from testbed.errors import InputError

_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def scratch(below: Path) -> Iterator[Path]:
    """A folder of one's own, absolute, gone at the end with all that is in it. InputError when it cannot be made."""
    try:
        below.mkdir(parents=True, exist_ok=True)
        _clear(below)
        made, lock = _own(below)
    except OSError as error:
        raise InputError(f"cannot work in {below}: {error.strerror}; choose another --out") from error
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)
        os.close(lock)


def _own(below: Path) -> tuple[Path, int]:
    """A new folder and the lock on it, which says that we live."""
    while True:
        made = Path(tempfile.mkdtemp(prefix=SCRATCH, dir=below)).absolute()
        with suppress(OSError):  # cleared away by somebody between the two steps
            lock = os.open(made, _FLAGS)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.lexists(made):
                return made, lock
            os.close(lock)


def _clear(below: Path) -> None:
    for left in below.glob(f"{SCRATCH}*"):
        with suppress(OSError):  # somebody lives in it, or it is none of ours
            lock = os.open(left, _FLAGS)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left, ignore_errors=True)
            finally:
                os.close(lock)
