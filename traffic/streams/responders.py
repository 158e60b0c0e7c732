"""The responders of a worker: their sockets, and the acknowledgements they send."""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Mapping, Sequence

from hpn.testbed.events import now_ns
from hpn.testbed.kernel.ns import NetNs
from hpn.traffic.flows.flow import ROCE_PORT, FlowSpec
from hpn.traffic.io.sockets import open_sender
from hpn.traffic.streams import wire
from hpn.traffic.streams.qp import AckPolicy, Reply, Responder


class Responders:
    """The receiving ends of ``flows`` (local indexes). A lost acknowledgement is harmless: the next one covers it."""

    def __init__(self, flows: Sequence[FlowSpec], namespaces: Mapping[str, NetNs], policy: AckPolicy) -> None:
        self.errors: Counter[str] = Counter()
        self.acks_sent = 0
        self._flows = tuple(flows)
        self._namespaces = namespaces
        self._responders = [Responder(policy) for _ in flows]
        self._waiting: set[int] = set()
        self._sports = [f.ack_sport for f in flows]
        self._sockets = [open_sender(namespaces[f.dst_nic], f.dst_ip, f.ack_sport) for f in flows]

    def on_data(self, flow: int, lowest: int, highest: int, count: int, at_ns: int) -> None:
        """Handle packets of ``flow``: send the replies that are due, and remember that an acknowledgement is owed."""
        for reply in self._responders[flow].on_data(lowest, highest, count, at_ns):
            self._send(flow, reply)
        self._waiting.add(flow)

    def tick(self, next_ns: int) -> None:
        """Send the acknowledgements whose delay will be over at the next call, at ``next_ns``."""
        for flow in tuple(self._waiting):
            responder = self._responders[flow]
            reply = responder.on_timer(next_ns)
            if reply is not None:
                self._send(flow, reply)
            if not responder.waiting:
                self._waiting.discard(flow)

    def _send(self, flow: int, reply: Reply) -> None:
        spec = self._flows[flow]
        syndrome = wire.SYNDROME_NAK_PSN if reply.nak else wire.SYNDROME_ACK
        payload = wire.pack_ack(spec.dst_ip, spec.src_ip, self._sports[flow], spec.id, reply.psn, syndrome)
        try:
            self._sockets[flow].sendto(payload, (spec.src_ip, ROCE_PORT))
        except OSError as error:
            self.errors[errno.errorcode.get(error.errno or 0, str(error.errno))] += 1
        else:
            self.acks_sent += 1

    def move(self, flow: int, sport: int) -> int:
        """Acknowledge ``flow`` from another source port from now on; return the time of the change. OSError."""
        spec = self._flows[flow]
        old = self._sockets[flow]
        self._sockets[flow] = open_sender(self._namespaces[spec.dst_nic], spec.dst_ip, sport)
        self._sports[flow] = sport
        at = now_ns()
        old.close()
        return at

    def close(self) -> None:
        """Close every socket."""
        for sock in self._sockets:
            sock.close()
