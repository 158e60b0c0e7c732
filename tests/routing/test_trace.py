"""The path trace: its verdicts on made-up answers, and its word against real packets on real ECMP."""

from __future__ import annotations

import errno

import pytest

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.kernel.rtnetlink.netlink import Hop, NetlinkError
from hpn.testbed.routing.trace import Flow, Path, trace
from tests.routing import fabrics
from tests.routing.minilab import MiniLab
from tests.taps import Taps, send

FLOW = Flow("p0.s0.h0.r0", "p0.s1.h0.r0", 0xC001)


class Answers:
    """A switch that always names the same port, or refuses with an errno."""

    def __init__(self, fabric: Fabric, node: str, answer: str | int) -> None:
        self._fabric, self._node, self._answer = fabric, node, answer

    def route_get(
        self, dst: str, *, src: str | None = None, iif: int = 0, sport: int = 0, dport: int = 0, proto: int = 17
    ) -> Hop:
        if isinstance(self._answer, int):
            raise NetlinkError(self._answer, "refused")
        ends = (link.end_at(self._node) for link in self._fabric.links_of(self._node))
        return Hop(next((end.ifindex for end in ends if end.name == self._answer), 9999), None)


def walk(answers: dict[str, str | int], *, port: int | None = 0, down: str = "") -> Path:
    fabric = fabrics.hpn(hosts=2)
    return trace(fabric, FLOW, port, lambda node: Answers(fabric, node, answers[node]), lambda link: link != down)


THROUGH: dict[str, str | int] = {"p0.s0.t0.0": "up1", "p0.a0.1": "s1r0t0", "p0.s1.t0.0": "h0r0"}


def test_a_path_names_every_node_and_port() -> None:
    path = walk(THROUGH)
    assert path.dropped is None
    assert [(s.node, s.in_port, s.out_port) for s in path.steps] == [
        ("p0.s0.h0", "", "r0p0"),
        ("p0.s0.t0.0", "h0r0", "up1"),
        ("p0.a0.1", "s0r0t0", "s1r0t0"),
        ("p0.s1.t0.0", "up1", "h0r0"),
        ("p0.s1.h0", "r0p0", ""),
    ]
    assert path.links == ("p0.s0.h0.r0.0", "p0.s0.t0.0-p0.a0.1", "p0.s1.t0.0-p0.a0.1", "p0.s1.h0.r0.0")


@pytest.mark.parametrize(
    ("answers", "where", "why"),
    [
        ({"p0.s1.t0.0": errno.EINVAL}, "p0.s1.t0.0", "blackhole"),
        ({"p0.a0.1": errno.EHOSTUNREACH}, "p0.a0.1", "unreachable"),
        ({"p0.s0.t0.0": errno.ENETUNREACH}, "p0.s0.t0.0", "no route"),
        ({"p0.a0.1": "s0r0t0"}, "p0.s0.t0.0", "loop"),
        ({"p0.s1.t0.0": "h1r0"}, "p0.s1.h1", "delivered to p0.s1.h1.r0"),
        ({"p0.s0.t0.0": "lo"}, "p0.s0.t0.0", "leaves the fabric"),
    ],
)
def test_a_drop_says_where_and_why(answers: dict[str, str | int], where: str, why: str) -> None:
    path = walk(THROUGH | answers)
    assert path.steps[-1].node == where
    assert path.dropped is not None
    assert why in path.dropped


def test_a_dead_link_and_a_lag_without_ports_are_drops_too() -> None:
    path = walk(THROUGH, down="p0.s1.t0.0-p0.a0.1")
    assert (path.steps[-1].node, path.dropped) == ("p0.a0.1", "link p0.s1.t0.0-p0.a0.1 is down")
    assert walk(THROUGH, port=None).dropped == "no active port in the source NIC's LAG"


def test_a_port_the_nic_does_not_have_is_an_input_error() -> None:
    with pytest.raises(InputError, match="ports 0 to 1"):
        walk(THROUGH, port=2)


@pytest.mark.kernel
async def test_a_hundred_real_packets_take_the_traced_paths() -> None:
    """Two Aggs choose between two ToRs each, so every flow meets two real ECMP decisions."""
    lab = MiniLab(fabrics.clos(aggs=4))
    await lab.start()
    fabric = lab.fabric
    source, target = fabric.nic(FLOW.src_nic), fabric.nic(FLOW.dst_nic)
    lab.home(source, 0)
    lab.greet(source, 0)
    for plane in (0, 1):
        lab.greet(target, plane)
    await lab.until(lambda: len(lab.routes("p0.s0.t0.0", f"{target.ip}/32")) == 4)
    await lab.until(lambda: all(len(lab.routes(f"p0.a0.{i}", f"{target.ip}/32")) == 2 for i in range(4)))
    taps = Taps(lab.spaces)
    taken = set()
    for sport in range(0xC000, 0xC000 + 100):
        flow = Flow(source.name, target.name, sport)
        path = trace(fabric, flow, 0, lambda node: lab.netlinks[node], lambda link: True)
        assert path.dropped is None
        send(lab.spaces[source.host], source.ip, sport, target.ip, flow.dport)
        await taps.arrival(target.host)
        traced = {(step.node, step.in_port) for step in path.steps[1:-1]}
        assert taps.seen_by(node.name for node in fabric.switches) == traced
        taken.add(path.links)
    assert len(taken) == 8  # 4 Aggs x 2 ToRs: every path was used
