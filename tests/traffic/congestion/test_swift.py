"""A control by delay: one window, one target."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpn.traffic.congestion.parameter_sets import SWIFT_2020
from hpn.traffic.congestion.scale import Scale
from hpn.traffic.congestion.swift import Swift, SwiftParameters

_LINE = 200e9
_SWIFT = SWIFT_2020.values
assert isinstance(_SWIFT, SwiftParameters)
_PACKET = 4200


def _values(**changes: float) -> SwiftParameters:
    assert isinstance(_SWIFT, SwiftParameters)
    return replace(_SWIFT, scaling_ns=0, **changes)  # type: ignore[arg-type]  # each of its own type


def _settled(rtt_ns: int) -> Swift:
    """A control that has seen one round trip."""
    control = Swift(_values(), _LINE, Scale())
    control.on_acked(_PACKET, rtt_ns, rtt_ns)
    return control


def test_before_a_round_trip_is_known_it_sends_at_line_rate() -> None:
    control = Swift(_values(), _LINE, Scale())
    control.on_acked(_PACKET, None, 1_000)
    control.on_timeout(2_000)
    assert (control.rate_bps, control.next_ns()) == (_LINE, None)


def test_twice_the_target_takes_beta_times_a_half_of_the_window_once_in_a_round_trip() -> None:
    control = _settled(60_000)
    window = 0.6 * _LINE * 60e-6
    window = min(window, _LINE * 30e-6)  # no window is above a target's worth of the line rate
    assert control.rate_bps == pytest.approx(window / 60e-6)
    before = control.rate_bps
    control.on_acked(_PACKET, 60_000, 119_999)
    assert control.rate_bps == before
    control.on_acked(_PACKET, 60_000, 120_000)
    assert control.rate_bps == pytest.approx(before * 0.6)


def test_no_delay_takes_more_than_max_mdf() -> None:
    control = _settled(60_000)
    before = control.rate_bps
    control.on_acked(_PACKET, 10**6, 10**6)  # beta alone would take 0.78
    longer = (60_000 + (10**6 - 60_000) / 8) / 60_000  # the round trip, which the window is divided by
    assert control.rate_bps == pytest.approx(before * 0.5 / longer)


_SWIFT_MINIMUM = 100e6


def test_below_the_target_a_round_trips_worth_of_acks_adds_one_packet() -> None:
    control = _settled(60_000)
    control.on_timeout(10**6)
    for _ in range(200):  # the smoothed round trip settles at 20 us; the window is what is acknowledged below
        control.on_acked(0, 20_000, 10**6)
    window = control.rate_bps * 20e-6 / 8 / _PACKET
    control.on_acked(round(window * _PACKET), 20_000, 10**6)
    assert control.rate_bps * 20e-6 / 8 / _PACKET == pytest.approx(window + 1, rel=1e-3)


def test_a_timeout_halves_and_five_in_a_row_leave_the_minimum() -> None:
    control = _settled(60_000)
    before = control.rate_bps
    control.on_timeout(10**6)
    assert control.rate_bps == pytest.approx(before / 2)
    for n in range(4):
        control.on_timeout(10**6 + n)
    assert control.rate_bps == _SWIFT_MINIMUM


def test_a_small_window_has_a_longer_target() -> None:
    assert isinstance(_SWIFT, SwiftParameters)
    control = Swift(_SWIFT, _LINE, Scale())
    targets = []
    for n in range(5):
        control.on_acked(_PACKET, 200_000, n * 10**6)
        targets.append(control.target_ns())
    assert targets == sorted(targets)
    assert 30_000 <= targets[0] < targets[-1] <= 130_000


def test_a_round_trip_that_scales_gives_a_rate_that_scales() -> None:
    assert isinstance(_SWIFT, SwiftParameters)
    real, lab = Swift(_SWIFT, _LINE, Scale()), Swift(_SWIFT, _LINE / 1000, Scale.similar(1000))
    for n, rtt in enumerate((20_000, 50_000, 70_000, 25_000, 25_000, 90_000) * 20):
        real.on_acked(_PACKET, rtt, n * 30_000)
        lab.on_acked(_PACKET, rtt * 1000, n * 30_000_000)
        assert lab.rate_bps * 1000 == pytest.approx(real.rate_bps)


_ACKS = st.lists(
    st.tuples(st.sampled_from(["ack", "timeout", "cnp"]), st.none() | st.integers(0, 10**10), st.integers(0, 10**7)),
    max_size=60,
)


@given(st.sampled_from([1.0, 1000.0]), st.integers(0, 200_000), _ACKS)
def test_the_rate_stays_within_minimum_and_line(
    slower: float, scaling_ns: int, calls: list[tuple[str, int | None, int]]
) -> None:
    control = Swift(replace(_values(), scaling_ns=scaling_ns), _LINE / slower, Scale.similar(slower))
    now = 0
    for what, rtt, gap in calls:
        now += gap
        if what == "ack":
            control.on_acked(gap, rtt, now)
        elif what == "timeout":
            control.on_timeout(now)
        else:
            control.on_cnp(now)
        assert _SWIFT_MINIMUM / slower <= control.rate_bps <= _LINE / slower
        assert control.target_ns() >= _values().target_ns * slower


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("target_ns", 100),
        ("increase_packets", 0.0),
        ("decrease", 1.0),
        ("most_decrease", 0.0),
        ("scaling_ns", -1),
        ("scaling_least", 100.0),
        ("minimum_bps", 201_000_000_000),
        ("minimum_bps", 0),
        ("timeouts", 0),
    ],
)
def test_nonsense_is_named(field: str, value: float) -> None:
    changed = replace(_values(), **{field: value})  # type: ignore[arg-type]  # each of its own type
    assert [name for name, _ in changed.problems(_LINE)] == [field]
