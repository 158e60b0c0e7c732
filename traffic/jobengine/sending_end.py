"""Sending end of a queue pair, whatever its transport: congestion control, pacing and the content of messages. PURE."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from hpn.traffic.congestion.control import CongestionControl
from hpn.traffic.flows.framing import wire_bytes
from hpn.traffic.jobengine.egress import Waiting, run_bytes
from hpn.traffic.jobengine.rehash import Cause
from hpn.traffic.jobengine.setup import QueuePair, QueuePairReport
from hpn.traffic.multipath.sack import Sack
from hpn.traffic.streams.qp import QpState
from hpn.traffic.transport.postings import Postings
from hpn.traffic.transport.requester import Retry, Run
from hpn.traffic.transport.telemetry import Telemetry
from hpn.traffic.transport.work import Completion, Status, Transport, WorkRequest

Words = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Part:
    """Content of one work request: a message or a part of it. ``post`` identifies it to the rank that posted it."""

    post: int
    words: Words


Ended = list[tuple[Part, Completion]]
"""Work requests that ended, with their content."""


def earlier(one_ns: int | None, other_ns: int | None) -> int | None:
    """Return the earlier of two moments; None is never."""
    if one_ns is None or other_ns is None:
        return other_ns if one_ns is None else one_ns
    return min(one_ns, other_ns)


class Turn(Waiting, Protocol):
    """Sending end, or a share of one, that waits for its turn at a port of a NIC."""

    @property
    def owner(self) -> SendingEnd:
        """The sending end whose packets it takes."""


class SendingEnd(ABC):
    """Sending end of one queue pair."""

    requester: Postings

    def __init__(self, pair: QueuePair, transport: Transport, control: CongestionControl) -> None:
        self.pair = pair
        self.control = control
        self._paced_bps = control.rate_bps  # that ``next_ns`` of what it paces was worked out with
        self.died_at_ns: int | None = None
        self.cnps = 0  # congestion notifications handled
        self.leaves: Cause | None = None  # why it is to take another path; reset when handled
        self._path_mtu = transport.path_mtu
        self.packet_bytes = wire_bytes(transport.path_mtu)  # of a whole packet, Ethernet header included
        self._parts: dict[int, Part] = {}  # by work request
        self._requests = 0
        self._bytes_acknowledged = 0

    @property
    @abstractmethod
    def sendable(self) -> bool:
        """True if a packet may be sent now."""

    @abstractmethod
    def outlets(self) -> Sequence[tuple[int | None, Turn]]:
        """Return what waits at ports of the NIC, each with its port; None: the port of the queue pair."""

    @abstractmethod
    def deadline_ns(self) -> int | None:
        """Return when ``on_timer`` is due."""

    @abstractmethod
    def on_timer(self, now_ns: int) -> Ended:
        """Advance time."""

    @property
    def owner(self) -> SendingEnd:
        """This end, as what waits at a port names it."""
        return self

    @property
    def rate_bps(self) -> float:
        """Rate that congestion control allows, on the wire."""
        return self.control.rate_bps

    def post(self, part: Part, size_bytes: int, address: int, immediate: int | None, now_ns: int) -> None:
        """Post a work request. ValueError when the queue pair is not ready."""
        request = WorkRequest(self._requests, size_bytes, address, immediate)
        self.requester.post(request, now_ns)
        self._parts[request.id] = part
        self._requests += 1

    def probes(self) -> bool:
        """Return True, once, if a probe of the switches is to follow the packets just taken."""
        return False

    def paths_to_probe(self) -> Sequence[int]:
        """Return, once, the paths that are to be probed now."""
        return ()

    def words(self, run: Run) -> Words:
        """Return the words of a run's packets."""
        return self._parts[run.request.id].words[run.first : run.first + run.count]

    def on_ack(self, _psn24: int, _now_ns: int, becn: bool = False) -> Ended:
        """Ignore an acknowledgement of another transport."""
        return []

    def on_nak(self, _psn24: int, _now_ns: int) -> Ended:
        """Ignore a NAK of another transport."""
        return []

    def on_sack(self, _sack: Sack, _now_ns: int) -> Ended:
        """Ignore an acknowledgement of another transport."""
        return []

    def on_refused(self, why: Status, now_ns: int) -> Ended:
        """Handle a permanent refusal of a request by the other end."""
        return self._ended(self.requester.on_refused(why, now_ns), now_ns)

    def on_cnp(self, now_ns: int) -> None:
        """Handle a congestion notification: marked packets have reached the other end."""
        self.cnps += 1
        self.control.on_cnp(now_ns)
        self._pace(now_ns)

    def on_telemetry(self, telemetry: Telemetry, now_ns: int) -> None:
        """Handle the echo of a probe."""
        self.control.on_telemetry(telemetry.hops, now_ns - telemetry.sent_ns, now_ns)
        self._pace(now_ns)

    def close(self, now_ns: int) -> None:
        """Close for its owner: nothing is sent or retried any more."""
        self.requester.close(now_ns)
        self._parts.clear()

    def report(self) -> QueuePairReport:
        """Return the report of this queue pair."""
        counted = self.requester.counters
        return QueuePairReport(
            self.pair.flow.id, counted.packets, counted.packets_again, self._bytes_acknowledged, self.died_at_ns
        )

    def retries(self) -> Sequence[Retry]:
        """Return when it began to retransmit; empty if it takes many paths."""
        return ()

    def path_counters(self) -> Mapping[str, int]:
        """Return counters of its paths by name; empty if it takes one at a time."""
        return {}

    def _charge(self, runs: Sequence[Run], now_ns: int) -> int:
        """Count runs that leave now; return their bytes."""
        taken = 0
        for run in runs:
            bytes_ = run_bytes(run, self._path_mtu)
            self.control.on_sent(bytes_, now_ns)
            taken += bytes_
        return taken

    def _pace(self, now_ns: int) -> None:
        """Apply a rate change at once: the remaining wait at the old rate is scaled to the new one.

        Otherwise a queue pair at its minimum waits for its one packet although it may send a thousand times as fast.
        Adapters' token buckets do so, and simulators of DCQCN (High-Precision-Congestion-Control, rdma-hw.cc,
        ``ChangeRate``).
        """
        rate_bps, paced_bps = self.control.rate_bps, self._paced_bps
        if rate_bps != paced_bps:
            self._paced_bps = rate_bps
            for turn in self._paced():
                if turn.next_ns > now_ns:
                    turn.next_ns = now_ns + round((turn.next_ns - now_ns) * paced_bps / max(rate_bps, 1.0))

    @abstractmethod
    def _paced(self) -> Sequence[Turn]:
        """Return what keeps a pace: this end, or its shares."""

    def _ended(self, done: list[Completion], now_ns: int) -> Ended:
        if self.requester.state is QpState.ERROR and self.died_at_ns is None:
            self.died_at_ns = now_ns
        if not done:
            return []
        ended = [(self._parts.pop(each.request.id), each) for each in done]
        self._bytes_acknowledged += sum(e.request.size_bytes for _, e in ended if e.status is Status.SUCCESS)
        return ended
