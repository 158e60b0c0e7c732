"""Load of the machine, from samples of /proc, and the decision if it starved the run. Pure.

Changes when a signal or a limit changes. A drill uses the CPUs itself, so neither low idle time nor CPU pressure alone
is a sign. Two signs distinguish a starved run from a busy one. Our own runnable processes waited while *others* ran
(run delay, others' CPU share), or the hypervisor took time away (steal).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

_LEAST_SHARE = 0.01
"""Least share of the time for which our processes must have been runnable before their waiting counts."""


@dataclass(frozen=True, slots=True)
class OwnTime:
    """Cumulative scheduler time of one of our processes (/proc/PID/schedstat)."""

    run_ns: int
    delay_ns: int  # runnable, waiting for a CPU


@dataclass(frozen=True, slots=True)
class Sample:
    """One reading of /proc; all counters are cumulative. ``psi_some_us`` is None where the kernel has no PSI."""

    at_ns: int
    lag_ns: int  # how much later than due the event loop took this sample
    idle_ticks: int  # idle and iowait of all CPUs
    steal_ticks: int
    total_ticks: int  # of all CPUs, guest time not counted twice
    psi_some_us: int | None
    own: Mapping[int, OwnTime] = field(default_factory=dict)  # by pid


@dataclass(frozen=True, slots=True)
class HostLoad:
    """Load of the machine through the run; per cent of all CPUs unless noted, None where unknown."""

    samples: int
    span_s: float
    cpus: int
    idle_mean_pct: float
    idle_min_1s_pct: float
    steal_mean_pct: float
    steal_max_1s_pct: float
    psi_some_pct: float | None  # share of time in which at least one task waited for a CPU
    psi_max_1s_pct: float | None
    run_delay_mean_pct: float | None  # our processes: waiting, of the time they were runnable
    run_delay_max_1s_pct: float | None
    others_mean_pct: float | None  # CPU used by processes that are not ours
    others_max_1s_pct: float | None
    loop_lag_max_ms: float
    loop_lag_p99_ms: float


@dataclass(frozen=True, slots=True)
class HostMoment:
    """The same between two samples, as ``HostLoad``; ``lag_ms``: how much later than due the second was taken."""

    at_ns: int  # of the second
    lag_ms: float
    idle_pct: float
    steal_pct: float
    psi_pct: float | None
    run_delay_pct: float | None
    others_pct: float | None


@dataclass(frozen=True, slots=True)
class _Limits:
    """Limits above which a run is starved.

    Measured on two cores, two paced senders using 20 to 95 % of a core each. Quiet: run delay 0.5 to 6 %, others 0 to 5
    %. ``stress -c 2``: run delay 18 to 50 %, others 50 to 76 %, idle 0 to 2 %. ``stress -c 1`` alongside 20 % senders,
    which leaves them a free core and is harmless: run delay 2 %, others 43 %, idle 36 %. PSI: own work alone 1 to 8 %,
    ``stress`` on all cores 28 to 99 %. Emulated QEMU, half idle, no other load: run delay 27 %, PSI 4 %.
    """

    run_delay_mean_pct: float = 25.0
    quiet_psi_pct: float = 15.0  # below this no task waited for long; run delay is our processes woken by one tick
    roomy_idle_pct: float = 60.0  # with more idle than this no other process keeps ours from running
    full_idle_pct: float = 5.0  # less idle than this and the machine is full ...
    others_mean_pct: float = 25.0  # ... which starves us when others have this much of it
    steal_mean_pct: float = 5.0
    loop_lag_max_ms: float = 500.0
    psi_some_pct: float = 50.0  # only used on a full machine that does not report our own share


_LIMITS = _Limits()


def is_starved(load: HostLoad) -> str | None:
    """Return why this run was starved of CPU, in one line, or None when it was not (DESIGN rule 8)."""
    limits = _LIMITS
    full = load.idle_mean_pct < limits.full_idle_pct
    if load.steal_mean_pct > limits.steal_mean_pct:
        return f"the hypervisor took {load.steal_mean_pct:.0f} % of the CPUs away (limit {limits.steal_mean_pct:g} %)"
    quiet = load.psi_some_pct is not None and load.psi_some_pct < limits.quiet_psi_pct
    shared = not quiet and load.idle_mean_pct < limits.roomy_idle_pct  # else they only waited for each other
    if shared and load.run_delay_mean_pct is not None and load.run_delay_mean_pct > limits.run_delay_mean_pct:
        return (
            f"our processes waited for a CPU {load.run_delay_mean_pct:.0f} % of the time they could have run "
            f"(limit {limits.run_delay_mean_pct:g} %)"
        )
    if full and load.others_mean_pct is not None and load.others_mean_pct > limits.others_mean_pct:
        return (
            f"the machine was full ({load.idle_mean_pct:.0f} % idle) and other processes had "
            f"{load.others_mean_pct:.0f} % of it (limit {limits.others_mean_pct:g} %)"
        )
    if full and load.others_mean_pct is None and (load.psi_some_pct or 0.0) > limits.psi_some_pct:
        return f"the machine was full and tasks waited for a CPU {load.psi_some_pct:.0f} % of the time"
    if load.loop_lag_max_ms > limits.loop_lag_max_ms:
        return f"the event loop stood still for {load.loop_lag_max_ms:.0f} ms (limit {limits.loop_lag_max_ms:g} ms)"
    return None


@dataclass(frozen=True, slots=True)
class _Shares:
    """Percentages between two samples."""

    idle: float
    steal: float
    psi: float | None
    run_delay: float | None
    others: float | None


def summarise(samples: Sequence[Sample], cpus: int) -> HostLoad | None:
    """Return the load over all given samples (at least two, else None) and over its single seconds."""
    if len(samples) < 2:
        return None
    whole = _shares(samples[0], samples[-1], cpus)
    seconds = [whole, *(_shares(first, last, cpus) for first, last in _seconds(samples))]
    lag_ms = sorted(sample.lag_ns / 1e6 for sample in samples)
    return HostLoad(
        samples=len(samples),
        span_s=(samples[-1].at_ns - samples[0].at_ns) / 1e9,
        cpus=cpus,
        idle_mean_pct=whole.idle,
        idle_min_1s_pct=min(second.idle for second in seconds),
        steal_mean_pct=whole.steal,
        steal_max_1s_pct=max(second.steal for second in seconds),
        psi_some_pct=whole.psi,
        psi_max_1s_pct=_max(seconds, lambda second: second.psi),
        run_delay_mean_pct=whole.run_delay,
        run_delay_max_1s_pct=_max(seconds, lambda second: second.run_delay),
        others_mean_pct=whole.others,
        others_max_1s_pct=_max(seconds, lambda second: second.others),
        loop_lag_max_ms=lag_ms[-1],
        loop_lag_p99_ms=lag_ms[int(0.99 * (len(lag_ms) - 1))],
    )


def course(samples: Sequence[Sample], cpus: int) -> Iterator[HostMoment]:
    """Yield the load from each sample to the next, to a hundredth; tick counters of /proc are coarse at this pace."""
    for first, last in pairwise(samples):
        found = _shares(first, last, cpus)
        shares = (found.idle, found.steal, found.psi, found.run_delay, found.others)
        idle, steal, *perhaps = (None if share is None else round(share, 2) for share in shares)
        yield HostMoment(last.at_ns, round(last.lag_ns / 1e6, 3), idle or 0.0, steal or 0.0, *perhaps)


def _max(seconds: Sequence[_Shares], value: Callable[[_Shares], float | None]) -> float | None:
    return max((found for second in seconds if (found := value(second)) is not None), default=None)


def _seconds(samples: Sequence[Sample]) -> Sequence[tuple[Sample, Sample]]:
    """Return pairs of samples a second or a little more apart, without gaps."""
    pairs, first = [], samples[0]
    for sample in samples[1:]:
        if sample.at_ns - first.at_ns >= 10**9:
            pairs.append((first, sample))
            first = sample
    return pairs


def _shares(first: Sample, last: Sample, cpus: int) -> _Shares:
    ticks = max(last.total_ticks - first.total_ticks, 1)
    span_ns = max(last.at_ns - first.at_ns, 1)
    idle = 100 * (last.idle_ticks - first.idle_ticks) / ticks
    steal = 100 * (last.steal_ticks - first.steal_ticks) / ticks
    psi = None
    if first.psi_some_us is not None and last.psi_some_us is not None:
        psi = min(100.0, 100e3 * (last.psi_some_us - first.psi_some_us) / span_ns)
    both = first.own.keys() & last.own.keys()
    if not both:
        return _Shares(idle, steal, psi, None, None)
    run_ns = sum(last.own[pid].run_ns - first.own[pid].run_ns for pid in both)
    delay_ns = sum(last.own[pid].delay_ns - first.own[pid].delay_ns for pid in both)
    # A process that hardly runs cannot starve. In virtual time computing takes none; the rest is the clock's grain.
    run_delay = 100 * delay_ns / (run_ns + delay_ns) if run_ns + delay_ns > _LEAST_SHARE * span_ns else 0.0
    # schedstat is exact, ticks alias with senders that sleep in whole ticks: so the difference is limited to 0
    others = max(0.0, 100 - idle - steal - 100 * run_ns / (span_ns * cpus))
    return _Shares(idle, steal, psi, run_delay, others)
