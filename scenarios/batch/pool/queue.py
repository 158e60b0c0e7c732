"""Queue of a user's workers for measurements on this machine, first come, first served.

Changes when workers share a machine in another way. A worker draws a ticket, a file that it keeps locked, so that the
ticket always ends with its holder. It waits for earlier tickets that it cannot share the machine with. So neither a
machine in constant use by guests nor a worker that returns at once can starve another worker.
"""

from __future__ import annotations

import fcntl
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_FOLDER, _DOOR = "pool.queue", "door"
_TICKET = re.compile(r"(\d{1,18})\.(alone|shared)")
_LOOK_S = 0.2
"""Polling interval in s, as several files cannot be waited for at once."""
_FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def turn(below: Path, alone: bool, given_up: threading.Event) -> Iterator[None]:
    """Wait for a turn until ``given_up``, and hold it. ``alone``: True to exclude all others.

    The queue is a private folder inside ``below``.
    """
    folder = below / _FOLDER
    folder.mkdir(exist_ok=True)
    mine, number, held = _draw(folder, alone)
    try:
        while any(_is_held(each) for before, each in _tickets(folder) if before < number and _excludes(each, alone)):
            if given_up.wait(_LOOK_S):
                break
        yield
    finally:
        mine.unlink(missing_ok=True)
        os.close(held)


def _draw(folder: Path, alone: bool) -> tuple[Path, int, int]:
    """Draw a ticket behind all others; return its path, its number and its locked descriptor."""
    door = os.open(folder / _DOOR, _FLAGS | os.O_CREAT, 0o600)
    try:
        fcntl.flock(door, fcntl.LOCK_EX)  # until a ticket is drawn
        number = max((number for number, _ in _tickets(folder)), default=0) + 1
        mine = folder / f"{number}.{'alone' if alone else 'shared'}"
        held = os.open(mine, _FLAGS | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(held, fcntl.LOCK_EX)
        return mine, number, held
    finally:
        os.close(door)


def _tickets(folder: Path) -> Iterator[tuple[int, Path]]:
    for name in os.listdir(folder):
        if (found := _TICKET.fullmatch(name)) is not None:
            yield int(found[1]), folder / name


def _excludes(ticket: Path, alone: bool) -> bool:
    return alone or ticket.suffix == ".alone"


def _is_held(ticket: Path) -> bool:
    """Return True if the ticket's holder is alive; a ticket without holder is removed."""
    try:
        number = os.open(ticket, _FLAGS)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with suppress(FileNotFoundError):
            ticket.unlink()
    except BlockingIOError:
        return True
    finally:
        os.close(number)
    return False
