"""Clear-to-send at both ends of a worker's connections, if receivers admit traffic. PURE.

    receiver --grant: a small RDMA WRITE--> sender --as much of the message--> receiver

NCCL does the same: a receive with a free buffer is granted by a write into the sender's memory. The queue pair
retransmits a lost grant like any other message. The order of grants is in ``traffic.congestion.admission``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from hpn.traffic.collectives.rank import Post
from hpn.traffic.congestion.admission import AdmissionReceiver, AdmissionSender, Part, Place
from hpn.traffic.jobengine.sending_end import Words
from hpn.traffic.jobengine.setup import JobSetup
from hpn.traffic.transport.work import Completion

GRANT_BYTES = 64
"""Size of a grant. NCCL's clear-to-send is one cache line (``ncclIbSendFifo`` in src/transport/net_ib.cc). Its word is
how much of the message may be sent. The message's tag is its immediate and its target address."""
_GRANT = -1  # number of the post of all grants

Ends = tuple[int, int]
"""Ends of a connection: the rank that sends its data, and the one that receives it."""


Hand = Callable[[int, int, int, Words, int, int], object]
"""Function that posts to a connection: number of the post, tag, bytes, their words, now, first byte."""


@dataclass(slots=True)
class _Leaving:
    """A message of a local rank that is not completely acknowledged."""

    number: int
    post: Post
    hand: Hand
    posted_ns: int
    acknowledged_bytes: int = 0


class Granting:
    """Grants of one worker. ``grants``: for each connection with a local receiver, the function that posts a grant."""

    def __init__(self, setup: JobSetup, grants: Mapping[Ends, Hand]) -> None:
        self._path_mtu = setup.transport.path_mtu
        self._grants = grants
        self._receivers = dict(_receivers(setup))
        self._senders = {program.rank: AdmissionSender() for program in setup.programs}
        self._by_tag: dict[tuple[int, int, int], _Leaving] = {}  # rank, peer, tag
        self._by_number: dict[int, _Leaving] = {}

    def wanted(self, rank: int, peer: int, tag: int, size_bytes: int, place: Place, now_ns: int) -> None:
        """Register a buffer of a local rank for a message; one from the same host needs no grant."""
        if (peer, rank) in self._grants:
            self._receivers[rank].expect(peer, tag, size_bytes, place)
            self._grant(rank, now_ns)

    def arrived(self, ends: Ends, tag: int, offset: int, size_bytes: int, now_ns: int) -> None:
        """Handle bytes of a message that are in the memory of a local rank."""
        peer, rank = ends
        self._receivers[rank].on_received(peer, tag, offset, size_bytes)
        self._grant(rank, now_ns)

    def leave(self, number: int, rank: int, post: Post, hand: Hand, now_ns: int) -> None:
        """Register a message of a local rank; granted parts leave by ``hand`` now, the rest when granted."""
        leaving = _Leaving(number, post, hand, now_ns)
        self._by_tag[rank, post.peer, post.tag] = self._by_number[number] = leaving
        self._send(rank, self._senders[rank].post(post.peer, post.tag, post.size_bytes), now_ns)

    def granted(self, ends: Ends, tag: int, words: Words, now_ns: int) -> None:
        """Handle a grant for a local rank, which may be a duplicate."""
        rank, peer = ends
        self._send(rank, self._senders[rank].on_grant(peer, tag, int(words[0])), now_ns)

    def acknowledged(self, number: int, completion: Completion) -> Completion | None:
        """Handle a completed work request; return the complete message as one request if this was its last part."""
        leaving = self._by_number.get(number)
        if leaving is None:
            return None
        leaving.acknowledged_bytes += completion.request.size_bytes
        if leaving.acknowledged_bytes < leaving.post.size_bytes:
            return None
        del self._by_number[number]
        whole = replace(completion.request, size_bytes=leaving.post.size_bytes)
        return replace(completion, request=whole, posted_ns=leaving.posted_ns)

    def _grant(self, rank: int, now_ns: int) -> None:
        receiver = self._receivers[rank]
        while (grant := receiver.next_grant()) is not None:
            words = np.array([grant.up_to], np.uint64)
            self._grants[grant.peer, rank](_GRANT, grant.tag, GRANT_BYTES, words, now_ns, 0)

    def _send(self, rank: int, part: Part | None, now_ns: int) -> None:
        if part is None:
            return
        leaving = self._by_tag[rank, part.peer, part.tag]
        post, stop = leaving.post, part.offset + part.size_bytes
        words = post.words[part.offset // self._path_mtu : -(-stop // self._path_mtu)]
        if stop == post.size_bytes:
            del self._by_tag[rank, part.peer, part.tag]
        leaving.hand(leaving.number, post.tag, part.size_bytes, words, now_ns, part.offset)


def _receivers(setup: JobSetup) -> Iterator[tuple[int, AdmissionReceiver]]:
    for program in setup.programs:
        receiver = setup.control.admission(setup.scale, setup.transport.path_mtu)
        if receiver is not None:
            yield program.rank, receiver
