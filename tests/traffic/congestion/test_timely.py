"""A control by the gradient of the delay: the paper's algorithm, its shapes, and its known failure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpn.traffic.congestion.parameter_sets import PARAMETERS, TIMELY_200G, TIMELY_2015
from hpn.traffic.congestion.scale import Scale
from hpn.traffic.congestion.timely import Timely, TimelyParameters
from tests.traffic.congestion.bottleneck import Bottleneck, Outcome

_LINE = 10e9
_TIMELY = TIMELY_2015.values
assert isinstance(_TIMELY, TimelyParameters)
_SEGMENT, _STEP = 64_000, 10e6
_FRAME, _DELAY_NS = 1_000, 18_000
_MS = 200


def _at(rate_bps: float, *rtts_us: int) -> Timely:
    """A control that has seen these round trips, 100 us apart, and then has that rate."""
    assert isinstance(_TIMELY, TimelyParameters)
    control = Timely(_TIMELY, _LINE, Scale())
    _see(control, *rtts_us)
    control.rate_bps = rate_bps
    return control


def _see(control: Timely, *rtts_us: int, from_us: int = 0) -> None:
    for n, rtt in enumerate(rtts_us):
        control.on_acked(_SEGMENT, rtt * 1000, (from_us + 100 * n) * 1000)


def test_before_two_round_trips_are_known_it_sends_at_line_rate() -> None:
    control = _at(_LINE, 400)
    assert (control.rate_bps, control.next_ns()) == (_LINE, None)


def test_below_t_low_a_segment_adds_one_step_whatever_the_gradient() -> None:
    control = _at(5e9, 20)
    _see(control, 49, 20, 48, from_us=1000)
    assert control.rate_bps == pytest.approx(5e9 + 3 * _STEP)


def test_above_t_high_it_shrinks_by_beta_times_the_excess_even_while_the_delay_falls() -> None:
    control = _at(5e9, 700)
    _see(control, 625, from_us=1000)
    assert control.rate_bps == pytest.approx(5e9 * (1 - 0.8 * (1 - 500 / 625)))


def test_in_between_a_rise_takes_beta_times_the_smoothed_gradient() -> None:
    control = _at(5e9, 100)
    _see(control, 104, from_us=1000)
    first = 5e9 * (1 - 0.8 * 0.875 * 4 / 20)
    assert control.rate_bps == pytest.approx(first)
    _see(control, 108, from_us=2000)
    assert control.rate_bps == pytest.approx(first * (1 - 0.8 * (0.125 * 0.875 + 0.875) * 4 / 20))


def test_the_fifth_update_in_a_row_without_a_rise_adds_five_steps_and_a_rise_ends_that() -> None:
    control = _at(5e9, 100)
    _see(control, 100, 100, 100, 100, from_us=1000)
    assert control.rate_bps == pytest.approx(5e9 + 4 * _STEP)
    _see(control, 100, from_us=2000)
    assert control.rate_bps == pytest.approx(5e9 + 9 * _STEP)
    _see(control, 101, 101, from_us=3000)
    before = control.rate_bps
    _see(control, 100, from_us=4000)
    assert control.rate_bps == pytest.approx(before + _STEP)


def test_an_update_takes_a_segment_and_a_minimum_round_trip() -> None:
    control = _at(5e9, 30)
    control.on_acked(_SEGMENT - 1, 30_000, 10**6)
    assert control.rate_bps == 5e9
    control.on_acked(1, 30_000, 10**6)
    control.on_acked(_SEGMENT, 30_000, 10**6 + 19_999)
    assert control.rate_bps == 5e9 + _STEP
    control.on_acked(0, 30_000, 10**6 + 20_000)
    assert control.rate_bps == 5e9 + 2 * _STEP
    control.on_acked(_SEGMENT, None, 10**7)
    assert control.rate_bps == 5e9 + 2 * _STEP


def test_neither_a_steep_rise_nor_a_timeout_takes_more_than_half() -> None:
    control = _at(5e9, 100)
    _see(control, 400, from_us=1000)
    assert control.rate_bps == 2.5e9
    control.on_timeout(2 * 10**6)
    assert control.rate_bps == 1.25e9


def test_a_round_trip_that_scales_gives_a_rate_that_scales() -> None:
    assert isinstance(_TIMELY, TimelyParameters)
    real, lab = Timely(_TIMELY, _LINE, Scale()), Timely(_TIMELY, _LINE / 1000, Scale.similar(1000))
    for n, rtt in enumerate((20_000, 60_000, 70_000, 65_000, 65_000, 900_000) * 20):
        real.on_acked(_SEGMENT, rtt, n * 30_000)
        lab.on_acked(_SEGMENT, rtt * 1000, n * 30_000_000)
        assert lab.rate_bps * 1000 == pytest.approx(real.rate_bps)


_CALLS = st.lists(
    st.tuples(st.sampled_from(["ack", "timeout", "cnp"]), st.none() | st.integers(-1, 10**10), st.integers(0, 10**6)),
    max_size=60,
)


@given(st.sampled_from([1.0, 1000.0]), _CALLS)
def test_the_rate_stays_within_minimum_and_line(slower: float, calls: list[tuple[str, int | None, int]]) -> None:
    assert isinstance(_TIMELY, TimelyParameters)
    control, now = Timely(_TIMELY, _LINE / slower, Scale.similar(slower)), 0
    for what, rtt, gap in calls:
        now += gap
        if what == "ack":
            control.on_acked(gap, rtt, now)
        elif what == "timeout":
            control.on_timeout(now)
        else:
            control.on_cnp(now)
        assert _TIMELY.minimum_bps / slower <= control.rate_bps <= _LINE / slower


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("minimum_rtt_ns", 0),
        ("low_ns", 0),
        ("high_ns", 50_000),
        ("step_bps", 0),
        ("hyper_after", 0),
        ("hyper_steps", 0),
        ("decrease", 1.1),
        ("smoothing", 0.0),
        ("segment_bytes", 0),
        ("minimum_bps", 11_000_000_000),
    ],
)
def test_nonsense_is_named(field: str, value: float) -> None:
    assert isinstance(_TIMELY, TimelyParameters)
    changed = replace(_TIMELY, **{field: value})  # type: ignore[arg-type]  # each of its own type
    assert [name for name, _ in changed.problems(_LINE)] == [field]


def _bottleneck(name: str, shares: Sequence[float]) -> Outcome:
    """200 ms of senders that begin with these shares of the line rate; the first half to converge."""
    chosen = PARAMETERS[name]
    line = chosen.real_rate_bps
    net = Bottleneck(line, 5_000_000, chosen.marker, _DELAY_NS, _FRAME)
    controls = [chosen.values.control(line, Scale()) for _ in shares]
    for control, share in zip(controls, shares, strict=True):
        control.rate_bps = share * line  # type: ignore[misc]  # those with such a rate
    notifiers = [chosen.values.notifier(Scale()) for _ in shares]
    return net.run(controls, notifiers, _MS * 10**6, _MS * 10**6 // 2)


def _parts(out: Outcome) -> list[float]:
    return [each / sum(out.delivered_late) for each in out.delivered_late]


@pytest.mark.parametrize("senders", [2, 3])
def test_the_round_trip_rises_to_t_low_and_stays_far_below_t_high(senders: int) -> None:
    out = _bottleneck("timely-2015", [1.0] * senders)
    worst_ns = out.queue_at(0.99) * 8e9 / _LINE + _FRAME * 8e9 / _LINE + _DELAY_NS
    assert 0.8 * 50_000 <= worst_ns <= 1.5 * 50_000
    assert sum(out.delivered_late) * _FRAME * 8 / (_MS / 2000) >= 0.9 * _LINE
    assert (out.drops, out.marks) == (0, 0)


def test_two_that_begin_alike_share_the_link() -> None:
    assert all(0.4 <= part <= 0.6 for part in _parts(_bottleneck("timely-2015", [1.0, 1.0])))


def test_two_that_begin_with_different_rates_stay_unfair_where_dcqcn_makes_them_equal() -> None:
    """Zhu et al., ECN or Delay (CoNEXT 2016), section 4: rates have no unique fixed point. 7 and 4 of 10 Gbit/s here.

    A segment at 7 Gbit/s takes longer than the minimum round trip, so the faster one grows more often.
    """
    large, small = _parts(_bottleneck("timely-2015", [0.7, 0.4]))
    assert large > 4 * small
    assert all(0.4 <= part <= 0.6 for part in _parts(_bottleneck("dcqcn-2015", [0.7, 0.4])))


def test_the_usual_set_is_the_papers_with_steps_that_grow_with_the_rate() -> None:
    assert isinstance(_TIMELY, TimelyParameters)
    assert TIMELY_200G.values == replace(_TIMELY, step_bps=20 * _TIMELY.step_bps, minimum_bps=100_000_000)
