"""Retry timers of a requester: how long it waits for each acknowledgement, and when it gives up. PURE.

A queue pair is connected with an exponent, ``timeout`` (NCCL_IB_TIMEOUT; 1 to 31, 4.096 us x 2^timeout), and a retry
count. The kind of timer decides how an adapter uses both.
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
    """Retry timer: the waits of a requester without progress, and its number of retries."""

    @abstractmethod
    def wait_ns(self, tries: int) -> int:
        """Return the wait (ns) until the next expiry, after ``tries`` expiries since the last progress."""

    @abstractmethod
    def retries(self, retry_count: int) -> int:
        """Return the number of expiries that lead to a retry; the next one is the queue pair's error."""

    @abstractmethod
    def scaled(self, factor: float) -> RetryTimer:
        """Return the timer for links at ``factor`` of their rate (0.001: a thousandth): all waits divided by it."""

    def patience_ns(self, retry_count: int) -> int:
        """Return the time (ns) from the last progress to the error: the sum of all waits."""
        return sum(self.wait_ns(tries) for tries in range(self.retries(retry_count) + 1))


@dataclass(frozen=True, slots=True)
class ConstantTimer(RetryTimer):
    """Retry timer ``ib``: the same wait each time, ``retry_count`` retries. IBTA vol. 1, 9.7.6.1.3 and 9.9.2.1.1.

    The standard lets an adapter wait up to four times as long; this one waits exactly the configured time.
    """

    each_ns: int

    def wait_ns(self, tries: int) -> int:
        """Return the same wait for any number of expiries."""
        return self.each_ns

    def retries(self, retry_count: int) -> int:
        """Return ``retry_count``."""
        return retry_count

    def scaled(self, factor: float) -> ConstantTimer:
        """Return the timer for links at ``factor`` of their rate."""
        return ConstantTimer(round(self.each_ns / factor))


@dataclass(frozen=True, slots=True)
class AdaptiveTimer(RetryTimer):
    """Retry timer ``adaptive``: a short first wait that doubles up to ``most_ns``, for ``most_ns`` x retry count in
    all.

    ConnectX adapters do so with ``roce_adp_retrans_en``: linux-rdma/perftest#251 saw retries after 2, 4, 8, 16 ms at
    any timeout setting. NVIDIA's "Adaptive Retransmission: Parameters Control" (2025) has the rest. Waits double, and
    none is longer than the queue pair's ack timeout. The queue pair fails after ack timeout x retry count without
    progress. That is checked when a wait is over, so the first expiry after it is the error. The random part of the
    first wait, which keeps queue pairs out of step, is left out to make runs repeatable.
    """

    first_ns: int
    most_ns: int

    def wait_ns(self, tries: int) -> int:
        """Return twice the previous wait; at most ``most_ns``."""
        return min(self.first_ns << tries, self.most_ns)

    def retries(self, retry_count: int) -> int:
        """Return the number of expiries before ``most_ns`` x ``retry_count`` have passed."""
        total = self.most_ns * retry_count
        return next(tries for tries, ns in enumerate(accumulate(map(self.wait_ns, count()))) if ns >= total)

    def scaled(self, factor: float) -> AdaptiveTimer:
        """Return the timer for links at ``factor`` of their rate."""
        return AdaptiveTimer(round(self.first_ns / factor), round(self.most_ns / factor))


@dataclass(frozen=True, slots=True)
class TimerKind:
    """Registry entry of a retry timer: user-visible name, summary, and factory from the exponent ``timeout``."""

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
"""Retry timers, by their name in a drill."""
