"""Common part of our programs: identity of a rank, begin and end of its run, and its output lines (docs/clients.md).

Changes when every rank gets more data. It uses the environment and the line format, and no other hpn code.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn


@dataclass(frozen=True, slots=True)
class Rank:
    """Identity of this process, from its environment."""

    rank: int
    world: int
    rendezvous: Path

    @classmethod
    def from_environment(cls) -> Rank:
        """Return the identity. KeyError or ValueError if the environment lacks it."""
        told = os.environ
        return cls(int(told["HPN_RANK"]), int(told["HPN_WORLD_SIZE"]), Path(told["HPN_RENDEZVOUS"]))


@dataclass(frozen=True, slots=True)
class Span:
    """Begin and end of the run, on CLOCK_MONOTONIC."""

    begin_ns: int
    until_ns: int

    @property
    def over(self) -> bool:
        """True if the end of the run has come."""
        return time.monotonic_ns() >= self.until_ns


def say(line: str) -> None:
    """Print a line in one write: a process that carries the lines of several ranks must not mix them."""
    os.write(1, f"{line}\n".encode())


def begun() -> Span:
    """Report that all is prepared, and wait for the begin. ValueError if the begin is not given."""
    say("hpn ready")
    span = read_begin(sys.stdin.readline())
    sleep_until(span.begin_ns)
    return span


def read_begin(line: str) -> Span:
    """Parse 'begin NS until NS'. ValueError for anything else."""
    words = line.split()
    if len(words) != 4 or (words[0], words[2]) != ("begin", "until"):
        raise ValueError(f"'begin NS until NS' was to come, not {line[:80]!r}")
    return Span(int(words[1]), int(words[3]))


def sleep_until(at_ns: int) -> None:
    """Sleep until that time of CLOCK_MONOTONIC; return at once when it is past."""
    left_ns = at_ns - time.monotonic_ns()
    if left_ns > 0:
        time.sleep(left_ns / 1e9)


def steps(span: Span, pause_ns: int) -> Iterator[int]:
    """Yield the numbers of steps until the run ends, with a pause after each in place of computing."""
    for number in itertools.count():
        if span.over:
            return
        yield number
        if pause_ns:
            time.sleep(pause_ns / 1e9)


def timed(number: int, step: Callable[[int], None], told: Callable[[int], str], who: str = "") -> None:
    """Do the step of that number; print its times, then the text of ``told``; ``who``: 'rank=N '."""
    begin_ns = time.monotonic_ns()
    step(number)
    end_ns = time.monotonic_ns()
    say(f"hpn step {number} {who}begin={begin_ns} end={end_ns} {told(number)}")


def wait_to_be_ended() -> NoReturn:
    """Keep our connections open until the run ends us: a rank that still waits must not see a failure."""
    while True:
        signal.pause()


def give_up(why: BaseException) -> NoReturn:
    """Print the reason and exit at once: a library's own shutdown may wait for ranks that are gone."""
    told = str(why).strip().splitlines()
    say(f"hpn error {type(why).__name__}: {told[0] if told else 'it says nothing more'}")
    os._exit(1)
