"""Work requests of a sending end, from their post to their completion in order. PURE: time is an argument (ns)."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from dataclasses import dataclass
from operator import attrgetter

from hpn.traffic.streams.qp import QpState
from hpn.traffic.transport.counters import RequesterCounters
from hpn.traffic.transport.work import Completion, Status, Transport, WorkRequest


@dataclass(frozen=True, slots=True)
class Message:
    """A posted work request and its absolute PSNs, the last one excluded."""

    request: WorkRequest
    start: int
    stop: int
    posted_ns: int


_MESSAGE_START = attrgetter("start")


class Postings:
    """Work requests of a queue pair, and the packets that they are made of. All PSNs are absolute."""

    def __init__(self, transport: Transport, first_psn: int = 0) -> None:
        self._transport = transport
        self.state = QpState.READY
        self.outstanding_bytes = 0  # posted and not completed
        self._messages: deque[Message] = deque()  # posted and not completed
        self._acknowledged = self._sent = self._posted = first_psn  # all below are acknowledged, sent, posted
        self._packets = self._packets_again = self._timeouts = self._naks = 0
        self._ended = dict.fromkeys(Status, 0)

    @property
    def counters(self) -> RequesterCounters:
        """Counters so far."""
        exceeded, invalid = self._ended[Status.RETRY_EXCEEDED], self._ended[Status.INVALID_REQUEST]
        flushed = self._ended[Status.FLUSHED]
        return RequesterCounters(
            packets=self._packets,
            packets_again=self._packets_again,
            local_ack_timeout_err=self._timeouts,
            packet_seq_err=self._naks,
            req_transport_retries_exceeded=exceeded,
            req_remote_invalid_request=invalid,
            req_cqe_error=sum(self._ended.values()) - self._ended[Status.SUCCESS],
            req_cqe_flush_error=flushed,
        )

    def progress(self) -> int:
        """Return the absolute PSN below which everything is acknowledged."""
        return self._acknowledged

    def post(self, request: WorkRequest, now_ns: int) -> None:
        """Post a work request. ValueError when the queue pair is not ready, as its owner was informed before."""
        if self.state is not QpState.READY:
            raise ValueError(f"work request {request.id} posted to a queue pair in state {self.state}")
        start = self._posted
        self._posted += self._transport.packets(request.size_bytes)
        self._messages.append(Message(request, start, self._posted, now_ns))
        self.outstanding_bytes += request.size_bytes

    def on_refused(self, why: Status, now_ns: int) -> list[Completion]:
        """Handle a permanent refusal of a request: the queue pair errors, nothing is retried."""
        return self._fail(why, now_ns)

    def close(self, now_ns: int) -> list[Completion]:
        """Close the queue pair for its owner: everything outstanding is flushed. An error state stays."""
        if self.state is not QpState.READY:
            return []
        self.state = QpState.CLOSED
        return self._end(Status.FLUSHED, now_ns)

    def _limit(self) -> int:
        """Return the PSN before which everything may be sent."""
        return min(self._posted, self._acknowledged + self._transport.window_packets)

    def _message_of(self, psn: int) -> Message:
        """Return the message that a packet belongs to."""
        return self._messages[bisect_right(self._messages, psn, key=_MESSAGE_START) - 1]

    def _completed(self, now_ns: int) -> list[Completion]:
        """Return the completions of all messages that are acknowledged to their last packet."""
        completions = []
        while self._messages and self._messages[0].stop <= self._acknowledged:
            completions.append(self._complete(Status.SUCCESS, now_ns))
        return completions

    def _fail(self, status: Status, now_ns: int) -> list[Completion]:
        if self.state is not QpState.READY:
            return []
        self.state = QpState.ERROR
        return self._end(status, now_ns)

    def _end(self, status: Status, now_ns: int) -> list[Completion]:
        """End all sending; the oldest work request ends with ``status``, all others are flushed."""
        completions = []
        while self._messages:
            completions.append(self._complete(status, now_ns))
            status = Status.FLUSHED
        self._posted = self._sent
        return completions

    def _complete(self, status: Status, now_ns: int) -> Completion:
        message = self._messages.popleft()
        self._ended[status] += 1
        self.outstanding_bytes -= message.request.size_bytes
        return Completion(message.request, status, message.posted_ns, now_ns)
