"""A connection between two ranks: its queue pairs, and the choice of one for each message. PURE.

HPN's library sends each message by the queue pair with the fewest bytes outstanding (paper section 6.2). NCCL uses its
queue pairs in turn, or splits every message evenly over all of them (NCCL_IB_SPLIT_DATA_ON_QPS).

Port failover (NCCL_IB_RESILIENCY_PORT_FAILOVER, NCCL 2.30, off by default): the remaining queue pairs take over the
work of a failed one. NCCL first asks the receiver which data has arrived. Here everything unacknowledged is posted
again, and the receiver takes each byte once. The return of a failed queue pair is in
``traffic.transport.port_recovery``, standby in ``port_use``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hpn.traffic.jobengine.message_choice import MESSAGE_CHOICES, MessageChoice
from hpn.traffic.jobengine.port_use import PORT_USES, Lanes
from hpn.traffic.jobengine.sending_end import Part, SendingEnd, Words
from hpn.traffic.jobengine.setup import JobSetup, QueuePair
from hpn.traffic.streams.qp import QpState
from hpn.traffic.transport.work import WorkRequest

TAG_SHIFT = 32
"""Address layout: a message's address in the receiver's memory is tag << 32 | offset."""


@dataclass(frozen=True, slots=True)
class Slice:
    """Bytes ``offset`` .. ``offset + size_bytes`` of a message for the queue pair with that index."""

    queue_pair: int
    offset: int
    size_bytes: int


def slices(size_bytes: int, queue_pairs: int, path_mtu: int) -> list[Slice]:
    """Return a message in equal parts of complete packets, one per queue pair; the last may be shorter or missing."""
    packets = -(-size_bytes // path_mtu)
    each = -(-packets // queue_pairs) * path_mtu
    starts = range(0, size_bytes, each)
    return [Slice(i, at, min(each, size_bytes - at)) for i, at in enumerate(starts)]


class Connection:
    """The queue pairs from one rank to another by one NIC of the sender's host."""

    def __init__(
        self,
        senders: Sequence[SendingEnd],
        choice: MessageChoice,
        split: bool,
        path_mtu: int,
        lanes: Lanes,
        *,
        failover: bool,
    ) -> None:
        self.senders = tuple(senders)
        self._lanes = lanes
        self._choice = choice
        self._split = split
        self._path_mtu = path_mtu
        self._failover = failover
        self._messages = 0

    @property
    def usable(self) -> bool:
        """True if it has a usable queue pair; without failover, if all of them are usable."""
        ready = self._ready()
        return any(ready) if self._failover else all(ready)

    def take_over(self, part: Part, request: WorkRequest, now_ns: int) -> SendingEnd:
        """Post work that another of its queue pairs could not finish; return the queue pair that takes it over."""
        sender = min(self._live(), key=lambda each: each.requester.outstanding_bytes)
        sender.post(part, request.size_bytes, request.address, request.immediate, now_ns)
        return sender

    def restore(self, dead: SendingEnd, anew: SendingEnd) -> None:
        """Put a recovered queue pair in its old place."""
        self.senders = tuple(anew if each is dead else each for each in self.senders)

    def _ready(self) -> list[bool]:
        return [sender.requester.state is QpState.READY for sender in self.senders]

    def _live(self) -> list[SendingEnd]:
        """Return the queue pairs that carry messages now."""
        return [self.senders[index] for index in self._lanes.carrying(self._ready())]

    def post(self, post: int, tag: int, size_bytes: int, words: Words, now_ns: int, start: int) -> list[SendingEnd]:
        """Post a message, or that much of it from byte ``start`` on, to queue pairs; return those that got work.

        ``start`` is at the beginning of a packet, and ``words`` are those from there on. ValueError when it is not
        ``usable``.
        """
        used, live = [], self._live()
        for part in self._slices(size_bytes, live):
            sender = live[part.queue_pair]
            first = part.offset // self._path_mtu
            count = -(-part.size_bytes // self._path_mtu)
            address = tag << TAG_SHIFT | start + part.offset
            sender.post(Part(post, words[first : first + count]), part.size_bytes, address, tag, now_ns)
            used.append(sender)
        self._messages += 1
        return used

    def _slices(self, size_bytes: int, live: Sequence[SendingEnd]) -> list[Slice]:
        if self._split:
            return slices(size_bytes, len(live), self._path_mtu)
        outstanding = [sender.requester.outstanding_bytes for sender in live]
        return [Slice(self._choice.choose(outstanding, self._messages), 0, size_bytes)]


Key = tuple[int, int, int | None, bool]


def key(pair: QueuePair) -> Key:
    """Return the key of its connection: source, target, rail of the sending NIC, and True if it carries grants."""
    return pair.source, pair.target, pair.rail, pair.grants


def connections(setup: JobSetup, senders: Sequence[SendingEnd]) -> Mapping[Key, Connection]:
    """Return all connections of a worker."""
    of: dict[Key, list[SendingEnd]] = {}
    for sender in senders:
        of.setdefault(key(sender.pair), []).append(sender)
    choice, path_mtu = MESSAGE_CHOICES[setup.choice], setup.transport.path_mtu
    return {
        at: Connection(some, choice, setup.split, path_mtu, _lanes(setup, some[0].pair), failover=setup.failover)
        for at, some in of.items()
    }


def _lanes(setup: JobSetup, pair: QueuePair) -> Lanes:
    return Lanes(len(setup.port_rate_bps[pair.flow.src_nic]), PORT_USES[setup.port_use])
