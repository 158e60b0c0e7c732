"""The job engine: a job's ranks and their queue pairs, carried by a few worker processes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from hpn.testbed.background import in_background
from hpn.testbed.errors import HpnError
from hpn.testbed.events import Event, EventKind, EventSink, now_ns
from hpn.testbed.kernel.ns import NetNs
from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.job.restart import RestartPolicy
from hpn.traffic.jobengine.plan import Death, JobPlan, Scheduler
from hpn.traffic.jobengine.setup import (
    Abort,
    Aborted,
    FailedOver,
    Incarnation,
    JobReport,
    JobSetup,
    JobWorkerReport,
    Leaves,
    Ports,
    Recovered,
    Restart,
    Restarted,
    Spray,
    Values,
    WorkerPart,
)
from hpn.traffic.jobengine.watchdog import Watchdog
from hpn.traffic.multipath.settings import EntropyValue
from hpn.traffic.workers.messages import Begin, Message, NicSpec, Progress, QpError
from hpn.traffic.workers.pool import WorkerPool

_LEAD_NS = 50_000_000
"""Time from the Begin message to the begin of a job; the workers get ready twice as long before."""
_ANSWER_S = 5.0
"""Longest time that workers may take to answer."""


class JobEngine(WorkerPool):
    """A job between NICs in the given host namespaces; records go to ``out``. Call start, begin, ..., finish.

    ``port_rate_bps``: for each NIC, by port. All NICs of a host belong to one worker, so that transfers between its
    GPUs stay inside one process. When a queue pair fails, so does the job: all workers get Abort, and Restart when it
    is to run again.
    """

    MODULE = "hpn.traffic.jobengine.worker"
    REPORT = JobWorkerReport

    def __init__(
        self,
        plan: JobPlan,
        flows: Sequence[FlowSpec],
        nic_hosts: Mapping[str, str],
        port_rate_bps: Mapping[str, tuple[int, ...]],
        namespaces: Mapping[str, NetNs],
        out: Path,
        workers: int,
        sink: EventSink,
        *,
        spares: Mapping[str, str] | None = None,
        scheduler: Scheduler | None = None,
        progress: Callable[[Progress], None] | None = None,
        leaves: Callable[[Leaves], None] | None = None,
        addresses: Mapping[str, str] | None = None,
    ) -> None:
        """Create the engine; ``flows`` are the plan's with their chosen source ports, in its order.

        ``spares``: addresses of NICs that ranks may move to, by name. ``scheduler`` decides after a failure whether
        they move. ``leaves`` assigns a new path to a queue pair that is to leave its path. ``addresses``: of NICs, by
        name, in the place of those in ``flows``.
        """
        self._addresses = addresses or {}
        self._spares = spares or {}
        used = (nic for flow in flows for nic in (flow.src_nic, flow.dst_nic))
        nics = dict.fromkeys((*plan.nics, *used, *self._spares))
        hosts = {host: at % workers for at, host in enumerate(dict.fromkeys(nic_hosts[nic] for nic in nics))}
        super().__init__(flows, {nic: hosts[nic_hosts[nic]] for nic in nics}, namespaces, out, sink, progress)
        self._plan = plan
        self._scheduler = scheduler
        self._port_rate_bps = port_rate_bps
        self._leaves = leaves
        self.deaths: list[Death] = []
        self._alive = True
        self._return: asyncio.Task[None] | None = None
        limit_ns = None if plan.restart is None else plan.restart.watchdog_ns
        self._watchdog = None if limit_ns is None else Watchdog(limit_ns)

    def ports(self, ports: Mapping[int, int]) -> None:
        """Set the NIC port of each queue pair's packets: 2 x flow for data, 2 x flow + 1 for ACKs."""
        told: dict[int, dict[int, int]] = {}
        for connection, port in ports.items():
            flow = self._flows[connection // 2]
            worker = self._place[flow.dst_nic if connection % 2 else flow.src_nic]
            told.setdefault(worker, {})[connection] = port
        for worker, of_it in told.items():
            self._workers[worker].send(Ports(of_it))

    def spray(self, sports: Mapping[int, tuple[int, ...]]) -> None:
        """Send the data packets of queue pairs, by flow, from these source ports in turn."""
        told: dict[int, dict[int, tuple[int, ...]]] = {}
        for flow, ports in sports.items():
            told.setdefault(self._place[self._flows[flow].src_nic], {})[flow] = ports
        for worker, of_it in told.items():
            self._workers[worker].send(Spray(of_it))

    def lead(self, values: Mapping[int, tuple[EntropyValue, ...]]) -> None:
        """Send multipath queue pairs by these entropy values: 2 x flow for data, 2 x flow + 1 for ACKs."""
        told: dict[int, dict[int, tuple[EntropyValue, ...]]] = {}
        for connection, taken in values.items():
            flow = self._flows[connection // 2]
            for worker in {self._place[flow.src_nic], self._place[flow.dst_nic]}:
                told.setdefault(worker, {})[connection] = taken
        for worker, of_it in told.items():
            self._workers[worker].send(Values(of_it))

    async def finish(self, quiet_s: float = 0.1, limit_s: float = 2.0, timeout_s: float = 30.0) -> JobReport:
        """Stop sending, receive until ``quiet_s`` without packets, write all records, end the workers. MachineError on
        failure."""
        self._stay_dead()
        reports = await self._reports(JobWorkerReport, quiet_s, limit_s, timeout_s)
        return JobReport(
            workers=tuple(reports),
            softnet_drops=self._lost_by_machine(),
            span_files=tuple(str(self._out / f"spans-{i}.bin") for i in self._workers),
            message_files=tuple(str(self._out / f"messages-{i}.bin") for i in self._workers),
            retry_files=tuple(str(self._out / f"retries-{i}.bin") for i in self._workers),
            stamp_files=tuple(str(self._out / f"stamps-{i}.bin") for i in self._workers),
        )

    async def close(self) -> None:
        """End every remaining worker, whatever it is doing. The second call is a no-op."""
        self._stay_dead()
        await super().close()

    def _nics(self, worker: int) -> tuple[NicSpec, ...]:
        spares = (
            NicSpec(nic, ip, self._namespaces[nic].fd) for nic, ip in self._spares.items() if self._place[nic] == worker
        )
        nics = (*super()._nics(worker), *spares)
        return tuple(replace(nic, ip=self._addresses.get(nic.name, nic.ip)) for nic in nics)

    def _addressed(self, flow: FlowSpec) -> FlowSpec:
        of = self._addresses
        return replace(flow, src_ip=of[flow.src_nic], dst_ip=of[flow.dst_nic]) if of else flow

    def _part(self, worker: int, nics: Sequence[str]) -> WorkerPart:
        """Return a worker's part, with ranks at these NICs and queue pairs at the current flows."""
        plan = self._plan
        flows = map(self._addressed, self._flows.values())
        pairs = [replace(pair, flow=flow) for flow, pair in zip(flows, plan.queue_pairs, strict=True)]
        return WorkerPart(
            tuple(program for program, nic in zip(plan.programs, nics, strict=True) if self._place[nic] == worker),
            tuple(pair for pair in pairs if self._place[pair.flow.src_nic] == worker),
            tuple(pair for pair in pairs if self._place[pair.flow.dst_nic] == worker),
        )

    def _setups(self) -> list[JobSetup]:
        plan = self._plan
        used = sorted({*self._place.values()})
        parts = {index: self._part(index, plan.nics) for index in used}
        return [
            JobSetup(
                index=index,
                out=str(self._out),
                nics=self._nics(index),
                programs=parts[index].programs,
                senders=parts[index].senders,
                receivers=parts[index].receivers,
                transport=plan.transport,
                acks=plan.acks,
                control=plan.control,
                scale=plan.scale,
                choice=plan.choice,
                split=plan.split,
                failover=plan.failover,
                port_use=plan.port_use,
                recovery=plan.recovery,
                rehash=plan.rehash,
                port_rate_bps={
                    nic.name: tuple(rate // plan.slower for rate in self._port_rate_bps[nic.name])
                    for nic in self._nics(index)
                },
                tick_ns=plan.tick_ns,
                offset_ns=at * plan.tick_ns // len(used),
            )
            for at, index in enumerate(used)
        ]

    def _heard(self, worker: int, message: Message) -> None:
        if isinstance(message, FailedOver):
            name = self._flows[message.flow].name
            detail = {"flow": message.flow, "posted_again": message.requests}
            self._sink(Event(message.at_ns, EventKind.JOB, "job", name, "failed-over", detail))
            return
        if isinstance(message, Recovered):
            what = "returned" if message.again else "given-up"
            flow = self._flows[message.flow]
            self._sink(Event(message.at_ns, EventKind.JOB, "job", flow.name, what, {"flow": flow.id}))
            return
        if isinstance(message, Leaves):
            if self._leaves is not None:
                self._leaves(message)
            return
        super()._heard(worker, message)
        if isinstance(message, QpError):
            self._die(Death(message.at_ns, self._flows[message.flow].name), {"flow": message.flow})
        elif isinstance(message, Progress) and self._watchdog is not None:
            silent = self._watchdog.silent(message.at_ns, message.received, self._flows)
            if silent:
                self._die(Death(message.at_ns, "", silent=silent), {"silent": silent})

    def _die(self, death: Death, detail: Mapping[str, str | int | float]) -> None:
        """End this life of the job, if it is not over, and begin another if the job is restarted."""
        if not self._alive:
            return
        self._alive = False
        self.deaths.append(death)
        self._news(death.at_ns, "died", detail)
        self._ask(Abort(death.at_ns), Aborted)
        if self._plan.restart is not None:
            self._return = in_background(self._come_back(self._plan.restart))

    async def _come_back(self, policy: RestartPolicy) -> None:
        """Restart the job after the configured time; any error here becomes the engine's failure."""
        try:
            aborted = await self._all(Aborted, _ANSWER_S)
            life = Incarnation(len(self.deaths), max(answer.iteration for answer in aborted) + 1)
            moved = self._scheduler is not None and await self._move_to_spares(self._scheduler, life)
            wait_ns = self.deaths[-1].at_ns + policy.after_ns - 2 * _LEAD_NS - now_ns()
            await asyncio.wait({self.failed}, timeout=max(wait_ns, 0) / 1e9)
            if not moved:
                self._ask(Restart(life), Restarted)
                await self._all(Restarted, _ANSWER_S)
        except HpnError as error:
            self.give_up(error)
            return
        at_ns = max(self.deaths[-1].at_ns + policy.after_ns, now_ns() + _LEAD_NS)
        self.deaths[-1] = replace(self.deaths[-1], restarted_at_ns=at_ns, first=life.iteration)
        if self._watchdog is not None:
            self._watchdog.begin(at_ns)
        self._alive = True
        self._tell_all(Begin(at_ns))
        self._news(at_ns, "restarted", {"iteration": life.iteration})

    async def _move_to_spares(self, scheduler: Scheduler, life: Incarnation) -> bool:
        """Move ranks to other hosts with new queue pairs, if there are any; return True if they moved."""
        layout = await scheduler.layout()
        if layout is None:
            return False
        self.deaths[-1] = replace(self.deaths[-1], replaced=layout.replaced)
        self._flows = {flow.id: flow for flow in layout.flows}
        self._forget(Restarted)
        for index, worker in self._workers.items():
            await worker.send_all(Restart(life, self._part(index, layout.nics)))
        await self._all(Restarted, _ANSWER_S)
        scheduler.laid_out(layout)
        return True

    def _ask(self, question: Message, answer: type[Message]) -> None:
        """Send all workers a message that they answer, possibly again."""
        self._forget(answer)
        self._tell_all(question)

    def _forget(self, answer: type[Message]) -> None:
        """Drop previous answers of this type."""
        for index in self._workers:
            self._answers.pop((answer, index), None)

    def _stay_dead(self) -> None:
        """Begin no other life, and end none: nothing arrives while the workers finish."""
        self._watchdog = None
        if self._return is not None:
            self._return.cancel()

    def _news(self, at_ns: int, what: str, detail: Mapping[str, str | int | float]) -> None:
        self._sink(Event(at_ns, EventKind.JOB, "job", f"life {len(self.deaths)}", what, detail))
