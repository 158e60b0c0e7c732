"""DCQCN's reaction point, by the paper's equations and by properties."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpn.traffic.congestion.dcqcn import Dcqcn, DcqcnParameters
from hpn.traffic.congestion.scale import Scale
from tests.traffic.congestion.bottleneck import dcqcn

_LINE = 40e9
_PAPER, _MELLANOX = dcqcn("dcqcn-2015"), dcqcn("simai-200g")
_G = 1 / 256


def _control(parameters: DcqcnParameters = _PAPER) -> Dcqcn:
    return Dcqcn(parameters, _LINE, Scale())


def _run_timer(control: Dcqcn, times: int) -> int:
    now = 0
    for _ in range(times):
        due = control.next_ns()
        assert due is not None
        control.on_timer(now := due)
    return now


def test_a_queue_pair_begins_at_line_rate_and_waits_for_nothing() -> None:
    assert (_control().rate_bps, _control().next_ns()) == (_LINE, None)


def test_the_first_cnp_halves_the_rate_and_five_runs_of_the_timer_bring_most_of_it_back() -> None:
    control = _control()
    control.on_cnp(1_000)
    assert control.rate_bps == _LINE / 2
    assert control.next_ns() == 1_000 + 55_000
    _run_timer(control, 5)
    assert control.rate_bps == pytest.approx(_LINE * (1 - 1 / 2**6))
    _run_timer(control, 3)  # additive increases: the target is the line rate already and goes no further
    assert control.rate_bps == pytest.approx(_LINE * (1 - 1 / 2**9))


def test_alpha_rises_with_a_cnp_and_fades_with_each_run_of_its_timer() -> None:
    control = _control()
    control.on_cnp(0)
    assert control.alpha(0) == 1.0  # (1 - g) x 1 + g
    assert control.alpha(54_999) == 1.0
    assert control.alpha(55_000 * 10) == pytest.approx((1 - _G) ** 10)
    control.on_cnp(55_000 * 10)
    assert control.alpha(55_000 * 10) == pytest.approx((1 - _G) ** 11 + _G)


def test_after_fast_recovery_the_target_rises_by_r_ai() -> None:
    """Two cuts leave a target below the line, so that the increase can be seen."""
    control = _control()
    control.on_cnp(0)
    control.on_cnp(1)
    target, rate = _LINE / 2, _LINE / 4
    _run_timer(control, 5)
    rate = target - (target - rate) / 2**5
    assert control.rate_bps == pytest.approx(rate)
    for _ in range(3):
        _run_timer(control, 1)
        target += 40e6
        rate = (rate + target) / 2
        assert control.rate_bps == pytest.approx(rate)


def test_the_byte_counter_counts_as_the_timer_does_and_both_together_make_it_hyper() -> None:
    control = _control()
    control.on_cnp(0)
    control.on_cnp(1)
    for _ in range(7):
        control.on_sent(10_000_000, 2)
    _run_timer(control, 7)
    before = control.rate_bps
    _run_timer(control, 1)  # the second with both stages above 5
    # Targets: 2 + 6 additive increases, one hyper increase of 1 x R_HAI, this one of 2 x.
    assert control.rate_bps == pytest.approx((before + _LINE / 2 + 8 * 40e6 + 200e6 + 400e6) / 2)


def test_mellanox_cuts_once_in_four_microseconds_and_keeps_the_target_until_it_has_recovered() -> None:
    control = _control(_MELLANOX)
    control.on_cnp(0)
    assert control.rate_bps == _LINE / 2
    control.on_cnp(1_000)
    control.on_cnp(3_999)
    assert (control.rate_bps, control.next_ns()) == (_LINE / 2, 4_000)
    control.on_timer(4_000)
    assert control.rate_bps == pytest.approx(_LINE / 2 * (1 - (1 - _G) ** 4 / 2))
    before = control.rate_bps
    _run_timer(control, 1)
    assert control.rate_bps == pytest.approx((before + _LINE) / 2)


def test_a_cut_that_waits_is_done_though_the_rate_has_come_back_to_the_line_meanwhile() -> None:
    control = _control(replace(_PAPER, decrease_interval_ns=10**6))
    control.on_cnp(0)
    control.on_cnp(1)
    while control.rate_bps < _LINE:
        control.on_sent(10_000_000, 2)
    assert control.next_ns() == 10**6
    control.on_timer(10**6)
    assert control.rate_bps < _LINE


@st.composite
def _parameters(draw: st.DrawFn) -> DcqcnParameters:
    times = st.integers(1, 10**6)
    rates = st.integers(5 * 10**8, 40 * 10**9)
    return DcqcnParameters(
        gain=draw(st.floats(1 / 1024, 1)),
        alpha_timer_ns=draw(times),
        decrease_interval_ns=draw(st.integers(0, 10**6)),
        increase_timer_ns=draw(times),
        byte_counter_bytes=draw(st.none() | st.integers(1, 10**7)),
        fast_recovery=draw(st.integers(1, 10)),
        additive_bps=draw(rates),
        hyper_bps=draw(rates),
        minimum_bps=draw(rates),
        clamp_target=draw(st.booleans()),
        hyper_grows=draw(st.booleans()),
        cnp_interval_ns=draw(times),
        cnp_delay_ns=draw(times),
    )


_CALLS = st.lists(
    st.tuples(st.sampled_from(["cnp", "sent", "acked", "timeout", "timer", "late"]), st.integers(0, 10**6)),
    max_size=60,
)


@given(_parameters(), st.sampled_from([1.0, 7.0, 1000.0]), _CALLS)
def test_the_rate_stays_within_its_bounds_alpha_too_and_no_timer_is_in_the_past(
    parameters: DcqcnParameters, slower: float, calls: list[tuple[str, int]]
) -> None:
    line = 40e9 / slower
    control = Dcqcn(parameters, line, Scale.similar(slower))
    now = 0
    for what, number in calls:
        due = control.next_ns()
        if what == "timer" and due is not None:
            now = max(now, due)
        now += number if what == "late" else 0
        if what == "cnp":
            control.on_cnp(now)
        elif what == "sent":
            control.on_sent(number, now)
        elif what == "acked":
            control.on_acked(number, None, now)
        elif what == "timeout":
            control.on_timeout(now)
        else:
            control.on_timer(now)
            after = control.next_ns()
            assert after is None or after > now
        assert parameters.minimum_bps / slower * (1 - 1e-12) <= control.rate_bps <= line
        assert 0 <= control.alpha(now) <= 1


@given(_parameters(), st.integers(1, 5))
def test_after_long_silence_the_rate_is_the_lines_again_and_nothing_wakes_anybody(
    parameters: DcqcnParameters, cnps: int
) -> None:
    control = _control(parameters)
    for i in range(cnps):
        control.on_cnp(i)
    runs = 0
    while (due := control.next_ns()) is not None:
        control.on_timer(due)
        runs += 1
        # The target climbs to the line rate by one of both steps, then the distance to it is halved.
        assert runs < parameters.fast_recovery + _LINE / min(parameters.additive_bps, parameters.hyper_bps) + 60
    assert control.rate_bps == _LINE
