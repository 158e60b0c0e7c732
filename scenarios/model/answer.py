"""A drill by the model: what of it the model can speak to, the figures, and the drill's expectations held against them.

Changes when the model can say something more. PURE.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from failover.analysis.model import DrillMetrics
from results.verdict import Check, Verdict, decide
from scenarios.drill.model import Drill
from scenarios.drill.workload import flows_of, packet_period_ns
from scenarios.expect.evidence import Evidence, RunFacts
from scenarios.expect.expectation import Expectation
from scenarios.expect.verdict import judge_expectation
from scenarios.model.course import speaks_to, stages
from scenarios.model.figures import Streams, loads, metrics_of
from scenarios.model.measured import Case, Conditions, Draws, Measured, Used
from scenarios.model.placing import Placing
from scenarios.model.rates import course_of
from scenarios.model.router import Lag, ModelRouter
from scenarios.model.ways import ways_of
from testbed.errors import InputError
from testbed.fabric.build import build
from testbed.fabric.model import Fabric
from testbed.routing.pathcontrol.policies import DEFAULT, OFF
from traffic.flowlevel.forwarding import Forwarding
from traffic.flowlevel.links import Links
from traffic.paths import CHOICES

_PACKETS = "it is about single packets, and the model has rates"
_PROTOCOLS = "it is about what protocols do and when, and the model has only what became of flows"
_QUEUES = "it is about queues, and the model has rates"
MODELLED = frozenset(
    {
        *("worst_outage", "median_outage", "outage_p95", "packets_lost", "flows_with_loss", "flows_unrecovered"),
        *("queue_pair_deaths", "goodput_during", "goodput_after"),
    }
)
"""Metrics that mean the same of a model."""
_WHY_NOT: Mapping[str, str] = {
    **dict.fromkeys(("detect", "switch", "converge", "recover", "converged", "order", "untouched"), _PROTOCOLS),
    **dict.fromkeys(("queue_p99", "queue_worst", "tail_drops", "packets_marked"), _QUEUES),
    **dict.fromkeys(("worst_impairment", "worst_receive_gap", "packets_impaired", "noise_floor"), _PACKETS),
    "state_restored": "no lab was changed",
}
_NOT_YET = "the model does not compute it"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An expectation that the model cannot be held against."""

    text: str
    why: str


@dataclass(frozen=True, slots=True)
class LinkLoad:
    """What a directed link carries, as a share of its rate: before the first fault, and from each edge to the next."""

    link: str
    rate_bps: int
    load: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Basis:
    """Times that were drawn for one case, and what they were drawn from."""

    case: Case
    used: Used


@dataclass(frozen=True)
class Answer:
    """What the model says of a drill; nothing here was measured, but for the times that ``basis`` tells of."""

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
    """InputError, in one line, for a drill that the model cannot speak to; it says what can."""
    why = next(_refusals(drill), None)
    if why is not None:
        raise InputError(f"the model cannot speak to {drill.name}: {why}; a lab can: hpn drill run {drill.name}")


def _refusals(drill: Drill) -> Iterator[str]:
    spec = drill.topology
    for planned in drill.timeline.faults:
        if not speaks_to(planned.fault):
            yield f"{planned.fault.KIND} shows in frames and protocols, and the model knows links that carry or do not"
    if drill.client is not None:
        yield "a client is a program, and the model has only flows"
    if drill.job is not None:
        yield "its job is not modelled yet"
    if drill.workload.size_bytes is not None:
        yield f"{drill.workload.pattern} pauses between transfers, and the model has even streams"
    if spec.path_control.chosen.name not in (DEFAULT, OFF):
        yield f"the path policy {spec.path_control.chosen.name} is not modelled, only {DEFAULT} and {OFF}"
    if not any(each.metric.key in MODELLED for each in drill.expectations):
        yield "none of what it expects is a figure of the model"


def model(drill: Drill, measured: Measured, seed: int = 1) -> Answer:
    """The answer for one drill; ``seed`` draws what failovers take. InputError as ``check``, and where times lack."""
    check(drill)
    fabric = build(drill.topology)
    lag, spec = Lag(fabric), fabric.spec
    conditions = Conditions(spec.architecture, spec.path_control.chosen.name, lag.name, spec.bgp.daemon)
    draws = Draws(measured, conditions, seed)
    streams = _streams(drill, fabric, lag, draws)
    metrics = metrics_of(streams)
    judged, left_out = _judged(drill, metrics)
    basis = [Basis(case, used) for case, used in draws.used.items()]
    return Answer(
        drill=drill.name,
        architecture=spec.architecture,
        seed=seed,
        lag=lag.name,
        flows=len(streams.flows),
        metrics=metrics,
        loads=_loads(fabric, streams),
        verdict=decide(judged, []),
        left_out=tuple(left_out),
        basis=tuple(basis),
    )


def _streams(drill: Drill, fabric: Fabric, lag: Lag, draws: Draws) -> Streams:
    work = drill.workload
    router = ModelRouter(fabric, lag, Forwarding(fabric))
    flows = CHOICES[work.source_ports].choose(flows_of(work, fabric), router, (), fabric.spec.seed).flows
    course = stages(drill.timeline.faults, fabric)
    end_ns = drill.timeline.end_ns
    placing = Placing(fabric, lag, flows, known=work.path_control)
    ways = ways_of(fabric, flows, course, placing, draws, end_ns)
    rates = course_of(fabric, Links.of(fabric), flows, ways, end_ns)
    settings = drill.settings.for_pacing(packet_period_ns(flows) / 1e6, drill.tick_ns / 1e6)
    return Streams(flows, ways, rates, settings, drill.timeline.healthy_ns, end_ns)


def _judged(drill: Drill, metrics: DrillMetrics) -> tuple[list[Check], list[LeftOut]]:
    evidence = Evidence(metrics, RunFacts())
    judged = [judge_expectation(each, evidence) for each in drill.expectations if _speaks(each)]
    left_out = [LeftOut(each.text, _why_not(each)) for each in drill.expectations if not _speaks(each)]
    return judged, left_out


def _speaks(expectation: Expectation) -> bool:
    return expectation.metric.key in MODELLED and not expectation.scope.planes


def _why_not(expectation: Expectation) -> str:
    if expectation.metric.key in MODELLED:
        return "it is about planes that flows change in the course of a run"
    return _WHY_NOT.get(expectation.metric.key, _NOT_YET)


def _loads(fabric: Fabric, streams: Streams) -> tuple[LinkLoad, ...]:
    """Every directed link that carries anything at any time."""
    links = Links.of(fabric)
    edges = [edge.inject_before_ns for edge in streams.ways.edges]
    bounds = [0, *edges, streams.end_ns]
    spans = [(begin, end) for begin, end in pairwise(bounds) if end > begin]
    carried = [loads(streams, begin, end) / links.capacity for begin, end in spans]
    return tuple(
        LinkLoad(name, int(links.capacity[at]), tuple(float(share[at]) for share in carried))
        for at, name in enumerate(links.names)
        if any(share[at] > 0 for share in carried)
    )
