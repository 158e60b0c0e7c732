"""The traffic engine: constant-rate flows of a lab, carried by a few worker processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from hpn.testbed.events import EventSink
from hpn.testbed.kernel.ns import NetNs
from hpn.traffic.flows.flow import FlowSpec
from hpn.traffic.streams.qp import AckPolicy, RetryPolicy, ack_delay_ns
from hpn.traffic.workers.messages import (
    Message,
    Progress,
    Replace,
    Replaced,
    Setup,
    TrafficReport,
    WorkerReport,
)
from hpn.traffic.workers.placement import place
from hpn.traffic.workers.pool import WorkerPool

Follow = Callable[[int, Progress], None]
"""Function of a worker's number and its progress message, with ``highest``."""


class TrafficEngine(WorkerPool):
    """Flows between NICs in the given host namespaces; records go to ``out``. Call start, begin, ..., finish.

    ``follow`` is called with each progress message as it comes. Without ``keeps_records`` packets are only counted, and
    the engine ends by ``close``. ``clock_stands``: computing takes no time, so that a tick may be one system call.
    """

    MODULE = "hpn.traffic.streams.worker"
    REPORT = WorkerReport

    def __init__(
        self,
        flows: Sequence[FlowSpec],
        namespaces: Mapping[str, NetNs],
        out: Path,
        workers: int,
        sink: EventSink,
        *,
        progress: Callable[[Progress], None] | None = None,
        realtime: bool = False,
        tick_ns: int = 1_000_000,
        follow: Follow | None = None,
        keeps_records: bool = True,
        clock_stands: bool = False,
    ) -> None:
        super().__init__(flows, place(flows, workers), namespaces, out, sink, progress)
        self._realtime = realtime
        self._tick_ns = tick_ns
        self._follow = follow
        self._keeps_records = keeps_records
        self._clock_stands = clock_stands
        self._ack = AckPolicy(delay_ns=ack_delay_ns(map(RetryPolicy.of, flows)))

    async def replace(self, closes: Sequence[int], starts: Sequence[int], timeout_s: float = 5.0) -> None:
        """Close the queue pairs of some flows and start their replacement flows; return when every worker has done so.

        A closed queue pair sends nothing more, drops what arrives later, and can no longer go into error.
        """
        for index in self._workers:
            self._answers.pop((Replaced, index), None)
        self._tell_all(Replace(tuple(closes), tuple(starts)))
        await self._all(Replaced, timeout_s)

    async def finish(self, quiet_s: float = 0.1, limit_s: float = 2.0, timeout_s: float = 30.0) -> TrafficReport:
        """Stop sending, receive until ``quiet_s`` without packets, write all records, end the workers. MachineError on
        failure."""
        reports = await self._reports(WorkerReport, quiet_s, limit_s, timeout_s)
        return TrafficReport(
            workers=tuple(reports),
            softnet_drops=self._lost_by_machine(),
            sent_files=tuple(str(self._out / f"sent-{i}.bin") for i in self._workers),
            received_files=tuple(str(self._out / f"received-{i}.bin") for i in self._workers),
        )

    def _setups(self) -> list[Setup]:
        used = range(len(set(self._place.values())))
        return [
            Setup(
                index=index,
                out=str(self._out),
                nics=self._nics(index),
                senders=tuple(f for f in self._flows.values() if self._place[f.src_nic] == index),
                receivers=tuple(f for f in self._flows.values() if self._place[f.dst_nic] == index),
                tick_ns=self._tick_ns,
                offset_ns=index * self._tick_ns // len(used),
                ack_packets=self._ack.packets,
                ack_delay_ns=self._ack.delay_ns,
                realtime=self._realtime,
                keeps_records=self._keeps_records,
                tells_highest=self._follow is not None,
                clock_stands=self._clock_stands,
            )
            for index in used
        ]

    def _heard(self, worker: int, message: Message) -> None:
        if self._follow is not None and isinstance(message, Progress):
            self._follow(worker, message)
        super()._heard(worker, message)
