"""Marking switches of a whole lab: which marker it gets, what stands at its ports, and what the phantom queue marks."""

from __future__ import annotations

import socket
from contextlib import suppress

import pytest

from hpn.testbed.errors import MachineError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.marking import marker_of, queue_bytes
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.fabric.rules import contradictions
from hpn.testbed.fabric.spec import EcnSpec
from hpn.testbed.kernel import ns
from hpn.testbed.kernel.nftables.nft import Nft
from hpn.testbed.kernel.rtnetlink.netlink import Netlink
from hpn.testbed.lab.breaking.impair import Delay
from hpn.testbed.lab.expected_state import deviations
from hpn.testbed.lab.markers import MARKERS, PhantomMarks, _chain, choose, stands_in
from hpn.testbed.lab.wire import inner_queues
from tests.lab.running import running, tiny
from tests.traffic.nets import B_IP, chain

ECN = {"kmin_bytes": 100_000, "kmax_bytes": 400_000, "pmax": 0.2}


def test_red_stands_at_every_port_of_every_switch_and_at_no_host() -> None:
    fabric = build(tiny(ecn=ECN))
    for node in fabric.nodes:
        marking = [queue for queue in inner_queues(fabric, node, MARKERS["red"]) if b"red\0" in queue]
        assert len(marking) == (len(list(fabric.links_of(node.name))) if node.is_switch else 0)
        assert not any(b"red\0" in queue for queue in inner_queues(fabric, node, MARKERS["nft"]))


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"kmax_bytes": 600_000}, "ecn.kmax_bytes: 600000 bytes never wait: the queue holds 500000; raise queue_ms"),
        ({"kmin_bytes": 500_000}, "ecn.kmax_bytes: 400000 bytes are not above kmin's 500000; write more"),
        ({"kmin_bytes": 300}, "ecn.kmin_bytes: 300 bytes are less than one frame of 4218; write at least that"),
    ],
)
def test_thresholds_that_cannot_work_are_refused(changes: dict[str, int], text: str) -> None:
    (problem,) = contradictions(tiny(ecn=ECN | changes))
    assert problem == (("ecn", next(iter(text.split(":")[0].split(".")[1:]))), text)


def test_the_queue_of_the_slowest_port_counts() -> None:
    spec = tiny(ecn=ECN | {"kmax_bytes": 300_000}, nic_port_rate="100G", queue_ms=20)
    assert queue_bytes(spec, 10**8) == 250_000
    assert [where for where, _ in contradictions(spec)] == [("ecn", "kmax_bytes")]
    assert marker_of(PRESETS["tiny"].spec) is None


@pytest.mark.kernel
async def test_a_lab_that_marks_is_as_its_fabric_decides_and_says_with_what() -> None:
    async with running(tiny(segments=1, ecn=ECN)) as lab:
        assert lab.marking is not None
        print(f"marker {lab.marking.name}")
        assert deviations(lab) == ()
        if lab.marking.name == "nft":
            tor = lab.fabric.nics[0].links[0].upper.node
            assert lab.marks is not None
            marks = lab.marks(tor)
            assert set(marks.read()) == {link.end_at(tor).ifindex for link in lab.fabric.links_of(tor)}
            marks.close()
            return
        assert lab.marks is None
        link = lab.fabric.nics[0].links[0]
        assert link.upper.ifindex in lab.requests(link.upper.node).queues().marked
        assert lab.requests(link.lower.node).queues().marked == {}
        lab.impairments.on_departure("late", link, link.upper, Delay(1_000_000))
        (line,) = deviations(lab)
        assert line.endswith("bit/s, with delay, should be 200000000 bit/s, control first, marking")
        await lab.impairments.lift("late")
        assert deviations(lab) == ()


@pytest.mark.kernel
def test_a_marker_that_a_kernel_lacks_is_refused_with_the_way_out() -> None:
    assert choose(None) is None
    wanted = EcnSpec(marker="red", kmin_bytes=10_000, kmax_bytes=20_000, pmax=0.1)
    if MARKERS["red"].problem(ns.create("probe")) is None:
        assert choose(wanted) is MARKERS["red"]
        return
    with pytest.raises(MachineError, match="modprobe sch_red, or run it with --engine uml-virtual-time"):
        choose(wanted)


@pytest.mark.kernel
def test_the_phantom_queue_marks_what_is_beyond_its_burst_and_leaves_alone_what_cannot_be_marked() -> None:
    net = chain()
    if (problem := MARKERS["nft"].problem(ns.create("probe"))) is not None:
        pytest.skip(problem)
    rules = Nft(net.a)
    port = next(link.ifindex for link in Netlink(net.a).links() if link.name == "e0")
    rules.run(f"table netdev hpn_ecn {{\n{_chain(port, 'e0', 1, 20)}{_chain(port + 1, 'lo', 1, 20)}}}\n")
    marks = PhantomMarks(net.a)
    assert marks.read() == {port: 0, port + 1: 0}
    with net.b.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind((B_IP, 9))
        _until_one_arrives(net.a, receiver)
        receiver.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
        seen = {tos: _through(net.a, receiver, tos) for tos in (0, 2)}
    rules.close()
    assert marks.read() == {port: seen[2].count(3), port + 1: 0}
    marks.close()
    assert seen[0] == [0] * 100
    assert seen[2][:20] == [2] * 20
    assert 75 <= seen[2].count(3) <= 80


def _until_one_arrives(space: ns.NetNs, receiver: socket.socket) -> None:
    """A new interface in virtual time loses its first packets: its queue comes later than its carrier."""
    receiver.settimeout(0.1)
    with space.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for _ in range(100):
            sender.sendto(b"", (B_IP, 9))
            with suppress(TimeoutError):
                receiver.recv(1)
                return
    pytest.fail("nothing gets through")


def _through(space: ns.NetNs, receiver: socket.socket, tos: int) -> list[int]:
    """The TOS of 100 packets sent with that one, as they arrive."""
    found = []
    with space.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
        for _ in range(100):
            sender.sendto(bytes(1000), (B_IP, 9))
            _, control, _, _ = receiver.recvmsg(2000, 64)
            found.append(next(d[0] for lv, kind, d in control if (lv, kind) == (socket.IPPROTO_IP, socket.IP_TOS)))
    return found


@pytest.mark.parametrize(
    ("name", "wanted", "is_one"), [("nft", "auto", True), ("nft", "nft", False), ("red", "auto", False)]
)
def test_a_phantom_queue_stands_in_for_red_unless_it_was_asked_for(name: str, wanted: str, is_one: bool) -> None:
    assert stands_in(MARKERS[name], EcnSpec.model_validate(ECN | {"marker": wanted})) == is_one
    assert not stands_in(None, None)
