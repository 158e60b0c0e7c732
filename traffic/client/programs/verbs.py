"""A rank of the client ``verbs``: a ring of real queue pairs in which every rank writes to the next, step after step.

A step of a rank is done when its own write is acknowledged and that of the rank before it has arrived; so nobody is
ever more than a round of the ring ahead, and a memory of as many slots as there are ranks loses nothing. What is
written is the step's number over and over; the checksum of what came must therefore be the same on all ranks.
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

from traffic.client.programs.libibverbs import Device, Done, Peer, QueuePair, Way
from traffic.client.programs.meeting import Meeting

_WORD = 8
_PSN_MASK = 0xFFFFFF
_MS = 1_000_000


class GaveUp(Exception):
    """Why this rank can do no more."""


@dataclass(frozen=True, slots=True)
class Place:
    """A rank and its neighbours in a ring of ``length``: it writes to the one ``after``, the one ``before`` to it."""

    rank: int
    before: int
    after: int
    length: int


class Ring:
    """This rank's device, its queue pair to the rank after it and the one from the rank before it."""

    def __init__(self, place: Place, device: Device, payload: int) -> None:
        self._place, self._device, self._payload = place, device, payload
        self._out, self._in = device.queue_pair(), device.queue_pair()
        self._written = self._arrived = 0  # steps
        self._poll = select.poll()
        self._poll.register(device.fileno(), select.POLLIN)

    def connect(self, meeting: Meeting, way: Way) -> None:
        """Tell both neighbours of the queue pairs here, hear of theirs, connect; then wait until both have."""
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

    def step(self, number: int, until_ns: int) -> str | None:
        """Write to the next and wait for what the one before writes; its checksum. None: the run is over."""
        slot, size = number % self._place.length, self._payload
        data = (number.to_bytes(_WORD, "little") * (size // _WORD + 1))[:size]
        own = self._place.length * size  # what is sent lies behind the slots
        self._device.view[own : own + size] = data
        at = self._target.address + slot * size
        self._out.write(self._device.address + own, size, at, self._target.key, number & 0xFFFFFFFF)
        while self._written <= number or self._arrived <= number:
            if not self._wait(until_ns):
                return None
        self._in.expect()
        return f"{zlib.crc32(self._device.view[slot * size : (slot + 1) * size]):08x}"

    def _wait(self, until_ns: int) -> bool:
        """Sleep until there are completions and count them; False at the end of the run. GaveUp when one failed."""
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
            raise GaveUp(f"step {done.immediate} of rank {self._place.before} came when {self._arrived} was due")

    def _told(self, of: QueuePair) -> str:
        device = self._device
        return json.dumps(asdict(Peer(of.number, of.number & _PSN_MASK, device.gid, device.address, device.key)))


def main(arguments: Sequence[str]) -> int:
    """Prepare, say so, and step until the run ends; 1 when a queue pair fails."""
    parser = argparse.ArgumentParser()
    for name in (*("before", "after", "length"), *("size", "mtu", "timeout", "retries", "pause-us", "patience-ms")):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--device", required=True)
    asked = parser.parse_args(arguments)
    place = Place(int(os.environ["HPN_RANK"]), asked.before, asked.after, asked.length)
    try:
        memory = (place.length + 1) * asked.size
        device = Device(asked.device, os.environ["HPN_ADDRESS"], memory, 4 * place.length)
        ring = Ring(place, device, asked.size)
        meeting = Meeting(Path(os.environ["HPN_RENDEZVOUS"]), asked.patience_ms / 1e3)
        ring.connect(meeting, Way(asked.mtu, asked.timeout, asked.retries))
        print("hpn ready", flush=True)
        _, begin, _, until = sys.stdin.readline().split()
        _run(ring, int(begin), int(until), asked.size, asked.pause_us / 1e6)
    except (GaveUp, OSError) as error:
        print(f"hpn error {error}", flush=True)
        return 1
    return 0


def _run(ring: Ring, begin_ns: int, until_ns: int, size: int, pause_s: float) -> None:
    time.sleep(max(0, begin_ns - time.monotonic_ns()) / 1e9)
    number = 0
    while True:
        begun_ns = time.monotonic_ns()
        came = ring.step(number, until_ns)
        ended_ns = time.monotonic_ns()
        if came is None:
            return
        print(f"hpn step {number} begin={begun_ns} end={ended_ns} kind=write bytes={size} sum={came}", flush=True)
        number += 1
        if pause_s:
            time.sleep(pause_s)


def _peer(told: str) -> Peer:
    return Peer(**json.loads(told))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
