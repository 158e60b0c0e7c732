"""Incast of the client ``verbs``: every rank but the first writes to the first, all at once, step after step.

The first rank answers each write with a short one when it has those of all. So no rank is a step ahead, and a memory
with one slot per rank loses no data.
"""

from __future__ import annotations

import json
import select
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from hpn.traffic.client.programs.libibverbs import Device, Done, Peer, QueuePair, Way
from hpn.traffic.client.programs.rendezvous import Meeting

_WORD = 8
_PSN_MASK = 0xFFFFFF
_MS = 1_000_000


class Star:
    """This rank's queue pairs: of the first rank one to each other, of another one to the first.

    ``ranks``: all of the incast, the receiver first. The memory has a slot for each peer, then the data sent.
    """

    def __init__(self, ranks: Sequence[int], rank: int, device: Device, payload: int) -> None:
        self.is_receiver = rank == ranks[0]
        self._rank, self._device, self._payload = rank, device, payload
        self._peers = list(ranks[1:] if self.is_receiver else ranks[:1])
        self._pairs = [device.queue_pair() for _ in self._peers]
        self._targets: list[Peer] = []
        self._begun = self._written = self._arrived = 0  # exchanges; writes
        self._poll = select.poll()
        self._poll.register(device.fileno(), select.POLLIN)

    def connect(self, meeting: Meeting, way: Way) -> None:
        """Exchange queue pair data with the peers, connect; then wait until all have."""
        for at, (peer, pair) in enumerate(zip(self._peers, self._pairs, strict=True)):
            meeting.tell(f"star-{self._rank}-{peer}", self._told(pair, at))
        self._targets = [Peer(**json.loads(meeting.hear(f"star-{peer}-{self._rank}"))) for peer in self._peers]
        for pair, target in zip(self._pairs, self._targets, strict=True):
            pair.connect(target, pair.number & _PSN_MASK, way)
            pair.expect()
        meeting.tell(f"connected-{self._rank}", "")
        for peer in self._peers:
            meeting.hear(f"connected-{peer}")

    def exchange(self, data: bytes, until_ns: int) -> Sequence[bytes] | None:
        """Send ``data`` and wait for the answer; as the receiver: wait for all, answer, return what came.

        None: the run is over. OSError if a queue pair failed.
        """
        number, each = self._begun, len(self._pairs)
        self._begun += 1
        if self.is_receiver:
            if not self._reached(each * number, each * (number + 1), until_ns):
                return None
            came = list(self._slots())
            self._write(bytes(_WORD), number)
        else:
            came = []
            self._write(data, number)
        return came if self._reached(each * (number + 1), each * (number + 1), until_ns) else None

    def _write(self, data: bytes, number: int) -> None:
        own = len(self._pairs) * self._payload
        self._device.view[own : own + len(data)] = data
        for pair, target in zip(self._pairs, self._targets, strict=True):
            pair.expect()
            pair.write(self._device.address + own, len(data), target.address, target.key, number & 0xFFFFFFFF)

    def _slots(self) -> Iterator[bytes]:
        for at in range(len(self._pairs)):
            yield bytes(self._device.view[at * self._payload : (at + 1) * self._payload])

    def _reached(self, written: int, arrived: int, until_ns: int) -> bool:
        """Wait for so many writes; return False at the end of the run."""
        while self._written < written or self._arrived < arrived:
            left_ms = (until_ns - time.monotonic_ns() + _MS - 1) // _MS
            if left_ms <= 0 or not self._poll.poll(left_ms):
                return False
            for done in self._device.completions():
                self._count(done)
        return True

    def _count(self, done: Done) -> None:
        if done.trouble:
            numbers = [pair.number for pair in self._pairs]
            raise OSError(
                f"queue pair {done.queue_pair} with rank {self._peers[numbers.index(done.queue_pair)]}: {done.trouble}"
            )
        if done.received:
            self._arrived += 1
        else:
            self._written += 1

    def _told(self, of: QueuePair, at: int) -> str:
        device, slot = self._device, at * self._payload
        peer = Peer(of.number, of.number & _PSN_MASK, device.gid, device.address + slot, device.key)
        return json.dumps(asdict(peer))


class Incast:
    """Step of an incast: one write of ``size`` bytes from every rank but the first."""

    kind = "incast"

    def __init__(self, star: Star, size: int) -> None:
        self._star, self.size = star, size

    def step(self, number: int, until_ns: int) -> str | None:
        """Do the step; return how many writes came with other data than was sent. None: the run is over."""
        data = (number.to_bytes(_WORD, "little") * (self.size // _WORD + 1))[: self.size]
        came = self._star.exchange(data, until_ns)
        return None if came is None else f"wrong={sum(each != data for each in came)}"
