"""The workers of a job without sockets and clocks: ``Carrier``s that a network in memory joins, in simulated time.

    Carrier 0 --data, replies--> fates --> Carrier 1, at its next tick

What the network does to the n-th data packet that enters it is the n-th fate: how many nanoseconds later each of its
copies arrives, none for a packet lost. When fates are used up packets arrive in order. The same of replies.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hpn.scenarios.drill.job import plan_of
from hpn.scenarios.drill.load import drill_from
from hpn.testbed.fabric.build import build
from hpn.testbed.files.document import parse
from hpn.traffic.collectives.rank import Timed
from hpn.traffic.congestion.hop import Hop
from hpn.traffic.flows.flow import requester_qpn, responder_qpn
from hpn.traffic.jobengine.carrier import Carrier
from hpn.traffic.jobengine.egress import run_bytes
from hpn.traffic.jobengine.plan import JobPlan
from hpn.traffic.jobengine.receiver import ReceivingEnd
from hpn.traffic.jobengine.sending_end import SendingEnd
from hpn.traffic.jobengine.setup import FailedOver, JobSetup, Leaves, QueuePair, Recovered
from hpn.traffic.multipath.sack import Sack, pack_sack, read_sack
from hpn.traffic.multipath.settings import EntropyValue
from hpn.traffic.transport.arrivals import ArrivedRun
from hpn.traffic.transport.packets import Opcode
from hpn.traffic.transport.ranges import PSN_MASK
from hpn.traffic.transport.requester import Run
from hpn.traffic.transport.responder import Reply
from hpn.traffic.transport.telemetry import Telemetry, write_trailer
from hpn.traffic.transport.work import Completion, Status
from hpn.traffic.workers.messages import NicSpec, QpError
from tests.traffic.transport.link import FINE, Fate, Wire, batch, packets_of

US, MS, S = 1_000, 1_000_000, 1_000_000_000
LATENCY_NS = 50 * US
TICK_NS = 100 * US
RATE_BPS = 200_000_000
REPLY_BYTES = 62
PROBE_BYTES = 262
VALUES_FROM = 50_000


def planned(job: str) -> JobPlan:
    """A drill's job on the preset ``tiny`` (4 hosts of 2 NICs), as its file says it behind ``job:``."""
    text = (
        f"drill: d\nsummary: s\ntopology: tiny\njob: {job}\ntimeline: {{healthy: 1 s}}\nexpect: [job_survives: yes]\n"
    )
    drill = drill_from(parse(text, "d.yaml"), Path())
    assert drill.job is not None
    return plan_of(drill.job, build(drill.topology))


def setups(plan: JobPlan, workers: int = 2) -> list[JobSetup]:
    """What the workers are told: hosts in turn, as ``JobEngine`` deals them out."""
    nics = [nic for flow in plan.flows for nic in (flow.src_nic, flow.dst_nic)]
    hosts = {host: at % workers for at, host in enumerate(dict.fromkeys(map(_host, [*plan.nics, *nics])))}
    return [
        JobSetup(
            index=index,
            out="",
            nics=tuple(NicSpec(nic, "", 0) for nic in dict.fromkeys(nics) if hosts[_host(nic)] == index),
            programs=tuple(
                program for program, nic in zip(plan.programs, plan.nics, strict=True) if hosts[_host(nic)] == index
            ),
            senders=tuple(pair for pair in plan.queue_pairs if hosts[_host(pair.flow.src_nic)] == index),
            receivers=tuple(pair for pair in plan.queue_pairs if hosts[_host(pair.flow.dst_nic)] == index),
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
            port_rate_bps={nic: (RATE_BPS, RATE_BPS) for nic in {*nics} if hosts[_host(nic)] == index},
            tick_ns=TICK_NS,
            offset_ns=0,
        )
        for index in range(workers)
    ]


def _host(nic: str) -> str:
    return nic.rpartition(".")[0]


@dataclass(frozen=True, slots=True)
class _UnderWay:
    """A packet in the network: for which queue pair, and what it is."""

    qpn: int
    data: Wire | None = None
    marked: bool = False  # data with a congestion mark, an acknowledgement with BECN
    psn: int = 0
    kind: str = ""  # of a reply: ack, nak, invalid or cnp; probe or echo
    telemetry: Telemetry | None = None
    value: int = 0
    sack: Sack | None = None


@dataclass
class Port:
    """``outward.Wire`` of one worker."""

    net: Network
    handed: list[tuple[int, str, int]] = field(default_factory=list)  # when, NIC and bytes of what was handed over
    now_ns: int = 0

    def data(self, sender: SendingEnd, run: Run, now_ns: int) -> None:
        """A run of data packets."""
        flow = sender.pair.flow
        self.handed.append((now_ns, flow.src_nic, run_bytes(run, self.net.transport.path_mtu)))
        words = sender.words(run).tolist()
        if run.paths:
            for k, (packet, word) in enumerate(zip(packets_of(run, self.net.transport), words, strict=True)):
                self._by_path(flow.id, run, k, replace(packet, word=word), now_ns)
            return
        for packet, word in zip(packets_of(run, self.net.transport), words, strict=True):
            data = replace(packet, word=word)
            self.net.data_packet(flow.src_nic, _UnderWay(responder_qpn(flow.id), data), now_ns)

    def _by_path(self, flow: int, run: Run, k: int, packet: Wire, now_ns: int) -> None:
        """One packet of many paths: a WRITE of its own."""
        index = run.first + k
        last = index == self.net.transport.packets(run.request.size_bytes) - 1
        opcode = Opcode.WRITE_ONLY_IMMEDIATE if last else Opcode.WRITE_ONLY
        data = replace(packet, opcode=opcode, address=run.request.address + index * self.net.transport.path_mtu)
        nic = self.net.nic_of[flow]
        if (flow, run.paths[k]) not in self.net.dark:
            value = VALUES_FROM + run.paths[k]
            self.net.data_packet(nic, _UnderWay(responder_qpn(flow), data, value=value), now_ns)

    def sack(self, receiver: ReceivingEnd, sack: Sack) -> int:
        """A selective acknowledgement."""
        flow = receiver.pair.flow
        read = read_sack(sack.psn & PSN_MASK, pack_sack(sack))
        receiver.reply_path(sack.value)
        if flow.id not in self.net.deaf:
            self.net.reply(_UnderWay(requester_qpn(flow.id), kind="sack", sack=read), self.now_ns)
        return REPLY_BYTES

    def path_probe(self, sender: SendingEnd, path: int, now_ns: int) -> tuple[int, int]:
        """A probe of a path."""
        flow = sender.pair.flow.id
        if (flow, path) not in self.net.dark:
            psn24 = (sender.requester.progress() - 1) & PSN_MASK
            probe = Wire(psn24, Opcode.WRITE_ONLY, 0, 0, 0, 0, True)
            self.net.reply(_UnderWay(responder_qpn(flow), probe, kind="path-probe", value=VALUES_FROM + path), now_ns)
        return path % 2, PROBE_BYTES

    def reply(self, receiver: ReceivingEnd, reply: Reply) -> int:
        """An acknowledgement, or a NAK."""
        if reply.nak:
            return self._reply(receiver, reply.psn, "nak")
        return self._reply(receiver, reply.psn, "ack", receiver.echo())

    def invalid(self, receiver: ReceivingEnd, psn: int) -> int:
        """A NAK that says that a request makes no sense."""
        return self._reply(receiver, psn, "invalid")

    def notify(self, receiver: ReceivingEnd) -> int:
        """A congestion notification."""
        return self._reply(receiver, 0, "cnp")

    def probe(self, sender: SendingEnd, now_ns: int) -> int:
        """A probe, which finds one switch."""
        flow = sender.pair.flow
        if flow.src_nic not in self.net.dead:
            hops = (self.net.hop(),)
            found = Telemetry(now_ns, hops, write_trailer(hops))
            self.net.reply(_UnderWay(responder_qpn(flow.id), kind="probe", telemetry=found), now_ns)
        return PROBE_BYTES

    def echo(self, receiver: ReceivingEnd, telemetry: Telemetry) -> int:
        """The answer to a probe."""
        flow = receiver.pair.flow
        if flow.id not in self.net.deaf:
            self.net.reply(_UnderWay(requester_qpn(flow.id), kind="echo", telemetry=telemetry), self.now_ns)
        return PROBE_BYTES

    def note(self, pair: QueuePair, immediate: int, to_responder: bool, datagram: bool) -> None:
        """Nothing recovers here."""
        raise AssertionError(f"{pair.flow.name} sends notes")

    def _reply(self, receiver: ReceivingEnd, psn: int, kind: str, becn: bool = False) -> int:
        flow = receiver.pair.flow
        self.handed.append((self.now_ns, flow.dst_nic, REPLY_BYTES))
        if flow.id not in self.net.deaf:
            self.net.reply(_UnderWay(requester_qpn(flow.id), None, becn, psn & PSN_MASK, kind), self.now_ns)
        return REPLY_BYTES


class Network:
    """A job's workers. ``marked``: whether the n-th data packet gets a congestion mark; ``dead``: NICs not heard."""

    def __init__(
        self,
        plan: JobPlan,
        data: Iterable[Fate] = (),
        replies: Iterable[Fate] = (),
        *,
        workers: int = 2,
        marked: Callable[[int], bool] = lambda _n: False,
    ) -> None:
        self.transport = plan.transport
        self.now_ns = S
        self.queue_bytes = 0  # that probes find
        self.dead: set[str] = set()
        self.deaf: set[int] = set()  # flows whose requesters hear nothing
        self.dark: set[tuple[int, int]] = set()  # flows and their paths that lose everything
        self.nic_of = {pair.flow.id: pair.flow.src_nic for pair in plan.queue_pairs}
        self.errors: list[QpError | FailedOver | Leaves | Recovered] = []
        self.completed: list[tuple[int, Completion]] = []
        self.timed: dict[int, list[Timed]] = {}
        self.packets = Counter[str]()
        self._data, self._replies, self._marked = iter(data), iter(replies), marked
        self._events: list[tuple[int, int, _UnderWay]] = []
        self._serial = 0
        self.ports = [Port(self) for _ in range(workers)]
        self.carriers = [
            Carrier(setup, port, self._on_completed, self._on_timed, self.errors.append)
            for setup, port in zip(setups(plan, workers), self.ports, strict=True)
        ]
        if plan.transport.multipath is not None:
            values = [EntropyValue(VALUES_FROM + path, path % 2) for path in range(plan.transport.multipath.paths)]
            connections = range(2 * (1 + max(pair.flow.id for pair in plan.queue_pairs)))
            for carrier in self.carriers:
                carrier.set_values(dict.fromkeys(connections, values), self.now_ns)
        self._of = {
            qpn: index
            for index, carrier in enumerate(self.carriers)
            for qpn in (
                *(requester_qpn(sender.pair.flow.id) for sender in carrier.senders),
                *(responder_qpn(receiver.pair.flow.id) for receiver in carrier.responders.ends),
            )
        }

    @property
    def senders(self) -> list[SendingEnd]:
        return [sender for carrier in self.carriers for sender in carrier.senders]

    @property
    def receivers(self) -> dict[int, ReceivingEnd]:
        return {receiver.pair.flow.id: receiver for carrier in self.carriers for receiver in carrier.responders.ends}

    def run(self, until: Callable[[], bool], limit_ns: int = 60 * S) -> None:
        """Let the job go on until something holds. AssertionError when that takes too long."""
        limit_ns += self.now_ns
        while not until():
            assert self._step(), "nothing will ever happen"
            assert self.now_ns < limit_ns, "it never ends"

    def iterations(self, count: int) -> None:
        """Begin, unless that was done, and go on until every rank has ended so many iterations; then end in order."""
        self.begin()
        ranks = [machine for carrier in self.carriers for machine in carrier.ranks.machines]
        self.run(lambda: all(machine.iteration >= count for machine in ranks))
        self.quiet()

    def begin(self) -> None:
        for carrier in self.carriers:
            carrier.begin(self.now_ns)

    def begun(self) -> int:
        """The iteration that every rank has begun."""
        return min(machine.iteration for carrier in self.carriers for machine in carrier.ranks.machines)

    def quiet(self) -> None:
        """Post nothing more, and let what was posted be acknowledged."""
        for carrier in self.carriers:
            carrier.ranks.stop()
        self.run(lambda: not self._events and all(sender.requester.outstanding_bytes == 0 for sender in self.senders))

    def pass_(self, ns: int) -> None:
        """Let time pass."""
        until_ns = self.now_ns + ns
        while self.now_ns < until_ns:
            if not self._step():
                self.now_ns = until_ns

    def data_packet(self, nic: str, packet: _UnderWay, now_ns: int) -> None:
        number = self.packets["data"]
        self.packets["data"] += 1
        fate = next(self._data, FINE)
        if nic not in self.dead:
            self._enter(replace(packet, marked=self._marked(number)), fate, now_ns)

    def reply(self, packet: _UnderWay, now_ns: int) -> None:
        self.packets[packet.kind] += 1
        fated = packet.kind not in {"cnp", "probe", "echo", "path-probe"}
        self._enter(packet, next(self._replies, FINE) if fated else FINE, now_ns)

    def hop(self) -> Hop:
        """State of the only switch port of this network, whose queue is what ``queue_bytes`` says."""
        return Hop(self.now_ns, self.packets["data"] * 4154, self.queue_bytes, 10 * RATE_BPS)

    def _enter(self, packet: _UnderWay, fate: Fate, now_ns: int) -> None:
        for late_ns in fate:
            self._serial += 1
            heapq.heappush(self._events, (now_ns + LATENCY_NS + late_ns, self._serial, packet))

    def _step(self) -> bool:
        """One tick of all workers, the next at which anything is to be done; False when nothing ever is."""
        due = [self._events[0][0]] if self._events else []
        due += [at for carrier in self.carriers if (at := carrier.next_ns()) is not None]
        busy = any(carrier.busy for carrier in self.carriers)
        if not busy and not due:
            return False
        skipped = 1 if busy else max(1, -(-(min(due) - self.now_ns) // TICK_NS))
        self.now_ns += skipped * TICK_NS
        arrived: list[list[_UnderWay]] = [[] for _ in self.carriers]
        while self._events and self._events[0][0] <= self.now_ns:
            packet = heapq.heappop(self._events)[2]
            arrived[self._of[packet.qpn]].append(packet)
        for port, carrier, packets in zip(self.ports, self.carriers, arrived, strict=True):
            port.now_ns = self.now_ns
            self._receive(carrier, packets)
            carrier.tick(self.now_ns, self.now_ns + TICK_NS)
        return True

    def _receive(self, carrier: Carrier, packets: Sequence[_UnderWay]) -> None:
        """Data first and replies then, as the worker does."""
        for qpn, run in _runs(packets):
            datas = [packet.data for packet in run if packet.data is not None]
            asked, marked = any(data.ack for data in datas), sum(packet.marked for packet in run)
            values, marks = [packet.value for packet in run], [packet.value for packet in run if packet.marked]
            rows = range(len(datas))
            arrived = ArrivedRun(0, qpn, datas[0].psn24, asked, marked, rows, batch(datas), values, marks)
            assert carrier.responders.on_data(arrived, self.now_ns)
        for packet in packets:
            match packet.kind:
                case "ack":
                    carrier.on_ack(packet.qpn, packet.psn, self.now_ns, packet.marked)
                case "nak":
                    carrier.on_nak(packet.qpn, packet.psn, self.now_ns)
                case "invalid":
                    carrier.on_refused(packet.qpn, Status.INVALID_REQUEST, self.now_ns)
                case "sack" if packet.sack is not None:
                    carrier.on_sack(packet.qpn, packet.sack, self.now_ns)
                case "cnp":
                    carrier.on_cnp(packet.qpn, self.now_ns)
                case "probe" if packet.telemetry is not None:
                    assert carrier.responders.on_probe(packet.qpn, packet.telemetry, self.now_ns)
                case "echo" if packet.telemetry is not None:
                    carrier.on_echo(packet.qpn, packet.telemetry, self.now_ns)

    def _on_completed(self, sender: SendingEnd, completion: Completion) -> None:
        self.completed.append((sender.pair.flow.id, completion))

    def _on_timed(self, rank: int, ended: Sequence[Timed]) -> None:
        self.timed.setdefault(rank, []).extend(ended)


def _runs(packets: Sequence[_UnderWay]) -> Iterator[tuple[int, list[_UnderWay]]]:
    """Consecutive packets of one queue pair, as a batch's reader finds them."""
    by_qpn: dict[int, list[list[_UnderWay]]] = {}
    for packet in packets:
        if packet.data is None:
            continue
        runs = by_qpn.setdefault(packet.qpn, [])
        last = runs[-1][-1].data if runs else None
        if last is not None and packet.data.psn24 == (last.psn24 + 1) & PSN_MASK:
            runs[-1].append(packet)
        else:
            runs.append([packet])
    for qpn, found in by_qpn.items():
        for run in found:
            yield qpn, run
