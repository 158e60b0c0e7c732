"""Result of a drill by the model: the parts that it supports, the figures, and the drill's expectations. PURE.

Changes when the model supports something more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from hpn.failover.analysis.model import DrillMetrics, Edge
from hpn.results.judge.verdict import Check, Verdict, decide
from hpn.scenarios.drill.job import JobSpec
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.drill.planned import PlannedRun
from hpn.scenarios.drill.workload import packet_period_ns
from hpn.scenarios.expect.evidence import Evidence, RunFacts
from hpn.scenarios.expect.expectation import Expectation
from hpn.scenarios.expect.metric import MODELLED
from hpn.scenarios.expect.verdict import judge_expectation
from hpn.scenarios.model.failover_times import Case, Conditions, Draws, FailoverTimes, Used
from hpn.scenarios.model.fault_stages import stages
from hpn.scenarios.model.figures import Streams, loads, metrics_of
from hpn.scenarios.model.jobs import MOST_MESSAGES, messages_at_most, run_job
from hpn.scenarios.model.path_assignment import PathAssignment
from hpn.scenarios.model.paths_over_time import ways_of
from hpn.scenarios.model.rates import course_of
from hpn.scenarios.model.router import Lag, ModelRouter, network_refusals
from hpn.testbed.errors import InputError, MachineError
from hpn.testbed.fabric.model import Fabric
from hpn.traffic.flows.paths import CHOICES
from hpn.traffic.fluid.forwarding import Forwarding
from hpn.traffic.fluid.links import Links

_ITSELF_BYTES, _BYTES_A_NIC, _BYTES_A_FLOW, _BYTES_AN_EDGE = 60e6, 12e3, 4e3, 4e3
"""Memory in bytes. Measured: 67 MB for 528 flows over two edges, 131 MB for 8,192."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Expectation that the model does not support."""

    text: str
    why: str


@dataclass(frozen=True, slots=True)
class LinkLoad:
    """Load of a directed link as a share of its rate: before the first fault, and from each edge to the next."""

    link: str
    rate_bps: int
    load: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Basis:
    """Basis of the times drawn for one case."""

    case: Case
    used: Used


@dataclass(frozen=True, eq=False)
class Modelled:
    """Modelled drill. ``streams`` is None for a job, which leaves no rates of links."""

    fabric: Fabric
    links: Links
    conditions: Conditions
    flows: int
    edges: tuple[Edge, ...]
    metrics: DrillMetrics
    streams: Streams | None
    doubts: tuple[str, ...]
    basis: tuple[Basis, ...]


@dataclass(frozen=True)
class ModelAnswer:
    """Result of the model for a drill; nothing in it was measured, except the times listed in ``basis``."""

    drill: str
    architecture: str
    seed: int
    lag: str
    flows: int
    metrics: DrillMetrics
    loads: tuple[LinkLoad, ...]
    verdict: Verdict
    left_out: tuple[LeftOut, ...]
    basis: tuple[Basis, ...]


def check(drill: Drill) -> None:
    """Raise InputError, in one line, for a drill that the model does not support; it names what does."""
    why = list(_refusals(drill))
    if drill.expectations and not any(map(_speaks, drill.expectations)):
        why.append("none of what it expects is a figure of the model")
    _refuse(drill, why)


def messages_of(planned: PlannedRun) -> float:
    """Return how many messages the model of a job goes through at most; 0 for streams and what it refuses."""
    if list(_refusals(planned.drill)) or planned.job is None:
        return 0.0
    messages = messages_at_most(planned.job, planned.drill.timeline.end_ns)
    return messages if messages <= MOST_MESSAGES else 0.0


def _check_memory(drill: Drill, available_bytes: float) -> None:
    """Raise MachineError, before any allocation, when the model would not fit in memory."""
    spec = drill.topology
    nics = spec.pods * spec.segments * spec.hosts * spec.rails
    pairs = nics * (drill.workload.queue_pairs if drill.job is None else 2 * drill.job.queue_pairs)
    edges = sum(len(planned.edges) for planned in drill.timeline.faults)
    needed = _ITSELF_BYTES + nics * _BYTES_A_NIC + pairs * (_BYTES_A_FLOW + edges * _BYTES_AN_EDGE)
    if needed > available_bytes:
        raise MachineError(
            f"{drill.name}: the model of {nics:,} NICs with {pairs:,} queue pairs needs {needed / 1e9:,.1f} GB and"
            f" {available_bytes / 1e9:,.1f} GB are free; lower queue_pairs or hosts"
        )


def _refuse(drill: Drill, why: Sequence[str]) -> None:
    if why:
        raise InputError(f"the model cannot speak to {drill.name}: {why[0]}; a lab can: hpn drill run {drill.name}")


def _refusals(drill: Drill) -> Iterator[str]:
    spec = drill.topology
    for planned in drill.timeline.faults:
        if planned.fault.rate_left() is None:
            yield f"{planned.fault.KIND} is more than links that carry or do not, which is all that the model knows"
    yield from network_refusals(spec)
    if drill.client is not None:
        yield "a client is a program, and the model has only flows"
    if drill.job is not None:
        yield from _of_job(drill.job)
    if drill.workload.size_bytes is not None:
        yield f"{drill.workload.pattern} pauses between transfers, and the model has even streams"


def _of_job(job: JobSpec) -> Iterator[str]:
    if job.restart is not None:
        yield "a job that is started again is not modelled"
    if job.port_failover:
        yield "port failover of queue pairs is not modelled"
    if job.rehash is not None or job.spray > 1:
        yield "queue pairs that leave their paths or spray over several answer to marks and to single packets"
    if job.multipath is not None:
        yield "the multipath transport is not modelled: it answers to single packets"
    if job.checkpoints is not None:
        yield "checkpoints beside a job are not modelled"


def model(
    planned: PlannedRun,
    measured: FailoverTimes,
    seed: int = 1,
    available_bytes: float = float("inf"),
    heard: Callable[[float], None] | None = None,
) -> ModelAnswer:
    """Return the result for one drill.

    ``seed`` selects the failover times. ``heard`` is called with the fraction of a job that is done. InputError as in
    ``check``, and when times are missing. MachineError for a size beyond the available memory.
    """
    drill = planned.drill
    check(drill)
    _check_memory(drill, available_bytes)
    found = modelled(planned, measured, seed, heard)
    judged, left_out = _judged(drill, found.metrics)
    return ModelAnswer(
        drill=drill.name,
        architecture=found.conditions.architecture,
        seed=seed,
        lag=found.conditions.lag,
        flows=found.flows,
        metrics=found.metrics,
        loads=_loads(found),
        verdict=decide(judged, list(found.doubts)),
        left_out=tuple(left_out),
        basis=found.basis,
    )


def modelled(
    planned: PlannedRun, measured: FailoverTimes, seed: int = 1, heard: Callable[[float], None] | None = None
) -> Modelled:
    """Model a drill, regardless of its expectations. InputError as in ``model``."""
    drill = planned.drill
    _refuse(drill, list(_refusals(drill)))
    fabric, plan = planned.fabric, planned.job
    links, lag, spec, end_ns = Links.of(fabric), Lag(fabric), fabric.spec, drill.timeline.end_ns
    conditions = Conditions(
        spec.architecture, spec.path_control.chosen.name, lag.name, spec.bgp.daemon, spec.bgp.valleys
    )
    draws = Draws(measured, conditions, seed)
    if plan is not None and any(pair.grants for pair in plan.queue_pairs):
        _refuse(drill, ["receivers that admit senders are about when, and the model has only shares"])
    how = drill.workload.source_ports if drill.job is None else drill.job.source_ports
    router = ModelRouter(fabric, lag, Forwarding(fabric))
    router.look_up_all(planned.flows)
    flows = CHOICES[how].choose(planned.flows, router, (), fabric.spec.seed).flows
    placing = PathAssignment(fabric, lag, flows, known=plan is not None or drill.workload.path_control)
    ways = ways_of(fabric, flows, stages(drill.timeline.faults, fabric), placing, draws, end_ns)
    settings = drill.settings.for_pacing(packet_period_ns(flows) / 1e6, drill.tick_ns / 1e6)
    streams, doubts = None, tuple[str, ...]()
    if plan is None:
        course = course_of(links, flows, ways, end_ns, drill.tick_ns)
        streams = Streams(flows, ways, course, settings, drill.timeline.healthy_ns, end_ns)
        metrics = metrics_of(streams)
    else:
        job = run_job(links, plan, ways, settings, (drill.timeline.healthy_ns, end_ns), heard)
        metrics, doubts = job.metrics, job.doubts
    basis = tuple(Basis(case, used) for case, used in draws.used.items())
    return Modelled(fabric, links, conditions, len(flows), ways.edges, metrics, streams, doubts, basis)


def _judged(drill: Drill, metrics: DrillMetrics) -> tuple[list[Check], list[LeftOut]]:
    evidence = Evidence(metrics, RunFacts())
    judged = [judge_expectation(each, evidence) for each in drill.expectations if _speaks(each)]
    left_out = [LeftOut(each.text, _why_not(each)) for each in drill.expectations if not _speaks(each)]
    return judged, left_out


def _speaks(expectation: Expectation) -> bool:
    return expectation.metric.unmodelled == MODELLED and not expectation.scope.planes


def _why_not(expectation: Expectation) -> str:
    return expectation.metric.unmodelled or "it is about planes that flows change in the course of a run"


def _loads(found: Modelled) -> tuple[LinkLoad, ...]:
    """Return every directed link that carries streams at any time."""
    if found.streams is None:
        return ()
    links, streams = found.links, found.streams
    bounds = [0, *(edge.inject_before_ns for edge in found.edges), streams.end_ns]
    spans = [(begin, end) for begin, end in pairwise(bounds) if end > begin]
    carried = [loads(streams, begin, end) / links.capacity for begin, end in spans]
    return tuple(
        LinkLoad(name, int(links.capacity[at]), tuple(float(share[at]) for share in carried))
        for at, name in enumerate(links.names)
        if any(share[at] > 0 for share in carried)
    )
