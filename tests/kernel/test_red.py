"""RED as a marker: how much it marks by its own arithmetic, and what a kernel that has it does to a queue we filled.

a e0 ======= w0 b          e0 sends 100 bytes a second: nothing leaves a full queue while the test looks
"""

from __future__ import annotations

import json
import random
import socket
import subprocess
from pathlib import Path

import pytest

from hpn.testbed.fabric.marking import Marker
from hpn.testbed.kernel.rtnetlink import rtnl
from hpn.testbed.kernel.rtnetlink.netlink import Netlink
from hpn.testbed.kernel.rtnetlink.red import add_red, asked_probability
from tests.traffic.nets import A_IF, B_IP, Net, chain

PAYLOAD = 1000
FRAME = PAYLOAD + 42  # Ethernet, IP, UDP
SLOW, PASS, HOLD = 800, 2, 600
ECT0, CE, NOT_ECT = 2, 3, 0


@pytest.mark.parametrize("share", [0.01, 0.2, 0.3, 0.55, 0.8, 1.0])
def test_what_red_is_asked_for_makes_it_mark_the_share_just_below_the_upper_threshold(share: float) -> None:
    """red_action of include/net/red.h: a mark when count x p reaches a number drawn anew after each mark."""
    chance, p = random.Random(1), asked_probability(share) / 2**32
    marks, count, packets = 0, 0, 200_000
    drawn = chance.random()
    for _ in range(packets):
        count += 1
        if count * p >= drawn:
            marks, count, drawn = marks + 1, 0, chance.random()
    assert marks / packets == pytest.approx(share, rel=0.02)


def _bottleneck(lower: int, upper: int, share: float, rate_bps: int = SLOW) -> tuple[Net, Netlink]:
    """A queue with RED, thresholds and limit in frames."""
    net = chain()
    for space in (net.a, net.b):
        with space.entered():
            Path("/proc/sys/net/ipv6/conf/all/disable_ipv6").write_text("1")
    link = Netlink(net.a)
    link.run([rtnl.add_tbf(A_IF, rate_bps, PASS * FRAME + FRAME // 10, HOLD * FRAME + FRAME // 2)])
    try:
        link.run([add_red(A_IF, (lower * FRAME, upper * FRAME), share, HOLD * FRAME + FRAME // 2)])
    except OSError as error:
        pytest.skip(f"no RED in this kernel: {error}")
    return net, link


def _offer(net: Net, packets: int, tos: int) -> None:
    """By several sockets: what waits counts against the buffer of the one that sent it."""
    for sent in range(0, packets, 50):
        with net.a.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
            for _ in range(min(50, packets - sent)):
                sender.sendto(bytes(PAYLOAD), (B_IP, 9))


def _marked_and_dropped(link: Netlink) -> tuple[int, int]:
    queues = link.queues()
    (bucket,) = (bucket for bucket in queues.buckets if bucket.ifindex == A_IF)
    (sampled,) = link.buckets({A_IF})
    assert sampled.marked == queues.marked[A_IF]
    return queues.marked[A_IF], bucket.drops


@pytest.mark.kernel
def test_tc_reads_the_red_that_we_ask_for() -> None:
    net, _ = _bottleneck(20, 40, 0.8)
    with net.a.entered():
        shown = subprocess.run(
            ["tc", "-d", "-j", "qdisc", "show", "dev", "e0"], capture_output=True, text=True, check=True
        )
    (found,) = (queue for queue in json.loads(shown.stdout) if queue["kind"] == "red")
    assert found["parent"] == "1:1"
    options = found["options"]
    assert (options["min"], options["max"], options["ewma"]) == (20 * FRAME, 40 * FRAME, 0)
    assert options["probability"] == pytest.approx(0.75, abs=1e-4)
    assert options["ecn"] is options["nodrop"] is True


@pytest.mark.kernel
def test_every_packet_that_finds_the_upper_threshold_is_marked_and_none_below_the_lower() -> None:
    net, link = _bottleneck(20, 40, 1e-9)
    _offer(net, PASS + 20, ECT0)
    assert _marked_and_dropped(link) == (0, 0)
    _offer(net, 80, ECT0)
    assert _marked_and_dropped(link) == (60, 0), "those that found 40 frames or more at once, without an average"


@pytest.mark.kernel
def test_a_queue_that_was_empty_is_looked_at_as_it_is() -> None:
    """An average would remember the full queue of before."""
    net, link = _bottleneck(2, 3, 1e-9, rate_bps=8_000_000)
    with net.b.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind((B_IP, 9))
        receiver.settimeout(10)
        receiver.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
        for _ in range(3):
            before = link.queues().marked[A_IF]
            _offer(net, PASS + 10, ECT0)
            seen = [_tos(receiver) for _ in range(PASS + 10)]
            assert seen[:3] == [ECT0] * 3, "at most two frames were found waiting"
            assert seen.count(CE) == link.queues().marked[A_IF] - before >= 5


def _tos(receiver: socket.socket) -> int:
    _, control, _, _ = receiver.recvmsg(2000, 64)
    return next(data[0] for level, kind, data in control if (level, kind) == (socket.IPPROTO_IP, socket.IP_TOS))


@pytest.mark.kernel
def test_what_cannot_be_marked_passes() -> None:
    net, link = _bottleneck(20, 40, 1.0)
    _offer(net, 200, NOT_ECT)
    assert _marked_and_dropped(link) == (0, 0)


@pytest.mark.kernel
def test_between_the_thresholds_the_share_rises_as_the_marker_says() -> None:
    net, link = _bottleneck(1, 500, 0.2)
    _offer(net, 500, ECT0)
    marker = Marker(FRAME, 500 * FRAME, 0.2)
    expected = sum(marker.share(waiting * FRAME) for waiting in range(500 - PASS))
    assert _marked_and_dropped(link)[0] == pytest.approx(expected, rel=0.35)


@pytest.mark.kernel
def test_the_tail_beyond_the_limit_is_dropped() -> None:
    net, link = _bottleneck(20, 40, 0.1)
    _offer(net, PASS + HOLD + 30, ECT0)
    marked, dropped = _marked_and_dropped(link)
    assert dropped == 30
    assert marked >= HOLD - 40
