"""Sampler of the counters and queues of ports through a run, in the supervisor's event loop.

Changes when the kernel offers a cheaper interface. ``failover.analysis.ports`` interprets the readings.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol

from hpn.failover.analysis.port_sampling import Sampled, Sampling, Series, watched
from hpn.testbed.errors import MachineError
from hpn.testbed.events import now_ns
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.kernel.rtnetlink.netlink import Netlink
from hpn.testbed.kernel.timerfd import Ticker

_GOLDEN = 0.6180339887498949


class Marks(Protocol):
    """Source of packet marks at a switch's ports other than their queue."""

    def read(self) -> Mapping[int, int]:
        """Return the packets marked so far, by ifindex."""

    def close(self) -> None:
        """Stop reading."""


class PortSampler:
    """Sampler that reads the ports of a drill once per period, by one netlink dump per switch.

    The time of reading moves through the period in golden-ratio steps. Readings at a fixed time would always see the
    senders' ticks at the same phase. Without ``sampling`` it does nothing.
    """

    def __init__(
        self,
        fabric: Fabric,
        requests: Callable[[str], Netlink],
        sampling: Sampling | None,
        marks: Callable[[str], Marks] | None = None,
    ) -> None:
        """Create the sampler; ``requests``: a node's netlink socket. ``marks``: a source of marks besides queues."""
        self._sampling = sampling
        self._requests = requests
        self._nodes: dict[str, dict[int, Series]] = {}
        for port in watched(fabric, sampling.ports) if sampling is not None else ():
            self._nodes.setdefault(port.node, {})[port.ifindex] = Series(port)
        self._marks_of = marks
        self._marks: dict[str, Marks] = {}
        self._alarm: _Alarm | None = None
        self._cpu_ns = 0
        self._problem = ""

    def start(self, at_ns: int) -> None:
        """Read from ``at_ns`` (CLOCK_MONOTONIC) on; needs a running event loop."""
        if self._sampling is not None:
            self._open_marks()
            self._alarm = _Alarm(at_ns, self._sampling.period_ns, self._read)

    def _open_marks(self) -> None:
        if self._marks_of is None:
            return
        try:
            for node in self._nodes:
                self._marks[node] = self._marks_of(node)
        except OSError as error:
            self._problem = error.strerror or str(error)

    def stop(self) -> None:
        """Read a last time; the second call is a no-op."""
        if self._alarm is None:
            return
        self._alarm.close()
        self._alarm = None
        self._read()
        for marks in self._marks.values():
            marks.close()

    def sampled(self) -> Sampled | None:
        """Return all readings; None if no sampling was requested. MachineError when the kernel refused."""
        if self._sampling is None:
            return None
        if self._problem:
            raise MachineError(f"queues cannot be sampled: {self._problem}; remove 'sample' from the drill")
        series = tuple(each for ports in self._nodes.values() for each in ports.values())
        return Sampled(self._sampling, series, self._cpu_ns)

    def _read(self) -> None:
        began_ns = time.thread_time_ns()
        try:
            for node, ports in self._nodes.items():
                marked = self._marks[node].read() if node in self._marks else {}
                for found in self._requests(node).buckets(ports):
                    by_rules = marked.get(found.ifindex)
                    ports[found.ifindex].append(found if by_rules is None else replace(found, marked=by_rules))
        except OSError as error:
            self._problem = error.strerror or str(error)
        self._cpu_ns += time.thread_time_ns() - began_ns


class _Alarm:
    """Timer that calls ``ring`` once per ``period_ns`` from ``at_ns`` on, in the running event loop."""

    def __init__(self, at_ns: int, period_ns: int, ring: Callable[[], None]) -> None:
        self._start_ns = at_ns
        self._period_ns = period_ns
        self._ring = ring
        self._due = 0  # number of the next ring
        self._ticker = Ticker()
        self._ticker.start(at_ns, 0)
        asyncio.get_running_loop().add_reader(self._ticker.fileno(), self._tick)

    def close(self) -> None:
        """Stop the timer."""
        asyncio.get_running_loop().remove_reader(self._ticker.fileno())
        self._ticker.close()

    def _tick(self) -> None:
        self._ticker.take()
        self._ring()
        while self._moment_ns(self._due) <= now_ns():  # a missed reading is not made up for
            self._due += 1
        self._ticker.start(self._moment_ns(self._due), 0)

    def _moment_ns(self, number: int) -> int:
        return self._start_ns + into_ns(self._period_ns, number)


def into_ns(period_ns: int, number: int) -> int:
    """Return the time from the first reading to the reading of this number. Pure."""
    return int((number + number * _GOLDEN % 1.0) * period_ns)
