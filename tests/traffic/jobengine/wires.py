"""A job's lives in memory: one carrier with wires that deliver, lose and keep what it sends, run by run, as told.

What several workers and the fate of each packet are for is ``tests.traffic.jobengine.network``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from hpn.scenarios.drill.job import JobSpec, plan_of
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.presets import PRESETS
from hpn.traffic.collectives.rank import Timed
from hpn.traffic.flows.flow import recovery_qpns, requester_qpn, responder_qpn
from hpn.traffic.jobengine.carrier import Carrier
from hpn.traffic.jobengine.receiver import ReceivingEnd
from hpn.traffic.jobengine.sending_end import SendingEnd
from hpn.traffic.jobengine.setup import FIRST_LIFE, FailedOver, Incarnation, JobSetup, Leaves, QueuePair, Recovered
from hpn.traffic.multipath.sack import Sack
from hpn.traffic.transport.arrivals import ArrivedRun
from hpn.traffic.transport.ranges import PSN_MASK
from hpn.traffic.transport.requester import Run
from hpn.traffic.transport.responder import Reply
from hpn.traffic.transport.telemetry import Telemetry
from hpn.traffic.transport.work import Completion
from hpn.traffic.workers.messages import QpError
from tests.traffic.jobengine.network import setups
from tests.traffic.transport.link import batch, packets_of

MS = 1_000_000
TICK_NS = MS // 2
_RATE_BPS = 400_000_000
Deliver = Callable[[int], None]
"""Bring a packet to its carrier at that time."""


def setup_of(job: JobSpec) -> JobSetup:
    """A job on the smallest fabric, all of it in one worker."""
    (setup,) = setups(plan_of(job, build(PRESETS["tiny"].spec)), workers=1)
    rates = {nic: (_RATE_BPS,) * len(of) for nic, of in setup.port_rate_bps.items()}
    return replace(setup, port_rate_bps=rates, tick_ns=TICK_NS)


class Wires:
    """One carrier whose packets come back to it a tick later; ``lost`` says which flows' packets do not."""

    def __init__(self, setup: JobSetup) -> None:
        self.setup = setup
        self.now_ns = 0
        self.lost: Callable[[int], bool] = lambda flow: False
        self.deaths: list[QpError | FailedOver | Leaves | Recovered] = []
        self.notes = 0  # sent
        self.spans: list[tuple[int, Timed]] = []
        self.bytes_completed: Counter[int] = Counter()
        self.strangers = 0  # packets for queue pairs that are not there
        self.under_way: list[Deliver] = []
        self.start(FIRST_LIFE)

    def start(self, life: Incarnation) -> None:
        """Another life of the job begins."""
        self.life = life
        self.carrier = Carrier(self.setup, self, self._completed, self._timed, self.deaths.append, life)
        self.carrier.begin(self.now_ns)

    def run(self, for_ns: int) -> None:
        """Let time pass."""
        until_ns = self.now_ns + for_ns
        while self.now_ns < until_ns:
            self.now_ns += TICK_NS
            arriving, self.under_way = self.under_way, []
            for deliver in arriving:
                deliver(self.now_ns)
            self.carrier.tick(self.now_ns, self.now_ns + TICK_NS)

    def ended(self) -> set[int]:
        """Numbers of iterations that every rank has ended."""
        count = Counter(span.iteration for _, span in self.spans if span.span == 0)
        return {number for number, ranks in count.items() if ranks == len(self.setup.programs)}

    def data(self, sender: SendingEnd, run: Run, now_ns: int) -> None:
        """Put a run of packets on the wire."""
        flow, words = sender.pair.flow.id, sender.words(run)
        qpn = responder_qpn(flow, self.life.number)
        packets = zip(packets_of(run, self.setup.transport), words.tolist(), strict=True)
        whole = batch([replace(packet, word=word) for packet, word in packets])
        arrived = ArrivedRun(0, qpn, run.psn & PSN_MASK, True, 0, range(run.count), whole)
        if not self.lost(flow):
            self.under_way.append(lambda at_ns: self._data(arrived, at_ns))

    def reply(self, receiver: ReceivingEnd, reply: Reply) -> int:
        """Put an acknowledgement or a NAK on the wire."""
        flow = receiver.pair.flow.id
        qpn, psn = requester_qpn(flow, self.life.number), reply.psn & PSN_MASK
        if not self.lost(flow):
            self.under_way.append(lambda at_ns: self._answer(reply.nak, qpn, psn, at_ns))
        return 64

    def invalid(self, receiver: ReceivingEnd, psn: int) -> int:
        """No request of these tests is without sense."""
        raise AssertionError(f"{receiver.pair.flow.name} got nonsense at {psn}")

    def notify(self, receiver: ReceivingEnd) -> int:
        """Nothing marks packets here."""
        raise AssertionError(f"{receiver.pair.flow.name} was marked")

    def probe(self, sender: SendingEnd, now_ns: int) -> int:
        """No control of these tests asks for telemetry."""
        raise AssertionError(f"{sender.pair.flow.name} sends a probe")

    def echo(self, receiver: ReceivingEnd, telemetry: Telemetry) -> int:
        """No probes come."""
        raise AssertionError(f"{receiver.pair.flow.name} answers {telemetry}")

    def sack(self, receiver: ReceivingEnd, sack: Sack) -> int:
        """Everything here takes one path."""
        raise AssertionError(f"{receiver.pair.flow.name} says {sack}")

    def path_probe(self, sender: SendingEnd, path: int, now_ns: int) -> tuple[int, int]:
        """Everything here takes one path."""
        raise AssertionError(f"{sender.pair.flow.name} probes {path}")

    def note(self, pair: QueuePair, immediate: int, to_responder: bool, datagram: bool) -> None:
        """Put a note on the wire."""
        qpn = recovery_qpns(pair.flow.id)[to_responder]
        self.notes += 1
        if not self.lost(pair.flow.id):
            self.under_way.append(lambda at_ns: self._note(qpn, immediate, at_ns))

    def _note(self, qpn: int, immediate: int, at_ns: int) -> None:
        self.strangers += not self.carrier.on_note(qpn, immediate, at_ns)

    def _data(self, run: ArrivedRun, at_ns: int) -> None:
        self.strangers += not self.carrier.responders.on_data(run, at_ns)

    def _answer(self, nak: bool, qpn: int, psn: int, at_ns: int) -> None:
        hear = self.carrier.on_nak if nak else self.carrier.on_ack
        hear(qpn, psn, at_ns)

    def _completed(self, sender: SendingEnd, completion: Completion) -> None:
        self.bytes_completed[sender.pair.flow.id] += completion.request.size_bytes

    def _timed(self, rank: int, ended: Sequence[Timed]) -> None:
        self.spans += [(rank, each) for each in ended]
