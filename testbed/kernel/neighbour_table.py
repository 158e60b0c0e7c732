"""The neighbour table, one for all namespaces of the machine: its limit raised for the life of a lab, and put back.

The kernel has the limits (gc_thresh2, where it begins to throw entries out, and gc_thresh3, where it takes no more) in
the machine's own namespace, for root. Several labs may want them raised at once, with their folders in different
places: so one record for the machine says who does and what they were before. Who ends sets them to what the others
still need, and the last to what they were.
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
    """Where the kernel has the limits (gc_thresh2, gc_thresh3), and where every hpn here keeps who has them raised."""

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
    """Who needs the limits raised: for the life of which process, for how many entries.

    ``started``: when that process was, in clock ticks after boot: a process ID may be another's by now. ``labs``: the
    folder of its user's labs; ``entries`` are those that all labs in there need together.
    """

    pid: int
    started: int
    entries: int
    labs: str


class Files(NamedTuple):
    """Open files: they serve also where /run and /proc are others, as in a sandbox's warden."""

    record: int
    second: int  # gc_thresh2
    third: int  # gc_thresh3
    processes: int  # /proc


@dataclass(frozen=True, slots=True)
class Raised:
    """The limits as this process had them raised; ``release`` puts them back, from whichever process has ``files``."""

    files: Files
    token: str
    holder: Holder
    limit: int  # gc_thresh2

    def belongs_to(self, pid: int) -> None:
        """The raise is for the life of that process; until then for that of the one that asked."""
        with _recorded(self.files) as record:
            started = _started(pid, self.files.processes) or 0  # 0: it is dead already
            if self.token in record.holders:  # else it was damaged meanwhile, and what they were is lost
                record.holders[self.token] = replace(self.holder, pid=pid, started=started)

    def release(self) -> None:
        """Put the limits to what the other holders that live need, or to what they were. Idempotent."""
        with _recorded(self.files) as record:
            if record.holders.pop(self.token, None) is not None:
                record.settle()

    def close(self) -> None:
        """Close the files here; whoever else has them can still release."""
        for fd in self.files:
            os.close(fd)


def raise_to(entries: int, labs: Path) -> Raised:
    """Let the table hold ``entries``, what labs in other folders need, and as many again before any is thrown out.

    ``labs``: the folder of the labs that need them. It never lowers a limit. The undo is on file before the limits are
    touched. MachineError when this process may not write them, or when others may write the record.
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
            record.before = now  # else one died, its warden too, before it put them back
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
    """Undo what was raised for processes that have died together with their wardens; what others need stays.

    Does nothing where the limits are not this process's to write.
    """
    if not os.path.exists(_MACHINE.record):  # pathlib raises where the folder is another user's
        return
    with suppress(OSError, MachineError), ExitStack() as opened:
        files = _open(opened)
        with _recorded(files) as record:
            if len(dict(record.living())) < len(record.holders):
                record.settle()


def may_raise() -> bool:
    """Whether this process may write the limits: root of the machine, in its own network namespace."""
    return all(os.access(path, os.W_OK) for path in _MACHINE.limits)


def unraised() -> int | None:
    """gc_thresh2 as it will be when nobody has it raised any more; None: nobody has, or this process may not know."""
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
    """All of them, for ``opened`` to close. OSError; MachineError as of the record."""

    def kept(fd: int) -> int:
        opened.callback(os.close, fd)
        return fd

    _MACHINE.record.parent.mkdir(mode=0o700, exist_ok=True)
    record = kept(_open_record(os.O_RDWR | os.O_CREAT))
    second, third = (kept(os.open(path, os.O_RDWR | os.O_CLOEXEC)) for path in _MACHINE.limits)
    return Files(record, second, third, kept(os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)))


def _open_record(flags: int) -> int:
    """The record's descriptor. OSError; MachineError when it is no file, or others may write it or its folder."""
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
    """What is on file: the limits before the first raise, and who holds them raised."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self.before = (0, 0)
        self.holders: dict[str, Holder] = {}
        with suppress(ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            # Empty, or damaged: then nobody is known to hold them. What is behind it is of a longer one, cut short.
            found, _ = json.JSONDecoder().raw_decode(os.pread(files.record, _LONGEST, 0).decode())
            second, third = (_positive(limit) for limit in found["before"])
            holders = {
                str(token): Holder(_positive(pid), int(started), _positive(entries), str(labs))
                for token, (pid, started, entries, labs) in found["holders"].items()
            }
            self.before, self.holders = (second, third), holders

    def living(self) -> Iterator[tuple[str, Holder]]:
        """The holders whose process lives."""
        return ((token, held) for token, held in self.holders.items() if _lives(held, self._files.processes))

    def settle(self) -> None:
        """Set the limits to what the holders that live need, or to what they were. OSError."""
        self.holders = dict(self.living())
        limit = _limit_for(self.holders.values())
        _write(self._files.second, max(limit, self.before[0]))  # first: it is never above the other
        _write(self._files.third, max(2 * limit, self.before[1]))

    def write(self) -> None:
        """Put it on file."""
        holders = {token: astuple(held) for token, held in self.holders.items()}
        text = json.dumps({"before": self.before, "holders": holders}).encode()
        os.pwrite(self._files.record, text, 0)
        os.ftruncate(self._files.record, len(text))


@contextmanager
def _recorded(files: Files) -> Iterator[_Record]:
    """What is on file, locked against every other process; written when the body is through.

    By a lock of the process: a warden has its descriptors from the one that asked, and flock would not part the two.
    """
    fcntl.lockf(files.record, fcntl.LOCK_EX)
    try:
        record = _Record(files)
        yield record
        record.write()
    finally:
        fcntl.lockf(files.record, fcntl.LOCK_UN)


def _limit_for(holders: Iterable[Holder]) -> int:
    """gc_thresh2: twice the entries of each folder's labs, which count one another, and of all folders together."""
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
    """When the process was started, clock ticks after boot (proc(5), field 22 of stat); None when it is dead."""
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
    """ValueError when it is none that a process ID or a limit can be."""
    if not isinstance(found, int) or not 0 < found <= _LARGEST:
        raise ValueError(found)
    return found


def _read(fd: int) -> int:
    return int(os.pread(fd, 32, 0))


def _write(fd: int, value: int) -> None:
    os.pwrite(fd, str(value).encode(), 0)
