"""Absolute PSNs and sets of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hpn.traffic.transport.ranges import PSN_MASK, Ranges, absolute


@given(near=st.integers(0, 2**31), off=st.integers(-(2**23), 2**23 - 1))
def test_a_psn_is_read_as_the_nearest_that_looks_like_it(near: int, off: int) -> None:
    assert absolute((near + off) & PSN_MASK, near) == near + off


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 40), st.integers(1, 9))))
def test_ranges_are_a_set_of_integers(steps: list[tuple[bool, int, int]]) -> None:
    ranges, model = Ranges(), set[int]()
    for add, at, size in steps:
        if add:
            there = set(range(at, at + size))
            new = ranges.add(at, at + size)
            assert [psn for low, high in new for psn in range(low, high)] == sorted(there - model)
            model |= there
        else:
            ranges.trim(at)
            model = {psn for psn in model if psn >= at}
        assert bool(ranges.parts) == bool(model)
        gaps = [psn for low, high in ranges.gaps(at, at + size) for psn in range(low, high)]
        assert gaps == [psn for psn in range(at, at + size) if psn not in model]
        if model:
            low = min(model)
            assert ranges.parts[0] == (low, min(psn for psn in range(low, 60) if psn not in model))
