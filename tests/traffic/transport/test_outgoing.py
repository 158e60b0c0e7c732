"""A tick's packets through raw sockets and real interfaces: they arrive as they were, marked where a switch marks."""

from __future__ import annotations

import errno
import select
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from hpn.testbed.errors import MachineError
from hpn.testbed.kernel.nftables.nft import Nft
from hpn.testbed.kernel.rtnetlink import rtnl, seg6
from hpn.testbed.kernel.rtnetlink.netlink import Netlink
from hpn.traffic.congestion.hop import Hop
from hpn.traffic.flows.ip_layer import IPV6
from hpn.traffic.io.recvmmsg import Batch, BatchReceiver
from hpn.traffic.io.sendmmsg import PacketRows
from hpn.traffic.io.sockets import open_raw_sender, open_receiver
from hpn.traffic.io.uring import Ring, open_ring
from hpn.traffic.transport.arrivals import Arrivals
from hpn.traffic.transport.incoming import FrameReader
from hpn.traffic.transport.outgoing import Outgoing
from hpn.traffic.transport.packets import CE, ECT_0, Envelope, Opcode
from hpn.traffic.transport.requester import Run
from hpn.traffic.transport.telemetry import EMPTY, Telemetry, write_trailer
from hpn.traffic.transport.work import WorkRequest
from tests.traffic import nets

MTU = 4096
DSCP = 26 << 2
TO = Envelope(nets.A_IP, nets.B_IP, 0xC123, 0x1234, DSCP | ECT_0)


def _message(packets: int, psn: int = 0, tail_bytes: int = MTU) -> Run:
    request = WorkRequest(psn, (packets - 1) * MTU + tail_bytes, 1 << 40, 99)
    return Run(request, 0, packets, psn, again=False)


def _words(run: Run) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.arange(run.psn, run.psn + run.count, dtype=np.uint64) << np.uint64(32)


@pytest.fixture(params=["sendmmsg", "ring"])
def ring(request: pytest.FixtureRequest) -> Callable[[], Ring | None]:
    """Both ways to the kernel, the second where it has it; made where it is used, as it belongs to a process."""
    if request.param == "sendmmsg":
        return lambda: None
    if open_ring(4) is None:
        pytest.skip("no io_uring with what is needed here")
    return lambda: Ring(256)


class Far:
    """The receiving end, at host b."""

    def __init__(self, net: nets.Net, ip: str = nets.B_IP) -> None:
        self.reader = FrameReader(MTU, [ip])
        self._receiver = BatchReceiver(64, self.reader.row_bytes, tos=True, ip=self.reader.ip)
        self._socket = open_receiver(net.b, ip, tos=True)

    def fileno(self) -> int:
        """Readable when something has arrived."""
        return self._socket.fileno()

    def batches(self) -> Iterator[tuple[Batch, Arrivals]]:
        """All that has arrived."""
        while self._receiver.receive(self._socket.fileno(), 0):
            batch = self._receiver.take()
            assert batch is not None
            yield batch, self.reader.read(batch)


@pytest.mark.kernel
@pytest.mark.parametrize("marking", [True, False])
def test_a_batch_arrives_intact_with_the_mark_that_a_switch_set(marking: bool, ring: Callable[[], Ring | None]) -> None:
    net = nets.chain(routers=1)
    if marking:
        ruleset = "table ip t { chain c { type filter hook forward priority 0; ip ecn set ce; }; }"
        Nft(net.routers[0]).run(ruleset)
    far, outgoing = Far(net), Outgoing(256, MTU, ring())
    hops = tuple(Hop(number, 2**40, 2**20, 10**9) for number in range(8))
    telemetry = Telemetry(9, hops, write_trailer(hops))
    with open_raw_sender(net.a) as sender:
        path = outgoing.open_path(sender.fileno(), TO, ack_every=16)
        runs = [_message(40), _message(1, 40), _message(3, 41, tail_bytes=1001), _message(1, 44, tail_bytes=3)]
        for run in runs:
            outgoing.add(path, run, _words(run), run.psn)
        outgoing.add_ack(path, 77, 0x60, 5)
        outgoing.add_cnp(path)
        outgoing.add_note(path, 0xABCDE, 7)
        outgoing.add_note(path, 0xABCDE, 8, 0x123)
        outgoing.add_probe(path, 8)
        outgoing.add_echo(path, telemetry)
        assert outgoing.send() == 51
    marked, words, replies, notes, reported = 0, [], [], list[tuple[int, int]](), list[Telemetry]()
    opcodes: list[int] = []
    for batch, found in far.batches():
        assert set(batch.tos.tolist()) == {DSCP | (CE if marking else ECT_0)}
        assert (found.damaged, found.foreign) == (0, 0)
        for arrived in found.runs:
            opcodes += arrived.packets.opcodes
            words += arrived.packets.words.tolist()
            marked += arrived.marked
        replies += [packet.opcode for _, packet in found.replies]
        reported += [packet.telemetry for _, packet in found.replies if packet.telemetry is not None]
        notes += [(packet.qpn, packet.immediate) for _, packet in found.replies if packet.immediate is not None]
    assert opcodes == [6, *([7] * 38), 9, 0x0B, 6, 7, 9, 0x0B]
    assert words == [*(psn << 32 for psn in range(44)), 0]  # of the last message's word there are 3 bytes
    probes = [Opcode.PROBE, Opcode.ECHO]
    assert replies == [
        Opcode.ACKNOWLEDGE,
        Opcode.CNP,
        Opcode.UC_SEND_ONLY_IMMEDIATE,
        Opcode.UD_SEND_ONLY_IMMEDIATE,
        *probes,
    ]
    assert reported == [Telemetry(8, (), EMPTY), telemetry]
    assert notes == [(0xABCDE, 7), (0xABCDE, 8)]
    assert marked == (45 if marking else 0)


@pytest.mark.kernel
def test_packets_over_ipv6_arrive_intact_and_without_a_udp_checksum(ring: Callable[[], Ring | None]) -> None:
    to = replace(TO, src_ip="fd00::1", dst_ip="fd00::2")
    net = nets.chain(mtu=4220)
    ends = ((net.a, nets.A_IF, to.src_ip, to.dst_ip, 1), (net.b, nets.B_IF, to.dst_ip, to.src_ip, 0))
    for space, port, own, there, peer in ends:
        with space.entered(), open("/proc/sys/net/ipv6/conf/all/disable_ipv6", "w") as file:
            file.write("0")
        known = seg6.add_neighbour6(port, there, nets.mac(peer, 0))  # else few packets would wait for the answer
        Netlink(space).run([seg6.add_address6(port, own), seg6.add_route6(f"{there}/128", port), known])
    far, outgoing = Far(net, to.dst_ip), Outgoing(256, MTU, ring(), IPV6)
    with open_raw_sender(net.a, layer=IPV6) as sender:
        paths = [outgoing.open_path(sender.fileno(), replace(to, sport=0xC000 + at), ack_every=16) for at in range(3)]
        run = _message(40)
        outgoing.add(paths[0], run, _words(run), 5)
        assert outgoing.send() == 40
        taken = replace(_message(30, 40), paths=[at % 3 for at in range(30)])
        outgoing.add_many([paths[at] for at in taken.paths], taken, _words(taken), 5)
        outgoing.add_ack(paths[1], 77, 0x60, 5)
        assert outgoing.send() == 31
    select.select([far], [], [], 5)
    words, replies, sports = list[int](), list[Opcode](), list[int]()
    for batch, found in far.batches():
        assert set(batch.tos.tolist()) == {DSCP | ECT_0}
        assert {bytes(row[2:]) for row in batch.sources} == {IPV6.packed(to.src_ip)}
        sports += [int.from_bytes(bytes(row[:2]), "big") for row in batch.sources]
        assert (found.damaged, found.foreign) == (0, 0)
        words += [word for arrived in found.runs for word in arrived.packets.words.tolist()]
        replies += [packet.opcode for _, packet in found.replies]
    assert sorted(words) == [psn << 32 for psn in range(70)]
    assert replies == [Opcode.ACKNOWLEDGE]
    assert sports == [0xC000] * 40 + [0xC000 + at % 3 for at in range(30)] + [0xC001]


@pytest.mark.kernel
def test_what_the_kernel_has_no_room_for_is_held_and_goes_first_next_time(ring: Callable[[], Ring | None]) -> None:
    net = nets.chain()
    Netlink(net.a).run([rtnl.add_tbf(nets.A_IF, 200_000_000, 10_000, 4_000_000)])
    far, outgoing = Far(net), Outgoing(128, MTU, ring())
    done = 0
    with open_raw_sender(net.a) as sender:
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 50_000)
        fd = sender.fileno()
        path = outgoing.open_path(fd, TO)
        for run in (_message(50, 0), _message(60, 50)):
            outgoing.add(path, run, _words(run), 0)
            done += outgoing.send()
            assert outgoing.held(fd) > 0
            assert outgoing.room == 128 - outgoing.held(fd)
        with pytest.raises(ValueError, match="100 packets with 100 words, and room for"):
            outgoing.add(path, _message(100), np.zeros(100, np.uint64), 0)
        while outgoing.held(fd):
            assert select.select([], [sender], [], 5)[1]
            done += outgoing.send()
    assert (done, outgoing.room) == (110, 128)
    arrived: list[int] = []
    while len(arrived) < 110:
        assert select.select([far], [], [], 5)[0]
        for _, found in far.batches():
            arrived += [run.psn + k for run in found.runs for k in range(len(run.packets))]
    assert arrived == list(range(110))


@pytest.mark.kernel
def test_each_send_hears_of_its_own_end_only(ring: Callable[[], Ring | None]) -> None:
    net, by = nets.chain(), ring()
    far, outgoing = Far(net), Outgoing(64, MTU, by)
    with open_raw_sender(net.a) as sender:
        path = outgoing.open_path(sender.fileno(), TO)
        for psn, packets in ((0, 3), (3, 6), (9, 2)):
            run = _message(packets, psn)
            outgoing.add(path, run, _words(run), 0)
            assert outgoing.send() == packets
            assert by is None or not len(by.enter(0))
    arrived: list[int] = []
    while sum(arrived) < 11:  # at once or, where another CPU carries some of them, in parts
        assert select.select([far], [], [], 5)[0]
        arrived += [len(run.packets) for _, found in far.batches() for run in found.runs]
    assert sum(arrived) == 11


@pytest.mark.kernel
def test_one_socket_that_is_full_holds_nobody_else_up(ring: Callable[[], Ring | None]) -> None:
    net = nets.chain()
    Netlink(net.a).run([rtnl.add_tbf(nets.A_IF, 1_000_000, 10_000, 4_000_000)])
    outgoing = Outgoing(128, MTU, ring())
    with open_raw_sender(net.a) as full, open_raw_sender(net.b) as free:
        full.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 20_000)
        there = outgoing.open_path(full.fileno(), TO)
        back = outgoing.open_path(free.fileno(), Envelope(nets.B_IP, nets.A_IP, 0xC124, 5))
        for _ in range(2):
            for path in (there, back):
                run = _message(20)
                outgoing.add(path, run, _words(run), 0)
            outgoing.send()
        assert 20 < outgoing.held(full.fileno()) < 40
        assert outgoing.held(free.fileno()) == 0


def test_a_socket_that_drains_while_it_is_held_keeps_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([(3, 0), (0, errno.EAGAIN), (2, 0), (0, errno.EAGAIN)])
    taken: list[int] = []

    def hand_over(rows: PacketRows, fd: int, first: int, end: int) -> tuple[int, int]:
        count, code = next(answers, (end - first, 0))
        psns = np.ascontiguousarray(rows.heads[first : first + count, 36:40]).view(">u4")[:, 0] & 0xFFFFFF
        taken.extend(psns.tolist())
        return count, code

    monkeypatch.setattr(PacketRows, "hand_over", hand_over)
    outgoing = Outgoing(64, MTU)
    path = outgoing.open_path(9, TO)
    for psn, done, held in ((0, 3, 7), (10, 2, 15), (20, 25, 0)):
        run = _message(10, psn)
        outgoing.add(path, run, _words(run), 0)
        assert (outgoing.send(), outgoing.held(9)) == (done, held)
    assert taken == list(range(30))


@pytest.mark.kernel
def test_packets_on_a_dead_link_are_lost_and_counted_not_an_error(ring: Callable[[], Ring | None]) -> None:
    net = nets.chain()
    outgoing, run = Outgoing(64, MTU, ring()), _message(5)
    with open_raw_sender(net.a) as sender:
        path = outgoing.open_path(sender.fileno(), TO)
        Netlink(net.a).run([rtnl.set_link(nets.A_IF, up=False)])
        outgoing.add(path, run, _words(run), 0)
        assert outgoing.send() == 5
        assert outgoing.refused == {sender.fileno(): {"ENETUNREACH": 5}}
    assert outgoing.room == 64


@pytest.mark.kernel
def test_an_interface_too_small_for_the_path_mtu_is_said() -> None:
    net = nets.chain(mtu=4140)
    outgoing, run = Outgoing(64, MTU), _message(5)
    with open_raw_sender(net.a) as sender:
        path = outgoing.open_path(sender.fileno(), TO)
        outgoing.add(path, run, _words(run), 0)
        with pytest.raises(MachineError, match=r"path MTU 4096 \(Message too long\).* needs an MTU of 4160 or more"):
            outgoing.send()
    net = nets.chain(mtu=4160)
    with open_raw_sender(net.a) as sender:
        outgoing = Outgoing(64, MTU)
        path = outgoing.open_path(sender.fileno(), TO)
        outgoing.add(path, _message(1), np.zeros(1, np.uint64), 0)
        assert outgoing.send() == 1
