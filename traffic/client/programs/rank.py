"""What our programs have in common: who a rank is, its begin and its end, and the lines it says (docs/clients.md).

Changes when every rank is told something more. Knows the environment and the line format, and nothing of hpn.
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
    """Who this process is, out of its environment."""

    rank: int
    world: int
    rendezvous: Path

    @classmethod
    def from_environment(cls) -> Rank:
        """KeyError or ValueError where nobody has said who we are."""
        told = os.environ
        return cls(int(told["HPN_RANK"]), int(told["HPN_WORLD_SIZE"]), Path(told["HPN_RENDEZVOUS"]))


@dataclass(frozen=True, slots=True)
class Span:
    """From when to when the run lasts, on CLOCK_MONOTONIC."""

    begin_ns: int
    until_ns: int

    @property
    def over(self) -> bool:
        """Whether its end has come."""
        return time.monotonic_ns() >= self.until_ns


def say(line: str) -> None:
    """A line in one write: whoever carries the lines of several ranks must not mix them."""
    os.write(1, f"{line}\n".encode())


def begun() -> Span:
    """Say that all is prepared, wait for the begin. ValueError when it is not told."""
    say("hpn ready")
    span = read_begin(sys.stdin.readline())
    sleep_until(span.begin_ns)
    return span


def read_begin(line: str) -> Span:
    """'begin NS until NS'. ValueError for anything else."""
    words = line.split()
    if len(words) != 4 or (words[0], words[2]) != ("begin", "until"):
        raise ValueError(f"'begin NS until NS' was to come, not {line[:80]!r}")
    return Span(int(words[1]), int(words[3]))


def sleep_until(at_ns: int) -> None:
    """Return when that moment of CLOCK_MONOTONIC has come; at once when it is past."""
    left_ns = at_ns - time.monotonic_ns()
    if left_ns > 0:
        time.sleep(left_ns / 1e9)


def steps(span: Span, pause_ns: int) -> Iterator[int]:
    """Numbers of the steps to do until the run ends, with a pause between them: computing, in time alone."""
    for number in itertools.count():
        if span.over:
            return
        yield number
        if pause_ns:
            time.sleep(pause_ns / 1e9)


def timed(number: int, step: Callable[[int], None], told: Callable[[int], str], who: str = "") -> None:
    """Do the step of that number and tell it: how long it took, then what is ``told`` of it; ``who``: 'rank=N '."""
    begin_ns = time.monotonic_ns()
    step(number)
    end_ns = time.monotonic_ns()
    say(f"hpn step {number} {who}begin={begin_ns} end={end_ns} {told(number)}")


def wait_to_be_ended() -> NoReturn:
    """Hold our connections until the run ends us: a rank that still waits for us must not take that for a failure."""
    while True:
        signal.pause()


def give_up(why: BaseException) -> NoReturn:
    """Say why, and die at once: what a library does at its end may wait for ranks that are gone."""
    told = str(why).strip().splitlines()
    say(f"hpn error {type(why).__name__}: {told[0] if told else 'it says nothing more'}")
    os._exit(1)
