"""Run sequences in turn on one lab: traffic, faults, heal, wait, check every invariant.

Runs in the first process of a sandbox. ``scenarios.run.runner`` runs drills with a verdict. Here no times are measured
to the millisecond and no records are stored, so that several labs can share two cores.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hpn.failover.analysis.model import DrillMetrics
from hpn.failover.faults.moments import moments
from hpn.failover.inject.injector import Injector
from hpn.failover.sampling.host import HostSampler
from hpn.scenarios.campaign import invariants
from hpn.scenarios.campaign.drillfile import drill_of
from hpn.scenarios.campaign.plan import FaultSequence, Plan
from hpn.scenarios.campaign.result import Invariant, Result, Violation
from hpn.scenarios.drill.blast_radius import transit_flows
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.drill.planned import PlannedRun
from hpn.scenarios.drill.spares import replacement_flows
from hpn.scenarios.drill.workload import flows_of
from hpn.scenarios.run.observation import Observation
from hpn.scenarios.run.traffic_on_lab import LabTraffic
from hpn.testbed.errors import MachineError
from hpn.testbed.events import Event, now_ns
from hpn.testbed.kernel.process.processes import own_pids
from hpn.testbed.lab.cabling import FarEnd, far_ends
from hpn.testbed.lab.expected_state import deviations
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.state import differences, state
from hpn.testbed.routing.trace import Flow

if TYPE_CHECKING:
    from hpn.scenarios.run.measurement import Measurement  # imports numpy

_LEAD_NS = 150_000_000
_CONVERGE_S = 25.0
_AS_BEFORE_S = 5.0
_TAIL_NS = 600_000_000
_STILL_MS = 120.0


@dataclass(frozen=True)
class _Run:
    """Run before analysis. ``converged_ns`` is None when the lab did not converge in time."""

    observed: Observation
    converged_ns: int | None
    found: tuple[Violation, ...]


class Bench:
    """Converged lab that runs sequences. ``scratch`` is for records, which are removed after each sequence."""

    def __init__(self, plan: Plan, lab: Lab, scratch: Path) -> None:
        """Record the state of the lab, which must be healthy, as the state expected after every sequence."""
        self._plan = plan
        self._lab = lab
        self._scratch = scratch
        self._paths: tuple[Flow, ...] = invariants.delivered(lab, invariants.paths_to_ask(lab.fabric))
        self._state = state(lab)
        self._inventory = invariants.inventory(lab)
        self._before: tuple[int, ...] = ()

    async def run(self, sequence: FaultSequence) -> Result:
        """Run one sequence. MachineError when the machine, not the lab, fails."""
        started_at = time.time()
        drill = drill_of(self._plan, sequence)
        events: list[Event] = []
        forget = self._lab.subscribe(events.append)
        try:
            run = await self._carry_out(drill)
        finally:
            forget()
        violations, doubts = self._judge(drill, run, events)
        before = self._before
        self._before = (*before, sequence.index)
        return Result(sequence, violations, doubts, before, started_at, time.time())

    async def _carry_out(self, drill: Drill) -> _Run:
        lab = self._lab
        flows = flows_of(drill.workload, lab.fabric)
        later = replacement_flows(lab.fabric, drill.timeline.faults, flows)
        traffic = LabTraffic(lab, flows, self._scratch, drill.workload.tick_ns, later)
        injector, sampler = Injector(lab, traffic), HostSampler(own_pids)
        try:
            await traffic.start()
            sampler.start()
            start_ns = now_ns() + _LEAD_NS
            traffic.engine.begin(start_ns)
            await _timeline(lab, drill, traffic, injector, start_ns)
            await injector.heal()
            failed = await self._converge()
            converged_ns = None if failed else now_ns()
            await traffic.until(now_ns() + _TAIL_NS)
            end_ns = now_ns()
            report = await traffic.finish()
        finally:
            sampler.stop()
            await injector.heal()
            await traffic.engine.close()
        changed = await self._differences()
        found = tuple(self._ask(changed, await far_ends(lab), failed))
        load = sampler.load(start_ns, end_ns)
        observed = Observation(traffic.flows, report, tuple(injector.edges), start_ns, end_ns, load, ())
        return _Run(observed, converged_ns, found)

    async def _converge(self) -> str:
        """Wait for the lab to converge; return its error if it does not, otherwise ''."""
        try:
            await self._lab.converged(_CONVERGE_S)
        except MachineError as error:
            return str(error)
        return ""

    async def _differences(self) -> tuple[str, ...]:
        """Return differences from the healthy lab or its fabric that remain after a wait."""
        try:
            await self._lab.wait_for(lambda: state(self._lab) == self._state, _AS_BEFORE_S)
        except TimeoutError:
            return (*differences(self._state, state(self._lab)), *deviations(self._lab))
        return deviations(self._lab)

    def _ask(self, changed: tuple[str, ...], ends: tuple[FarEnd, ...], failed: str) -> Iterator[Violation]:
        if failed:
            yield Violation(Invariant.CONVERGENCE, failed)
        yield from invariants.restored(changed)
        yield from invariants.cabling(ends)
        yield from invariants.forwarding(self._lab, self._paths)
        yield from invariants.leaks(self._inventory, invariants.inventory(self._lab))

    def _judge(self, drill: Drill, run: _Run, events: list[Event]) -> tuple[tuple[Violation, ...], tuple[str, ...]]:
        """Return the violations, and the doubts for those that the machine may have caused."""
        from hpn.scenarios.run.judgement import (  # numpy is imported here, outside all measurement
            judge_measured,
            moved_wrongly,
        )
        from hpn.scenarios.run.measurement import measured_of

        observed = run.observed
        try:
            told = measured_of(PlannedRun(drill), observed, events)
            metrics, _verdict = judge_measured(told)
            last = _last_arrivals(told)
        finally:
            for path in observed.report.files:
                Path(path).unlink(missing_ok=True)
        moved = moved_wrongly(told, metrics)
        measured = [*self._measured(drill, metrics, run, last, events), *invariants.moves(moved)]
        why = (*_machine(observed, metrics), *(metrics.inconclusive if _only_loss(measured) else ()))
        if not why:
            return (*run.found, *measured), ()
        return run.found, tuple(f"{each.invariant}: {each.text}; but {why[0]}" for each in measured)

    def _measured(
        self, drill: Drill, metrics: DrillMetrics, run: _Run, last: Mapping[int, int], events: list[Event]
    ) -> Iterator[Violation]:
        flows, edges, end_ns = run.observed.flows, run.observed.edges, run.observed.end_ns
        yield from invariants.host_routes(self._lab.fabric, events, edges, end_ns)
        yield from invariants.queue_pairs(drill, metrics, self._lab.fabric, flows)
        yield from invariants.control_group(metrics)
        if run.converged_ns is not None:
            yield from invariants.going_on(metrics, last, run.converged_ns, _TAIL_NS)


async def _timeline(lab: Lab, drill: Drill, traffic: LabTraffic, injector: Injector, start_ns: int) -> None:
    for moment in moments(drill.timeline.faults):
        crossing = transit_flows(lab.fabric, moment.faults, traffic.flows)
        await traffic.until(start_ns + moment.at_ns)
        await injector.carry_out(moment, crossing)
    await traffic.until(start_ns + drill.timeline.end_ns)


def _machine(observed: Observation, metrics: DrillMetrics) -> Iterator[str]:
    """Yield reasons why the machine, not the fabric, may have lost packets or let a queue pair fail.

    A busy machine causes neither. It takes a standstill of a good part of a queue pair's patience.
    """
    if observed.report.machine_drops:
        yield f"the machine itself dropped {observed.report.machine_drops} packets"
    still_ms = max((flow.largest_send_gap_ms for flow in metrics.flows), default=0.0)
    if observed.host is not None:
        still_ms = max(still_ms, observed.host.loop_lag_max_ms)
    if still_ms > _STILL_MS:
        yield f"the machine stood still for {still_ms:.0f} ms (limit {_STILL_MS:g} ms)"


def _only_loss(found: list[Violation]) -> bool:
    """Return True if only single packets are in question, which a short standstill can lose."""
    return {violation.invariant for violation in found} == {Invariant.CONTROL}


def _last_arrivals(measured: Measurement) -> Mapping[int, int]:
    """Return the arrival time of the newest packet by flow id."""
    from hpn.failover.analysis.metrics.byflow import by_flow

    arrivals = by_flow(measured.received, {"received_ns"})
    return {flow.id: int(arrivals.of(flow.id, "received_ns").max(initial=0)) for flow in measured.facts.flows}
