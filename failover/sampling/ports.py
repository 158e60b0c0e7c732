"""Reads the counters and queues of ports through a run, from the supervisor's event loop.

Changes when the kernel offers a cheaper way. What the readings mean is ``failover.analysis.ports``.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from failover.analysis.ports import Sampled, Sampling, Series, watched
from testbed.errors import MachineError
from testbed.events import now_ns
from testbed.fabric.model import Fabric
from testbed.kernel.netlink import Netlink
from testbed.kernel.timerfd import Ticker

_GOLDEN = 0.6180339887498949


class PortSampler:
    """Takes one reading of the ports of a drill in every period, by one netlink dump per switch.

    The moment moves through the period in golden-ratio steps: readings at a fixed one would see the senders' own ticks
    always at the same phase. Without ``sampling`` it does nothing.
    """

    def __init__(self, fabric: Fabric, requests: Callable[[str], Netlink], sampling: Sampling | None) -> None:
        """``requests`` gives the netlink socket of a node."""
        self._sampling = sampling
        self._requests = requests
        self._nodes: dict[str, dict[int, Series]] = {}
        for port in watched(fabric, sampling.ports) if sampling is not None else ():
            self._nodes.setdefault(port.node, {})[port.ifindex] = Series(port)
        self._ticker: Ticker | None = None
        self._start_ns = 0
        self._due = 0  # number of the next reading
        self._cpu_ns = 0
        self._problem = ""

    def start(self, at_ns: int) -> None:
        """Read from ``at_ns`` (CLOCK_MONOTONIC) on; needs a running event loop."""
        if self._sampling is None:
            return
        self._start_ns = at_ns
        self._ticker = Ticker()
        self._ticker.start(at_ns, 0)
        asyncio.get_running_loop().add_reader(self._ticker.fileno(), self._tick)

    def stop(self) -> None:
        """Read a last time; does nothing the second time."""
        if self._ticker is None:
            return
        asyncio.get_running_loop().remove_reader(self._ticker.fileno())
        self._ticker.close()
        self._ticker = None
        self._read()

    def sampled(self) -> Sampled | None:
        """Everything read; None when nothing was asked for. MachineError when the kernel refused."""
        if self._sampling is None:
            return None
        if self._problem:
            raise MachineError(f"queues cannot be sampled: {self._problem}; remove 'sample' from the drill")
        series = tuple(each for ports in self._nodes.values() for each in ports.values())
        return Sampled(self._sampling, series, self._cpu_ns)

    def _tick(self) -> None:
        assert self._ticker is not None
        self._ticker.take()
        self._read()
        while self._moment_ns(self._due) <= now_ns():  # a reading that is missed is not made up for
            self._due += 1
        self._ticker.start(self._moment_ns(self._due), 0)

    def _moment_ns(self, number: int) -> int:
        assert self._sampling is not None
        return self._start_ns + int((number + number * _GOLDEN % 1.0) * self._sampling.period_ns)

    def _read(self) -> None:
        began_ns = time.thread_time_ns()
        try:
            for node, ports in self._nodes.items():
                for found in self._requests(node).buckets(ports):
                    ports[found.ifindex].append(found)
        except OSError as error:
            self._problem = error.strerror or str(error)
        self._cpu_ns += time.thread_time_ns() - began_ns
