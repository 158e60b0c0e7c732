"""Directed links of a fabric: numbers, both ends, what a fault takes."""

from __future__ import annotations

import numpy as np
import pytest

from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.model import LinkKind
from hpn.testbed.fabric.presets import PRESETS
from hpn.traffic.fluid.links import Links

TINY = Links.of(build(PRESETS["tiny"].spec))


def test_each_link_has_two_directions_of_its_rate() -> None:
    assert len(TINY) == 2 * len(TINY.fabric.links)
    assert TINY.names[:2] == ("p0.s0.h0.r0.0 up", "p0.s0.h0.r0.0 down")
    assert set(TINY.capacity[TINY.of_tier(LinkKind.ACCESS)]) == {200e6}
    assert set(TINY.capacity[TINY.of_tier(LinkKind.FABRIC)]) == {400e6}


def test_a_port_says_what_leaves_and_what_comes_in() -> None:
    for link in TINY.fabric.links:
        up = TINY.out_of(link.lower.node, link.lower.name)
        assert TINY.names[up] == f"{link.name} up"
        assert TINY.into(link.upper.node, link.upper.name) == up
        assert TINY.names[TINY.out_of(link.upper.node, link.upper.name)] == f"{link.name} down"


@pytest.mark.parametrize(
    ("part", "cables"), [("p0.s0.h0.r0.0", 1), ("p0.s0.h0.r0", 2), ("p0.s0.h0", 4), ("p0.s0.t0.0", 4), ("p0.a0.0", 4)]
)
def test_a_fault_takes_both_directions_of_all_links_of_what_it_hits(part: str, cables: int) -> None:
    hit = TINY.of_parts([part])
    assert sorted(TINY.names[at] for at in hit) == sorted(
        f"{link.name} {way}" for link in TINY.fabric.links_in(part) for way in ("up", "down")
    )
    assert len(hit) == 2 * cables
    dead = TINY.without(hit)
    assert (dead[hit] == 0).all()
    assert np.count_nonzero(dead) == len(TINY) - len(hit)
    assert (TINY.capacity > 0).all()


def test_planes_share_no_link() -> None:
    assert sorted([*TINY.of_plane(0), *TINY.of_plane(1)]) == list(range(len(TINY)))


def test_a_lower_rate_is_of_the_links_named() -> None:
    assert TINY.scaled(TINY.of_parts(["p0.s0.h0.r0.0"]), 0.5)[:4].tolist() == [100e6, 100e6, 200e6, 200e6]


def test_names_of_nothing_are_refused() -> None:
    with pytest.raises(InputError, match="did you mean"):
        TINY.of_parts(["p0.s0.h9"])
