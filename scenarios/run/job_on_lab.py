"""Job on a running lab: its queue pairs under path control, and the ports through which its workers send."""

from __future__ import annotations

import asyncio
import math
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from hpn.failover.analysis.job import DeathFact, JobFacts, SpanFact
from hpn.failover.analysis.paths import Looked
from hpn.failover.analysis.placement import DataPath, Placement, spreads
from hpn.scenarios.drill.spares import ActiveFlows
from hpn.scenarios.run.path_updates import Rechooser
from hpn.scenarios.run.queue_pairs_on_lab import LabQueuePairs
from hpn.scenarios.run.spraying import Sprayer, SprayPlan
from hpn.scenarios.run.standby_on_lab import Standby
from hpn.scenarios.run.values_on_lab import LabValues, carried_addresses, carried_share
from hpn.testbed.errors import MachineError
from hpn.testbed.events import Event, EventKind, now_ns
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.markers import stands_in
from hpn.testbed.routing.pathcontrol.actions import REBOUND, STEERING, Move
from hpn.testbed.routing.trace import Flow
from hpn.traffic.flows.flow import ROCE_PORT, FlowSpec
from hpn.traffic.flows.paths import CHOICES, drawn_again
from hpn.traffic.jobengine.engine import JobEngine
from hpn.traffic.jobengine.plan import JobPlan, Layout
from hpn.traffic.jobengine.rehash import Cause
from hpn.traffic.jobengine.setup import JobReport, Leaves

ALL_PLANES = "all planes"
"""Name of what a multipath queue pair takes, of whose packets nobody counts the planes."""

_WORKER_PPS = 5_000
"""Packets per second that one worker handles with ease when every queue pair's port is full.

A packet costs its two ends some 45 us of a core together. At 20,000 a second one worker was 93 % busy while the other
of two CPUs was idle. So this rate takes a quarter of one core and leaves room for bursts.
"""


class LabJob(LabQueuePairs):
    """Job of one drill; ``source_ports`` is a key of ``traffic.flows.paths.CHOICES``.

    An adapter knows the port through which a queue pair leaves. A worker does not, as the LAG decides, or the binding.
    So it is informed at the start, when path control moves a queue pair, and when a LAG's or an adapter's ports change.
    """

    engine: JobEngine

    def __init__(self, lab: Lab, plan: JobPlan, out: Path, source_ports: str) -> None:
        choice, seed = CHOICES[source_ports], lab.fabric.spec.seed
        super().__init__(lab, lambda router: choice.choose(plan.flows, router, (), seed))
        nics = {nic.name: nic for nic in lab.fabric.nics}
        share = carried_share(lab.fabric.spec, plan.transport)
        rates = {name: tuple(int(link.rate_bps * share) for link in nic.links) for name, nic in nics.items()}
        most_pps = sum(max((flow.rate_pps for flow in of), default=0.0) for of in _by_nic(self.flows))
        hosts = {nics[name].host for name in plan.nics}
        wanted = plan.restart is not None and plan.restart.spares
        self._standby = Standby(lab, plan, CHOICES[source_ports]) if wanted else None
        workers = max(1, min(os.cpu_count() or 1, len(hosts), math.ceil(most_pps / _WORKER_PPS)))
        self.engine = JobEngine(
            plan,
            self.flows,
            {name: nic.host for name, nic in nics.items()},
            rates,
            self._spaces,
            out,
            workers,
            lab.emit,
            spares=self._standby.addresses if self._standby is not None else None,
            scheduler=self if self._standby is not None else None,
            progress=self._progress,
            leaves=self._leave,
            addresses=carried_addresses(lab, plan.transport),
        )
        self._plan = plan
        self._homes = dict(self._sports)
        self._draws: Counter[int] = Counter()  # by flow
        self._told: dict[int, int] = {}  # by connection: the port last sent to the workers
        self._nic_of_lag = {(nic.host, nic.lag): nic.name for nic in lab.fabric.nics}
        self._carrying = [flow for flow, pair in zip(self.flows, plan.queue_pairs, strict=True) if not pair.grants]
        self._placements: list[Placement] = []
        tells = lab.fabric.spec.path_control.chosen.agent is not None  # else ToRs send no updates to hosts
        self._follows = CHOICES[source_ports].follows_ecmp and tells
        self._rechooser: Rechooser | None = None
        self._sprayer: Sprayer | None = None
        if plan.spray > 1:
            self._follows = False  # the sprayer follows ECMP changes instead
            self.begin = None  # no queue pair has one path
            spray = SprayPlan(plan.spray, CHOICES[source_ports].keeps_links_free)
            self._sprayer = Sprayer(lab, spray, self._sports, self._spray)
        self._values: LabValues | None = None
        if plan.transport.multipath is not None:
            self._follows = self._known = False  # the senders find bad paths themselves
            self.begin = None
            self._values = LabValues(lab, plan.transport.multipath, self.engine.lead)

    async def start(self) -> None:
        """Start the engine and put every queue pair under path control."""
        await super().start()
        self._quiet = self._lab.subscribe(self._heard)
        self._tell_ports(self.flows)
        self._follow()
        if self._sprayer is not None:
            await self._sprayer.start(self.flows)
        if self._values is not None:
            self._values.choose(self.flows)

    def planes(self) -> tuple[tuple[int, int], ...]:
        """Return as for streams; nothing where each packet takes another plane."""
        return super().planes() if self._values is None else ()

    async def take_over(self, dead: Collection[str]) -> None:
        """Raise MachineError: spares take over only when a job restarts. Drills that need this are refused at load."""
        raise MachineError(f"no spare can take over from {', '.join(dead)} while a job runs")

    async def layout(self) -> Layout | None:
        """Replace unreachable hosts by spares after a failure; see ``traffic.jobengine.plan.Scheduler``."""
        moved = await self._standby.replace_lost(self.flows) if self._standby is not None else None
        if moved is None:
            return None
        for each in moved.replaced:
            detail: dict[str, str | int | float] = {"by": each.by, "ranks": ",".join(map(str, each.ranks))}
            self._lab.emit(Event(now_ns(), EventKind.JOB, "job", each.host, "replaced", detail))
        return Layout(moved.replaced, moved.nics, tuple(moved.flows.get(flow.id, flow) for flow in self.flows))

    def laid_out(self, layout: Layout) -> None:
        """Put queue pairs with new ends under path control, as at the start; the workers already have the layout."""
        before = {flow.id: flow for flow in self.flows}
        begun = [flow for flow in layout.flows if flow != before[flow.id]]
        self._disconnect([before[flow.id] for flow in begun])
        self._release([before[flow.id] for flow in begun])
        self._bind(begun)
        self.flows = layout.flows
        self._roster = ActiveFlows(self.flows)
        self._sports.update((flow.id, flow.sport) for flow in begun)
        self._homes.update((flow.id, flow.sport) for flow in begun)
        self._ack_sports.update((flow.id, flow.ack_sport) for flow in begun)
        for connection in (number for flow in begun for number in (2 * flow.id, 2 * flow.id + 1)):
            self._told.pop(connection, None)
        self._connect(begun)
        self._tell_ports(begun)
        if self._rechooser is not None:
            self._rechooser.stop()
            self._follow()
        if self._sprayer is not None:
            self._sprayer.replaced(self.flows)
        if self._values is not None:
            self._values.choose(begun)

    def _spray(self, sports: Mapping[int, tuple[int, ...]]) -> None:
        for flow, used in sports.items():
            self._use(self.flows[flow], used)
        self.engine.spray(sports)

    def _follow(self) -> None:
        """Recompute paths from now on when ECMP groups change, if the choice of source ports supports it."""
        if self._follows:
            self._rechooser = Rechooser(self._lab, self.flows, self._sports, self._rehome)
            self._rechooser.start()

    def facts(self, report: JobReport) -> JobFacts:
        """Return the facts of the job for the analysis."""
        pairs = [pair for worker in report.workers for pair in worker.queue_pairs]
        restart = self._plan.restart
        return JobFacts(
            spans={
                program.rank: tuple(
                    SpanFact(s.label, s.kind, s.size_bytes, s.ranks, bool(s.expected)) for s in program.spans
                )
                for program in self._plan.programs
                if program.rank not in self._plan.background
            },
            queue_pairs=len(self.flows),
            tick_ns=self._plan.tick_ns,
            packets=sum(pair.packets for pair in pairs),
            packets_again=sum(pair.packets_again for pair in pairs),
            counters={nic.nic: dict(nic.counters) for worker in report.workers for nic in worker.nics},
            late_ns=max((worker.late_ticks for worker in report.workers), default=0) * self._plan.tick_ns,
            placements=tuple(self._placements),
            deaths=tuple(
                DeathFact(
                    death.at_ns, death.queue_pair, death.restarted_at_ns, death.first, death.replaced, death.silent
                )
                for death in self.engine.deaths
            ),
            checkpoint_every=restart.checkpoint_every if restart is not None else 0,
            samples=self._plan.samples,
            phantom_marks=self._plan.acts_on_marks and stands_in(self._lab.marking, self._lab.fabric.spec.ecn),
        )

    async def look(self, when: str, edges: int, _planned_ns: int | None) -> None:
        """Record the links that each queue pair crosses now, by its real path. Queries kernels, sends no packet."""
        at_ns, ways, acks = now_ns(), [], {}
        for flow in self._carrying:
            for links, dropped in self._ways_of(flow):
                ways.append(DataPath(flow.id, flow.name, links, dropped))
                self.looked.append(Looked(at_ns, flow.id, links, dropped))
                await asyncio.sleep(0)  # let the control plane run
            acks[flow.id] = self._ack_links(flow)
        self._looked_after, self._ways, self._ack_ways = edges, _links_of(ways), acks
        tiers = spreads(self._lab.fabric, ways, self._lab.link_up)
        self._placements.append(Placement(when, edges, at_ns, tuple(ways), tiers))

    def _plane(self, flow: FlowSpec) -> str:
        return super()._plane(flow) if self._values is None else ALL_PLANES

    def _ways_of(self, flow: FlowSpec) -> Iterator[tuple[tuple[str, ...], str | None]]:
        """Yield the links of a flow's data, and why they do not lead to its end; enough to judge its paths by."""
        if self._values is not None:
            yield from self._values.ways(flow)
            return
        sports = (self._sports[flow.id],) if self._sprayer is None else self._sprayer.source_ports(flow.id)
        for sport in sports:
            path = self._lab.path(Flow(flow.src_nic, flow.dst_nic, sport))
            yield path.links, path.dropped

    async def finish(self) -> JobReport:
        """Stop sending, drain, and release the queue pairs."""
        if self._rechooser is not None:
            self._rechooser.stop()
        if self._sprayer is not None:
            self._sprayer.stop()
        report = await self.engine.finish()
        if self._values is not None:
            self._values.close()
        self._quiet()
        self._given_up()
        return report

    def _heard(self, event: Event) -> None:
        """Handle a change of a LAG's active ports or of its steering."""
        if event.kind is EventKind.LAG:
            nic = self._nic_of_lag.get((event.node, event.subject))
            self._tell_ports([flow for flow in self.flows if nic in (flow.src_nic, flow.dst_nic)])
        elif event.kind is EventKind.PATH and event.what == REBOUND:
            self._tell_ports([self.flows[int(event.subject) // 2]])
        elif event.kind is EventKind.PATH and event.what in STEERING:
            self._tell_ports([flow for flow in self.flows if event.subject in (flow.src_ip, flow.dst_ip)])

    def _move(self, move: Move) -> None:
        super()._move(move)
        flow, is_ack = divmod(move.connection, 2)
        if not is_ack and self._sprayer is not None:
            self._sprayer.moved(self.flows[flow])
        self._tell_ports([self.flows[flow]])

    def _leave(self, leaves: Leaves) -> None:
        """Draw another source port for a queue pair, unless path control has moved it away from its home port.

        An ECN mark concerns the network, and the port of the NIC is the adapter's choice. So only a timeout may change
        that port.
        """
        flow, nic = self.flows[leaves.flow], self._lab.nics[self.flows[leaves.flow].src_nic]
        if self._sports[flow.id] != self._homes[flow.id]:
            return
        self._draws[flow.id] += 1
        taken = {self._sports[other.id] for other in self.flows if other.src_nic == flow.src_nic}
        port = nic.port_for(flow.dst_ip, self._sports[flow.id], ROCE_PORT)

        def fits(sport: int) -> bool:
            anywhere = leaves.cause is Cause.TIMEOUT or flow.port is not None
            return sport not in taken and (anywhere or nic.port_for(flow.dst_ip, sport, ROCE_PORT) == port)

        sport = drawn_again(flow, fits, self._lab.fabric.spec.seed, self._draws[flow.id])
        if sport is not None:
            self._rehome(flow.id, sport, leaves.cause)

    def _rehome(self, number: int, sport: int, why: str) -> None:
        """Give a queue pair's data another source port and make it the home port for path control."""
        flow, nic = self.flows[number], self._lab.nics[self.flows[number].src_nic]
        nic_host = self._lab.fabric.nic(flow.src_nic).host
        detail: dict[str, str | int | float] = {"old_sport": self._sports[number], "sport": sport, "why": why}
        self._lab.emit(Event(now_ns(), EventKind.PATH, nic_host, str(2 * number), "rehomed", detail))
        self._sports[number] = self._homes[number] = sport
        self._use(flow, (sport,))
        self.engine.move(number, sport)
        connection = replace(self._data(flow), home_sport=sport)
        nic.disconnect([connection.id])
        nic.connect([connection])  # may move it at once if this path does not reach the destination
        self._tell_ports([flow])

    def _tell_ports(self, flows: Sequence[FlowSpec]) -> None:
        """Send changed ports to the workers; connections of a LAG without an active port stay as they are."""
        if self._values is not None:
            self._values.look(flows)
            return
        ports = {}
        for flow in flows:
            nics = self._lab.nics
            data = nics[flow.src_nic].port_for(flow.dst_ip, self._sports[flow.id], ROCE_PORT)
            acks = nics[flow.dst_nic].port_for(flow.src_ip, self._ack_sports[flow.id], ROCE_PORT)
            ports.update({2 * flow.id: data, 2 * flow.id + 1: acks})
        news = {at: port for at, port in ports.items() if port is not None and self._told.get(at) != port}
        self._told.update(news)
        self.engine.ports(news)


def _by_nic(flows: Sequence[FlowSpec]) -> Collection[list[FlowSpec]]:
    found: dict[str, list[FlowSpec]] = {}
    for flow in flows:
        found.setdefault(flow.src_nic, []).append(flow)
    return found.values()


def _links_of(ways: Iterable[DataPath]) -> Mapping[int, Collection[str]]:
    """Return the links that each flow crosses, over all its source ports."""
    found: dict[int, set[str]] = {}
    for way in ways:
        found.setdefault(way.flow, set()).update(way.links)
    return found
