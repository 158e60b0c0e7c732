"""What we read of a token bucket, judged by tc and by what was put into it.

a e0 ======= w0 b          e0 sends 100 bytes a second: nothing leaves a full queue while the test looks
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hpn.testbed.kernel.rtnetlink import rtnl
from hpn.testbed.kernel.rtnetlink.netlink import Netlink
from hpn.testbed.kernel.rtnetlink.qdisc import BucketReading
from tests.traffic.nets import A_IF, B_IP, Net, chain

pytestmark = pytest.mark.kernel

PAYLOAD = 1000
FRAME = PAYLOAD + 42  # Ethernet, IP, UDP
OFFERED, PASS, HOLD = 100, 2, 20


def _bottleneck() -> tuple[Net, Netlink]:
    """Two frames pass at once, twenty wait, the rest is dropped."""
    net = chain()
    for space in (net.a, net.b):
        with space.entered():
            Path("/proc/sys/net/ipv6/conf/all/disable_ipv6").write_text("1")
    link = Netlink(net.a)
    link.run([rtnl.add_tbf(A_IF, 800, PASS * FRAME + FRAME // 10, HOLD * FRAME + FRAME // 2)])
    return net, link


def _offer(net: Net, packets: int) -> None:
    with net.a.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for _ in range(packets):
            sender.sendto(bytes(PAYLOAD), (B_IP, 9))


def _reading(link: Netlink) -> BucketReading:
    (found,) = link.buckets({A_IF})
    return found


def test_an_idle_bucket_has_counted_nothing() -> None:
    _, link = _bottleneck()
    found = _reading(link)
    assert (found.backlog_bytes, found.backlog_packets, found.drops, found.sent_packets) == (0, 0, 0, 0)
    assert found.rate_bps == 800


def test_a_full_queue_and_its_drops_are_read_to_the_packet() -> None:
    net, link = _bottleneck()
    _offer(net, OFFERED)
    found = _reading(link)
    assert (found.sent_packets, found.sent_bytes) == (PASS, PASS * FRAME)
    assert (found.backlog_packets, found.backlog_bytes) == (HOLD, HOLD * FRAME)
    assert found.drops == OFFERED - PASS - HOLD


def test_tc_shows_the_same_figures() -> None:
    if shutil.which("tc") is None:
        pytest.skip("no tc here")
    net, link = _bottleneck()
    _offer(net, OFFERED)
    ours = _reading(link)
    with net.a.entered():
        shown = subprocess.run(["tc", "-s", "-j", "qdisc", "show", "dev", "e0"], capture_output=True, check=True)
        words = subprocess.run(["tc", "-s", "qdisc", "show", "dev", "e0"], capture_output=True, text=True, check=True)
    (theirs,) = json.loads(shown.stdout)
    assert _as_tc(ours) == {key: theirs[key] for key in ("backlog", "qlen", "drops", "bytes", "packets")}
    assert theirs["options"]["rate"] * 8 == ours.rate_bps
    assert f"Sent {ours.sent_bytes} bytes {ours.sent_packets} pkt (dropped {ours.drops}," in words.stdout


def _as_tc(found: BucketReading) -> dict[str, Any]:
    return {
        "backlog": found.backlog_bytes,
        "qlen": found.backlog_packets,
        "drops": found.drops,
        "bytes": found.sent_bytes,
        "packets": found.sent_packets,
    }


def test_a_rate_beyond_32_bits_of_bytes_is_read() -> None:
    net = chain()
    link = Netlink(net.a)
    link.run([rtnl.add_tbf(A_IF, 200 * 10**9, 20_000_000, 1_000_000)])
    assert _reading(link).rate_bps == 200 * 10**9


def test_interfaces_not_asked_for_and_without_a_bucket_are_left_out() -> None:
    net, link = _bottleneck()
    assert link.buckets(()) == []
    assert Netlink(net.b).buckets(range(5000)) == []
