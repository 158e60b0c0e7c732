"""Messages between the engine and its workers, and the final report of a run. No numpy here.

Messages are pickled dataclasses with a length prefix. Both ends are this module in one Python, joined by a private
socket pair. So types survive, and there is no codec to keep in step.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from hpn.traffic.flows.flow import FlowSpec


class Message:
    """A message between an engine and its workers."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class NicSpec:
    """A NIC that a worker owns: it sends that NIC's data and receives everything addressed to it."""

    name: str
    ip: str
    namespace_fd: int


@dataclass(frozen=True, slots=True)
class Assignment(Message):
    """Settings that every worker needs, whatever it carries: its number, record folder and NICs."""

    index: int
    out: str
    nics: tuple[NicSpec, ...]


@dataclass(frozen=True, slots=True)
class Setup(Assignment):
    """Settings of a worker of streams; the first message it receives."""

    senders: tuple[FlowSpec, ...]  # flows whose requester is here
    receivers: tuple[FlowSpec, ...]  # flows whose responder is here
    tick_ns: int
    offset_ns: int  # of the tick against the other workers'
    ack_packets: int
    ack_delay_ns: int
    realtime: bool
    keeps_records: bool = True  # False: packets are only counted
    tells_highest: bool = False  # its progress has ``highest`` and ``drops``
    clock_stands: bool = False  # while a worker computes: what it sends in a tick leaves at one time


@dataclass(frozen=True, slots=True)
class SendReport:
    """Report of the requester of one flow, over the whole run."""

    flow: int
    sent: int  # packets; sequence numbers 0 .. sent - 1
    bursts: int
    acknowledged: int
    naks: int
    timeouts: int  # retry timer expiries
    slips: int  # packets given up because the sender was late by more than the catch-up limit
    send_gap_max_ns: int  # largest time between two bursts
    send_gap_p99_ns: int
    send_errors: Mapping[str, int]  # refused system calls by errno name; their packets count as sent, except EAGAIN's


@dataclass(frozen=True, slots=True)
class WorkerReport(Message):
    """Report of one worker. ``socket_drops`` and ``slips`` are caused by the machine, not by the fabric."""

    index: int
    senders: tuple[SendReport, ...]
    received: Mapping[int, int]  # flow to packets recorded unharmed, duplicates included
    socket_drops: int  # datagrams the kernel dropped because the worker did not read in time
    icrc_bad: int
    foreign: int  # packets for the RoCE port that were not ours, or came after their queue pair was closed
    acks_sent: int
    errors: Mapping[str, int]  # refused acknowledgements and receive errors by name
    receive_buffer_bytes: int
    realtime: bool
    late_ticks: int  # ticks missed because the one before took too long
    cpu_s: float


@dataclass(frozen=True, slots=True)
class TrafficReport:
    """The run as the engine saw it. Losses are counted from the record files, not here."""

    workers: tuple[WorkerReport, ...]
    softnet_drops: int  # packets the whole machine dropped between two interfaces meanwhile (/proc/net/softnet_stat)
    sent_files: tuple[str, ...]
    received_files: tuple[str, ...]

    @property
    def files(self) -> tuple[str, ...]:
        """Record files."""
        return (*self.sent_files, *self.received_files)

    @property
    def machine_drops(self) -> int:
        """Packets lost by this machine, not by the fabric."""
        return self.softnet_drops + sum(w.socket_drops for w in self.workers)

    @property
    def senders(self) -> Mapping[int, SendReport]:
        """Reports of the sending ends, by flow id."""
        return {s.flow: s for w in self.workers for s in w.senders}


@dataclass(frozen=True, slots=True)
class Progress(Message):
    """Progress of a run: packets of each flow so far. Multiply by the path MTU for payload bytes.

    ``highest``: the highest sequence number received intact, by flow, -1 if none was: what is missing below it is lost.
    ``drops``: datagrams that the worker did not read in time.
    """

    at_ns: int
    sent: Mapping[int, int] = field(default_factory=dict)
    received: Mapping[int, int] = field(default_factory=dict)
    highest: Mapping[int, int] = field(default_factory=dict)
    drops: int = 0


# Engine to worker (after Setup)


@dataclass(frozen=True, slots=True)
class Begin(Message):
    """Start sending at ``at_ns``."""

    at_ns: int


@dataclass(frozen=True, slots=True)
class Move:
    """Send one flow's data (or, with ``ack``, its acknowledgements) from another source port. Part of ``Moves``."""

    flow: int
    sport: int
    ack: bool


@dataclass(frozen=True, slots=True)
class Moves(Message):
    """Execute these one after the other; answer all of them in one ``MovedAll``, in the same order."""

    moves: tuple[Move, ...]


@dataclass(frozen=True, slots=True)
class Replace(Message):
    """Close the queue pairs of ``closes`` and start those of ``starts`` (replacement flows); answer Replaced."""

    closes: tuple[int, ...]
    starts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Stop(Message):
    """Send no more data; answer Stopped."""


@dataclass(frozen=True, slots=True)
class Finish(Message):
    """Receive until ``quiet_ns`` without packets, for at most ``limit_ns``; write all; answer Report; exit."""

    quiet_ns: int
    limit_ns: int


# Worker to engine


@dataclass(frozen=True, slots=True)
class Ready(Message):
    """Report that all sockets are bound."""

    index: int
    realtime: bool
    receive_buffer_bytes: int


@dataclass(frozen=True, slots=True)
class Moved:
    """Result of a Move: its time, or why it was refused (the flow then continues unchanged). Part of ``MovedAll``."""

    flow: int
    ack: bool
    at_ns: int
    refused: str = ""


@dataclass(frozen=True, slots=True)
class MovedAll(Message):
    """The answer to Moves."""

    moved: tuple[Moved, ...]


@dataclass(frozen=True, slots=True)
class Replaced(Message):
    """The answer to Replace."""


@dataclass(frozen=True, slots=True)
class QpError(Message):
    """Error of a queue pair whose retries are used up."""

    flow: int
    at_ns: int
    psn: int  # the first one not acknowledged
    outstanding: int


@dataclass(frozen=True, slots=True)
class Stopped(Message):
    """Report that the last data packet has left."""


@dataclass(frozen=True, slots=True)
class Failed(Message):
    """Failure of a worker because of this machine, with the reason."""

    why: str


_LENGTH = struct.Struct("=I")


def encode(message: Message) -> bytes:
    """Encode one message as bytes for the other end."""
    body = pickle.dumps(message)
    return _LENGTH.pack(len(body)) + body


class Decoder:
    """Decoder of a byte stream into messages."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Message]:
        """Yield the messages that ``data`` completes."""
        self._rest += data
        while len(self._rest) >= _LENGTH.size:
            end = _LENGTH.size + _LENGTH.unpack_from(self._rest)[0]
            if len(self._rest) < end:
                return
            message: Message = pickle.loads(self._rest[_LENGTH.size : end])
            self._rest = self._rest[end:]
            yield message
