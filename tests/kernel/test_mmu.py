"""Buffers of switch ports where the kernel has the discipline ``mmu``: PFC, classes, ECN, trimming, the watchdog.

See ``buffers_net`` for the network. tests/vm/test_uml_pfc.py runs this file in virtual time, where it is never skipped.
"""

from __future__ import annotations

import json
import socket
import struct
import subprocess
import time
from pathlib import Path

import pytest

from hpn.testbed.kernel.rtnetlink.mmu import Stuck
from tests.kernel.buffers_net import (
    DSCP,
    FRAME,
    LOSSLESS,
    OTHER,
    OTHER_DSCP,
    PAYLOAD,
    RATE,
    RING,
    BufferNet,
    Offer,
    lossless,
    lossy,
)

pytestmark = pytest.mark.kernel
TWO = (Offer("h1", "h3"), Offer("h2", "h3"))
PFC = {LOSSLESS: lossless(), OTHER: lossy()}


def test_an_incast_loses_nothing_and_is_shared_evenly() -> None:
    net = BufferNet(PFC)
    first, second = net.offer(TWO)
    assert (first.sent, second.sent) == (first.got, second.got)
    for each in (first, second):
        assert each.mbps(1.0) == pytest.approx(50, rel=0.05)
    port = net.counters("s2", "s1")
    assert port.tx_xoff > 10
    assert 0 <= port.tx_xoff - port.tx_xon <= 1
    assert port.held_max <= 40_000
    assert 0 < port.headroom_max <= 2 * FRAME
    assert sum(each.drops + each.headroom_drops for each in net.all_counters()) == 0


def test_without_pfc_the_same_incast_loses_half() -> None:
    net = BufferNet({LOSSLESS: lossy(), OTHER: lossy()})
    counts = net.offer(TWO)
    lost = sum(each.sent - each.got for each in counts)
    assert lost > 0.4 * sum(each.sent for each in counts)
    assert net.counters("s2", "h3").drops == lost


def test_a_sender_that_is_stopped_half_of_the_time_sends_at_half_its_rate() -> None:
    net = BufferNet(PFC)
    before = time.monotonic_ns()
    net.offer(TWO, drain=0.0)
    took = time.monotonic_ns() - before
    for host in ("h1", "h2"):
        paused = net.counters(host, "s1").paused_ns
        assert paused / took == pytest.approx(0.5, abs=0.04)
        assert net.counters("s1", host).pausing_ns == pytest.approx(paused, rel=0.02), "both ends of a cable agree"


@pytest.mark.parametrize(("dscp", "mbps"), [(DSCP, 50), (OTHER_DSCP, 90)])
def test_a_flow_past_the_congested_port_suffers_in_the_same_priority_alone(dscp: int, mbps: int) -> None:
    net = BufferNet(PFC)
    *_, victim = net.offer((*TWO, Offer("hv", "h4", dscp, rate_bps=90_000_000)))
    assert victim.mbps(1.0) == pytest.approx(mbps, rel=0.05)


@pytest.mark.parametrize(("share", "lossless_too"), [(1.0, True), (0.5, False)])
def test_headroom_of_the_formula_is_enough_for_a_long_cable_and_half_of_it_is_not(
    share: float, lossless_too: bool
) -> None:
    """2 ms of reaction: 75 kB arrive by the trunk of 300 Mbit/s after XOFF, but no more than the hosts send."""
    react_ns = 2_000_000
    headroom = int((2 * FRAME + 2 * FRAME + react_ns * 200_000_000 // 8 // 10**9) * share)
    net = BufferNet({LOSSLESS: lossless(headroom=headroom), OTHER: lossy()}, react_ns)
    counts = net.offer(TWO)
    lost = sum(each.sent - each.got for each in counts)
    assert (lost == 0) is lossless_too
    assert sum(each.headroom_drops for each in net.all_counters()) == lost


def test_a_dynamic_threshold_leaves_a_share_of_the_buffer_free() -> None:
    """One port that is held up at alpha 1 takes half of the buffer: b = alpha (B - b)."""
    dynamic = lossless(limit=0, alpha=1.0, xon_offset=2 * FRAME)
    net = BufferNet({LOSSLESS: dynamic, OTHER: lossy()}, buffer=200_000)
    net.offer(TWO)
    assert net.counters("s2", "s1").held_max == pytest.approx(100_000, abs=FRAME)
    assert sum(each.drops + each.headroom_drops for each in net.all_counters()) == 0


@pytest.mark.parametrize(("weights", "shares"), [((1, 1), (50, 50)), ((3, 1), (75, 25))])
def test_deficit_round_robin_divides_a_full_port_by_weight(weights: tuple[int, int], shares: tuple[int, int]) -> None:
    classes = {n: lossy(quantum=weight * FRAME) for n, weight in zip((LOSSLESS, OTHER), weights, strict=True)}
    net = BufferNet(classes)
    for count, share in zip(net.offer((Offer("h1", "h3"), Offer("h2", "h3", OTHER_DSCP))), shares, strict=True):
        assert count.mbps(1.0) == pytest.approx(share, rel=0.05)


def test_a_strict_class_goes_first() -> None:
    net = BufferNet({LOSSLESS: lossy(quantum=0), OTHER: lossy()})
    first, second = net.offer((Offer("h1", "h3"), Offer("h2", "h3", OTHER_DSCP)))
    assert first.got == first.sent
    assert second.mbps(1.0) < 5


def test_marks_follow_the_queue() -> None:
    net = BufferNet({LOSSLESS: lossy(kmin=10_000, kmax=20_000, pmax=0.1), OTHER: lossy()})
    first, second = net.offer(TWO)
    marked = sum(tos & 3 == 3 for tos in (*first.tos, *second.tos))
    port = net.counters("s2", "h3")
    assert port.marks >= marked > 0.9 * (first.got + second.got)
    assert sum(each.marks for each in net.all_counters()) == port.marks


def test_what_cannot_be_marked_is_not_marked() -> None:
    net = BufferNet({LOSSLESS: lossy(kmin=10_000, kmax=20_000, pmax=0.1), OTHER: lossy()})
    net.offer([Offer("h1", "h3", ecn=0), Offer("h2", "h3", ecn=0)])
    assert net.counters("s2", "h3").marks == 0


def test_what_would_be_dropped_is_cut_to_its_headers_and_arrives_first() -> None:
    net = BufferNet({LOSSLESS: lossy(trim=True), OTHER: lossy()}, trim_bytes=64, trim_class=5, trim_dscp=11)
    counts = net.offer(TWO)
    sizes = [size for each in counts for size in each.sizes]
    trimmed = sizes.count(64 - 28)
    assert trimmed == net.counters("s2", "h3").trims == sum(tos >> 2 == 11 for each in counts for tos in each.tos)
    assert trimmed + sizes.count(PAYLOAD) == sum(each.sent for each in counts) == len(sizes), "not one is lost"
    assert net.backlogs() == {0}


def test_lacp_and_routing_are_not_stopped() -> None:
    net = BufferNet(PFC)
    net.change("h3", "s2", stuck=Stuck(1 << LOSSLESS))
    stopped, control, other = net.offer([Offer("h1", "h3"), Offer("h2", "h3", 48, 10**7), Offer("hv", "h3", 0, 10**7)])
    assert stopped.got <= 2, "one in the token bucket, one at the driver"
    assert control.got == control.sent > 0
    assert other.got == other.sent > 0
    assert net.counters("s2", "h3").paused == 1


def test_a_port_that_is_stuck_stops_its_neighbour_until_it_is_well() -> None:
    net = BufferNet(PFC)
    net.change("h3", "s2", stuck=Stuck(1 << LOSSLESS))
    net.offer([Offer("h1", "h3")], 1.0, 0.0)
    assert net.counters("h1", "s1").paused == 1, "it spreads to the sender"
    assert net.counters("h3", "s2").tx_xoff == pytest.approx(1 + 1.0 / (0x7FFF * 512 / RATE), abs=2), "refreshes"
    net.change("h3", "s2", stuck=Stuck())
    time.sleep(0.1)
    assert [each for each in net.all_counters() if each.paused or each.pausing] == []
    assert net.backlogs() == {0}


@pytest.mark.parametrize("forwards", [False, True])
def test_the_watchdog_ends_a_storm_and_lossless_returns_after_it(forwards: bool) -> None:
    watched = lossless(watchdog=True, forwards=forwards)
    net = BufferNet({LOSSLESS: watched, OTHER: lossy()}, detect_us=200_000, restore_us=200_000)
    net.change("h3", "s2", stuck=Stuck(1 << LOSSLESS))
    (count,) = net.offer([Offer("h1", "h3")], 1.0, 0.1)
    port = net.counters("s2", "h3")
    assert (port.storms, port.restored, port.storming) == (1, 0, 1)
    assert port.storm_drops == count.sent - count.got
    assert (port.storm_drops == 0) is forwards
    assert net.counters("h1", "s1").paused == 0, "what waits for the storm is free again"
    net.change("h3", "s2", stuck=Stuck())
    time.sleep(0.25)
    port = net.counters("s2", "h3")
    assert (port.storms, port.restored, port.storming) == (1, 1, 0)
    (count,) = net.offer([Offer("h1", "h3")], 0.2)
    assert count.got == count.sent
    assert net.backlogs() == {0}


def test_a_port_that_goes_down_gives_back_what_it_held() -> None:
    net = BufferNet(PFC)
    net.change("h3", "s2", stuck=Stuck(1 << LOSSLESS))
    net.offer([Offer("h1", "h3")], 0.3, 0.0)
    assert net.counters("s2", "s1").held > 0
    subprocess.run(["ip", "link", "set", "to-s2", "down"], check=True, preexec_fn=lambda: _enter(net, "h3"))
    time.sleep(0.1)
    assert net.counters("s2", "s1").held == net.counters("s2", "s1").headroom == 0
    assert net.counters("h1", "s1").paused == 0


def _enter(net: BufferNet, node: str) -> None:
    from hpn.testbed.kernel.ns import CLONE_NEWNET, setns

    setns(net.spaces[node].fd, CLONE_NEWNET)


def test_tshark_reads_our_pfc_frames(tmp_path: Path) -> None:
    net = BufferNet(PFC)
    tap = net.spaces["h1"].socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_NONBLOCK, socket.htons(0x8808))
    net.offer(TWO, 0.1)
    frames = []
    while True:
        try:
            frames.append(tap.recv(2000))
        except BlockingIOError:
            break
    assert len(frames) == sum((net.counters("h1", "s1").rx_xoff, net.counters("h1", "s1").rx_xon))
    pcap = struct.pack("=IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    pcap += b"".join(struct.pack("=IIII", 0, 0, len(frame), len(frame)) + frame for frame in frames)
    (tmp_path / "pfc.pcap").write_bytes(pcap)
    try:
        shown = subprocess.run(
            ["tshark", "-r", str(tmp_path / "pfc.pcap"), "-T", "json"], capture_output=True, check=True
        ).stdout
    except FileNotFoundError:
        pytest.skip("no tshark")
    read = [packet["_source"]["layers"] for packet in json.loads(shown)]
    assert len(read) == len(frames)
    for layers in read:
        control = layers["macc"]
        assert layers["eth"]["eth.dst"] == "01:80:c2:00:00:01"
        assert int(control["macc.opcode"], 0) == 0x0101
        assert int(control["macc.cbfc.enbv"], 0) == 1 << LOSSLESS
    quanta = [int(frame[18 + 2 * LOSSLESS : 20 + 2 * LOSSLESS].hex(), 16) for frame in frames]
    assert set(quanta) == {0xFFFF, 0}


def test_rdma_gets_the_dscp_of_its_nic() -> None:
    net = BufferNet(PFC)
    for host in ("h1", "h2"):
        net.change(host, "s1", rdma_dscp=DSCP, cnp_dscp=48)
    with net.spaces["h3"].socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
        receiver.settimeout(5)
        receiver.bind((net.address("h3"), 4791))
        seen = []
        for dscp, opcode in ((0, 0x04), (0, 0x81), (8, 0x04)):
            with net.spaces["h1"].socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
                sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, dscp << 2 | 2)
                sender.sendto(bytes([opcode]) + bytes(50), (net.address("h3"), 4791))
            _, control, _, _ = receiver.recvmsg(2000, 64)
            seen.append(control[0][2][0])
    assert seen == [DSCP << 2 | 2, 48 << 2 | 2, 8 << 2 | 2]


ROUND = (Offer("h1", "h3"), Offer("h2", "h1"), Offer("h3", "h2"))
AROUND = (("s1", "s2"), ("s2", "s3"), ("s3", "s1"))


def test_three_flows_around_a_ring_of_switches_deadlock_for_good() -> None:
    net = BufferNet(PFC, shape=RING)
    net.offer(ROUND, 0.5, 0.0)
    before = [net.counters(*port).sent_packets for port in AROUND]
    counts = net.offer(ROUND, 0.5, 0.5)
    stuck = [net.counters(*port) for port in AROUND]
    assert [each.sent_packets for each in stuck] == before, "not one packet goes round, long after the pauses' end"
    assert all(each.paused and each.queue > 0 for each in stuck)
    assert sum(each.got for each in counts) == 0


def test_without_pfc_the_same_flows_go_on_and_the_watchdog_breaks_the_deadlock() -> None:
    """It forms again within 100 ms. With 200 ms to detect and 200 to restore: four times in 2 s."""
    lossy_net = BufferNet({LOSSLESS: lossy(), OTHER: lossy()}, shape=RING)
    assert sum(each.got for each in lossy_net.offer(ROUND, 0.5)) > 3000, "unfairly, as constant rates lock in phase"
    watched = {LOSSLESS: lossless(watchdog=True), OTHER: lossy()}
    net = BufferNet(watched, shape=RING, detect_us=200_000, restore_us=200_000)
    first = sum(each.got for each in net.offer(ROUND, 0.2, 0.0))
    later = sum(each.got for each in net.offer(ROUND, 2.0))
    assert sum(net.counters(*port).storms for port in AROUND) >= 4
    assert later > 3 * first > 0
    assert not any(each.paused for each in net.all_counters()), "nothing stands when the senders have ended"
