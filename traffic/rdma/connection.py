"""A connection between two ranks: its queue pairs, and which of them a message goes to. PURE.

HPN's library sends each message by the queue pair with the fewest bytes outstanding (paper section 6.2); NCCL goes
round its queue pairs, or cuts every message in equal parts over all of them (NCCL_IB_SPLIT_DATA_ON_QPS).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from traffic.rdma.choices import MessageChoice
from traffic.rdma.sender import Part, Sender, Words

TAG_SHIFT = 32
"""A message lies at its tag in the receiver's memory: address = tag << 32 | offset."""


@dataclass(frozen=True, slots=True)
class Slice:
    """Bytes ``offset`` .. ``offset + size_bytes`` of a message for the queue pair with that index."""

    queue_pair: int
    offset: int
    size_bytes: int


def slices(size_bytes: int, queue_pairs: int, path_mtu: int) -> list[Slice]:
    """A message in equal parts of whole packets, one for each queue pair; the last ones may be shorter or missing."""
    packets = -(-size_bytes // path_mtu)
    each = -(-packets // queue_pairs) * path_mtu
    starts = range(0, size_bytes, each)
    return [Slice(i, at, min(each, size_bytes - at)) for i, at in enumerate(starts)]


class Connection:
    """The queue pairs from one rank to another by one NIC of the sender's host."""

    def __init__(self, senders: Sequence[Sender], choice: MessageChoice, split: bool, path_mtu: int) -> None:
        self.senders = tuple(senders)
        self._choice = choice
        self._split = split
        self._path_mtu = path_mtu
        self._messages = 0

    def post(self, post: int, tag: int, size_bytes: int, words: Words, now_ns: int) -> list[Sender]:
        """Hand a message to queue pairs; those that have work by it. ValueError when one of them is dead."""
        used = []
        for part in self._slices(size_bytes):
            sender = self.senders[part.queue_pair]
            first = part.offset // self._path_mtu
            count = -(-part.size_bytes // self._path_mtu)
            address = tag << TAG_SHIFT | part.offset
            sender.post(Part(post, words[first : first + count]), part.size_bytes, address, tag, now_ns)
            used.append(sender)
        self._messages += 1
        return used

    def _slices(self, size_bytes: int) -> list[Slice]:
        if self._split:
            return slices(size_bytes, len(self.senders), self._path_mtu)
        outstanding = [sender.requester.outstanding_bytes for sender in self.senders]
        return [Slice(self._choice.choose(outstanding, self._messages), 0, size_bytes)]
