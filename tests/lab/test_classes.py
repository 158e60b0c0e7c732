"""Queues of their own for control frames and for the second traffic class: what is asked, and what a kernel does.

a e0 ======= w0 b          e0 sends a frame every 20 ms: both queues wait while the test looks
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path

import pytest

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.load import load_topology
from hpn.testbed.fabric.marking import quanta
from hpn.testbed.kernel.rtnetlink import rtnl
from hpn.testbed.kernel.rtnetlink.htb import CS6, Second, add_fifo, port_queues
from hpn.testbed.kernel.rtnetlink.netlink import Netlink
from hpn.testbed.lab.breaking.impair import Delay
from hpn.testbed.lab.expected_state import deviations
from hpn.testbed.lab.markers import MARKERS
from hpn.testbed.lab.wire import inner_queues
from tests.lab.running import running, tiny
from tests.lab.test_markers import ECN
from tests.traffic.nets import A_IF, B_IP, chain

PAYLOAD = 1000
FRAME = PAYLOAD + 42  # Ethernet, IP, UDP
RATE_BPS = 8 * FRAME * 50
SECOND = {"dscp": 10, "share": 0.25}
ECT0, TOS = 2, 10 << 2 | 2
CONTROL = [0x8809, 0x88B5, 0x0806]  # LACP, path control, ARP
_EVERY_ETHERTYPE, _IPV4, _IPV6 = 3, 0x0800, 0x86DD


@pytest.mark.parametrize("share", [0.05, 0.2, 0.5, 0.8, 0.95])
def test_quanta_are_in_the_ratio_of_the_shares_and_at_least_a_frame(share: float) -> None:
    spec = tiny()
    first, second = quanta(spec, share)
    assert min(first, second) == spec.mtu + 18
    assert second / (first + second) == pytest.approx(share, abs=1e-3)


@pytest.mark.parametrize("second", [None, SECOND])
@pytest.mark.parametrize("ecn", [None, ECN])
def test_every_port_has_a_queue_for_control_and_one_for_each_class_of_data(
    ecn: dict[str, object] | None, second: dict[str, object] | None
) -> None:
    fabric = build(tiny(second_class=second, ecn=ecn))
    for node in fabric.nodes:
        queues = list(inner_queues(fabric, node, MARKERS["red"] if ecn else None))
        kinds = [next(kind for kind in (b"red", b"bfifo", b"htb", b"u32") if kind + b"\0" in queue) for queue in queues]
        inner = b"red" if ecn and node.is_switch else b"bfifo"
        classes = 2 if second and node.is_switch else 1
        one = [b"htb", b"htb", *[b"htb", inner] * classes, *[b"u32"] * (classes + 3)]
        assert kinds == one * len(list(fabric.links_of(node.name)))


@pytest.mark.parametrize(
    ("given", "key"), [("{share: 1}", "share"), ("{dscp: 0, share: 0.2}", "dscp"), ("{}", "share")]
)
def test_a_class_that_makes_no_sense_is_refused_with_its_line(given: str, key: str, tmp_path: Path) -> None:
    file = tmp_path / "t.yaml"
    file.write_text(f"preset: tiny\nsecond_class: {given}\n")
    with pytest.raises(InputError, match=rf"t.yaml:2: .*{key}"):
        load_topology(str(file))


@pytest.mark.kernel
def test_two_queues_share_a_port_by_their_quanta_and_either_has_it_alone() -> None:
    net = chain()
    link = Netlink(net.a)
    link.run([rtnl.add_tbf(A_IF, RATE_BPS, 2 * FRAME, 600 * FRAME)])
    link.run(list(port_queues(A_IF, partial(add_fifo, A_IF, 100 * FRAME), Second(10, (3 * FRAME, FRAME)))))
    with net.b.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind((B_IP, 9))
        receiver.settimeout(10)
        receiver.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
        with (
            net.a.socket(socket.AF_INET, socket.SOCK_DGRAM) as usual,
            net.a.socket(socket.AF_INET, socket.SOCK_DGRAM) as other,
        ):
            usual.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, ECT0)
            other.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, TOS)
            for _ in range(36):
                usual.sendto(bytes(PAYLOAD), (B_IP, 9))
                other.sendto(bytes(PAYLOAD), (B_IP, 9))
            seen = [_tos(receiver) for _ in range(72)]
    early, alone = seen[4:44], seen[50:]
    assert 9 <= early.count(TOS) <= 11, seen
    assert alone == [TOS] * 22, seen
    assert A_IF in link.queues().divided


@pytest.mark.kernel
def test_control_frames_overtake_data_in_a_full_port_and_none_is_lost() -> None:
    net, room = chain(), 8
    link = Netlink(net.a)
    link.run([rtnl.add_tbf(A_IF, RATE_BPS // 10, 2 * FRAME, room * FRAME)])
    link.run(list(port_queues(A_IF, partial(add_fifo, A_IF, room * FRAME))))
    far = bytes.fromhex("0180c2000002")
    with (
        net.b.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(_EVERY_ETHERTYPE)) as receiver,
        net.a.socket(socket.AF_INET, socket.SOCK_DGRAM) as data,
        net.a.socket(socket.AF_INET, socket.SOCK_DGRAM) as routing,
        net.a.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0) as frames,
    ):
        receiver.settimeout(10)
        routing.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, CS6 << 2)
        for _ in range(3 * room):
            data.sendto(bytes(PAYLOAD), (B_IP, 9))
        routing.sendto(b"hello", (B_IP, 9))
        for ethertype in CONTROL:
            frames.sendto(bytes(28), ("e0", ethertype, 0, 0, far))
        seen = list(islice(_kinds(receiver), room + 2))
    first = seen.index("routing")  # behind the bucket's burst, the frame that it holds, and what left meanwhile
    assert seen[first:][:4] == ["routing", *CONTROL], seen
    assert "data" in seen[first + 4 :], seen


def _kinds(receiver: socket.socket) -> Iterator[str | int]:
    """Of each frame that arrives, but for IPv6 and the kernel's answers."""
    while True:
        frame, (_, ethertype, packet_type, *_) = receiver.recvfrom(2000)
        if packet_type == socket.PACKET_OUTGOING or ethertype == _IPV6:
            continue
        yield int(ethertype) if ethertype != _IPV4 else "routing" if frame[1] == CS6 << 2 else "data"


@pytest.mark.kernel
async def test_a_divided_lab_is_as_its_fabric_decides() -> None:
    async with running(tiny(segments=1, second_class=SECOND)) as lab:
        assert deviations(lab) == ()


@pytest.mark.kernel
@pytest.mark.usefixtures("netem")
async def test_a_port_that_delayed_is_divided_again() -> None:
    async with running(tiny(segments=1, second_class=SECOND)) as lab:
        link = lab.fabric.nics[0].links[0]
        lab.impairments.on_departure("late", link, link.upper, Delay(1_000_000))
        (line,) = deviations(lab)
        assert line.endswith("bit/s, with delay, should be 200000000 bit/s, control first, two queues")
        await lab.impairments.lift("late")
        assert deviations(lab) == ()


def _tos(receiver: socket.socket) -> int:
    _, control, _, _ = receiver.recvmsg(2000, 64)
    return next(data[0] for level, kind, data in control if (level, kind) == (socket.IPPROTO_IP, socket.IP_TOS))
