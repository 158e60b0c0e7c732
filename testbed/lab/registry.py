"""The register of running labs of one user: a private directory, one folder a lab, a lock that says whether it lives.

The supervisor (and its warden) hold the lock; the kernel drops it when they die, however they die. So a folder
without a held lock is a leftover and the name is free.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import stat
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType

from testbed.errors import InputError, MachineError
from testbed.fabric.build import build
from testbed.fabric.model import Fabric
from testbed.fabric.spec import FabricSpec

_PF_EXITING = 0x4  # linux/sched.h, in the flags field of /proc/PID/stat
_DYING_S = 60.0
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,30}")
_FILES = frozenset({"lock", "lab.json", "lab.json.new", "fabric.json", "control.sock", "lab.log"})


@dataclass(frozen=True, slots=True)
class LabRecord:
    """What is known of a lab from outside. ``state`` is 'starting' or 'up'; times are epoch seconds."""

    name: str
    first_pid: int
    topology: str
    nodes: int
    links: int
    datapath: str
    started_at: float
    state: str = "starting"
    reason: str = ""


def base_directory() -> Path:
    """The user's own directory for labs, made with mode 0700. MachineError when somebody else owns it."""
    override = os.environ.get("HPN_STATE_DIR")
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if override:
        base = Path(override)
    elif os.geteuid() == 0:
        base = Path("/run/hpn")
    elif runtime and os.access(runtime, os.W_OK):
        base = Path(runtime) / "hpn"
    else:
        base = Path(f"/tmp/hpn-{os.geteuid()}")
    try:
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = base.lstat()
    except OSError as error:
        raise MachineError(f"cannot use {base} for lab state ({error.strerror}); set HPN_STATE_DIR") from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise MachineError(f"{base} is not a private directory of yours; remove it or set HPN_STATE_DIR")
    return base


def check_name(name: str) -> str:
    """The name itself. InputError when it is no lab name."""
    if _NAME.fullmatch(name) is None:
        raise InputError(f"{name!r} is no lab name; use up to 31 of a-z, 0-9 and '-', starting with a letter or digit")
    return name


@dataclass(frozen=True, slots=True)
class LabFolder:
    """The folder of one lab name."""

    path: Path

    @property
    def name(self) -> str:
        """The lab's name."""
        return self.path.name

    @property
    def socket(self) -> Path:
        """The control socket."""
        return self.path / "control.sock"

    @property
    def log(self) -> Path:
        """What the supervisor and its daemons wrote to their standard error."""
        return self.path / "lab.log"

    def claim(self) -> int:
        """Take the lock (the descriptor holds it) and empty the folder.

        InputError when the lab is running, or something that is no lab lies there.
        """
        try:
            self.path.mkdir(mode=0o700, exist_ok=True)
            foreign = self._holds() - _FILES
        except OSError as error:
            raise InputError(f"cannot use {self.path} ({error.strerror}); choose another --name") from error
        if foreign:
            raise InputError(f"{self.path} is no lab's folder (it holds {min(foreign)!r}); choose another --name")
        fd = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            record = self.read()
            if record is None or not _is_dying(record.first_pid) or not self.released(_DYING_S):
                os.close(fd)
                taken = f"lab {self.name!r} is already up; choose another --name or: hpn down {self.name}"
                raise InputError(taken) from None
            fcntl.flock(fd, fcntl.LOCK_EX)
        for leftover in self.path.iterdir():
            if leftover.name != "lock":
                leftover.unlink()
        return fd

    def is_lab(self) -> bool:
        """Whether the folder is a lab's: HPN_STATE_DIR may be one that holds other things as well, such as a home."""
        if _NAME.fullmatch(self.name) is None or self.path.is_symlink():
            return False
        try:
            found = self._holds()
        except OSError:  # no folder, or gone by now
            return False
        return bool(found) and found <= _FILES

    def _holds(self) -> set[str]:
        return {entry.name for entry in self.path.iterdir()}

    def is_held(self) -> bool:
        """True while a supervisor or warden of this lab lives."""
        try:
            fd = os.open(self.path / "lock", os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(fd)
        return False

    def released(self, timeout_s: float) -> bool:
        """Wait for the lock to be let go; the warden does so a moment after the first process died."""
        fd = os.open(self.path / "lock", os.O_RDWR | os.O_CLOEXEC)
        previous = signal.signal(signal.SIGALRM, _give_up)
        signal.setitimer(signal.ITIMER_REAL, timeout_s)
        try:
            fcntl.flock(fd, fcntl.LOCK_SH)
        except TimeoutError:
            return False
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, previous)
            os.close(fd)
        return True

    def write(self, record: LabRecord) -> None:
        """Publish the record (atomically)."""
        draft = self.path / "lab.json.new"
        draft.write_text(json.dumps(asdict(record)))
        draft.rename(self.path / "lab.json")

    def read(self) -> LabRecord | None:
        """The record, None when there is none (yet)."""
        try:
            return LabRecord(**json.loads((self.path / "lab.json").read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def remove(self) -> None:
        """Delete the folder of a dead lab."""
        shutil.rmtree(self.path, ignore_errors=True)


def _is_dying(pid: int) -> bool:
    """True when the process is gone, on its way out (closing a large lab's sockets takes seconds) or about to be."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        pending = re.findall(r"^(?:SigPnd|ShdPnd):\s*([0-9a-f]+)", Path(f"/proc/{pid}/status").read_text(), re.M)
    except OSError:
        return True
    killed = any(int(mask, 16) >> (signal.SIGKILL - 1) & 1 for mask in pending)
    return killed or bool(int(fields[6]) & _PF_EXITING) or fields[0] in "XZ"


def _give_up(_number: int, _frame: FrameType | None) -> None:
    raise TimeoutError


def folder(name: str) -> LabFolder:
    """The folder of a lab name, which need not exist. InputError for an impossible name."""
    return LabFolder(base_directory() / check_name(name))


def running() -> Iterator[tuple[LabFolder, LabRecord]]:
    """Every living lab of this user; leftovers of dead ones are removed on the way."""
    for path in sorted(base_directory().iterdir()):
        found = LabFolder(path)
        if not found.is_lab():
            continue
        record = found.read()
        if found.is_held():
            if record is not None:
                yield found, record
        else:
            found.remove()


def find(name: str | None) -> tuple[LabFolder, LabRecord]:
    """The named lab, or the only one. InputError, saying what is up, otherwise."""
    labs = list(running())
    if name is None:
        if len(labs) == 1:
            return labs[0]
        names = ", ".join(record.name for _, record in labs)
        raise InputError(f"which lab? --lab one of: {names}" if labs else "no lab is up; start one: hpn up tiny")
    for found, record in labs:
        if record.name == name:
            return found, record
    names = ", ".join(record.name for _, record in labs) or "none; start one: hpn up tiny"
    raise InputError(f"no lab {name!r} is up; up now: {names}")


def fabric_of(place: LabFolder) -> Fabric:
    """The fabric of a running lab. MachineError when its folder is damaged."""
    try:
        return build(FabricSpec.model_validate_json((place.path / "fabric.json").read_text()))
    except (OSError, ValueError) as error:
        raise MachineError(f"lab {place.name}: its state is damaged; end it: hpn down {place.name}") from error
