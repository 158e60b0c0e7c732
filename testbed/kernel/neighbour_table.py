"""The neighbour table, one for all namespaces of the machine: its limit raised for the life of a lab, and put back.

The kernel has the limits (gc_thresh2, where it begins to throw entries out, and gc_thresh3, where it takes no more) in
the machine's own namespace, for root. Several labs may want them raised at once: a file beside the labs' folders says
who does and what they were before. Who ends sets them to what the others still need, and the last to what they were.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import MachineError

_LIMITS = tuple(Path(f"/proc/sys/net/ipv4/neigh/default/gc_thresh{number}") for number in (2, 3))
_LARGEST = 2**31 - 1
_LONGEST = 1 << 16


@dataclass(frozen=True, slots=True)
class Raised:
    """The limits as this process had them raised; ``release`` puts them back, from whichever process has ``files``."""

    files: tuple[int, int, int]  # the state, gc_thresh2, gc_thresh3
    token: str
    limit: int  # gc_thresh2

    def belongs_to(self, pid: int) -> None:
        """The raise is for the life of that process; until then for that of the one that asked."""
        with _state(self.files[0]) as state:
            state.holders[self.token] = (pid, self.limit)

    def release(self) -> None:
        """Put the limits to what the other holders that live need, or to what they were. Idempotent."""
        with _state(self.files[0]) as state:
            if state.holders.pop(self.token, None) is None:
                return
            wanted = max((limit for _, limit in state.living()), default=0)
            if wanted:
                _lower(self.files[1:], (max(wanted, state.before[0]), max(2 * wanted, state.before[1])))
            else:
                _lower(self.files[1:], state.before)
                state.holders.clear()

    def close(self) -> None:
        """Close the files here; whoever else has them can still release."""
        for fd in self.files:
            os.close(fd)


def raise_to(place: Path, entries: int) -> Raised:
    """Let the table hold ``entries`` and as many again before the kernel begins to throw any out.

    ``place``: the state file. It never lowers a limit. The undo is on file before the limits are touched.
    MachineError when this process may not write them.
    """
    limit = min(2 * entries, _LARGEST // 2)
    files = _open(place)
    raised = Raised(files, secrets.token_hex(8), limit)
    with _state(files[0]) as state:
        now = _read(files[1]), _read(files[2])
        if not state.holders:
            state.before = now  # else one died, its warden too, before it put them back
        state.holders = {token: held for token, held in state.holders.items() if _lives(held[0])}
        state.holders[raised.token] = (os.getpid(), limit)
        state.write()
        try:
            _write(files[2], max(now[1], 2 * limit))
            _write(files[1], max(now[0], limit))
        except OSError as error:
            del state.holders[raised.token]
            state.write()
            raise MachineError(f"cannot raise the neighbour table's limit: {error.strerror}") from error
    return raised


def may_raise() -> bool:
    """Whether this process may write the limits: root of the machine, in its own network namespace."""
    return all(os.access(path, os.W_OK) for path in _LIMITS)


def _open(place: Path) -> tuple[int, int, int]:
    opened: list[int] = []
    try:
        opened.append(os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        opened += [os.open(path, os.O_RDWR | os.O_CLOEXEC) for path in _LIMITS]
    except OSError as error:
        for fd in opened:
            os.close(fd)
        raise MachineError(f"cannot raise the neighbour table's limit ({error.strerror}); run as root") from error
    return opened[0], opened[1], opened[2]


class _State:
    """What is on file: the limits before the first raise, and who holds them raised to what (process, gc_thresh2)."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.before = (0, 0)
        self.holders: dict[str, tuple[int, int]] = {}
        with suppress(ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError):
            # Empty, or damaged: then nobody is known to hold them.
            found = json.loads(os.pread(fd, _LONGEST, 0))
            holders = {str(token): (int(pid), int(limit)) for token, (pid, limit) in found["holders"].items()}
            self.before = int(found["before"][0]), int(found["before"][1])
            self.holders = holders

    def living(self) -> Iterator[tuple[int, int]]:
        """The holders whose process lives."""
        return (held for held in self.holders.values() if _lives(held[0]))

    def write(self) -> None:
        """Put it on file."""
        text = json.dumps({"before": self.before, "holders": self.holders}).encode()
        os.pwrite(self._fd, text, 0)
        os.ftruncate(self._fd, len(text))


@contextmanager
def _state(fd: int) -> Iterator[_State]:
    """What is on file, locked against everybody else; written when the body is through."""
    fcntl.flock(fd, fcntl.LOCK_EX)
    try:
        state = _State(fd)
        yield state
        state.write()
    finally:
        fcntl.flock(fd, fcntl.LOCK_UN)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _read(fd: int) -> int:
    return int(os.pread(fd, 32, 0))


def _write(fd: int, value: int) -> None:
    os.pwrite(fd, str(value).encode(), 0)


def _lower(files: tuple[int, ...], limits: tuple[int, int]) -> None:
    """gc_thresh2 first: it is never above gc_thresh3."""
    for fd, limit in zip(files, limits, strict=True):
        _write(fd, limit)
