"""Clear-to-send at both ends of a worker's connections, where receivers admit what is sent to them. PURE.

    receiver --grant: a small RDMA WRITE--> sender --as much of the message--> receiver

As NCCL does it: what a receive has a place for is granted by a write into the sender's memory, over a queue pair that
may lose it and then sends it again, like anything else. What is granted when is ``traffic.congestion.admission``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from hpn.traffic.collectives.rank import Post
from hpn.traffic.congestion.admission import AdmissionReceiver, AdmissionSender, Part, Place
from hpn.traffic.jobengine.sender import Words
from hpn.traffic.jobengine.setup import JobSetup
from hpn.traffic.transport.work import Completion

GRANT_BYTES = 64
"""Of a grant: NCCL's clear-to-send is of a cache line (``ncclIbSendFifo`` in src/transport/net_ib.cc). Its word is how
much of the message may be sent; the message's tag is its immediate, and where it is written to."""
_GRANT = -1  # number of the post of all grants

Ends = tuple[int, int]
"""Of a connection: the rank that sends its data, and the one that receives it."""


Hand = Callable[[int, int, int, Words, int, int], object]
"""Posts to a connection: number of the post, tag, how many bytes, their words, now, from which byte on."""


@dataclass(slots=True)
class _Leaving:
    """A message of a rank here that is not acknowledged whole."""

    number: int
    post: Post
    hand: Hand
    posted_ns: int
    acknowledged_bytes: int = 0


class Granting:
    """Of one worker. ``grants``: of each connection whose receiver is here, how a grant is posted."""

    def __init__(self, setup: JobSetup, grants: Mapping[Ends, Hand]) -> None:
        self._path_mtu = setup.transport.path_mtu
        self._grants = grants
        self._receivers = dict(_receivers(setup))
        self._senders = {program.rank: AdmissionSender() for program in setup.programs}
        self._by_tag: dict[tuple[int, int, int], _Leaving] = {}  # rank, peer, tag
        self._by_number: dict[int, _Leaving] = {}

    def wanted(self, rank: int, peer: int, tag: int, size_bytes: int, place: Place, now_ns: int) -> None:
        """A rank here has a place for a message; one from the same host needs no grant."""
        if (peer, rank) in self._grants:
            self._receivers[rank].expect(peer, tag, size_bytes, place)
            self._grant(rank, now_ns)

    def arrived(self, ends: Ends, tag: int, offset: int, size_bytes: int, now_ns: int) -> None:
        """Bytes of a message are in the memory of a rank here."""
        peer, rank = ends
        self._receivers[rank].on_received(peer, tag, offset, size_bytes)
        self._grant(rank, now_ns)

    def leave(self, number: int, rank: int, post: Post, hand: Hand, now_ns: int) -> None:
        """A rank here has a message to send; what of it has been granted leaves by ``hand``, the rest when it is."""
        leaving = _Leaving(number, post, hand, now_ns)
        self._by_tag[rank, post.peer, post.tag] = self._by_number[number] = leaving
        self._send(rank, self._senders[rank].post(post.peer, post.tag, post.size_bytes), now_ns)

    def granted(self, ends: Ends, tag: int, words: Words, now_ns: int) -> None:
        """A grant came for a rank here, perhaps not for the first time."""
        rank, peer = ends
        self._send(rank, self._senders[rank].on_grant(peer, tag, int(words[0])), now_ns)

    def acknowledged(self, number: int, completion: Completion) -> Completion | None:
        """A work request is complete; the message as if it were one, when this was the last of it."""
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
