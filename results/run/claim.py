"""A folder that receives runs: locked while they are made, with a check that it still exists.

Changes when folders are to be claimed in another way. The lock is on the folder itself, so no lock file is left in it.
The kernel releases it when the last process that makes the run ends, even after a crash. A file system that cannot lock
folders (NFS) gives no protection.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path

from hpn.results.run.lifecycle import with_all_above
from hpn.testbed.errors import HpnError, InputError, MachineError

RUNS = Path("runs")
"""Default folder for runs."""
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_TRIES = 5


@dataclass(frozen=True, slots=True)
class Claim:
    """A folder claimed by this process. ``descriptor`` holds the lock if the file system supports one (``locked``)."""

    path: Path
    descriptor: int
    locked: bool

    def lost(self) -> str | None:
        """Return an error text when the folder was deleted, moved or replaced; None while it is there."""
        if _leads_to(self.path, self.descriptor):
            return None
        return f"{self.path} was deleted or moved during the run; run it again, and leave that folder alone"

    def check(self) -> None:
        """Raise MachineError when the folder is lost."""
        if (why := self.lost()) is not None:
            raise MachineError(why)


@contextmanager
def claimed(path: Path, *, keep: bool = False) -> Iterator[Claim]:
    """Claim a folder exclusively and create it if needed; remove it again if it stays empty, unless ``keep``.

    InputError when it cannot be created, or when another process makes runs in it. MachineError that names the folder
    when the body fails and the folder is gone.
    """
    made, claim = _claim(path)
    try:
        yield claim
    except (HpnError, OSError) as error:
        if (why := claim.lost()) is not None:
            raise MachineError(why) from error
        raise
    finally:
        if not keep:
            _remove_empty(made)
        os.close(claim.descriptor)


@contextmanager
def place_for(out: Path | None) -> Iterator[Path]:
    """Yield the folder for the runs of a command: ``out``, or a new one named by the current time.

    A new folder that is still empty at the end is removed. InputError when it cannot be created.
    """
    if out is not None:
        yield out
        return
    made = _made_new(RUNS / time.strftime("%Y%m%d-%H%M%S"))
    try:
        yield made[-1]
    finally:
        _remove_empty(made)


def in_use(path: Path) -> bool:
    """Return True if a process makes runs in that folder now."""
    try:
        descriptor = os.open(path, _OPEN)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


def _claim(path: Path) -> tuple[list[Path], Claim]:
    """Return the folders that were created, and the claim. Retry when another process removes the folder meanwhile."""
    for left in reversed(range(_TRIES)):
        try:
            made = with_all_above(path)
            descriptor = os.open(path, _OPEN)
        except OSError as error:
            if isinstance(error, FileNotFoundError) and left:
                continue
            raise _unusable(path, error) from error
        locked = _locked(descriptor, path)
        if _leads_to(path, descriptor):
            return made, Claim(path, descriptor, locked)
        os.close(descriptor)
    raise InputError(f"somebody keeps removing {path}; choose another --out")


def _locked(descriptor: int, path: Path) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise InputError(f"another hpn makes runs in {path}; wait for it, or choose another --out") from None
    except OSError:
        return False
    return True


def _made_new(path: Path) -> list[Path]:
    """Create that folder, or one with suffix '-2' and so on; return all folders created, the innermost last."""
    try:
        made = with_all_above(path.parent)
        for name in chain((path.name,), (f"{path.name}-{number}" for number in count(2))):
            with suppress(FileExistsError):
                (path.parent / name).mkdir()
                return [*made, path.parent / name]
    except OSError as error:
        raise _unusable(path, error) from error
    raise AssertionError("there is always another number")


def _remove_empty(made: list[Path]) -> None:
    with suppress(OSError):  # there is something in it
        for each in reversed(made):
            each.rmdir()


def _leads_to(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except OSError:
        return False


def _unusable(path: Path, error: OSError) -> InputError:
    return InputError(f"cannot make run folder {path}: {error.strerror}; choose another with --out")
