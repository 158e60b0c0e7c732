"""The engine over real veths: every packet accounted for, every ICRC right, faults counted and survived."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from scapy.contrib.roce import BTH
from scapy.layers.inet import IP
from scapy.packet import Raw

from hpn.testbed.errors import MachineError
from hpn.testbed.events import Event, EventKind, now_ns
from hpn.testbed.kernel import linkwatch
from hpn.testbed.kernel.ns import NetNs
from hpn.testbed.kernel.rtnetlink import rtnl
from hpn.testbed.kernel.rtnetlink.netlink import Netlink
from hpn.traffic.flows.flow import FlowSpec, Transfers
from hpn.traffic.io.uring import open_ring
from hpn.traffic.streams import wire
from hpn.traffic.streams.engine import TrafficEngine
from hpn.traffic.streams.recordfile import RecordFile
from hpn.traffic.streams.records import FLAG_BAD_ICRC, RECEIVED, SENT
from hpn.traffic.streams.sender import Sender
from hpn.traffic.tools import iperf
from hpn.traffic.workers.messages import Message, Moves, Progress, TrafficReport
from hpn.traffic.workers.pool import MOVES_AT_ONCE
from hpn.traffic.workers.process import WorkerProcess
from tests.busy import Waiting
from tests.traffic import nets

MS = 10**6
_FLOOD = 5_000  # datagrams of 60 kB: more than twice what a worker's buffer holds


@dataclass
class Run:
    """What a run left behind."""

    report: TrafficReport
    sent: npt.NDArray[np.void]
    received: npt.NDArray[np.void]
    events: list[Event]

    def missing(self, flow: int) -> npt.NDArray[np.uint64]:
        got = self.received["seq"][(self.received["flow"] == flow) & (self.received["flags"] == 0)]
        return np.setdiff1d(np.arange(self.report.senders[flow].sent, dtype=np.uint64), got)


@dataclass
class Bench:
    """An engine under test and what it told."""

    net: nets.Net
    flows: Sequence[FlowSpec]
    out: Path
    workers: int = 2
    clock_stands: bool = False
    events: list[Event] = field(default_factory=list)
    progress: list[Progress] = field(default_factory=list)
    report: TrafficReport | None = None

    @asynccontextmanager
    async def sending(self) -> AsyncIterator[TrafficEngine]:
        """The engine, sending until the block ends; ``left`` tells then."""
        engine = TrafficEngine(
            self.flows,
            self.net.namespaces,
            self.out,
            self.workers,
            self.events.append,
            progress=self.progress.append,
            clock_stands=self.clock_stands,
        )
        try:
            await engine.start()
            engine.begin(now_ns() + 50 * MS)
            yield engine
            self.report = await engine.finish()
        finally:
            await engine.close()

    async def send_for(self, seconds: float) -> Run:
        """Let it send for so long."""
        async with self.sending():
            await asyncio.sleep(seconds)
        return self.left()

    def left(self) -> Run:
        """What the last run has left behind."""
        assert self.report is not None
        sent = np.concatenate([np.fromfile(f, SENT) for f in self.report.sent_files])
        received = np.concatenate([np.fromfile(f, RECEIVED) for f in self.report.received_files])
        return Run(self.report, sent, received, self.events)


async def until(condition: Callable[[], bool]) -> None:
    """Look ten times a second until it holds, for 20 s at most."""
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.1)


by_one_call_or_many = pytest.mark.parametrize("at_once", [False, True], ids=["a call a burst", "a call a tick"])
"""As on an ordinary clock, and as on one that stands while a worker computes."""


@pytest.mark.kernel
@pytest.mark.parametrize("path_mtu", [1024, 4096])
@pytest.mark.parametrize("workers", [1, 2])
@by_one_call_or_many
async def test_every_packet_arrives_once_and_the_records_agree(
    tmp_path: Path, path_mtu: int, workers: int, *, at_once: bool
) -> None:
    """a ---- b, 4 queue pairs each way"""
    bench = Bench(nets.chain(), nets.flows(8, 500, path_mtu=path_mtu, both_ways=True), tmp_path, workers, at_once)
    run = await bench.send_for(0.6)
    assert run.report.machine_drops == 0
    for flow in bench.flows:
        sent = run.sent[run.sent["flow"] == flow.id]
        received = run.received[run.received["flow"] == flow.id]
        total = run.report.senders[flow.id].sent
        assert total + run.report.senders[flow.id].slips > 150, "a busy machine gives some up, and says so"
        assert np.sort(received["seq"]).tolist() == list(range(total))
        assert np.repeat(sent["seq"], sent["count"]).size == total
        assert (sent["seq"] == np.cumsum(sent["count"]) - sent["count"]).all()
        assert set(sent["sport"].tolist()) == {flow.sport}
        burst = np.searchsorted(sent["seq"], received["seq"], side="right") - 1
        assert (received["sent_ns"] == sent["sent_ns"][burst]).all(), "the send time in the packet is the recorded one"
        assert (received["received_ns"] > received["sent_ns"] - MS // 20).all()
        assert run.report.senders[flow.id].acknowledged == total
    assert not run.received["flags"].any()
    assert not [e for e in run.events if e.kind is EventKind.QP]


@pytest.mark.kernel
async def test_transfers_are_sent_whole_with_a_pause_after_each_beside_an_even_stream(tmp_path: Path) -> None:
    """a ---- b, two queue pairs that send 20 packets every 100 ms, and an even one"""
    plan = Transfers(packets=20, every_ns=100 * MS)
    even, *timed = nets.flows(3, 1000)
    bench = Bench(nets.chain(), [even, *(replace(flow, transfers=plan) for flow in timed)], tmp_path)
    run = await bench.send_for(0.95)  # six transfers, also where the senders begin late
    assert run.report.machine_drops == 0
    if any(sender.slips for sender in run.report.senders.values()):
        pytest.skip("the machine is overloaded: a sender fell behind its plan")
    begins = []
    for flow in timed:
        sent = run.sent[run.sent["flow"] == flow.id]
        transfer, end = sent["seq"] // 20, (sent["seq"] + sent["count"] - 1) // 20
        assert (transfer == end).all(), "no burst reaches from one transfer into the next"
        times = [sent["sent_ns"][transfer == number] for number in range(int(transfer[-1]))]
        assert len(times) >= 6
        assert {int(sent["count"][transfer == number].sum()) for number in range(len(times))} == {20}
        assert all(before[-1] + 50 * MS < after[0] for before, after in pairwise(times)), "the pause is 80 ms"
        begins.append([int(each[0]) for each in times])
        assert run.missing(flow.id).size == 0
        assert run.report.senders[flow.id].acknowledged == run.report.senders[flow.id].sent
    assert all(abs(one - other) < 15 * MS for one, other in zip(*begins, strict=False)), "all begin at once"
    assert run.report.senders[even.id].sent > 500


@pytest.mark.kernel
async def test_progress_counts_up_to_what_was_sent(tmp_path: Path) -> None:
    bench = Bench(nets.chain(), nets.flows(2, 1000), tmp_path)
    run = await bench.send_for(0.5)
    assert len(bench.progress) >= 3
    counts = [sum(p.received.values()) for p in bench.progress]
    assert counts == sorted(counts)
    assert 0 < counts[-1] <= len(run.received)


@pytest.mark.kernel
@by_one_call_or_many
@pytest.mark.parametrize("path_mtu", [1024, 4096])
async def test_every_packet_on_the_wire_has_the_icrc_that_scapy_computes(
    tmp_path: Path, path_mtu: int, *, at_once: bool
) -> None:
    """a ---- b: frames seen at b; bursts of one and of several packets"""
    bench = Bench(nets.chain(), nets.flows(3, 4000, path_mtu=path_mtu), tmp_path, clock_stands=at_once)
    frames = Sniffer(bench.net.b)
    async with bench.sending():
        with frames:
            await _until(lambda: len(frames.of(wire.RC_SEND_ONLY)) > 300 and len(frames.of(wire.RC_ACKNOWLEDGE)) > 20)
    data, acks = frames.of(wire.RC_SEND_ONLY), frames.of(wire.RC_ACKNOWLEDGE)
    ids = {int.from_bytes(f[18:20], "big") for f in data}
    assert {0, 1, 2} <= ids, "bursts of three packets at least"
    for frame in frames.seen:
        ip, body = frame[14:], frame[42:-4]
        assert ip[6:8] == b"\x40\x00", "don't fragment"
        src, dst = (".".join(map(str, ip[k : k + 4])) for k in (12, 16))
        crc = wire.icrc(src, dst, int.from_bytes(ip[20:22], "big"), int.from_bytes(ip[4:6], "big"), body)
        assert frame[-4:] == crc.to_bytes(4, "little")
    for frame in [*data[:: len(data) // 40], *acks[:10]]:
        assert _scapy_icrc(frame) == frame[-4:]


class Sniffer:
    """Collects the RoCE frames that pass b's interface, both directions."""

    def __init__(self, ns: NetNs) -> None:
        self.seen: list[bytes] = []
        self._socket = ns.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_NONBLOCK, 0)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        with ns.entered():
            self._socket.bind(("w0", 3))  # ETH_P_ALL: outgoing frames too

    def __enter__(self) -> None:
        asyncio.get_running_loop().add_reader(self._socket.fileno(), self._read)

    def __exit__(self, *_failure: object) -> None:
        asyncio.get_running_loop().remove_reader(self._socket.fileno())
        self._socket.close()

    def _read(self) -> None:
        frame = self._socket.recv(10_000)
        if frame[12:14] == b"\x08\x00" and frame[36:38] == (4791).to_bytes(2, "big"):
            self.seen.append(frame)

    def of(self, opcode: int) -> list[bytes]:
        """Those of one opcode."""
        return [frame for frame in self.seen if frame[42] == opcode]

    def words(self) -> set[tuple[int, int]]:
        """Opcode and source port of each."""
        return {(frame[42], int.from_bytes(frame[34:36], "big")) for frame in self.seen}


async def _until(condition: Callable[[], bool]) -> None:
    """Wait for what is on the wire."""
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.02)


def _scapy_icrc(frame: bytes) -> bytes:
    packet = IP(frame[14:])
    body = frame[42:-4]
    bth = BTH(body[:12] + bytes(4))
    bth.icrc = None
    bth.payload = Raw(body[12:])
    packet["UDP"].remove_payload()
    packet["UDP"].add_payload(bth)
    return bytes(packet)[-4:]


@pytest.mark.kernel
@by_one_call_or_many
async def test_a_moved_queue_pair_uses_its_new_source_ports_and_loses_nothing(tmp_path: Path, *, at_once: bool) -> None:
    bench = Bench(nets.chain(), nets.flows(2, 2000), tmp_path, clock_stands=at_once)
    frames = Sniffer(bench.net.b)
    ports = {(wire.RC_SEND_ONLY, f.sport) for f in bench.flows} | {
        (wire.RC_ACKNOWLEDGE, f.ack_sport) for f in bench.flows
    }
    moved = {(wire.RC_SEND_ONLY, 0xFEDC), (wire.RC_ACKNOWLEDGE, 0xFEDD)}
    async with bench.sending() as engine:
        with frames:
            await _until(lambda: ports <= frames.words())
            moved_at = await engine.move(0, 0xFEDC)
            await engine.move_ack(0, 0xFEDD)
            await _until(lambda: moved <= frames.words())
            with bench.net.a.socket(socket.AF_INET, socket.SOCK_DGRAM) as selfish:
                selfish.bind((nets.A_IP, 0xFACE))
                with pytest.raises(MachineError, match="stays where it is"):
                    await engine.move(1, 0xFACE)
    run = bench.left()
    assert run.missing(0).size == run.missing(1).size == 0
    sent = run.sent[run.sent["flow"] == 0]
    assert set(sent["sport"][sent["sent_ns"] < moved_at].tolist()) == {bench.flows[0].sport}
    assert set(sent["sport"][sent["sent_ns"] > moved_at].tolist()) == {0xFEDC}
    assert set(run.sent["sport"][run.sent["flow"] == 1].tolist()) == {bench.flows[1].sport}
    assert frames.words() == ports | moved
    assert not run.received["flags"].any()


@pytest.mark.kernel
async def test_moves_given_at_once_share_messages_and_are_done_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(nets.chain(), nets.flows(3, 100), tmp_path, workers=1)
    told: list[Message] = []
    send = WorkerProcess.send

    def overhear(process: WorkerProcess, message: Message) -> None:
        told.append(message)
        send(process, message)

    monkeypatch.setattr(WorkerProcess, "send", overhear)
    count = 2 * MOVES_AT_ONCE + 2
    async with bench.sending() as engine:
        await asyncio.sleep(0.1)
        futures = [engine.move(n % 3, 0xF000 + n) for n in range(count)]
        alone = engine.move_ack(1, 0xFEED)
        await engine.stop_sending()
        assert alone.done(), "what was asked before the stop was done before it"
        times = [await future for future in futures]
        assert times == sorted(times)
    run = bench.left()
    moves = [message.moves for message in told if isinstance(message, Moves)]
    assert [len(each) for each in moves] == [MOVES_AT_ONCE, MOVES_AT_ONCE, 3]
    assert [move.sport for each in moves for move in each] == [*range(0xF000, 0xF000 + count), 0xFEED]
    assert run.missing(0).size == run.missing(1).size == run.missing(2).size == 0


@pytest.mark.kernel
async def test_a_link_that_is_down_costs_rate_times_outage(tmp_path: Path) -> None:
    """a ---- r ---- b, the link a-r is down at r's end for 300 ms"""
    bench = Bench(nets.chain(1), nets.flows(4, 1000, retry_count=7, ib_timeout=16), tmp_path)
    router = Netlink(bench.net.routers[0])
    instants: list[int] = []
    async with bench.sending():
        await asyncio.sleep(0.2)
        for up in (False, True):
            instants.append(now_ns())
            router.run([rtnl.set_link(nets.B_IF + 1, up=up)])
            if up:  # an interface that goes down loses its neighbours and routes
                router.run(nets.westward(bench.net, 1))
            linkwatch.carry_out(router, [nets.B_IF + 1])  # else up to a second later, where other links change too
            linkwatch.carry_out_far(router, [nets.B_IF + 1])
            instants.append(now_ns())
            await asyncio.sleep(0.3)
    run = bench.left()
    shortest, longest = (instants[2] - instants[1]) / MS, (instants[3] - instants[0]) / MS
    for flow in bench.flows:
        missing = run.missing(flow.id)
        sends = run.sent[run.sent["flow"] == flow.id]
        at = np.repeat(sends["sent_ns"], sends["count"])[missing.astype(np.int64)]
        assert (np.diff(missing) == 1).all(), "one hole"
        assert at.min() >= instants[0]
        slack = run.report.senders[flow.id].send_gap_max_ns / MS + 2  # period 1 ms
        assert at.max() <= instants[3] + slack * MS  # the kernel takes an interface back into use a little later
        assert shortest - slack <= missing.size <= longest + slack
        assert run.report.senders[flow.id].slips == 0 or slack > 10
    assert not [e for e in run.events if e.kind is EventKind.QP]


@pytest.mark.kernel
async def test_a_queue_pair_without_acknowledgements_errors_once_and_stops(tmp_path: Path) -> None:
    """a ---- r ---- b, the link r-b goes down for good; flow 1 has more patience"""
    patient = nets.flows(2, 1000, ib_timeout=20)[1]
    hasty = nets.flows(1, 1000, ib_timeout=12, retry_count=3)[0]  # 4 x 16.8 ms
    bench = Bench(nets.chain(1), [hasty, patient], tmp_path)
    async with bench.sending():
        await asyncio.sleep(0.2)
        Netlink(bench.net.b).run([rtnl.set_link(nets.B_IF, up=False)])
        down_ns = now_ns()
        await asyncio.sleep(0.4)
    run = bench.left()
    errors = [e for e in run.events if e.kind is EventKind.QP]
    assert [(e.node, e.subject, e.what) for e in errors] == [("a", hasty.name, "error")]
    assert errors[0].detail["reason"] == "retry exceeded"
    assert errors[0].at_ns - down_ns > 60 * MS
    last = {f: run.sent["sent_ns"][run.sent["flow"] == f].max() for f in (0, 1)}
    assert last[0] <= errors[0].at_ns < last[1]
    assert run.missing(0).size > 40


@pytest.mark.kernel
async def test_a_stand_in_sends_from_its_takeover_on_and_the_closed_queue_pair_does_not_die(tmp_path: Path) -> None:
    """a ---- b, which goes away; flow 2 takes the place of 0 before its retries are used up, 1 waits until they are"""
    first = nets.flows(2, 1000, ib_timeout=15, retry_count=7)  # 8 x 134 ms
    bench = Bench(nets.chain(), [*first, replace(nets.flows(3, 1000, ib_timeout=20)[2], replaces=0)], tmp_path)
    async with bench.sending() as engine:
        await asyncio.sleep(0.2)
        Netlink(bench.net.b).run([rtnl.set_link(nets.B_IF, up=False)])
        asked_ns = now_ns()
        await engine.replace([0], [2])
        replaced_ns = now_ns()
        await until(lambda: bool(bench.events))
        Netlink(bench.net.b).run([rtnl.set_link(nets.B_IF, up=True), *nets.westward(bench.net, 1)])
        await asyncio.sleep(0.3)
    run = bench.left()
    sent = {flow: run.sent["sent_ns"][run.sent["flow"] == flow] for flow in (0, 1, 2)}
    assert sent[0].max() <= replaced_ns
    assert sent[2].min() >= asked_ns
    assert sent[2].max() > sent[1].max()
    assert set(run.sent["sport"][run.sent["flow"] == 2].tolist()) == {bench.flows[2].sport}
    arrived = run.received[run.received["flow"] == 2]
    assert len(arrived) > 0, "real packets of the replacement flow, once b is back"
    assert not arrived["flags"].any()
    assert run.report.senders[2].acknowledged > 0
    died = [event.subject for event in run.events if event.kind is EventKind.QP]
    assert died == [bench.flows[1].name]
    assert run.report.senders[0].sent > run.report.senders[0].acknowledged, "it was closed with packets outstanding"


@pytest.mark.kernel
async def test_what_comes_after_a_queue_pair_was_closed_is_not_received(tmp_path: Path) -> None:
    """a ---- b, a's queue holds packets of flow 0 back until 1 stands in for it, as a dead host's memory may"""
    first, other = nets.flows(2, 1000, ib_timeout=18)
    bench = Bench(nets.chain(), [first, replace(other, replaces=0)], tmp_path, workers=1)

    def shape(rate_bps: int) -> None:
        Netlink(bench.net.a).run([rtnl.add_tbf(nets.A_IF, rate_bps, 16_000, 4 << 20)])

    async with bench.sending() as engine:
        await until(lambda: bool(bench.progress) and bench.progress[-1].received.get(0, 0) > 100)
        shape(10**5)
        await until(lambda: bench.progress[-1].sent[0] - bench.progress[-1].received[0] > 100)
        await engine.replace([0], [1])
        replaced_ns = now_ns()
        shape(10**10)
        await asyncio.sleep(0.2)
    run = bench.left()
    old = run.received[run.received["flow"] == 0]
    assert old["received_ns"].max() <= replaced_ns
    assert sum(worker.foreign for worker in run.report.workers) == run.missing(0).size > 50
    assert run.missing(1).size == 0


@pytest.mark.kernel
@by_one_call_or_many
async def test_refused_sends_are_counted_and_their_packets_missing(tmp_path: Path, *, at_once: bool) -> None:
    """a ---- b, a's own route goes away for a while"""
    bench = Bench(nets.chain(), nets.flows(1, 1000, ib_timeout=18), tmp_path, clock_stands=at_once)
    host = Netlink(bench.net.a)
    async with bench.sending():
        await asyncio.sleep(0.2)
        host.run([rtnl.delete_route(f"{nets.B_IP}/32", oif=nets.A_IF)])
        await asyncio.sleep(0.1)
        host.run([rtnl.add_route(f"{nets.B_IP}/32", oif=nets.A_IF)])
        await asyncio.sleep(0.2)
    run = bench.left()
    report = run.report.senders[0]
    assert set(report.send_errors) == {"ENETUNREACH"}
    missing = run.missing(0)
    assert (np.diff(missing) == 1).all()
    assert report.send_errors["ENETUNREACH"] <= missing.size


@pytest.mark.kernel
async def test_a_corrupted_packet_is_flagged_and_not_counted_as_received(tmp_path: Path) -> None:
    bench = Bench(nets.chain(), nets.flows(1, 500), tmp_path)
    async with bench.sending():
        await asyncio.sleep(0.2)
        header = wire.data_templates([0x13])
        header["seq"] = 7_000_000
        whole = header.tobytes() + bytes([wire.FILL]) * (4108 - 36)
        good = wire.icrc(nets.A_IP, nets.B_IP, 0xC999, 0, whole).to_bytes(4, "little")
        with bench.net.a.socket(socket.AF_INET, socket.SOCK_DGRAM) as rogue:
            rogue.setsockopt(socket.IPPROTO_IP, 10, 2)
            rogue.bind((nets.A_IP, 0xC999))
            for at in (4, 30, 2000):  # reserved byte: not covered; header; fill
                broken = bytearray(whole + good)
                broken[at] ^= 1
                rogue.sendto(broken, (nets.B_IP, 4791))
            rogue.sendto(b"nonsense", (nets.B_IP, 4791))
        await asyncio.sleep(0.1)
    run = bench.left()
    odd = run.received[(run.received["seq"] == 7_000_000) | (run.received["flags"] != 0)]
    assert sorted(odd["flags"].tolist()) == [0, FLAG_BAD_ICRC, FLAG_BAD_ICRC]
    workers = run.report.workers
    assert sum(w.icrc_bad for w in workers) == 2
    assert sum(w.foreign for w in workers) == 1


@pytest.mark.kernel
async def test_a_killed_worker_is_an_error_that_says_so(tmp_path: Path) -> None:
    bench = Bench(nets.chain(), nets.flows(2, 500), tmp_path)
    with pytest.raises(MachineError, match=r"traffic worker [01] ended"):
        await _kill_a_worker(bench)
    assert [e.what for e in bench.events if e.kind is EventKind.DAEMON] == ["died"]
    assert _children() == [], "close ended the other one"


async def _kill_a_worker(bench: Bench) -> None:
    """While it sends; the engine says so at once and again in the end."""
    async with bench.sending() as engine:
        await asyncio.sleep(0.1)
        os.kill(_children()[0], signal.SIGKILL)
        with pytest.raises(MachineError, match="killed by signal 9"):
            await asyncio.wait_for(engine.failed, 5)


def _children() -> list[int]:
    return [int(pid) for pid in Path("/proc/self/task/1/children").read_text().split()]


@pytest.mark.kernel
async def test_a_worker_that_stands_still_records_what_it_gives_up(tmp_path: Path) -> None:
    """a ---- b, the worker is stopped for 200 ms: it makes up for 11 ms"""
    bench = Bench(nets.chain(), nets.flows(2, 1000), tmp_path, workers=1)
    async with bench.sending():
        await asyncio.sleep(0.2)
        (pid,) = _children()
        os.kill(pid, signal.SIGSTOP)
        await asyncio.sleep(0.2)
        os.kill(pid, signal.SIGCONT)
        await asyncio.sleep(0.1)
    run = bench.left()
    for flow in bench.flows:
        sent = run.sent[run.sent["flow"] == flow.id]
        assert sent["given_up"].sum() == run.report.senders[flow.id].slips >= 180
        worst = int(sent["given_up"].argmax())
        # Not from the burst just before: the stop may fall between its tick and its stamp, which is then late too.
        gap_ns = int(sent["sent_ns"][worst]) - int(sent["sent_ns"][worst - 2])
        assert int(sent["given_up"][worst]) <= gap_ns / MS - 11 + 3, "a busy machine sends later than it counts"
        assert int(sent["count"].max()) <= 12, "packets that it makes up for"


@pytest.mark.kernel
@by_one_call_or_many
async def test_a_sender_that_a_slow_link_holds_up_records_nothing_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, at_once: bool
) -> None:
    """a ---- b, a's port carries half of what is due and queues more than a socket's buffer holds"""
    monkeypatch.setattr("hpn.traffic.io.sockets._BUFFER_BYTES", 50_000)
    net, (flow,), records = nets.chain(), nets.flows(1, 1000), RecordFile(tmp_path / "sent.bin", SENT)
    Netlink(net.a).run([rtnl.add_tbf(nets.A_IF, 4_000_000, 10_000, 1 << 30)])
    sender = Sender([flow], net.namespaces, records, MS, open_ring(64) if at_once else None)
    sender.begin(now_ns())
    away_ns = 0
    while sender.schedule.slips[0] < 100:
        sender.tick()
        asleep_ns = now_ns()
        await asyncio.sleep(0.001)
        away_ns = max(away_ns, now_ns() - asleep_ns)
    sender.close()
    records.close()
    sent = np.fromfile(records.path, SENT)
    assert sender.errors[0]["EAGAIN"] > 0
    if away_ns > 10 * MS:  # between ticks: one that the link held up for so long would be the sender's fault
        pytest.skip("the machine is overloaded: it gave the sender no CPU for longer than the sender makes up for")
    assert int(sent["given_up"].sum()) < 20, "a busy machine may add a little"


@pytest.mark.kernel
async def test_what_this_machine_drops_itself_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that does not read while more comes than its buffer holds, and a backlog that overflowed elsewhere."""
    backlog = tmp_path / "softnet_stat"
    backlog.write_text("00000009 00000002 00000000\n00000009 00000010 00000000\n")
    monkeypatch.setattr("hpn.traffic.workers.pool._SOFTNET", backlog)
    bench = Bench(nets.chain(), nets.flows(1, 500), tmp_path, workers=1)
    async with bench.sending():
        await asyncio.sleep(0.1)
        (pid,) = _children()
        os.kill(pid, signal.SIGSTOP)
        with bench.net.a.socket(socket.AF_INET, socket.SOCK_DGRAM) as flood:
            for _ in range(_FLOOD):
                flood.sendto(bytes(60_000), (nets.B_IP, 4791))
        os.kill(pid, signal.SIGCONT)
        backlog.write_text("00000009 00000003 00000000\n00000009 00000014 00000000\n")
    report = bench.left().report
    (worker,) = report.workers
    assert report.softnet_drops == 5
    assert worker.socket_drops > _FLOOD / 2
    assert report.machine_drops == worker.socket_drops + 5


@pytest.mark.kernel
def test_workers_end_when_the_engine_dies(tmp_path: Path) -> None:
    net, flows = nets.chain(), nets.flows(2, 500)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:

        async def start_and_die() -> None:
            engine = TrafficEngine(flows, net.namespaces, tmp_path, 2, lambda _: None)
            await engine.start()
            engine.begin(now_ns())
            os.write(writer, Path("/proc/self/task").joinpath(str(os.getpid()), "children").read_bytes())
            os.kill(os.getpid(), signal.SIGKILL)

        asyncio.run(start_and_die())
    os.close(writer)
    workers = [int(pid) for pid in os.read(reader, 100).split()]
    assert len(workers) == 2
    os.waitpid(child, 0)
    for _ in workers:  # process 1 inherits orphans: it can wait for them
        assert os.waitpid(-1, 0)[0] in workers


@pytest.mark.kernel
@by_one_call_or_many
async def test_a_path_mtu_that_does_not_fit_is_refused_with_the_mtu_it_needs(tmp_path: Path, *, at_once: bool) -> None:
    bench = Bench(nets.chain(mtu=1500), nets.flows(1, 500, path_mtu=4096), tmp_path, clock_stands=at_once)
    with pytest.raises(MachineError, match="MTU of 4140"):
        await bench.send_for(0.3)


@pytest.mark.kernel
async def test_an_address_that_is_not_there_is_refused_at_the_start(tmp_path: Path) -> None:
    bench = Bench(nets.chain(), nets.flows(1, 500), tmp_path)
    with bench.net.b.entered():
        os.system("ip address flush dev w0")
    with pytest.raises(MachineError, match=r"b\.r0: cannot use 10\.1\.0\.1:.*Cannot assign"):
        await bench.send_for(0.1)


@pytest.mark.kernel
async def test_our_goodput_and_iperf3s_agree_on_a_shaped_path(tmp_path: Path) -> None:
    """a ---- b, a's port shaped to 200 Mbit/s; both meters are offered 300

    tbf makes up for a late sender by its burst only, so on a busy machine both may fall short: by how much is bounded.
    """
    net, judging = nets.chain(), Waiting()
    Netlink(net.a).run([rtnl.add_tbf(nets.A_IF, 200_000_000, 50_000, 500_000)])
    judge = await iperf.udp(net.a, net.b, nets.B_IP, 300_000_000, 2, 4112, port=5202)
    bench, sending = Bench(net, nets.flows(4, 300_000_000 / 8 / 4112 / 4), tmp_path), Waiting()
    run = await bench.send_for(1.5)
    arrived = np.sort(run.received["received_ns"])
    steady = arrived[(arrived > arrived[0] + 300 * MS) & (arrived < arrived[0] + 1300 * MS)]
    ours = steady.size * 4112 * 8 / 1.0
    line_rate = 200_000_000 * 4112 / 4154
    assert judge.goodput_bps <= line_rate * 1.02
    assert ours <= line_rate * 1.02
    for waiting, goodput_bps in ((judging, judge.goodput_bps), (sending, ours)):
        if goodput_bps < line_rate * 0.9:
            waiting.skip_if_starved("a sender did not fill the link")
    assert ours == pytest.approx(judge.goodput_bps, rel=0.10)


@pytest.mark.kernel
@by_one_call_or_many
async def test_one_worker_carries_1024_queue_pairs_to_their_end(tmp_path: Path, *, at_once: bool) -> None:
    """Two sockets each: more than select() can look at, and than one io_uring has entries."""
    bench = Bench(nets.chain(), nets.flows(1024, 1, path_mtu=1024), tmp_path, workers=1, clock_stands=at_once)
    run = await bench.send_for(1.5)
    assert len(run.report.senders) == 1024
    assert run.report.machine_drops == 0
    assert len(np.unique(run.received["flow"])) == 1024, "every queue pair's packets arrived"
