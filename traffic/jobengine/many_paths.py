"""Opened paths of a worker's multipath queue pairs, and what leaves by them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hpn.traffic.flows.framing import AETH_BYTES, BTH_BYTES, ETHERNET_BYTES, ICRC_BYTES, IP_UDP_BYTES, RETH_BYTES
from hpn.traffic.jobengine.envelopes import data_envelope, reply_envelope
from hpn.traffic.jobengine.sending_end import Words
from hpn.traffic.jobengine.setup import QueuePair
from hpn.traffic.multipath.sack import Sack, pack_sack
from hpn.traffic.multipath.settings import EntropyValue
from hpn.traffic.streams.wire import PSN_MASK
from hpn.traffic.transport.outgoing import Outgoing
from hpn.traffic.transport.packets import Envelope
from hpn.traffic.transport.requester import Run

_HEADERS = ETHERNET_BYTES + IP_UDP_BYTES + BTH_BYTES + ICRC_BYTES
PATH_PROBE_WIRE_BYTES = _HEADERS + RETH_BYTES

Key = tuple[int, bool]
"""Flow, and True for acknowledgements."""


class ManyPaths:
    """Paths by flow and direction, in the order of its entropy values.

    ``fd_of``: raw socket of a NIC whose packets have a mark.
    """

    def __init__(self, outgoing: Outgoing, fd_of: Callable[[str, int], int], ack_every: int) -> None:
        self._outgoing = outgoing
        self._fd_of = fd_of
        self._ack_every = ack_every
        self._opened: dict[Key, tuple[Sequence[int], Sequence[int]]] = {}  # sockets, and the paths through them
        self._values: dict[Key, Sequence[EntropyValue]] = {}

    def lead(self, pair: QueuePair, values: Sequence[EntropyValue], life: int, *, ack: bool) -> None:
        """Use these values for a queue pair's data, or for its acknowledgements, from now on."""
        key, nic = (pair.flow.id, ack), pair.flow.dst_nic if ack else pair.flow.src_nic
        envelope_of = reply_envelope if ack else data_envelope
        if [value._replace(port=0) for value in self._values.get(key, ())] != [
            value._replace(port=0) for value in values
        ]:
            envelopes = [envelope_of(pair, value.sport, life, value.via) for value in values]
            self._open(key, [self._fd_of(nic, value.mark) for value in values], envelopes)
        self._values[key] = values

    def renew(self, pair: QueuePair, life: int, *, ack: bool) -> None:
        """Send to the queue pair of a new incarnation of the job, if its paths are known."""
        key = (pair.flow.id, ack)
        if key in self._values:
            values = self._values.pop(key)
            self.lead(pair, values, life, ack=ack)

    def paths(self, flow: int) -> Sequence[int]:
        """Return the paths of a flow's data."""
        return self._opened[flow, False][1]

    def port(self, flow: int, path: int) -> int:
        """Return the port of its NIC by which a path of a flow's data leaves."""
        return self._values[flow, False][path].port

    def data(self, flow: int, run: Run, words: Words, now_ns: int, has_room: Callable[[int], bool]) -> None:
        """Send a run whose packets take several paths; ``has_room``: True if any more may be added."""
        opened, at = self.paths(flow), 0
        while at < run.count and has_room(run.count - at):
            stop = min(run.count, at + self._outgoing.room)
            taken = [opened[path] for path in run.paths[at:stop]]
            self._outgoing.add_many(taken, run.part(at, stop), words[at:stop], now_ns)
            at = stop

    def sack(self, flow: int, path: int, sack: Sack, msn: int) -> int:
        """Send an acknowledgement; return its bytes on the wire."""
        payload = pack_sack(sack)
        self._outgoing.add_sack(self.replies(flow)[path], sack.psn & PSN_MASK, msn & PSN_MASK, payload)
        return _HEADERS + AETH_BYTES + len(payload)

    def replies(self, flow: int) -> Sequence[int]:
        """Return the paths of a flow's acknowledgements; empty if it has one alone."""
        return self._opened.get((flow, True), ((), ()))[1]

    def _open(self, key: Key, fds: Sequence[int], envelopes: Sequence[Envelope]) -> None:
        before, opened = self._opened.get(key, (fds, ()))
        if before == fds and opened:
            for path, envelope in zip(opened, envelopes, strict=True):
                self._outgoing.move_path(path, envelope)
        else:
            pairs = zip(fds, envelopes, strict=True)
            opened = [self._outgoing.open_path(fd, envelope, self._ack_every) for fd, envelope in pairs]
        self._opened[key] = (fds, opened)
