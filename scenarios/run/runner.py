"""Run one drill as first process of its sandbox: lab up, traffic, faults on schedule, heal, analyse, judge, write.

This is DESIGN's data flow in one place; every step is a function of another package.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from hpn.failover.faults.moments import Moment, moments
from hpn.failover.inject.injector import Injector
from hpn.failover.sampling.host import HostSampler
from hpn.failover.sampling.ports import PortSampler
from hpn.results.run.folder import RunFolder
from hpn.results.run.manifest import Manifest
from hpn.results.run.progress import Progress
from hpn.results.watch.event_lines import stuck_line
from hpn.scenarios.drill.blast_radius import transit_flows
from hpn.scenarios.drill.planned import PlannedRun
from hpn.scenarios.drill.spares import replacement_flows
from hpn.scenarios.run.captures import CaptureProcess
from hpn.scenarios.run.carriers import Carriers
from hpn.scenarios.run.client_site import site_of
from hpn.scenarios.run.clients_on_lab import LabClients
from hpn.scenarios.run.driver_evidence import write_driver_evidence
from hpn.scenarios.run.guard import Guard
from hpn.scenarios.run.healthy_routes import short_route_events
from hpn.scenarios.run.job_facts import job_facts
from hpn.scenarios.run.job_on_lab import LabJob
from hpn.scenarios.run.locating.beside import LocatingBeside, import_for
from hpn.scenarios.run.manifest import manifest_of
from hpn.scenarios.run.observation import Observation
from hpn.scenarios.run.paths_before import look
from hpn.scenarios.run.port_buffers import PortBuffers
from hpn.scenarios.run.queue_pairs_on_lab import LabQueuePairs
from hpn.scenarios.run.rdma_counters import DeviceCounters
from hpn.scenarios.run.restored_state import restored
from hpn.scenarios.run.run_order import Order
from hpn.scenarios.run.traffic_on_lab import LabTraffic
from hpn.testbed.background import current_task, ended_by_failures, in_background
from hpn.testbed.errors import HpnError, InputError, MachineError
from hpn.testbed.events import Event, EventKind, now_ns
from hpn.testbed.kernel.process.processes import own_pids, reap_strangers
from hpn.testbed.lab.expected_state import deviations
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.state import state
from hpn.testbed.vm import repeatable
from hpn.testbed.vm.engines import has_virtual_time
from hpn.traffic.flows.paths import CHOICES
from hpn.traffic.streams.engine import Follow

Tell = Callable[[Progress], None]
Check = Callable[[], None]
Crossings = Sequence[tuple[Moment, tuple[int, ...]]]
"""Moments of the timeline with the flows that may cross what each hits; found before traffic, to take no time then."""
_LEAD_NS = 200_000_000
_TELL_S = 0.25
_FULL_LINK = 0.95
INTERRUPTED = 128 + signal.SIGINT


def main(
    order: Order, planned: PlannedRun, folder: RunFolder, check: Check, tell: Tell, fail: Callable[[HpnError], None]
) -> int:
    """Run to the end; ``check`` raises MachineError when the folder is no longer ours.

    The exit code is 0 also when an error was passed to ``fail``, and INTERRUPTED after SIGINT.
    """
    import_for(planned.drill.locating)
    repeatable.begin()  # what was read and imported so far differs between commands that order the same run
    try:
        asyncio.run(_Run(order, planned, folder, check, tell).go())
    except HpnError as error:
        fail(error)
    except OSError as error:  # mostly a full disk
        where = f" ({error.filename})" if error.filename else ""
        way_out = "free some space, or choose another --out"
        if error.errno == errno.ENOENT:
            way_out = "run it again, and leave its files alone"
        fail(MachineError(f"{error.strerror or error}{where}; {way_out}"))
    except asyncio.CancelledError:
        return INTERRUPTED
    return 0


class _Run:
    def __init__(self, order: Order, planned: PlannedRun, folder: RunFolder, check: Check, tell: Tell) -> None:
        self._planned, self._drill = planned, planned.drill
        self._order = order
        self._folder = folder
        self._check = check
        self._tell = tell
        self._events: list[Event] = []
        self._told = 0  # number of events already checked for progress messages
        self._start_ns = 0

    async def go(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, current_task().cancel)
        with ended_by_failures():
            await self._whole()

    async def _whole(self) -> None:
        started_at, began_ns = datetime.now(UTC).astimezone().isoformat(), now_ns()
        fabric = self._planned.fabric
        self._phase(f"starting {len(fabric.nodes)} nodes and {len(fabric.links)} links")
        try:
            queues = self._drill.job is not None and self._drill.job.controls_queues
            lab = Lab.start(fabric, self._events.append, in_order=queues)
            manifest = manifest_of(self._order, lab, started_at, began_ns)
            self._folder.write_manifest(manifest)
            asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, lambda: reap_strangers(lab.child_pids()))
            await lab.converged()
            self._events += short_route_events(lab)
            self._phase("converged")
            write_driver_evidence(self._folder.path, lab)
            observed = await self._measure(lab)
        finally:
            self._check()
            self._folder.write_events(sorted(self._events, key=lambda event: event.at_ns))
        told, took_ns = tuple(self._events), now_ns() - began_ns  # exits of processes are not reproducible
        lab.close()
        self._phase("analysing")
        self._judge(observed, told, replace(manifest, duration_s=took_ns / 1e9))

    async def _measure(self, lab: Lab) -> Observation:
        """Run traffic and faults and return the observations; the lab is healed in any case."""
        before, unlike = state(lab), deviations(lab)
        locating = LocatingBeside(lab, self._drill.locating)
        traffic = self._traffic(lab, locating.follow)
        client, devices, buffers = self._client(lab), DeviceCounters(lab), PortBuffers(lab)
        injector = Injector(lab, traffic)
        sampler, carriers = HostSampler(own_pids), Carriers(lab, self._order.engine)
        ports = PortSampler(lab.fabric, lab.requests, self._drill.sample, lab.marks)
        real_time = not has_virtual_time(self._order.engine)
        guard = Guard(lab, traffic.engine, traffic.begun, self._folder.path, self._check, processes=real_time)
        captures = CaptureProcess(self._drill, lab, self._folder.path)
        news: asyncio.Task[None] | None = None
        try:
            self._check()
            faults = self._drill.timeline.faults
            crossings = [(each, transit_flows(lab.fabric, each.faults, traffic.flows)) for each in moments(faults)]
            await traffic.start()
            await client.start()
            if traffic.knows_paths:
                await traffic.look("start", 0, None)
            lab.subscribe(guard.heard)
            gc.collect()
            gc.freeze()
            devices.before()
            buffers.before()
            sampler.start()
            self._start_ns = now_ns() + _LEAD_NS
            await locating.begin(traffic, self._start_ns)
            traffic.engine.begin(self._start_ns)
            client.begin(self._start_ns, self._start_ns + self._drill.timeline.end_ns)
            ports.start(self._start_ns)
            captures.begin(self._start_ns)
            news = in_background(self._relay(traffic, guard))
            await self._timeline(crossings, traffic, injector, guard, buffers)
            self._tell_stuck()
            ports.stop()
            locating.end()
            end_ns = now_ns()
            devices.after()
            buffers.after()
            client.terminate()
            sampler.stop()
            report = await traffic.finish()
            await captures.end()
            await client.end()
        finally:
            if news is not None:
                news.cancel()
            sampler.stop()
            ports.stop()
            captures.kill()
            self._check()  # the sandbox removes what this skips
            client.close(self._folder.path)
            devices.write(self._folder.path)
            locating.heal()
            await injector.heal()
            await traffic.engine.close()
        changed, host = await restored(lab, before), sampler.load(self._start_ns, end_ns)
        guard.last_look()
        job, of_client = job_facts(traffic, report, client, devices, host)
        return Observation(
            flows=traffic.flows,
            report=report,
            edges=tuple(injector.edges),
            start_ns=self._start_ns,
            end_ns=end_ns,
            host=host,
            differences=changed,
            ports=ports.sampled(),
            buffers=buffers.used(),
            samples=sampler.samples(self._start_ns, end_ns),
            waits=carriers.waits(sampler.samples()),
            paths=traffic.begin,
            looked=tuple(traffic.looked),
            deviations=unlike,
            job=of_client if job is None else job,
            beside=None if job is None else of_client,
            spans=client.records(),
        )

    def _traffic(self, lab: Lab, follow: Follow | None) -> LabQueuePairs:
        """Return the drill's traffic: its job, or the streams of its workload. InputError when they overload a link.

        ``follow``: hears the progress of streams.
        """
        job, workload, flows = self._drill.job, self._drill.workload, self._planned.flows
        if job is not None and self._planned.job is not None:
            return LabJob(lab, self._planned.job, self._folder.path, job.source_ports)
        how = workload.source_ports
        later = replacement_flows(lab.fabric, self._drill.timeline.faults, flows)
        known = workload.path_control
        stands = has_virtual_time(self._order.engine)
        out, tick_ns = self._folder.path, workload.tick_ns
        traffic = LabTraffic(lab, flows, out, tick_ns, later, how, known=known, clock_stands=stands, follow=follow)
        if CHOICES[how].keeps_links_free and traffic.spread.worst_load > _FULL_LINK:
            raise InputError(
                f"link {traffic.spread.worst_link} would carry {traffic.spread.worst_load:.0%} of its rate in a healthy"
                f" fabric; lower workload.load"
            )
        return traffic

    def _client(self, lab: Lab) -> LabClients:
        """Return the drill's client on the lab; without a client it is a no-op."""
        client = self._drill.client
        if client is not None:
            self._phase("preparing the client")
        polls, site = has_virtual_time(self._order.engine), site_of(self._drill)
        return LabClients(lab.fabric, lab.wiring.namespaces, lab.emit, client, site, polls=polls)

    async def _timeline(
        self, crossings: Crossings, traffic: LabQueuePairs, injector: Injector, guard: Guard, buffers: PortBuffers
    ) -> None:
        """Run the healthy phase, every edge and the settling; a loss found by the guard ends it at once."""
        self._phase("healthy")
        for moment, crossing in crossings:
            await look(traffic, injector, self._start_ns, moment.at_ns)
            await traffic.until_exactly(self._start_ns + moment.at_ns)
            guard.faults_begin()
            known = len(injector.edges)
            ways, ack_ways = traffic.ways(known), traffic.ack_ways(known)
            await injector.carry_out(moment, crossing, traffic.planes(), ways, ack_ways)
            for due in moment.due:
                self._news("fault", f"{due.planned.id}: {moment.kind} of {due.fault.target} ({due.fault.KIND})")
        await buffers.late(traffic.until, self._start_ns + self._drill.timeline.end_ns)
        await look(traffic, injector, self._start_ns, self._drill.timeline.end_ns)
        await traffic.until(self._start_ns + self._drill.timeline.end_ns)

    async def _relay(self, traffic: LabQueuePairs, guard: Guard) -> None:
        while True:
            await asyncio.sleep(_TELL_S)
            guard.look()
            self._tell_stuck()
            self._news("traffic", "", traffic)

    def _tell_stuck(self) -> None:
        """Report queue pairs that path control could not move since the last report."""
        line = stuck_line(self._events[self._told :])
        self._told = len(self._events)
        if line:
            self._news("stuck", line)

    def _judge(self, observed: Observation, events: tuple[Event, ...], manifest: Manifest) -> None:
        from hpn.scenarios.run.results import write_results  # it imports numpy, after the measurement

        self._check()
        write_results(self._folder, self._planned, observed, events, manifest, keep_records=self._order.keep_records)

    def _phase(self, name: str) -> None:
        self._events.append(Event(now_ns(), EventKind.PHASE, "", self._drill.name, name))
        self._news("phase", name)

    def _news(self, kind: str, text: str, traffic: LabQueuePairs | None = None) -> None:
        elapsed = max(0.0, (now_ns() - self._start_ns) / 1e9) if self._start_ns else 0.0
        goodput = dict(sorted(traffic.goodput.items())) if traffic is not None else {}
        self._tell(Progress(kind, text, elapsed, self._drill.timeline.end_ns / 1e9, goodput))
