"""What a switch adds for those who choose paths: telemetry in packets (INT), and choosing among next hops itself.

Where the kernel has no discipline ``mmu`` they skip; tests/vm/test_uml_pfc.py runs them in virtual time.
"""

from __future__ import annotations

import socket
import struct
import subprocess
import time
from collections.abc import Sequence

import pytest

from hpn.testbed.fabric.balancing import Balance
from hpn.testbed.kernel.rtnetlink import rtnl
from hpn.testbed.kernel.rtnetlink.mmu import ClassCounters, Stuck
from tests.kernel.buffers_net import FORK, FRAME, LOSSLESS, OTHER, PAYLOAD, RATE, BufferNet, Offer, lossless, lossy

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(170)]
ROCE_PORT, INT_PROBE, INT_AT, HOP = 4791, 0xC0, 24, struct.Struct(">QQII")
LOSSY = {LOSSLESS: lossy(), OTHER: lossy()}


def fork(balance: Balance, gap_us: int = 0) -> BufferNet:
    """Return the FORK with two next hops at s1 for whatever goes to h3 and h4."""
    net = BufferNet(LOSSY, shape=FORK, balance=balance, gap_us=gap_us)
    for node, gateway in (("s2", "10.11.0.0"), ("s3", "10.12.0.0")):
        net.links[node].run([rtnl.add_route("10.1.0.0/24", gateway=gateway)])
    with net.spaces["s1"].entered():
        if balance is not Balance.BY_ECMP:
            with open("/proc/sys/net/ipv4/fib_multipath_hash_policy", "w") as file:
                file.write("1")
        hops = ("nexthop", "via", "10.11.0.1", "nexthop", "via", "10.12.0.1")
        for target in ("10.3.0.0/24", "10.4.0.0/24"):
            subprocess.run(["ip", "route", "add", target, *hops], check=True)
    return net


def by_way(net: BufferNet) -> tuple[int, int]:
    """Return the packets that s1 has sent to s2 and to s3."""
    return net.counters("s1", "s2").sent_packets, net.counters("s1", "s3").sent_packets


def way_of(net: BufferNet, sport: int) -> str:
    """Send five packets of one flow and return which way they took: 's2', 's3' or 'both'."""
    before = by_way(net)
    with net.spaces["h1"].socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, LOSSLESS << 2)
        sender.bind((net.address("h1"), sport))
        for _ in range(5):
            sender.sendto(bytes(100), (net.address("h3"), 9))
            time.sleep(0.002)  # one at a time: the last has left s1 when its counters are read
    took = [now - then for now, then in zip(by_way(net), before, strict=True)]
    assert sum(took) == 5
    return "s2" if took[0] == 5 else "s3" if took[1] == 5 else "both"


def test_a_flow_of_ecmp_has_one_link_and_a_sprayed_one_has_both() -> None:
    for balance, mbps in ((Balance.BY_ECMP, 100), (Balance.BY_QUEUE, 200), (Balance.BY_RANDOM, 200)):
        net = fork(balance)
        (count,) = net.offer([Offer("h1", "h3")])
        assert count.mbps(1.0) == pytest.approx(mbps, rel=0.06), balance


def test_queues_stay_short_where_packets_take_the_shortest_one() -> None:
    """At 90 % of both links one that comes finds a queue of a few packets at most; at random some find many."""
    longest = {}
    for balance in (Balance.BY_QUEUE, Balance.BY_RANDOM):
        net = fork(balance)
        (count,) = net.offer([Offer("h1", "h3", rate_bps=RATE * 18 // 10)])
        ports = [net.counters("s1", to) for to in ("s2", "s3")]
        longest[balance] = max(each.queue_max for each in ports)
        assert sum(each.sent_packets for each in ports) + sum(each.drops for each in ports) == count.sent
    assert longest[Balance.BY_QUEUE] <= 4 * FRAME
    assert longest[Balance.BY_RANDOM] > 2 * longest[Balance.BY_QUEUE]


def test_a_flowlet_stays_on_its_way_and_the_next_may_take_another() -> None:
    net = fork(Balance.BY_RANDOM, gap_us=50_000)
    net.offer([Offer("h1", "h3", rate_bps=RATE // 10)], 0.5)
    assert 0 in by_way(net), "packets 12 ms apart are one flowlet"
    ways = []
    for _ in range(20):
        ways.append(way_of(net, 40_000))
        time.sleep(0.06)  # longer than the gap, so the flowlet is over
    assert set(ways) == {"s2", "s3"}, "whole flowlets, on either way"


def test_resilient_hashing_moves_the_flows_of_a_lost_next_hop_alone() -> None:
    net = fork(Balance.BY_HASH, gap_us=60_000_000)
    ports = range(41_000, 41_024)
    before = {sport: way_of(net, sport) for sport in ports}
    assert set(before.values()) == {"s2", "s3"}
    _set(net, "s1", "s2", up=False)
    assert {sport: way_of(net, sport) for sport in ports} == dict.fromkeys(ports, "s3")
    _set(net, "s1", "s2", up=True)
    assert {sport: way_of(net, sport) for sport in ports} == dict.fromkeys(ports, "s3"), "none moves while it is in use"


def _set(net: BufferNet, node: str, to: str, *, up: bool) -> None:
    port, route = net.ports[node, to], ["ip", "route", "replace", "10.3.0.0/24"]
    net.links[node].run([rtnl.set_link(port, up=up)])
    if up:
        net.links[node].run([rtnl.add_neighbour(port, "10.11.0.1", "02:00:00:00:02:01")])
        with net.spaces[node].entered():
            route += ["nexthop", "via", "10.11.0.1", "nexthop", "via", "10.12.0.1"]
            subprocess.run(route, check=True)


def probe(net: BufferNet, room: int, beside: int = 0) -> list[tuple[int, int, int, int]]:
    """Send a packet that asks for telemetry from h1 to h3; return the records that it has when it arrives.

    ``beside``: so many packets go before it, and as many after it.
    """
    body = bytes([INT_PROBE]) + bytes(INT_AT - 1) + bytes([0, room, 0, 0]) + bytes(room * HOP.size)
    with net.spaces["h3"].socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.settimeout(5)
        receiver.bind((net.address("h3"), ROCE_PORT))
        with net.spaces["h1"].socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, LOSSLESS << 2)
            data = [(bytes(PAYLOAD), (net.address("h3"), 9))] * beside
            for each in (*data, (body, (net.address("h3"), ROCE_PORT)), *data):
                sender.sendto(*each)
            got = receiver.recv(2000)
    assert (len(got), got[:INT_AT], got[INT_AT + 1 : INT_AT + 4]) == (len(body), body[:INT_AT], bytes([room, 0, 0]))
    return [HOP.unpack_from(got, INT_AT + 4 + n * HOP.size) for n in range(got[INT_AT])]


def test_every_switch_on_the_way_writes_its_queue_bytes_time_and_rate() -> None:
    net = fork(Balance.BY_ECMP)
    begin = time.monotonic_ns()
    hops = probe(net, 8)
    assert [kbps for *_, kbps in hops] == [RATE // 1000, RATE // 1000, 2 * RATE // 1000]
    times = [at for at, *_ in hops]
    assert begin <= times[0] <= times[1] <= times[2] <= time.monotonic_ns()
    assert hops[-1][1] == sum(each.sent_bytes for each in _all(net, "s4", "h3")), "what the port sent, with this packet"
    assert {queue for _, _, queue, _ in hops} == {0}


def test_a_queue_shows_and_a_full_stack_is_left_alone() -> None:
    net = fork(Balance.BY_ECMP)
    hops = probe(net, 2, beside=20)
    assert len(hops) == 2
    assert 8 * FRAME < hops[0][2] < 20 * FRAME, "they come in twice as fast as they leave; 20 are behind it"
    assert hops[1][2] <= FRAME


def test_other_rdma_is_not_touched() -> None:
    net = fork(Balance.BY_ECMP)
    with net.spaces["h3"].socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.settimeout(5)
        receiver.bind((net.address("h3"), ROCE_PORT))
        with net.spaces["h1"].socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for body in (
                bytes([4]) + bytes(23) + bytes([0, 8]) + bytes(200),
                bytes([INT_PROBE]),
                bytes([INT_PROBE] * 30),
            ):
                sender.sendto(body, (net.address("h3"), ROCE_PORT))
                assert receiver.recv(2000) == body


@pytest.mark.parametrize("share", [0.2, 0.4, 0.8])
def test_a_slow_receiver_takes_the_rest_of_the_time(share: float) -> None:
    """After each pause the token bucket sends its burst at once, and the packet that it held: three frames more."""
    period = 10_000  # quanta of 512 bits
    net = BufferNet({LOSSLESS: lossless(), OTHER: lossy()})
    net.change("h3", "s2", stuck=Stuck(1 << LOSSLESS, round(share * period), period))
    (count,) = net.offer([Offer("h1", "h3")], 2.0, 0.0)
    most = 100 * 3 * FRAME * 8 / (period * 512)
    assert 100 * (1 - share) - 1 < count.mbps(2.0) < 100 * (1 - share) + most + 1
    assert sum(each.drops + each.headroom_drops for each in net.all_counters()) == 0
    assert net.counters("h1", "s1").paused_ns > 0, "it spreads to the sender"


def _all(net: BufferNet, node: str, to: str) -> Sequence[ClassCounters]:
    return net.links[node].queues().classes[net.ports[node, to]]
