"""Whose turn it is to measure on this machine, among the workers of one user: in the order in which they came.

Changes when workers share a machine in another way. Who comes draws a ticket, a file that he keeps locked: with its
holder, however he goes, goes the ticket. He waits for the tickets before his that he cannot share the machine with; so
neither a machine that guests always use nor a worker that is back at once keeps anybody waiting for ever.
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
"""How often to look: several files cannot be waited for at once."""
_FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def turn(below: Path, alone: bool, given_up: threading.Event) -> Iterator[None]:
    """Wait for it until ``given_up``, and keep it. ``alone``: with nobody beside; otherwise others may share it.

    The queue is a folder ``below`` that one, which is private.
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
    """A ticket behind all others, its number, and what keeps it locked."""
    door = os.open(folder / _DOOR, _FLAGS | os.O_CREAT, 0o600)
    try:
        fcntl.flock(door, fcntl.LOCK_EX)  # for as long as it takes to draw one
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
    """Whether its holder lives; one whose holder died is thrown away."""
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
