"""The folder of one lab: its record, its log, its control socket, and the lock that shows whether it lives.

Changes when the files of a lab outside its sandbox change. The supervisor and its warden hold the lock; the kernel
drops it when they die for any reason. A record lock on a byte of the same file identifies the first process. So a lab
can be ended even if nothing else in its folder is readable.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import struct
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import FrameType

from hpn.testbed.errors import InputError, MachineError

_PF_EXITING = 0x4  # linux/sched.h, in the flags field of /proc/PID/stat
DYING_S = 60.0
_LOOK_AGAIN_S = 1.0
_WORDS = 300
_FATAL = ("Fatal Python error", "*** ")  # first line of faulthandler, and of glibc; the location follows
_STARTER, FIRST = 0, 1  # bytes of the lock file: locked by the command that starts the lab, by its first process
_FLOCK = "hhqqi4x"  # struct flock of fcntl(2)
STARTING, UP, ENDING, DIED, LOST = "starting", "up", "ending", "died", "lost"
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,30}")
_FILES = frozenset({"lock", "lab.json", "lab.json.new", "fabric.json", "control.sock", "lab.log"})


@dataclass(frozen=True, slots=True)
class LabRecord:
    """External record of a lab. ``state`` is one of those above; times are epoch seconds."""

    name: str
    first_pid: int
    topology: str
    nodes: int
    links: int
    datapath: str
    started_at: float
    state: str = STARTING
    reason: str = ""
    neighbours: int = 0  # its entries in the machine's neighbour tables
    neighbour_limit: int = 0  # the table's limit that it has raised; 0: not raised
    metrics: str = ""  # URL of the metrics, '' if not served


@dataclass(frozen=True, slots=True)
class LabFolder:
    """The folder of one lab name.

    ``lost_lock``: path to the lock of a living lab whose lock file was removed from the folder.
    """

    path: Path
    lost_lock: Path | None = None

    @property
    def name(self) -> str:
        """Name of the lab."""
        return self.path.name

    @property
    def socket(self) -> Path:
        """Path of the control socket."""
        return self.path / "control.sock"

    @property
    def log(self) -> Path:
        """Path of the standard error of the supervisor and its daemons."""
        return self.path / "lab.log"

    def claim(self) -> int:
        """Take the locks (the descriptor holds them) and empty the folder.

        InputError when the lab is running, or the folder is not a lab's; MachineError when it cannot be written.
        """
        try:
            self.path.mkdir(mode=0o700, exist_ok=True)
            foreign = self._holds() - _FILES
        except (FileExistsError, NotADirectoryError, PermissionError) as error:
            raise InputError(f"cannot use {self.path} ({error.strerror}); choose another --name") from error
        except OSError as error:
            raise unusable(self.path, error) from error
        if foreign:
            raise InputError(f"{self.path} is no lab's folder (it holds {min(foreign)!r}); choose another --name")
        try:
            fd = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            with suppress(OSError):
                self.path.rmdir()
            raise unusable(self.path, error) from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            if not self._outlived():
                taken = f"lab {self.name!r} is already up; choose another --name or: hpn down {self.name}"
                raise InputError(taken) from None
            return self.claim()
        if not self._is_lock(fd):  # the folder was removed just now
            os.close(fd)
            return self.claim()
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _STARTER)
        for leftover in self.path.iterdir():
            if leftover.name != "lock":
                leftover.unlink()
        return fd

    def _outlived(self) -> bool:
        """Wait for a dying lab and remove its leftovers; False if it is alive, or does not end.

        If the lock has no holder, the first process is dead and its warden is about to end. Or another process is
        examining the folder or has just claimed it.
        """
        end = time.monotonic() + DYING_S
        while time.monotonic() < end:
            holder = self.holder()
            if holder is not None and not is_dying(holder):
                return False
            if self.remove_when_released(_LOOK_AGAIN_S):
                return True
        return False

    @property
    def _lock(self) -> Path:
        return self.lost_lock or self.path / "lock"

    def _is_lock(self, fd: int) -> bool:
        try:
            return os.path.samestat(os.fstat(fd), (self.path / "lock").stat())
        except (FileNotFoundError, NotADirectoryError):
            return False

    def holder(self) -> int | None:
        """Return the process ID of the lab's first process, or of the command that starts it; None if there is none.

        It is read from the lock, so it is true whatever the folder's files contain.
        """
        try:
            fd = os.open(self._lock, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            return _locker(fd, FIRST) or _locker(fd, _STARTER)
        finally:
            os.close(fd)

    def is_lab(self) -> bool:
        """Return True if the folder is a lab's: HPN_STATE_DIR may contain other things as well, such as a home."""
        if NAME.fullmatch(self.name) is None or self.path.is_symlink():
            return False
        try:
            found = self._holds()
        except OSError:  # no folder, or removed by now
            return False
        return bool(found) and found <= _FILES

    def _holds(self) -> set[str]:
        return {entry.name for entry in self.path.iterdir()}

    def is_held(self) -> bool:
        """Return True while a supervisor or warden of this lab lives."""
        try:
            fd = os.open(self._lock, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(fd)
        return False

    def remove_when_released(self, timeout_s: float) -> bool:
        """Delete the folder once the lock is released, which the warden does a moment after the first process died.

        False when it was not released in time.
        """
        try:
            fd = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            return True
        previous = signal.signal(signal.SIGALRM, _give_up)
        signal.setitimer(signal.ITIMER_REAL, timeout_s)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            self.remove(fd)
        except TimeoutError:
            return False
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, previous)
            os.close(fd)
        return True

    def write(self, record: LabRecord, lock: int) -> None:
        """Publish the record (atomically), also in the lock file, which stays reachable while the lab lives."""
        text = json.dumps(asdict(record))
        os.pwrite(lock, text.encode(), 0)
        os.ftruncate(lock, len(text.encode()))
        draft = self.path / "lab.json.new"
        draft.write_text(text)
        draft.rename(self.path / "lab.json")

    def read(self) -> LabRecord | None:
        """Return the record, None when there is none (yet). Fields of another hpn version are ignored."""
        try:
            told = json.loads((self.lost_lock or self.path / "lab.json").read_text())
            return LabRecord(**{field.name: told[field.name] for field in fields(LabRecord) if field.name in told})
        except (OSError, ValueError, TypeError):
            return None

    def last_words(self) -> str:
        """Return the supervisor's cause of death in one line: a fatal error's headline, else its last line."""
        try:
            lines = self.log.read_text(errors="replace").strip().splitlines()
        except OSError:
            return ""
        fatal = (line for line in lines if line.startswith(_FATAL))
        return next(fatal, lines[-1] if lines else "")[:_WORDS]

    def remove(self, lock: int) -> None:
        """Delete the folder of a dead lab, whose lock file the caller has locked as ``lock``."""
        if self._is_lock(lock):  # else it is another lab's by now
            shutil.rmtree(self.path, ignore_errors=True)


def hold_as_first(lock: int) -> None:
    """Mark the calling process as the lab's first: ``holder`` returns it until it dies."""
    fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, FIRST)


def _locker(fd: int, byte: int) -> int | None:
    """Return the process ID, in our PID namespace, of the holder of a record lock on that byte of the file."""
    asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0)
    kind, _, _, _, pid = struct.unpack(_FLOCK, fcntl.fcntl(fd, fcntl.F_GETLK, asked))
    return int(pid) if kind != fcntl.F_UNLCK and pid > 0 else None


def unusable(path: Path, error: OSError) -> MachineError:
    """Return the error for a state directory that cannot be written."""
    return MachineError(f"cannot keep a lab's state in {path} ({error.strerror}); free it or set HPN_STATE_DIR")


def is_dying(pid: int) -> bool:
    """Return True if the process is gone, exiting (a large lab's sockets take seconds) or about to be killed."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        pending = re.findall(r"^(?:SigPnd|ShdPnd):\s*([0-9a-f]+)", Path(f"/proc/{pid}/status").read_text(), re.M)
    except OSError:
        return True
    killed = any(int(mask, 16) >> (signal.SIGKILL - 1) & 1 for mask in pending)
    return killed or bool(int(fields[6]) & _PF_EXITING) or fields[0] in "XZ"


def _give_up(_number: int, _frame: FrameType | None) -> None:
    raise TimeoutError
