"""Which hosts a job gets, and in which order they are its ranks."""

from __future__ import annotations

import pytest

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import Fabric
from hpn.testbed.fabric.spec import FabricSpec
from hpn.traffic.job.placement import ORDERS, place, place_of


def _fabric(segments: int = 3, hosts: int = 4, rails: int = 2, spare: int = 1, pods: int = 1) -> Fabric:
    spec = FabricSpec(segments=segments, hosts=hosts, rails=rails, spare_hosts=spare, pods=pods, cores=2 * (pods > 1))
    return build(spec)


def test_ranks_count_host_by_host_and_in_a_host_rail_by_rail() -> None:
    fabric = _fabric()
    places = place(fabric)
    assert len(places) == 3 * 4 * 2
    assert [(p.host, p.rail, p.segment) for p in places[:3]] == [
        ("p0.s0.h0", 0, 0),
        ("p0.s0.h0", 1, 0),
        ("p0.s0.h1", 0, 0),
    ]
    for p in places:
        assert (fabric.nic(p.nic).host, fabric.nic(p.nic).rail, fabric.nic(p.nic).ip) == (p.host, p.rail, p.ip)
    assert not any(fabric.node(p.host).spare for p in places)


def _crossings(segments: list[int]) -> int:
    return sum(a != b for a, b in zip(segments, segments[1:] + segments[:1], strict=True))


def test_orders_decide_how_often_neighbours_are_in_different_segments() -> None:
    fabric = _fabric(segments=4, rails=1)
    crossings = {order: _crossings([p.segment for p in place(fabric, order=order, seed=3)]) for order in ORDERS}
    assert crossings["contiguous"] == 4 < crossings["random"] < crossings["interleaved"] == 16


def test_a_job_may_be_packed_or_spread_over_segments() -> None:
    fabric = _fabric(segments=4, hosts=4, rails=1)

    def used(hosts: int | None = None, segments: int | None = None) -> list[int]:
        return [p.segment for p in place(fabric, hosts=hosts, segments=segments)]

    assert used(hosts=6) == [0, 0, 0, 0, 1, 1], "one segment after the other"
    assert used(hosts=6, segments=2) == [0, 0, 0, 1, 1, 1]
    assert used(hosts=6, segments=4) == [0, 0, 1, 1, 2, 3]
    assert used(segments=4) == used()
    in_turn = place(fabric, hosts=6, segments=4, order="interleaved")
    assert [p.segment for p in in_turn] == [0, 1, 2, 3, 0, 1]
    random = [p.host for p in place(fabric, hosts=6, segments=4, order="random", seed=1)]
    assert sorted({host.split(".")[1] for host in random}) == ["s0", "s1", "s2", "s3"]


def test_a_random_order_is_the_seeds() -> None:
    fabric = _fabric()
    orders = [place(fabric, hosts=5, order="random", seed=seed) for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]
    assert len(set(orders[2])) == 10


def test_segments_count_through_pods() -> None:
    assert sorted({p.segment for p in place(_fabric(segments=2, pods=2))}) == [0, 1, 2, 3]


def test_one_place_by_name() -> None:
    fabric = _fabric()
    assert place_of(fabric, "p0.s2.h1", rail=1) == next(p for p in place(fabric) if (p.host, p.rail) == ("p0.s2.h1", 1))
    with pytest.raises(InputError, match="no node 'h9'"):
        place_of(fabric, "h9")


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({"hosts": 13}, "asks for 13 hosts and the fabric has 12 active ones"),
        ({"hosts": 0}, "asks for 0 hosts"),
        ({"hosts": 9, "segments": 2}, "asks for 9 hosts over 2 segments; the fabric has 3 segments with 4, 4, 4"),
        ({"hosts": 4, "segments": 4}, "asks for 4 hosts over 4 segments"),
        ({"hosts": 2, "segments": 3}, "asks for 2 hosts over 3 segments"),
        ({"segments": 0}, "over 0 segments"),
        ({"rails": 3}, "asks for 3 GPUs on p0.s0.h0, which has 2"),
        ({"rails": 0}, "asks for 0 GPUs"),
    ],
)
def test_what_the_fabric_has_not_is_refused(asked: dict[str, int], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        place(_fabric(), **asked)  # type: ignore[arg-type]  # all of them numbers


def test_an_unknown_order_is_answered_with_those_that_there_are() -> None:
    with pytest.raises(InputError, match="no order of hosts 'best'; there are contiguous, interleaved, random"):
        place(_fabric(), order="best")
