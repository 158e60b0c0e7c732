"""Metrics of a job: iterations, collectives and messages, and the cost of each edge of a fault. Pure, no numpy.

Changes when more is reported about a job. ``failover.analysis.metrics.job`` computes them from records. Times in ms are
differences of CLOCK_MONOTONIC as read by the workers, once a tick. Each end is late by up to ``tick_ms``, and by the
time that a worker was kept from its ticks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from hpn.failover.analysis.client import ClientFacts, ClientMetrics
from hpn.failover.analysis.denied import DeniedPath
from hpn.failover.analysis.edge import Edge
from hpn.failover.analysis.placement import Placement
from hpn.traffic.job.standby import Replaced

MOST_LATE_PCT = 2.0
"""Half of the loss that a drill of the library allows for a job."""


@dataclass(frozen=True, slots=True)
class SpanFact:
    """A span of a rank's program, as far as analysis needs it."""

    label: str
    kind: str
    size_bytes: int
    ranks: int
    checked: bool = True  # its result, block by block; folders that do not say so are of jobs whose results were


@dataclass(frozen=True, slots=True)
class DeathFact:
    """Failure of a queue pair, and of its job; then the time and first iteration of the restart, if there was one."""

    at_ns: int
    queue_pair: str
    restarted_at_ns: int | None = None
    iteration: int = 0
    replaced: tuple[Replaced, ...] = ()
    silent: str = ""  # NICs that got nothing while a watchdog waited; it ended the job, and not ``queue_pair``


@dataclass(frozen=True, slots=True)
class JobFacts:
    """Facts about a job in addition to its records."""

    spans: Mapping[int, tuple[SpanFact, ...]]  # by rank; the first is the iteration
    queue_pairs: int
    tick_ns: int
    packets: int
    packets_again: int
    counters: Mapping[str, Mapping[str, int]]
    late_ns: int = 0  # that the worker which was held up most stood still, in stalls of 5 ms and more
    placements: tuple[Placement, ...] = ()
    deaths: tuple[DeathFact, ...] = ()
    checkpoint_every: int = 0  # iterations; 0: the job had none, and stays dead
    samples: int = 0  # that an iteration trains on; 0: not said
    client: ClientFacts | None = None  # where it was a client: its steps are the iterations
    phantom_marks: bool = False  # it acts on marks, and a phantom queue made them as this kernel has no RED
    denied: tuple[DeniedPath, ...] = ()  # where queue pairs take many paths


@dataclass(frozen=True, slots=True)
class Death:
    """A job's death, and what was lost by it.

    It stood still from the end of its last iteration before (or its begin), ``since_ns``, until it was started again;
    None: it was not, or not before the run ended. ``undone``: iterations that had ended and are done again, or would
    be, because the last checkpoint does not have them.
    """

    at_ns: int
    queue_pair: str
    since_ns: int
    restarted_at_ns: int | None
    undone: int
    replaced: tuple[Replaced, ...] = ()  # hosts by spares, before it was started again
    final: bool = True  # nobody was going to start it again
    silent: str = ""  # NICs that got nothing while a watchdog waited; it ended the job, and not ``queue_pair``

    @property
    def cause(self) -> str:
        """Clause that says what ended it."""
        if self.silent:
            return f"{self.silent} got no packet for as long as the watchdog waits"
        return f"queue pair {self.queue_pair} used its retries up"

    def is_in(self, edge: Edge) -> bool:
        """Return True if it came in the window of an edge."""
        return edge.inject_before_ns <= self.at_ns < edge.window_end_ns

    def still_ns(self, window_end_ns: int) -> int:
        """Return how long the job stood still; without a restart at least to the end of the window."""
        return (window_end_ns if self.restarted_at_ns is None else self.restarted_at_ns) - self.since_ns


@dataclass(frozen=True, slots=True)
class Iteration:
    """One iteration of all ranks, with the times of the rank that ended it last.

    Another rank may have begun it earlier: that is not in its duration, or time in which a rank waited for another
    would count in two iterations. A rank that stands still while another is further behind costs the job nothing.
    One that is done again after the job's death has another number than the first time.
    """

    number: int  # from 0
    begin_ns: int
    end_ns: int
    wrong: int  # blocks of results that were not what they must be

    @property
    def ms(self) -> float:
        """Duration of the iteration."""
        return (self.end_ns - self.begin_ns) / 1e6


@dataclass(frozen=True, slots=True)
class SpanTime:
    """One span of one rank: a line of ``spans.jsonl``."""

    rank: int
    iteration: int
    label: str
    kind: str
    begin_ns: int
    end_ns: int
    wrong: int


@dataclass(frozen=True, slots=True)
class SpanResult:
    """A collective (or block of compute) over all iterations in which all of its ranks ended it, as nccl-tests tells.

    A time is that of the slowest rank, from its own begin. ``algbw_bps`` = size / mean time; ``busbw_bps`` = algbw x
    the kind's factor (2(n-1)/n for all-reduce; nccl-tests doc/PERFORMANCE.md). 0 where there is no size.
    """

    label: str
    kind: str
    size_bytes: int
    ranks: int
    count: int
    mean_ms: float
    least_ms: float
    most_ms: float
    algbw_bps: float
    busbw_bps: float
    wrong: int


@dataclass(frozen=True, slots=True)
class MessageTimes:
    """Work requests that were completed: from post to the acknowledgement of the last byte, at the sender."""

    count: int
    size_bytes: int  # payload, each byte once
    p50_ms: float
    p99_ms: float
    most_ms: float
    apart: float = 0.0  # bytes of the queue pair that is farthest from the mean of those that completed any, over it


@dataclass(frozen=True, slots=True)
class Done:
    """Iterations in a part of a window: what the rate before the first edge promised, and what may have been done.

    Stamps are late by up to a tick, which moves the share of one that lies across an end. One that the run cut off, and
    that had taken longer than any before the first edge, counts in ``high`` alone: nothing shows that it would end.
    ``off``: by that share of itself ``promised`` may be off.
    """

    promised: float = 0.0
    low: float = 0.0
    high: float = 0.0
    off: float = 0.0


@dataclass(frozen=True, slots=True)
class JobEdge:
    """Cost of one edge.

    Rates are iterations per second: up to the end of the last iteration before the first edge, and from then on, or for
    a later edge from itself on, to the end of its window.

    With a job that died, ``lost`` has its undone iterations too, of deaths in the window.
    ``longest_ms``: the longest iteration that was under way in the window, or 0 for none; ``unfinished``: it had not
    ended when the run did, so that it is a lower bound. ``lost``: iterations that the rate before promised for the
    window less those that were done in it; less than 0 when there were more. An iteration counts with the share of it
    that lies in a window, and so does the usual pause before it; the one that the run cut off as if it took as long as
    the median of the last five, or just until then. Half of it counts if it took longer than these and than any before
    the first edge. Of a job that died, it does not count at all.
    """

    rate_before: float
    rate_during: float
    rate_after: float  # in the last part of the window
    longest_ms: float
    unfinished: bool
    lost: float
    during: Done = Done()
    after: Done = Done()
    undone: int = 0  # of ``lost``: by deaths


LEAST_LOST = 0.1
"""Iterations: a smaller loss counts as none."""


@dataclass(frozen=True, slots=True)
class JobMetrics:
    """Everything measured of a job."""

    ranks: int
    queue_pairs: int
    tick_ms: float
    iterations: tuple[Iteration, ...]
    mean_ms: float  # an iteration of all ranks, of those that ended before the first edge; 0 when there is none
    spans: tuple[SpanResult, ...]
    messages: MessageTimes
    edges: tuple[JobEdge, ...]  # as DrillMetrics.edges
    packets: int
    packets_again: int
    deaths: tuple[Death, ...]
    samples: int  # that an iteration trains on; 0: not said
    counters: Mapping[str, Mapping[str, int]]  # by NIC, then by name of ``rdma statistic show``
    wrong: int  # blocks of results that were not what they must be, in all ranks, also where an iteration did not end
    open_ms: float  # from the end of the last iteration, or the begin of the run, to the run's end
    exposed_ms: float = 0.0  # of an iteration: communication while nothing is computed, of the rank with the most
    late_pct: float = 0.0  # of the run's time, in which the worker that was held up most stood still (5 ms and more)
    placements: tuple[Placement, ...] = ()  # at the start, and where the queue pairs had settled after each edge
    client: ClientMetrics | None = None
    phantom_marks: bool = False  # JobFacts.phantom_marks
    period_ms: float = 0.0  # from the end of an iteration to that of the next, of the same; 0 when there are not two
    checked: int | None = None  # results that were checked, of all ranks; of a client, of steps; None: nobody counted
    denied: tuple[DeniedPath, ...] = ()  # JobFacts.denied

    @property
    def summed_counters(self) -> Mapping[str, int]:
        """Counters summed over all NICs; zeros are left out."""
        summed: Counter[str] = Counter()
        for counters in self.counters.values():
            summed.update(counters)
        return {name: count for name, count in summed.items() if count}

    @property
    def lost(self) -> float:
        """Iterations lost at all edges; an edge with more iterations than promised counts 0."""
        return sum(max(edge.lost, 0.0) for edge in self.edges)

    @property
    def goes_on_losing(self) -> bool:
        """True if ``lost`` is a lower bound: an iteration was overdue when the run ended."""
        return bool(self.edges) and self.edges[-1].unfinished and self.lost >= LEAST_LOST

    @property
    def stays_dead(self) -> bool:
        """True if it died and was not started again."""
        return bool(self.deaths) and self.deaths[-1].restarted_at_ns is None

    @property
    def dead(self) -> bool:
        """True if it died and no restart was configured."""
        return self.stays_dead and self.deaths[-1].final

    @property
    def stands(self) -> bool:
        """True if the iteration that the run cut off took longer than any that ended, or can never end."""
        return self.dead or (bool(self.iterations) and self.open_ms > max(each.ms for each in self.iterations))

    def cause_of(self, death: Death) -> str:
        """Return why it died; a client says so itself."""
        return death.cause if self.client is None else death.queue_pair

    @property
    def did_anything(self) -> bool:
        """True if an iteration ended or a message was completed; for a client that reports no steps: if it ran."""
        silent = self.client is not None and not self.client.facts.reporting and bool(self.client.facts.ranks)
        return bool(self.iterations or self.messages.count or silent)

    @property
    def doubts(self) -> tuple[str, ...]:
        """Reasons why the run is inconclusive."""
        found = [] if self.client is None else [*self.client.doubts]
        if self.client is None and not (self.iterations or self.messages.count or self.deaths):
            found.append("no message of the job was completed: nothing was measured")
        if self.late_pct > MOST_LATE_PCT:
            found.append(
                f"a worker of the job stood still for {self.late_pct:.3g} % of the time, more than"
                f" {MOST_LATE_PCT:g} %: the machine held the job up"
            )
        if self.phantom_marks:
            found.append(
                "the job acts on marks, and without RED in this kernel a phantom queue made them: that is no queue's"
                " answer; run it in virtual time, or ask for marker: nft and find its own limits"
            )
        return tuple(found)


def absent_parts(job: JobFacts | JobMetrics) -> set[str]:
    """Return the fields that a file omits: those of clients and of multipath queue pairs, where there are none."""
    return {part for part in ("client", "denied") if not getattr(job, part)}
