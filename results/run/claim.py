"""A folder in which runs are made: claimed by a lock for as long as that takes, and missed when it vanishes meanwhile.

Changes when folders are to be claimed in another way. The lock is on the folder itself, so that no file is left in it,
and the kernel lets go of it with the last process that makes the run, however that one ends. A file system that locks
no folders (NFS) keeps nobody apart.
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

from hpn.results.run.place import with_all_above
from hpn.testbed.errors import HpnError, InputError, MachineError

RUNS = Path("runs")
"""Where runs are made that nobody names a folder for."""
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_TRIES = 5


@dataclass(frozen=True, slots=True)
class Claim:
    """A folder that is ours: ``descriptor`` holds the lock, if the file system has any (``locked``)."""

    path: Path
    descriptor: int
    locked: bool

    def lost(self) -> str | None:
        """That the folder was deleted, moved or replaced; None while it is there."""
        if _leads_to(self.path, self.descriptor):
            return None
        return f"{self.path} was deleted or moved during the run; run it again, and leave that folder alone"

    def check(self) -> None:
        """MachineError when it is lost."""
        if (why := self.lost()) is not None:
            raise MachineError(why)


@contextmanager
def claimed(path: Path, *, keep: bool = False) -> Iterator[Claim]:
    """Have a folder to oneself, which is made when needed; unless to ``keep``, it goes again if nothing comes into it.

    InputError when it cannot be made, or when somebody else makes runs in it. A MachineError that names the folder when
    the body fails and the folder is gone.
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
    """The folder for the runs of a command: ``out``, or one named by the time that no other command has.

    One that is still empty at the end goes again. InputError when it cannot be made.
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
    """Whether somebody makes runs in that folder now."""
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
    """The folders that were made for it, and the claim. One that somebody removes at this moment is made again."""
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
    """Make that folder, or one with '-2' and so on behind its name; those that were made, the innermost last."""
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
