"""The neighbour table's limit, shared by all namespaces: raised for the lifetime of a lab, then restored.

The kernel has the limits in the machine's own namespace, writable by root: gc_thresh2, from where it evicts entries,
and gc_thresh3, from where it refuses more. Several labs in different folders may need them raised at once. So one
record for the machine stores the holders and the original limits. A holder that ends sets them to what the others
still need, and the last one restores the originals.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import NamedTuple

from hpn.testbed.errors import MachineError

_LARGEST = 2**31 - 1
_LONGEST = 1 << 16
_NO_FILE = (errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO)  # a link, a file for a folder, a folder, a pipe


@dataclass(frozen=True, slots=True)
class Machine:
    """Paths of the kernel's limits (gc_thresh2, gc_thresh3), and of the machine's record of their holders."""

    limits: tuple[Path, Path]
    record: Path


_MACHINE = Machine(
    (
        Path("/proc/sys/net/ipv4/neigh/default/gc_thresh2"),
        Path("/proc/sys/net/ipv4/neigh/default/gc_thresh3"),
    ),
    Path("/run/hpn/neighbour-table.json"),
)


@dataclass(frozen=True, slots=True)
class Holder:
    """A need for raised limits: the process during whose lifetime it holds, and the number of entries.

    ``started``: start time of that process in clock ticks after boot, because process IDs are reused. ``labs``: the
    folder of its user's labs; ``entries`` are the sum that all labs in there need.
    """

    pid: int
    started: int
    entries: int
    labs: str


class Files(NamedTuple):
    """Open files: they stay valid where /run and /proc are different ones, as in a sandbox's warden."""

    record: int
    second: int  # gc_thresh2
    third: int  # gc_thresh3
    processes: int  # /proc


@dataclass(frozen=True, slots=True)
class Raised:
    """Limits raised by this process; ``release`` restores them, from any process that has ``files``."""

    files: Files
    token: str
    holder: Holder
    limit: int  # gc_thresh2

    def belongs_to(self, pid: int) -> None:
        """Tie the raise to the lifetime of that process instead of the requesting one's."""
        with _recorded(self.files) as record:
            started = _started(pid, self.files.processes) or 0  # 0: it has ended already
            if self.token in record.holders:  # else it was damaged meanwhile, and the original limits are lost
                record.holders[self.token] = replace(self.holder, pid=pid, started=started)

    def release(self) -> None:
        """Set the limits to what the other living holders need, or restore the originals. Idempotent."""
        with _recorded(self.files) as record:
            if record.holders.pop(self.token, None) is not None:
                record.settle()

    def close(self) -> None:
        """Close the files in this process; others that have them can still release."""
        for fd in self.files:
            os.close(fd)


def raise_to(entries: int, labs: Path) -> Raised:
    """Let the table hold ``entries`` and what labs in other folders need, twice over, before eviction begins.

    ``labs``: the folder of the labs that need them. It never lowers a limit. The undo record is written before the
    limits are changed. MachineError when this process may not write them, or when other users may write the record.
    """
    try:
        with ExitStack() as opened:
            files = _open(opened)
            raised = _raise(files, min(entries, _LARGEST), labs)
            opened.pop_all()
            return raised
    except OSError as error:
        raise MachineError(f"cannot raise the neighbour table's limit ({error.strerror}); run as root") from error


def _raise(files: Files, entries: int, labs: Path) -> Raised:
    with _recorded(files) as record:
        now = _read(files.second), _read(files.third)
        if not record.holders:
            record.before = now  # else one ended, its warden too, before it restored them
        token, pid = os.urandom(8).hex(), os.getpid()
        holder = Holder(pid, _started(pid, files.processes) or 0, entries, str(labs))
        record.holders = dict(record.living()) | {token: holder}
        limit = _limit_for(record.holders.values())
        record.write()
        try:
            _write(files.third, max(now[1], 2 * limit))
            _write(files.second, max(now[0], limit))
        except OSError:
            del record.holders[token]
            record.write()
            raise
    return Raised(files, token, holder, limit)


def put_back() -> None:
    """Undo raises of processes that have ended together with their wardens; the needs of others remain.

    Does nothing if this process may not write the limits.
    """
    if not os.path.exists(_MACHINE.record):  # pathlib raises where the folder is another user's
        return
    with suppress(OSError, MachineError), ExitStack() as opened:
        files = _open(opened)
        with _recorded(files) as record:
            if len(dict(record.living())) < len(record.holders):
                record.settle()


def may_raise() -> bool:
    """Return True if this process may write the limits: root of the machine, in its own network namespace."""
    return all(os.access(path, os.W_OK) for path in _MACHINE.limits)


def unraised() -> int | None:
    """Return gc_thresh2 as it will be once all holders release; None: there are none, or access is denied."""
    try:
        record = _open_record(os.O_RDONLY)
    except (OSError, MachineError):
        return None
    try:
        fcntl.lockf(record, fcntl.LOCK_SH)
        found = _Record(Files(record, -1, -1, -1))
        return found.before[0] if found.holders else None
    finally:
        os.close(record)


def _open(opened: ExitStack) -> Files:
    """Open all files, for ``opened`` to close. OSError; MachineError as ``_open_record``."""

    def kept(fd: int) -> int:
        opened.callback(os.close, fd)
        return fd

    _MACHINE.record.parent.mkdir(mode=0o700, exist_ok=True)
    record = kept(_open_record(os.O_RDWR | os.O_CREAT))
    second, third = (kept(os.open(path, os.O_RDWR | os.O_CLOEXEC)) for path in _MACHINE.limits)
    return Files(record, second, third, kept(os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)))


def _open_record(flags: int) -> int:
    """Open the record. OSError; MachineError when it is no file, or others may write it or its folder."""
    place = _MACHINE.record
    with ExitStack() as opened:
        try:
            folder = os.open(place.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            opened.callback(os.close, folder)
            fd = os.open(place.name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600, dir_fd=folder)
        except OSError as error:
            if error.errno in _NO_FILE:
                raise _not_ours(place) from error
            raise
        opened.callback(os.close, fd)
        if not (_is_own(folder) and _is_own(fd) and stat.S_ISREG(os.fstat(fd).st_mode)):
            raise _not_ours(place)
        return os.dup(fd)


def _is_own(fd: int) -> bool:
    found = os.fstat(fd)
    return found.st_uid == os.geteuid() and not found.st_mode & 0o022


def _not_ours(place: Path) -> MachineError:
    return MachineError(f"{place} is not a file that only you may write, in a folder that only you may; remove it")


class _Record:
    """The stored record: the limits before the first raise, and the holders."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self.before = (0, 0)
        self.holders: dict[str, Holder] = {}
        with suppress(ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            # Empty or damaged: no holders are known then. Bytes after the JSON remain from an earlier, longer record.
            found, _ = json.JSONDecoder().raw_decode(os.pread(files.record, _LONGEST, 0).decode())
            second, third = (_positive(limit) for limit in found["before"])
            holders = {
                str(token): Holder(_positive(pid), int(started), _positive(entries), str(labs))
                for token, (pid, started, entries, labs) in found["holders"].items()
            }
            self.before, self.holders = (second, third), holders

    def living(self) -> Iterator[tuple[str, Holder]]:
        """Return the holders whose process is alive."""
        return ((token, held) for token, held in self.holders.items() if _lives(held, self._files.processes))

    def settle(self) -> None:
        """Set the limits to what the living holders need, or restore the originals. OSError."""
        self.holders = dict(self.living())
        limit = _limit_for(self.holders.values())
        _write(self._files.second, max(limit, self.before[0]))  # first: it is never above the other
        _write(self._files.third, max(2 * limit, self.before[1]))

    def write(self) -> None:
        """Write the record to its file."""
        holders = {token: astuple(held) for token, held in self.holders.items()}
        text = json.dumps({"before": self.before, "holders": holders}).encode()
        os.pwrite(self._files.record, text, 0)
        os.ftruncate(self._files.record, len(text))


@contextmanager
def _recorded(files: Files) -> Iterator[_Record]:
    """Lock the record against every other process and yield it; write it when the body succeeds.

    The lock is a process's: a warden inherits the descriptors of the requester, and flock would not separate the two.
    """
    fcntl.lockf(files.record, fcntl.LOCK_EX)
    try:
        record = _Record(files)
        yield record
        record.write()
    finally:
        fcntl.lockf(files.record, fcntl.LOCK_UN)


def _limit_for(holders: Iterable[Holder]) -> int:
    """Return gc_thresh2: twice the sum over folders. Labs in one folder count each other already."""
    folders: dict[str, int] = {}
    for held in holders:
        folders[held.labs] = max(folders.get(held.labs, 0), held.entries)
    return min(2 * sum(folders.values()), _LARGEST // 2)


def _lives(held: Holder, processes: int) -> bool:
    try:
        return _started(held.pid, processes) == held.started
    except OSError:
        return True


def _started(pid: int, processes: int) -> int | None:
    """Return when the process was started, clock ticks after boot (proc(5), field 22 of stat); None when it is dead."""
    try:
        fd = os.open(f"{pid}/stat", os.O_RDONLY | os.O_CLOEXEC, dir_fd=processes)
        try:
            fields = os.read(fd, 4096).rpartition(b")")[2].split()
        finally:
            os.close(fd)
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in (b"X", b"Z") else int(fields[19])


def _positive(found: object) -> int:
    """Check that a number can be a process ID or a limit. ValueError otherwise."""
    if not isinstance(found, int) or not 0 < found <= _LARGEST:
        raise ValueError(found)
    return found


def _read(fd: int) -> int:
    return int(os.pread(fd, 32, 0))


def _write(fd: int, value: int) -> None:
    os.pwrite(fd, str(value).encode(), 0)
