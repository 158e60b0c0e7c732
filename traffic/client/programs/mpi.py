"""Client ``mpi``: one MPI rank: all-reduce, ping-pong or windows of messages, as in the OSU benchmarks.

In ``latency`` and ``bandwidth`` half of the ranks begin, each with a partner in the other half. Only rank 0 gets the
begin time, and it informs the others.
"""

from __future__ import annotations

import argparse
import zlib
from typing import Protocol

import numpy as np
from mpi4py import MPI

from hpn.traffic.client.programs import rank
from hpn.traffic.client.programs.rank import Span

_PATTERN = 251
_SHIFTS = 97
_WINDOW = 64
"""Messages in flight at a time, as in osu_bw."""


class Work(Protocol):
    """Work of a step, and its report in addition to the times."""

    def step(self, number: int) -> None:
        """Do the step of that number."""

    def told(self, number: int) -> str:
        """Return the report of the step just done."""


class AllReduce:
    """All-reduce of a buffer of whole numbers, exact in float32, with a check of the sum."""

    def __init__(self, world: MPI.Intracomm, size_bytes: int) -> None:
        self._world = world
        pattern = np.arange(max(size_bytes // 4, 1)) % _PATTERN
        self._given = (pattern * (world.rank + 1)).astype(np.float32)
        self._summed = (pattern * (world.size * (world.size + 1) // 2)).astype(np.float32)
        self._found = np.empty_like(self._given)

    def step(self, number: int) -> None:
        """Do a different sum in each step, so that an old result is wrong."""
        self._world.Allreduce(self._given + np.float32(number % _SHIFTS), self._found)

    def told(self, number: int) -> str:
        """Return how many numbers of the result are wrong: a wrong part may be the same on all ranks."""
        wrong = int(np.count_nonzero(self._found != self._summed + np.float32(self._world.size * (number % _SHIFTS))))
        checksum = zlib.crc32(self._found.tobytes())
        return f"kind=all-reduce bytes={self._found.nbytes} sum={checksum:08x} wrong={wrong}"


class Latency:
    """Ping-pong between the ranks of a pair, ``rounds`` times there and back."""

    def __init__(self, world: MPI.Intracomm, size_bytes: int, rounds: int) -> None:
        self._world, self._rounds = world, rounds
        self._mine, self._theirs = np.full(size_bytes, world.rank, np.uint8), np.empty(size_bytes, np.uint8)
        self._asks, self._partner = _pair(world)

    def step(self, number: int) -> None:
        """Do the rounds; one rank of the pair begins."""
        for _ in range(self._rounds):
            if self._asks:
                self._world.Send(self._mine, self._partner)
                self._world.Recv(self._theirs, self._partner)
            else:
                self._world.Recv(self._theirs, self._partner)
                self._world.Send(self._mine, self._partner)

    def told(self, number: int) -> str:
        """Return the bytes of one direction."""
        return f"kind=ping-pong bytes={self._mine.nbytes * self._rounds}"


class Bandwidth:
    """Windows of messages, ``rounds`` of them, each acknowledged by an empty message."""

    def __init__(self, world: MPI.Intracomm, size_bytes: int, rounds: int) -> None:
        self._world, self._rounds = world, rounds
        self._data = np.full((_WINDOW, size_bytes), world.rank, np.uint8)
        self._nothing = np.empty(0, np.uint8)
        self._asks, self._partner = _pair(world)

    def step(self, number: int) -> None:
        """Send from a rank of the first half, or receive in its partner."""
        begin = self._world.Isend if self._asks else self._world.Irecv
        for _ in range(self._rounds):
            MPI.Request.Waitall([begin(row, self._partner) for row in self._data])
            if self._asks:
                self._world.Recv(self._nothing, self._partner)
            else:
                self._world.Send(self._nothing, self._partner)

    def told(self, number: int) -> str:
        """Return the bytes of all windows."""
        return f"kind=bandwidth bytes={self._data.nbytes * self._rounds}"


def _pair(world: MPI.Intracomm) -> tuple[bool, int]:
    """Return True if this rank begins, and its partner."""
    half = world.size // 2
    return world.rank < half, (world.rank + half) % world.size


def _begun(world: MPI.Intracomm) -> Span:
    """Return the run's times: rank 0 reads them and broadcasts them."""
    told = np.zeros(2, np.int64)
    if world.rank == 0:
        span = rank.begun()
        told[:] = span.begin_ns, span.until_ns
    world.Bcast(told)
    return Span(int(told[0]), int(told[1]))


def _work(asked: argparse.Namespace, world: MPI.Intracomm) -> Work:
    if asked.work == "latency":
        return Latency(world, asked.bytes, asked.rounds)
    if asked.work == "bandwidth":
        return Bandwidth(world, asked.bytes, asked.rounds)
    return AllReduce(world, asked.bytes)


def main() -> None:
    """Meet, get ready, do steps until the end."""
    parser = argparse.ArgumentParser()
    parser.add_argument("work")
    for name in ("--bytes", "--rounds", "--pause-ns"):
        parser.add_argument(name, type=int, required=True)
    asked = parser.parse_args()
    world = MPI.COMM_WORLD
    try:
        work = _work(asked, world)
        world.Barrier()
        span = _begun(world)
        for number in rank.steps(span, asked.pause_ns):
            rank.timed(number, work.step, work.told, f"rank={world.rank} ")
    except (MPI.Exception, ValueError, OSError) as error:
        rank.give_up(error)
    rank.wait_to_be_ended()


if __name__ == "__main__":
    main()
