"""A control by marks and delay: the four cases of its table, quick adaptation, trims, and incasts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hpn.traffic.congestion.nscc import Nscc, NsccParameters
from hpn.traffic.congestion.parameter_sets import UEC_2025
from hpn.traffic.congestion.scale import Scale
from tests.traffic.congestion.bottleneck import Bottleneck, Outcome

_LINE, _RTT_NS, _TARGET_NS = 100e9, 12_000, 9_000
_BDP = _LINE * _RTT_NS / 8e9
_FRAME = 4200
_VALUES = UEC_2025.values
assert isinstance(_VALUES, NsccParameters)


def _control(window: float | None = None, **changes: float) -> Nscc:
    """At 100G and with a known base round trip; ``window`` bytes, with no time since a change."""
    assert isinstance(_VALUES, NsccParameters)
    control = Nscc(replace(_VALUES, **changes), _LINE, Scale())  # type: ignore[arg-type]  # each of its own type
    if window is not None:
        control._window = window
    return control


def _hear(control: Nscc, packets: int, delay_ns: int, *, marked: bool = False, begin_ns: int = 1) -> int:
    """Acknowledgements of one packet each, as far apart as packets at line rate; the time after the last."""
    for k in range(packets):
        if marked:
            control.on_marked(_FRAME, begin_ns)
        control.on_acked(_FRAME, _RTT_NS + delay_ns, begin_ns + k * 336)
    return begin_ns + packets * 336


def test_it_begins_at_line_rate_with_one_and_a_half_products_of_bandwidth_and_delay() -> None:
    control = _control()
    assert (control.rate_bps, control.window_bytes, control.next_ns()) == (_LINE, 1.5 * _BDP, None)


def test_below_the_target_it_grows_with_what_is_left_and_a_smaller_window_grows_more() -> None:
    grown = {}
    for window in (_BDP / 4, _BDP / 2):
        for delay_ns in (3_000, 6_000):
            control = _control(window)
            _hear(control, 9, delay_ns)
            grown[window, delay_ns] = control.window_bytes - window
    packets = 4 * _FRAME / _RTT_NS * 9 * _FRAME  # alpha, for nine packets
    expected = packets * 6_000 / (_BDP / 4)
    assert grown[_BDP / 4, 3_000] == pytest.approx(expected, rel=0.01)
    assert grown[_BDP / 4, 6_000] == pytest.approx(expected / 2, rel=0.01)
    assert grown[_BDP / 2, 3_000] == pytest.approx(expected / 2, rel=0.01)


def test_above_the_target_without_marks_it_grows_as_little_whatever_the_delay() -> None:
    for delay_ns in (9_000, 30_000):
        control = _control(_BDP / 4)
        _hear(control, 9, delay_ns)
        assert control.window_bytes - _BDP / 4 == pytest.approx(5 * _FRAME * 9 * _FRAME / (_BDP / 4), rel=0.01)


def test_marked_below_the_target_it_stays() -> None:
    control = _control(_BDP / 4)
    _hear(control, 9, 3_000, marked=True)
    assert control.window_bytes == _BDP / 4


def test_marked_above_the_target_it_shrinks_by_the_average_once_a_round_trip_at_most_by_half() -> None:
    for delay_ns, kept in ((18_000, 1 - 0.8 / 2), (35_000, 0.5)):
        control = _control(_BDP, smoothing=0.999)
        control.on_marked(_FRAME, _RTT_NS + 1)
        control.on_acked(_FRAME, _RTT_NS + delay_ns, _RTT_NS + 1)
        assert control.window_bytes == pytest.approx(kept * _BDP, rel=0.01)
        _hear(control, 8, delay_ns, marked=True, begin_ns=_RTT_NS + 2)
        assert control.window_bytes == pytest.approx(kept * _BDP, rel=0.01), "once"
        control.on_marked(_FRAME, 2 * _RTT_NS + 3)
        control.on_acked(_FRAME, _RTT_NS + delay_ns, 2 * _RTT_NS + 3)
        assert control.window_bytes < 0.7 * kept * _BDP


def test_long_delays_without_marks_do_not_count_for_the_average() -> None:
    """Another path is at fault: nothing says that this one has a queue."""
    control = _control(_BDP)
    _hear(control, 400, 30_000)
    control.on_marked(_FRAME, 10**6)
    control.on_acked(_FRAME, _RTT_NS + 10_000, 10**6)
    assert control.window_bytes >= _BDP


def test_a_window_of_packets_without_delay_makes_it_grow_at_once() -> None:
    control = _control(_BDP / 8)
    now = _hear(control, 6, 500)
    slow = control.window_bytes
    _hear(control, 2, 500, begin_ns=now)
    assert control.window_bytes == slow + 2 * 0.25 * _FRAME


def test_a_trimmed_packet_takes_its_bytes() -> None:
    control = _control(_BDP)
    control.on_trimmed(_FRAME, 5)
    assert control.window_bytes == _BDP - _FRAME


def test_trims_with_hardly_an_arrival_make_the_window_what_arrived() -> None:
    control = _control(_BDP)
    control.on_trimmed(_FRAME, 1)  # begins the measurement
    _hear(control, 2, 3_000, begin_ns=2)
    control.on_trimmed(_FRAME, _RTT_NS + _TARGET_NS + 5)
    assert control.window_bytes == 2 * _FRAME
    for k in range(10):
        control.on_trimmed(_FRAME, _RTT_NS + _TARGET_NS + 6 + k)
    assert control.window_bytes == 2 * _FRAME, "packets of the old window say nothing of the new one"


def test_many_arrivals_need_no_quick_adaptation() -> None:
    control = _control(_BDP)
    control.on_trimmed(_FRAME, 1)
    _hear(control, 20, 3_000, begin_ns=2)
    control.on_trimmed(_FRAME, _RTT_NS + _TARGET_NS + 5)
    assert control.window_bytes > 0.8 * _BDP


@pytest.mark.parametrize("slower", [1, 1000])
def test_rates_and_times_of_a_lab_give_the_same_windows(slower: int) -> None:
    assert isinstance(_VALUES, NsccParameters)
    control = Nscc(_VALUES, _LINE / slower, Scale.similar(slower))
    for k in range(50):
        now = (k * 336 + 1) * slower
        if k % 7 == 0:
            control.on_marked(_FRAME, now)
        control.on_acked(_FRAME, (_RTT_NS + 700 * k) * slower, now)
    reference = _control()
    for k in range(50):
        if k % 7 == 0:
            reference.on_marked(_FRAME, k * 336 + 1)
        reference.on_acked(_FRAME, _RTT_NS + 700 * k, k * 336 + 1)
    assert control.window_bytes == pytest.approx(reference.window_bytes, rel=1e-6)


def _incast(senders: int, *, trims: bool = True, marks: bool = True) -> Outcome:
    """20 ms at 100G over a queue of one product of bandwidth and delay; the second half counts."""
    assert isinstance(_VALUES, NsccParameters)
    net = Bottleneck(_LINE, _BDP, UEC_2025.marker if marks else None, _RTT_NS - 400, _FRAME, trims=trims)
    controls = [_VALUES.control(_LINE, Scale()) for _ in range(senders)]
    return net.run(controls, [None] * senders, 20 * 10**6, 10 * 10**6)


@pytest.mark.parametrize("senders", [1, 3, 7, 16])
def test_an_incast_fills_the_link_and_shares_it_with_few_trims(senders: int) -> None:
    """Without control (n - 1) / n of all packets would be trimmed; windows of two packets leave some."""
    out = _incast(senders)
    assert sum(out.delivered_late) * _FRAME * 8 / 0.01 >= 0.95 * _LINE
    fair = sum(out.delivered_late) / senders
    assert all(0.8 * fair <= share <= 1.2 * fair for share in out.delivered_late)
    assert out.drops_late <= 0.05 * sum(out.delivered_late)
    waits_ns = out.queue_at(0.5) * 8e9 / _LINE
    assert waits_ns < _TARGET_NS if senders == 1 else waits_ns == pytest.approx(_TARGET_NS, rel=0.15)


def test_without_marks_and_trims_it_does_not_slow_down() -> None:
    out = _incast(3, trims=False, marks=False)
    assert out.drops_late > 0.1 * sum(out.delivered_late)
