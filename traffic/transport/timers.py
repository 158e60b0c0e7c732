"""Retry timers of a requester: how long it waits for each acknowledgement, and when it gives up. PURE.

A queue pair is connected with an exponent, ``timeout`` (NCCL_IB_TIMEOUT; 1 to 31, 4.096 us x 2^timeout), and a retry
count. What an adapter makes of both is its timer's kind.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate, count

from hpn.testbed.entries import Registry

_UNIT_NS = 4096  # IBTA vol. 1, 9.7.6.1.3
_FIRST_ADAPTIVE_NS = 2_000_000


class RetryTimer(ABC):
    """When a requester without progress tries again, and how often before it gives up."""

    @abstractmethod
    def wait_ns(self, tries: int) -> int:
        """Nanoseconds until the timer expires that has expired ``tries`` times since the last progress."""

    @abstractmethod
    def retries(self, retry_count: int) -> int:
        """How many expiries lead to another try; the next one is the queue pair's error."""

    @abstractmethod
    def scaled(self, factor: float) -> RetryTimer:
        """The timer of links that run at ``factor`` of their rate (0.001: a thousandth): all waits divided by it."""

    def patience_ns(self, retry_count: int) -> int:
        """Nanoseconds from the last progress to the error: all waits together."""
        return sum(self.wait_ns(tries) for tries in range(self.retries(retry_count) + 1))


@dataclass(frozen=True, slots=True)
class ConstantTimer(RetryTimer):
    """``ib``: the same wait each time, ``retry_count`` retries. IBTA vol. 1, 9.7.6.1.3 and 9.9.2.1.1.

    The standard lets an adapter wait up to four times as long; this one waits exactly as told.
    """

    each_ns: int

    def wait_ns(self, tries: int) -> int:
        """The same, however often it has expired."""
        return self.each_ns

    def retries(self, retry_count: int) -> int:
        """As told."""
        return retry_count

    def scaled(self, factor: float) -> ConstantTimer:
        """As the base says."""
        return ConstantTimer(round(self.each_ns / factor))


@dataclass(frozen=True, slots=True)
class AdaptiveTimer(RetryTimer):
    """``adaptive``: a short first wait that doubles up to ``most_ns``, for ``most_ns`` x retry count in all.

    As ConnectX adapters do with ``roce_adp_retrans_en``: linux-rdma/perftest#251 saw retries after
    2, 4, 8, 16 ms whatever timeout was set; NVIDIA's "Adaptive Retransmission: Parameters Control" (2025) has the rest:
    waits double, none is longer than the queue pair's ack timeout, and the queue pair fails when it saw no progress
    for ack timeout x retry count. That is looked at when a wait is over, so here the first expiry from then on is it.
    The random part of the first wait, which keeps queue pairs from trying in step, is left out: runs repeat.
    """

    first_ns: int
    most_ns: int

    def wait_ns(self, tries: int) -> int:
        """Twice as long each time; at most ``most_ns``."""
        return min(self.first_ns << tries, self.most_ns)

    def retries(self, retry_count: int) -> int:
        """As many as there are expiries before ``most_ns`` x ``retry_count`` have passed."""
        total = self.most_ns * retry_count
        return next(tries for tries, ns in enumerate(accumulate(map(self.wait_ns, count()))) if ns >= total)

    def scaled(self, factor: float) -> AdaptiveTimer:
        """As the base says."""
        return AdaptiveTimer(round(self.first_ns / factor), round(self.most_ns / factor))


@dataclass(frozen=True, slots=True)
class TimerKind:
    """An entry of the registry: what users write, what it is, and how it is made from the exponent ``timeout``."""

    name: str
    summary: str
    make: Callable[[int], RetryTimer]


def _constant(timeout: int) -> RetryTimer:
    return ConstantTimer(_UNIT_NS << timeout)


def _adaptive(timeout: int) -> RetryTimer:
    return AdaptiveTimer(_FIRST_ADAPTIVE_NS, _UNIT_NS << timeout)


RETRY_TIMERS: Registry[TimerKind] = Registry(
    "retry timer",
    lambda kind: kind.name,
    (
        TimerKind("ib", "4.096 us x 2^timeout each time, as the standard has it", _constant),
        TimerKind("adaptive", "2, 4, 8, 16 ms, ... up to 4.096 us x 2^timeout, as real adapters do", _adaptive),
    ),
    of=TimerKind,
)
"""Retry timers by the name that a drill gives them."""
