"""Receiving sockets of a worker's NICs: what arrives, batch by batch, and what was not for it.

Changes when packet input of a job changes.
"""

from __future__ import annotations

import select
import socket
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from hpn.testbed.kernel.ns import NetNs
from hpn.traffic.io.recvmmsg import Batch, BatchReceiver
from hpn.traffic.io.ringmsg import RingReceiver
from hpn.traffic.io.sockets import drops, open_receiver
from hpn.traffic.io.uring import Ring
from hpn.traffic.transport.arrivals import Arrivals
from hpn.traffic.transport.incoming import FrameReader
from hpn.traffic.workers.messages import NicSpec

_BATCH = 1024
_FEW_NICS = 16
"""Up to this many NICs all are polled at every tick; above, only the ready ones, at the cost of one system call."""


class NicInputs:
    """A UDP socket for each NIC. OSError when a socket is not available.

    ``packets`` counts all that arrived: ``damaged`` ones have a wrong ICRC, ``foreign`` ones no queue pair here.
    """

    def __init__(
        self, nics: Sequence[NicSpec], namespaces: Mapping[str, NetNs], reader: FrameReader, ring: Ring | None
    ) -> None:
        """Open all NICs; with a ``ring`` one system call serves all of them."""
        self.errors: Counter[str] = Counter()
        self.packets = self.damaged = self.foreign = 0
        self._reader = reader
        self._batch = BatchReceiver(_BATCH, reader.row_bytes, tos=True, ip=reader.ip)
        self._sockets: dict[int, tuple[socket.socket, int]] = {}
        self._poll = select.epoll()
        for index, nic in enumerate(nics):
            sock = open_receiver(namespaces[nic.name], nic.ip, tos=True)
            self._sockets[sock.fileno()] = (sock, index)
            self._poll.register(sock.fileno(), select.EPOLLIN)
        self._all_at_once: RingReceiver | None = None
        if ring is not None and len(nics) <= _FEW_NICS:
            self._all_at_once = RingReceiver(ring, self._batch, list(self._sockets), self.errors)

    def arrivals(self) -> Iterator[Arrivals]:
        """Yield everything that has arrived at any NIC, batch by batch."""
        if self._all_at_once is None:
            yield from self._one_by_one()
            return
        more = True
        while more:
            batch, more = self._all_at_once.receive()
            if batch is not None:
                yield self._read(batch)

    def _one_by_one(self) -> Iterator[Arrivals]:
        for fd, _ in self._poll.poll(0):
            sock, index = self._sockets[fd]
            taken = _BATCH
            while taken == _BATCH:
                try:
                    taken = self._batch.receive(sock.fileno(), index)
                except OSError as error:
                    self.errors[str(error.strerror)] += 1
                    break
                if self._batch.room == 0:
                    yield from self._take()
        yield from self._take()

    def _take(self) -> Iterator[Arrivals]:
        batch = self._batch.take()
        if batch is not None:
            yield self._read(batch)

    def _read(self, batch: Batch) -> Arrivals:
        found = self._reader.read(batch)
        self.packets += len(batch.lengths)
        self.damaged += found.damaged
        self.foreign += found.foreign
        return found

    def fileno(self) -> int:
        """Return a descriptor that is readable when something has arrived at any NIC."""
        return self._poll.fileno()

    def drops(self) -> int:
        """Return the number of datagrams lost because this worker did not read in time."""
        return sum(drops(sock) for sock, _ in self._sockets.values())

    def close(self) -> None:
        """Close every socket."""
        self._poll.close()
        for sock, _ in self._sockets.values():
            sock.close()
