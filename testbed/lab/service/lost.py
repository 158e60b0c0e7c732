"""Labs whose folder, or the lock in it, was removed: identified by the holders of their locks.

A removed file and its locks live on while a process has it open. The kernel lists the holders of locks, and reports
the former folder of an open file. So a lab of another state directory is not mistaken for one of this. Ownership is
checked on the file itself, because a process of any user may have any name.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from hpn.testbed.lab.service.labfolder import FIRST, NAME, LabFolder

_LOCKS = Path("/proc/locks")


def labs_of(base: Path) -> Iterator[LabFolder]:
    """Yield every living lab of ours that was in state directory ``base`` and whose lock is gone from there.

    This process holds the lock file of each open from here on: there is no other way to it once the lab has ended.
    """
    home = base.resolve()
    for first, inode in _first_processes():
        for name, lock in _removed_locks(_parent(first), inode, home):
            found = LabFolder(home / name, Path(f"/proc/self/fd/{lock}"))
            if found.holder() == first:
                yield found
                break
            os.close(lock)


def _first_processes() -> Iterator[tuple[int, int]]:
    """Yield process ID and inode number of the holders of a lab-like lock (proc_locks(5))."""
    try:
        lines = _LOCKS.read_text().splitlines()
    except OSError:
        return
    wanted = ["POSIX", "WRITE", str(FIRST), str(FIRST)]
    for fields in (line.split() for line in lines):
        if [fields[1], fields[3], *fields[-2:]] == wanted:
            yield int(fields[4]), int(fields[5].rpartition(":")[2])


def _removed_locks(keeper: int, inode: int, home: Path) -> Iterator[tuple[str, int]]:
    """Yield lab name, and a descriptor of our own, of each removed lock file that ``keeper`` has open.

    ``keeper`` is the lab's warden, which has few files open.
    """
    for entry in _descriptors(keeper):
        try:
            was, found = Path(os.readlink(entry)), entry.stat()
            ours = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
            if not (ours and found.st_nlink == 0 and found.st_ino == inode):
                continue
            if was.name == "lock (deleted)" and was.parent.parent == home and NAME.fullmatch(was.parent.name):
                yield was.parent.name, os.open(entry, os.O_RDWR | os.O_CLOEXEC)
        except OSError:  # closed by now, or another user's
            continue


def _descriptors(pid: int) -> list[Path]:
    try:
        return list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return []


def _parent(pid: int) -> int:
    """Return the parent's process ID, 0 when the process is gone."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0
