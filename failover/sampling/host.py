"""Sampler of the machine's load through the whole run, in the supervisor's event loop.

Changes when /proc offers a better signal. ``failover.analysis.hostload`` interprets the samples.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path

from hpn.failover.analysis.hostload import HostLoad, OwnTime, Sample, summarise
from hpn.testbed.events import now_ns

INTERVAL_S = 0.1
PROC = Path("/proc")


class HostSampler:
    """Sampler that takes a ``Sample`` every 100 ms while the event loop runs; a late sample is event-loop lag.

    ``own_pids`` returns the processes whose waiting counts: supervisor and traffic workers, and daemons, so that their
    work does not count as another program's. It is called before every sample.
    """

    def __init__(
        self, own_pids: Callable[[], Iterable[int]], *, interval_s: float = INTERVAL_S, keeps: int | None = None
    ) -> None:
        """Create it; ``keeps``: the last samples that stay readable, all by default."""
        self._own_pids = own_pids
        self._interval_ns = int(interval_s * 1e9)
        self._samples: deque[Sample] = deque(maxlen=keeps)
        self._due_ns = 0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin; needs a running event loop."""
        self._due_ns = now_ns()
        self._tick()

    def stop(self) -> None:
        """Stop sampling; the samples remain readable."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def load(self, start_ns: int = 0, end_ns: int | None = None) -> HostLoad | None:
        """Return a summary of the samples taken in [start, end]; None when there are fewer than two."""
        return summarise(self.samples(start_ns, end_ns), os.cpu_count() or 1)

    def samples(self, start_ns: int = 0, end_ns: int | None = None) -> tuple[Sample, ...]:
        """Return the samples taken in [start, end]."""
        return tuple(s for s in self._samples if start_ns <= s.at_ns and (end_ns is None or s.at_ns <= end_ns))

    def _tick(self) -> None:
        at_ns = now_ns()
        self._samples.append(take_sample(PROC, self._own_pids(), at_ns, max(at_ns - self._due_ns, 0)))
        self._due_ns = max(self._due_ns + self._interval_ns, at_ns)
        delay_s = max(self._due_ns - now_ns(), 0) / 1e9
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._tick)


def take_sample(proc: Path, own_pids: Iterable[int], at_ns: int, lag_ns: int) -> Sample:
    """Read /proc once; processes that have ended and files that this kernel lacks are left out."""
    fields = [int(word) for word in (proc / "stat").read_text().split("\n", 1)[0].split()[1:9]]
    user, nice, system, idle, iowait, irq, softirq, steal = (*fields, *[0] * (8 - len(fields)))
    return Sample(
        at_ns=at_ns,
        lag_ns=lag_ns,
        idle_ticks=idle + iowait,
        steal_ticks=steal,
        total_ticks=user + nice + system + idle + iowait + irq + softirq + steal,
        psi_some_us=_pressure(proc),
        own={pid: own for pid in own_pids if (own := _own_time(proc, pid)) is not None},
    )


def _pressure(proc: Path) -> int | None:
    """Return the cumulative 'some' pressure, microseconds (Documentation/accounting/psi.rst)."""
    try:
        text = (proc / "pressure" / "cpu").read_text()
    except OSError:  # no CONFIG_PSI, or switched off at boot
        return None
    return int(text.split("\n", 1)[0].rsplit("total=", 1)[1])


def _own_time(proc: Path, pid: int) -> OwnTime | None:
    """Return run time and run-queue delay of a process (Documentation/scheduler/sched-stats.rst)."""
    try:
        run, delay, _ = (proc / str(pid) / "schedstat").read_text().split()
    except (OSError, ValueError):  # ended meanwhile, or no CONFIG_SCHED_INFO
        return None
    return OwnTime(int(run), int(delay))
