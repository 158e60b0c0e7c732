"""A rank of the client ``verbs``: a ring of real queue pairs in which every rank writes to the next, step after step.

A rank's exchange is done when its own write is acknowledged and that of the rank before it has arrived. So no rank is
more than a round of the ring ahead, and a memory with one slot per rank loses no data. A step is one exchange with the
step's number, repeated, as data. So the checksum of the received data must be the same on all ranks. Or it is a ring
all-reduce, whose sum each rank compares with the expected one. ``verbs_star`` has the incast.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import sys
import time
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from hpn.traffic.client.programs.libibverbs import Device, Done, Peer, QueuePair, Way
from hpn.traffic.client.programs.rendezvous import Meeting
from hpn.traffic.client.programs.ring_sum import RingSum
from hpn.traffic.client.programs.verbs_star import Incast, Star

_WORD = 8
_PSN_MASK = 0xFFFFFF
_MS = 1_000_000


class GaveUp(Exception):
    """Reason why this rank cannot continue."""


@dataclass(frozen=True, slots=True)
class Place:
    """A rank and its neighbours in a ring of ``length``: it writes to the one ``after``, the one ``before`` to it.

    ``at``: its position in the ring, counted from 0.
    """

    rank: int
    at: int
    before: int
    after: int
    length: int


class Ring:
    """This rank's device, its queue pair to the rank after it and the one from the rank before it."""

    def __init__(self, place: Place, device: Device, payload: int) -> None:
        self._place, self._device, self._payload = place, device, payload
        self._out, self._in = device.queue_pair(), device.queue_pair()
        self._begun = self._written = self._arrived = 0  # exchanges
        self._poll = select.poll()
        self._poll.register(device.fileno(), select.POLLIN)

    def connect(self, meeting: Meeting, way: Way) -> None:
        """Exchange queue pair data with both neighbours, connect; then wait until both have."""
        place = self._place
        meeting.tell(f"out-{place.rank}", self._told(self._out))
        meeting.tell(f"in-{place.rank}", self._told(self._in))
        self._target = _peer(meeting.hear(f"in-{place.after}"))
        self._in.connect(_peer(meeting.hear(f"out-{place.before}")), self._in.number & _PSN_MASK, way)
        self._out.connect(self._target, self._out.number & _PSN_MASK, way)
        for _ in range(place.length):
            self._in.expect()
        meeting.tell(f"connected-{place.rank}", "")
        for rank in (place.before, place.after):
            meeting.hear(f"connected-{rank}")

    def exchange(self, data: bytes, until_ns: int) -> bytes | None:
        """Write ``data`` to the next and wait for the previous rank's write of the same size. None: the run is over."""
        number, length, size = self._begun, self._place.length, self._payload
        self._begun += 1
        slot, own = number % length * size, length * size  # outgoing data is stored after the slots
        self._device.view[own : own + size] = data
        at = self._target.address + slot
        self._out.write(self._device.address + own, size, at, self._target.key, number & 0xFFFFFFFF)
        while self._written <= number or self._arrived <= number:
            if not self._wait(until_ns):
                return None
        self._in.expect()
        return bytes(self._device.view[slot : slot + size])

    def _wait(self, until_ns: int) -> bool:
        """Wait for completions and count them; return False at the end of the run. GaveUp when one failed."""
        left_ms = (until_ns - time.monotonic_ns() + _MS - 1) // _MS
        if left_ms <= 0 or not self._poll.poll(left_ms):
            return False
        for done in self._device.completions():
            self._count(done)
        return True

    def _count(self, done: Done) -> None:
        if done.trouble:
            other = self._place.before if done.received else self._place.after
            raise GaveUp(f"queue pair {done.queue_pair} with rank {other}: {done.trouble}")
        if not done.received:
            self._written += 1
        elif done.immediate == self._arrived & 0xFFFFFFFF:
            self._arrived += 1
        else:
            raise GaveUp(f"write {done.immediate} of rank {self._place.before} came when {self._arrived} was due")

    def _told(self, of: QueuePair) -> str:
        device = self._device
        return json.dumps(asdict(Peer(of.number, of.number & _PSN_MASK, device.gid, device.address, device.key)))


class Work(Protocol):
    """Work of a step: ``kind`` with ``size`` bytes, in writes of ``payload`` bytes each."""

    kind: str
    size: int
    payload: int

    def step(self, ring: Ring, number: int, until_ns: int) -> str | None:
        """Do the step; return its evidence of correctness for the report. None: the run is over."""


class Write:
    """One write from every rank to the next."""

    kind = "write"

    def __init__(self, size: int) -> None:
        self.size = self.payload = size

    def step(self, ring: Ring, number: int, until_ns: int) -> str | None:
        """Return the checksum of the received data."""
        data = (number.to_bytes(_WORD, "little") * (self.size // _WORD + 1))[: self.size]
        came = ring.exchange(data, until_ns)
        return None if came is None else f"sum={zlib.crc32(came):08x}"


class AllReduce:
    """Ring all-reduce: all ranks end with the sum of all inputs."""

    kind = "all-reduce"

    def __init__(self, place: Place, size: int) -> None:
        self._sum = RingSum(place.at, place.length, size)
        self.size, self.payload = self._sum.size, self._sum.chunk

    def step(self, ring: Ring, number: int, until_ns: int) -> str | None:
        """Return the number of wrong chunks of the sum."""
        self._sum.begin(number)
        for done in range(self._sum.rounds):
            came = ring.exchange(self._sum.sent(done), until_ns)
            if came is None:
                return None
            self._sum.took(done, came)
        return f"wrong={self._sum.wrong()}"


def main(arguments: Sequence[str]) -> int:
    """Prepare, report it, and do steps until the run ends; return 1 when a queue pair fails."""
    parser = argparse.ArgumentParser()
    for name in (
        *("before", "after", "at", "length", "size"),
        *("mtu", "timeout", "retries", "pause-us", "patience-ms"),
    ):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--device", required=True)
    parser.add_argument("--ranks", required=True)
    parser.add_argument("--work", choices=(Write.kind, AllReduce.kind, Incast.kind), required=True)
    asked = parser.parse_args(arguments)
    try:
        work = _incast(asked) if asked.work == Incast.kind else _round(asked)
        print("hpn ready", flush=True)
        _, begin, _, until = sys.stdin.readline().split()
        _run(work, int(begin), int(until), asked.pause_us / 1e6)
    except (GaveUp, OSError) as error:
        print(f"hpn error {error}", flush=True)
        return 1
    return 0


class Steps(Protocol):
    """Work of a rank whose queue pairs are connected."""

    kind: str
    size: int

    def step(self, number: int, until_ns: int) -> str | None:
        """Do the step; return its evidence of correctness for the report. None: the run is over."""


class Round:
    """Work over a ring."""

    def __init__(self, ring: Ring, work: Work) -> None:
        self._ring, self._work = ring, work
        self.kind, self.size = work.kind, work.size

    def step(self, number: int, until_ns: int) -> str | None:
        """Do the work's step."""
        return self._work.step(self._ring, number, until_ns)


def _round(asked: argparse.Namespace) -> Steps:
    place = Place(int(os.environ["HPN_RANK"]), asked.at, asked.before, asked.after, asked.length)
    work: Work = Write(asked.size) if asked.work == Write.kind else AllReduce(place, asked.size)
    ring = Ring(place, _device(asked, (place.length + 1) * work.payload), work.payload)
    ring.connect(_meeting(asked), Way(asked.mtu, asked.timeout, asked.retries))
    return Round(ring, work)


def _incast(asked: argparse.Namespace) -> Steps:
    ranks = [int(rank) for rank in asked.ranks.split(",")]
    payload = max(asked.size, _WORD)
    star = Star(ranks, int(os.environ["HPN_RANK"]), _device(asked, len(ranks) * payload), payload)
    star.connect(_meeting(asked), Way(asked.mtu, asked.timeout, asked.retries))
    return Incast(star, payload)


def _device(asked: argparse.Namespace, memory: int) -> Device:
    return Device(asked.device, os.environ["HPN_ADDRESS"], memory, 4 * asked.length)


def _meeting(asked: argparse.Namespace) -> Meeting:
    return Meeting(Path(os.environ["HPN_RENDEZVOUS"]), asked.patience_ms / 1e3)


def _run(work: Steps, begin_ns: int, until_ns: int, pause_s: float) -> None:
    time.sleep(max(0, begin_ns - time.monotonic_ns()) / 1e9)
    number = 0
    while True:
        begun_ns = time.monotonic_ns()
        judged = work.step(number, until_ns)
        ended_ns = time.monotonic_ns()
        if judged is None:
            return
        about = f"kind={work.kind} bytes={work.size} {judged}"
        print(f"hpn step {number} begin={begun_ns} end={ended_ns} {about}", flush=True)
        number += 1
        if pause_s:
            time.sleep(pause_s)


def _peer(told: str) -> Peer:
    return Peer(**json.loads(told))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
