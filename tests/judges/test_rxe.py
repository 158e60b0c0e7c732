"""Our reliable connection against a real queue pair: Linux's Soft-RoCE takes ours for one of its own, and ours it.

For a guest whose kernel has rdma_rxe (``test_rxe_guest`` boots it): it makes a device in the machine's own namespace.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from hpn.testbed.kernel import ns
from hpn.traffic.io.sockets import open_raw_sender
from hpn.traffic.transport.inbox import Arrived
from hpn.traffic.transport.packets import Envelope, Opcode, Reth, pack_ip, pack_payload, pack_write
from hpn.traffic.transport.ranges import PSN_MASK
from hpn.traffic.transport.timers import ConstantTimer
from hpn.traffic.transport.work import Status, Transport, WorkRequest
from tests.judges.our_end import SENT_NS, SPORT, Ours, content_of, words_of
from tests.judges.rxe import DEVICES, OUR_IP, OUR_PORT, PEER_IP, PEER_PORT, Peer, dropping, joined, psn_is

IN_A_GUEST = "HPN_TESTS_MAY_MAKE_RDMA_DEVICES"
pytestmark = pytest.mark.skipif(IN_A_GUEST not in os.environ, reason="makes an RDMA device: in a guest only")

MTU = 4096
SIZES = (1, MTU - 1, MTU, MTU + 1, 3_000_001)
MIDDLE = 40 * MTU  # a message of 40 packets
LAST_PSN = PSN_MASK
_TIMEOUT = 14  # 67 ms a try
_SUCCESS, _RETRY_EXCEEDED = 0, 12  # ibv_wc_status


@dataclass(frozen=True)
class Link:
    """The judged and the judge."""

    namespace: ns.NetNs
    peer: Peer


@pytest.fixture(scope="module")
def link() -> Iterator[Link]:
    assert DEVICES.is_dir(), "this kernel has no InfiniBand"
    with joined() as namespace:
        peer = Peer()
        yield Link(namespace, peer)
        peer.close()


@contextmanager
def _connected(link: Link, first_psn: int = 7, retries: int = 7, r_key: int | None = None) -> Iterator[Ours]:
    """Another connection of both."""
    to_qpn = link.peer.create()
    link.peer.connect(first_psn, MTU, _TIMEOUT, retries)
    link.peer.receive(len(SIZES))
    transport = Transport(MTU, timer=ConstantTimer(4096 << _TIMEOUT), retry_count=retries, window_packets=128)
    ours = Ours(link.namespace, to_qpn, link.peer.rkey if r_key is None else r_key, transport, first_psn)
    try:
        yield ours
    finally:
        ours.close()


@contextmanager
def _counted(peer: Peer) -> Iterator[dict[str, int]]:
    """What the device counts in the meantime."""
    before, found = peer.counters(), dict[str, int]()
    yield found
    found.update({name: value - before[name] for name, value in peer.counters().items()})


def _send(link: Link, ours: Ours, sizes: tuple[int, ...]) -> None:
    """Messages of ours; the peer has them, whole, in order and once, and so have we been told."""
    for number, size in enumerate(sizes):
        request = WorkRequest(number, size, link.peer.address + _place(sizes, number), 0xA0000000 + number)
        ours.post(request, seed=number)
    assert ours.run(lambda: len(ours.completions) == len(sizes))
    assert [(end.request.id, end.status) for end in ours.completions] == [
        (number, Status.SUCCESS) for number in range(len(sizes))
    ]
    told = link.peer.completions(len(sizes), within_ms=1000)
    assert [(status, size, immediate) for _, status, _, size, immediate in told] == [
        (_SUCCESS, size, 0xA0000000 + number) for number, size in enumerate(sizes)
    ]
    for number, size in enumerate(sizes):
        assert link.peer.dump(_place(sizes, number), size) == content_of(size, MTU, number), f"message of {size} bytes"


def _take(link: Link, ours: Ours, sizes: tuple[int, ...], first_psn: int) -> None:
    """Messages of the peer; we have them, whole, in order and once, and so has it been told."""
    for number, size in enumerate(sizes):
        link.peer.fill(_place(sizes, number), content_of(size, MTU, number))
        link.peer.write(number, _place(sizes, number), size, number << 32, 0xB0000000 + number)
    ended: list[list[int]] = []

    def over() -> bool:
        if len(ours.arrived) == len(sizes):
            ended.extend(link.peer.completions(0))
        return len(ended) == len(sizes)

    assert ours.run(over), f"{len(ours.arrived)} messages arrived and {len(ended)} were completed"
    assert [(number, status) for number, status, *_ in ended] == [(number, _SUCCESS) for number in range(len(sizes))]
    assert ours.arrived == [Arrived(0xB0000000 + number, number << 32, size) for number, size in enumerate(sizes)]
    psn = first_psn
    for number, size in enumerate(sizes):
        words = words_of(size, MTU, number).tolist()
        whole = size - size % MTU
        addresses = [(number << 32) + at for at in range(0, size, MTU)]
        assert [ours.memory[at] for at in addresses][: whole // MTU] == words[: whole // MTU]
        got = b"".join(ours.payloads[psn + index & PSN_MASK] for index in range(len(words)))
        assert got == content_of(size, MTU, number), f"message of {size} bytes"
        psn += len(words)


def _place(sizes: tuple[int, ...], number: int) -> int:
    """Where a message lies in the peer's memory: one behind the other, each at the begin of a page."""
    return sum(-(-size // 4096) * 4096 for size in sizes[:number])


def _packets(*sizes: int) -> int:
    return sum(-(-size // MTU) for size in sizes)


def test_messages_of_all_sizes_reach_it_whole(link: Link) -> None:
    with _counted(link.peer) as counted, _connected(link) as ours:
        _send(link, ours, SIZES)
    assert ours.requester.counters.packets == counted["rcvd_pkts"] == _packets(*SIZES)
    assert ours.replies == counted["sent_pkts"]
    assert ours.requester.counters.packets_again == counted["duplicate_request"] == 0
    assert ours.damaged == counted["out_of_seq_request"] == 0
    behind = [7 + _packets(*SIZES[: number + 1]) for number in range(len(SIZES))]
    assert ours.completed == [(psn, sum(end <= psn + 1 for end in behind)) for psn, _ in ours.completed]
    assert ours.completed[-1][1] == len(SIZES)


def test_its_messages_of_all_sizes_reach_us_whole(link: Link) -> None:
    with _counted(link.peer) as counted, _connected(link) as ours:
        _take(link, ours, SIZES, 7)
    assert ours.taken == ours.responder.counters.packets == counted["sent_pkts"] == _packets(*SIZES)
    assert (ours.damaged, ours.responder.counters.naks, ours.responder.counters.duplicate_request) == (0, 0, 0)
    assert counted["completer_retry_err"] == counted["rcvd_seq_err"] == 0


@pytest.mark.parametrize("lost", [LAST_PSN - 1, LAST_PSN, 0, 1])
def test_our_numbers_begin_again_within_a_message_and_a_packet_is_lost_there(link: Link, lost: int) -> None:
    first = LAST_PSN - 19
    way = dropping(ns.current("peer"), PEER_PORT, psn_is(lost))
    with _counted(link.peer) as counted, _connected(link, first) as ours, way:
        _send(link, ours, (MIDDLE,))
    behind = MIDDLE // MTU - (lost - first & PSN_MASK)
    mine = ours.requester.counters
    assert (mine.packet_seq_err, mine.local_ack_timeout_err, mine.packets_again) == (1, 0, behind)
    assert (counted["out_of_seq_request"], counted["duplicate_request"]) == (1, 0)
    assert counted["rcvd_pkts"] == mine.packets - 1


@pytest.mark.parametrize("lost", [LAST_PSN - 1, LAST_PSN, 0, 1])
def test_its_numbers_begin_again_within_a_message_and_a_packet_is_lost_there(link: Link, lost: int) -> None:
    """What it counts is NAKs that say something new: of fewer than 16 packets before the gap ours is the first word."""
    first = LAST_PSN - 9
    way = dropping(link.namespace, OUR_PORT, psn_is(lost))
    with _counted(link.peer) as counted, _connected(link, first) as ours, way:
        _take(link, ours, (MIDDLE,), first)
    mine = ours.responder.counters
    assert (mine.naks, counted["rcvd_seq_err"], counted["completer_retry_err"]) == (1, 1, 1)
    assert mine.packets == counted["sent_pkts"] - 1 == MIDDLE // MTU + mine.out_of_sequence
    assert mine.duplicate_request == 0


def test_our_last_packet_is_lost_and_our_timer_finds_out(link: Link) -> None:
    way = dropping(ns.current("peer"), PEER_PORT, psn_is(7 + MIDDLE // MTU - 1))
    with _counted(link.peer) as counted, _connected(link) as ours, way:
        _send(link, ours, (MIDDLE,))
    mine = ours.requester.counters
    assert (mine.packet_seq_err, mine.local_ack_timeout_err) == (0, 1)
    assert counted["out_of_seq_request"] == 0
    # What it had and had not been asked to acknowledge is sent again too.
    assert mine.packets_again == counted["duplicate_request"] + 1 == MIDDLE // MTU % 16


def test_its_last_packet_is_lost_and_its_timer_finds_out(link: Link) -> None:
    way = dropping(link.namespace, OUR_PORT, psn_is(7 + MIDDLE // MTU - 1))
    with _counted(link.peer) as counted, _connected(link) as ours, way:
        _take(link, ours, (MIDDLE,), 7)
    assert (ours.responder.counters.naks, counted["rcvd_seq_err"]) == (0, 0)
    assert counted["completer_retry_err"] == 1


def test_its_last_acknowledgement_is_lost_and_it_knows_what_we_send_again(link: Link) -> None:
    last = 7 + MIDDLE // MTU - 1
    with _counted(link.peer) as counted, _connected(link) as ours, dropping(link.namespace, OUR_PORT, psn_is(last)):
        _send(link, ours, (MIDDLE,))
    mine = ours.requester.counters
    assert (mine.packet_seq_err, mine.local_ack_timeout_err) == (0, 1)
    assert mine.packets_again == counted["duplicate_request"] == MIDDLE // MTU % 16


def test_our_last_acknowledgement_is_lost_and_we_know_what_it_sends_again(link: Link) -> None:
    last = 7 + MIDDLE // MTU - 1
    way = dropping(ns.current("peer"), PEER_PORT, psn_is(last))
    with _counted(link.peer) as counted, _connected(link) as ours, way:
        _take(link, ours, (MIDDLE,), 7)
    assert counted["completer_retry_err"] == 1
    assert ours.responder.counters.duplicate_request == ours.taken - MIDDLE // MTU > 0


def test_both_give_up_on_a_peer_that_says_nothing(link: Link) -> None:
    with _counted(link.peer) as counted, _connected(link, retries=2) as ours:
        ours.deaf = True
        link.peer.write(1, 0, MIDDLE, 0, 5)
        ours.post(WorkRequest(0, MIDDLE, link.peer.address, 5), 0)
        assert ours.run(lambda: bool(ours.completions))
        ours.run(lambda: False, within_s=1.0)
        ended = [status for number, status, *_ in link.peer.completions(1) if number == 1]
    assert [end.status for end in ours.completions] == [Status.RETRY_EXCEEDED]
    assert ours.requester.counters.local_ack_timeout_err == 2
    assert (ended, counted["retry_exceeded_err"]) == ([_RETRY_EXCEEDED], 1)


def test_it_refuses_a_wrong_key_and_we_understand_that(link: Link) -> None:
    with _connected(link, r_key=link.peer.rkey ^ 0xFF) as ours:
        ours.post(WorkRequest(0, MTU, link.peer.address, 5), 0)
        assert ours.run(lambda: bool(ours.completions))
    assert [end.status for end in ours.completions] == [Status.ACCESS_ERROR]
    assert ours.requester.counters.packets == 1


_COVERED = {"ICRC": -1, "payload": 28 + 12 + 16 + 4 + 20, "PSN": 28 + 11, "identification": 5, "source port": 21}
_LEFT_OUT = {"TTL": 8, "TOS": 1, "reserved byte": 28 + 4}


@pytest.mark.parametrize("where", [*_COVERED, *_LEFT_OUT])
def test_it_drops_what_was_changed_under_way_where_our_icrc_covers_it_and_only_there(link: Link, where: str) -> None:
    """One bit of a packet of ours is turned over; the packet as it was comes next and is taken, unless it has come."""
    with _counted(link.peer) as counted, _connected(link) as ours:
        whole = _one_packet(link, ours)
        at = (_COVERED | _LEFT_OUT)[where]
        turned = bytearray(whole)
        turned[at] ^= 1
        _hand_over(link.namespace, bytes(turned))
        ours.run(lambda: False, within_s=0.1)
        first, replies = link.peer.completions(0), ours.replies
        _hand_over(link.namespace, whole)
        ours.run(lambda: ours.replies > replies)
        second = link.peer.completions(0, within_ms=100)
    if where in _COVERED:
        assert (first, len(second), counted["rcvd_pkts"], counted["duplicate_request"]) == ([], 1, 1, 0)
    else:
        assert (len(first), second, counted["rcvd_pkts"], counted["duplicate_request"]) == (1, [], 2, 1)


def _one_packet(link: Link, ours: Ours) -> bytes:
    """An IP packet with a whole message, as the product writes it."""
    to = Envelope(OUR_IP, PEER_IP, SPORT, ours.to_qpn, r_key=link.peer.rkey)
    payload = pack_payload(1, SENT_NS, 64)
    reth = Reth(link.peer.address, len(payload))
    udp_payload = pack_write(to, Opcode.WRITE_ONLY_IMMEDIATE, 7, payload, ack_requested=True, reth=reth, immediate=9)
    return pack_ip(to, udp_payload)


def _hand_over(namespace: ns.NetNs, whole: bytes) -> None:
    with open_raw_sender(namespace) as sender:
        sender.sendto(whole, (PEER_IP, 0))
