"""How busy links are, out of two readings of their ports."""

from __future__ import annotations

from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.kernel.rtnetlink.qdisc import BucketReading, rates
from hpn.testbed.lab.service.load import loads

TINY = build(PRESETS["tiny"].spec)


def reading(ifindex: int, at_s: float, sent_bytes: int) -> BucketReading:
    return BucketReading(int(at_s * 1e9), ifindex, 0, 0, 0, sent_bytes, 0, 0)


def test_the_load_of_a_link_is_that_of_its_busier_direction() -> None:
    link, quiet = TINY.links[:2]
    quarter = link.rate_bps // 8 // 4
    before = [reading(link.lower.ifindex, 1.0, 1000), reading(link.upper.ifindex, 1.1, 500)]
    after = [reading(link.lower.ifindex, 3.0, 1000 + 2 * quarter), reading(link.upper.ifindex, 2.1, 500 + 3 * quarter)]
    found = loads(TINY, before, [*after, reading(quiet.lower.ifindex, 3.0, 10)])
    assert found == {link.name: 0.75}, "a port that was read once tells nothing"


def test_rates_are_of_what_was_counted_between_two_readings_and_never_below_nothing() -> None:
    before = [reading(1, 1.0, 1000), reading(2, 1.0, 9000), reading(3, 2.0, 0)]
    after = [reading(1, 1.5, 2000), reading(2, 2.0, 0), reading(3, 2.0, 7), reading(4, 2.0, 7)]
    found = rates(before, after)
    assert {ifindex: rate.sent_bps for ifindex, rate in found.items()} == {1: 16_000.0, 2: 0.0}
