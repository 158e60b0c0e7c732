"""A control by telemetry: the paper's algorithm 1, its shapes, and its known failure."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpn.traffic.congestion.hop import Hop
from hpn.traffic.congestion.hpcc import Hpcc, HpccParameters
from hpn.traffic.congestion.parameter_sets import HPCC_200G, HPCC_2019, PARAMETERS
from hpn.traffic.congestion.scale import Scale
from tests.traffic.congestion.bottleneck import Bottleneck, Outcome

_LINE, _T_NS = 100e9, 13_000
_WINDOW = _LINE * _T_NS / 8e9
_ADDITIVE = 40e6 * _T_NS / 8e9
_HPCC = HPCC_2019.values
assert isinstance(_HPCC, HpccParameters)
_FRAME, _DELAY_NS, _LIMIT = 4200, 8_000, 5_000_000


def _control(**changes: float) -> Hpcc:
    assert isinstance(_HPCC, HpccParameters)
    return Hpcc(replace(_HPCC, **changes), _LINE, Scale())  # type: ignore[arg-type]  # each of its own type


def _hop(now_ns: int, load: float, queue: int = 0, rate: float = _LINE) -> Hop:
    """A port that has carried that share of its rate since 0."""
    return Hop(now_ns, round(load * rate * now_ns / 8e9), queue, round(rate))


def _hear(control: Hpcc, now_ns: int, *hops: Hop, rtt_ns: int = 10_000) -> None:
    control.on_telemetry(hops, rtt_ns, now_ns)


def _bytes_per_t(control: Hpcc) -> float:
    """The window of a control whose round trip is no longer than T."""
    return control.rate_bps * _T_NS / 8e9


def test_it_begins_at_line_rate_and_the_first_report_only_begins_the_measurement() -> None:
    control = _control()
    assert (control.rate_bps, control.next_ns(), control.probe_bytes) == (_LINE, None, 64_000)
    _hear(control, 20_000, _hop(10_000, 3.0))
    assert (control.rate_bps, control.utilisation) == (_LINE, 1.0)


def test_the_average_takes_the_part_of_t_that_the_measurement_lasted() -> None:
    control = _control()
    _hear(control, 20_000, _hop(13_000, 0.5))
    _hear(control, 24_000, _hop(13_000 + 1_300, 0.5))
    assert control.utilisation == pytest.approx(0.9 * 1.0 + 0.1 * 0.5, rel=1e-3)
    _hear(control, 99_000, _hop(99_000, 0.5))
    assert control.utilisation == pytest.approx(0.5, rel=1e-3)


def test_the_busiest_link_counts_with_the_smaller_of_two_queues() -> None:
    control = _control()
    _hear(control, 20_000, _hop(13_000, 0.9), _hop(13_000, 0.5, 500_000, 4 * _LINE))
    _hear(control, 40_000, _hop(39_000, 0.9), _hop(39_000, 0.5, 390_000, 4 * _LINE))
    assert control.utilisation == pytest.approx(0.5 + 390_000 * 8e9 / (4 * _LINE * _T_NS), rel=1e-3)


def test_a_load_of_eta_or_more_divides_the_reference_and_adds_w_ai() -> None:
    control = _control()
    _hear(control, 20_000, _hop(13_000, 1.0))
    _hear(control, 40_000, _hop(39_000, 1.0, 0))
    assert _bytes_per_t(control) == pytest.approx(_WINDOW / (1 / 0.95) + _ADDITIVE)


def test_within_a_round_trip_every_report_counts_from_the_same_reference() -> None:
    """Algorithm 1, line 23: only the report on a packet that left after the last change moves the reference."""
    control = _control()
    _hear(control, 20_000, _hop(13_000, 1.0))
    _hear(control, 40_000, _hop(39_000, 1.0))  # sent at 30,000, after the first report: the reference moves
    first = _bytes_per_t(control)
    for now in (43_000, 46_000, 49_999):  # sent before 40,000
        _hear(control, now, _hop(now - 1_000, 1.0))
        assert _bytes_per_t(control) == pytest.approx(first * 0.95 + _ADDITIVE, rel=1e-4)
    _hear(control, 50_000, _hop(49_500, 1.0))
    second = _bytes_per_t(control)
    assert second == pytest.approx(first * 0.95 + _ADDITIVE, rel=1e-4)
    _hear(control, 51_000, _hop(50_500, 1.0))
    assert _bytes_per_t(control) == pytest.approx(second * 0.95 + _ADDITIVE, rel=1e-4)


def test_below_eta_it_adds_five_times_and_then_multiplies() -> None:
    control = _control()
    _hear(control, 20_000, _hop(13_000, 1.0))
    _hear(control, 40_000, _hop(39_000, 1.5))  # 1.75 in these 26 us
    window = _bytes_per_t(control)
    assert window == pytest.approx(_WINDOW * 0.95 / 1.75 + _ADDITIVE, rel=1e-3)
    sent = _hop(39_000, 1.5).sent_bytes
    for n in range(1, 7):
        half = Hop(39_000 + 26_000 * n, sent + n * round(0.5 * _LINE * 26_000 / 8e9), 0, round(_LINE))
        _hear(control, 40_000 + 26_000 * n, half)
        window = window + _ADDITIVE if n <= 5 else min(window * 0.95 / 0.5 + _ADDITIVE, _WINDOW)
        assert _bytes_per_t(control) == pytest.approx(window, rel=1e-3)


def test_a_round_trip_longer_than_t_sends_the_window_as_slowly() -> None:
    control = _control()
    _hear(control, 100_000, _hop(13_000, 0.5), rtt_ns=4 * _T_NS)
    assert control.rate_bps == pytest.approx(_LINE / 4)


def test_without_telemetry_acknowledgements_tell_the_round_trip_and_a_timeout_halves_the_window() -> None:
    control = _control()
    control.on_acked(4200, 5 * _T_NS, 10**6)
    assert control.rate_bps == pytest.approx(_LINE / 5)
    control.on_telemetry((), 10_000, 10**6)  # switches that report nothing
    control.on_timeout(2 * 10**6)
    assert control.rate_bps == pytest.approx(_LINE / 10)
    _hear(control, 3 * 10**6, _hop(3 * 10**6, 0.5))
    control.on_acked(4200, 50 * _T_NS, 3 * 10**6 + 8 * _T_NS)  # telemetry is newer
    assert control.rate_bps == pytest.approx(_LINE / 2)


@pytest.mark.parametrize(
    "other",
    [
        (Hop(39_000, 0, 0, 100_000_000_000),),  # sent less
        (Hop(13_000, 10**6, 0, 100_000_000_000),),  # no later
        (Hop(39_000, 10**6, 0, 200_000_000_000),),  # another rate
        (Hop(39_000, 10**9, 0, 100_000_000_000),),  # more than a port can send
        (_hop(39_000, 1.0), _hop(39_000, 1.0)),  # one link more
    ],
)
def test_reports_of_another_path_begin_the_measurement_anew(other: tuple[Hop, ...]) -> None:
    control = _control()
    _hear(control, 20_000, _hop(13_000, 1.0))
    _hear(control, 40_000, *other)
    assert (control.rate_bps, control.utilisation) == (_LINE, 1.0)


def test_a_window_smaller_than_the_probes_distance_is_probed_once_a_window() -> None:
    control = _control()
    for n in range(6):
        control.on_timeout(n)
    assert control.probe_bytes == int(_WINDOW / 64) + 1 < 64_000


def test_reports_that_scale_give_a_rate_that_scales() -> None:
    real, lab = HPCC_200G.values.control(200e9, Scale()), HPCC_200G.values.control(200e6, Scale.similar(1000))
    for n, load in enumerate((1.0, 1.9, 0.4, 0.4, 0.9, 1.2) * 10):
        hop = _hop(20_000 * (n + 1), load, 40_000, 200e9)
        slower = Hop(hop.time_ns * 1000, hop.sent_bytes, hop.queue_bytes, hop.rate_bps // 1000)
        real.on_telemetry((hop,), 15_000, 21_000 * (n + 1))
        lab.on_telemetry((slower,), 15_000_000, 21_000_000 * (n + 1))
        assert lab.rate_bps * 1000 == pytest.approx(real.rate_bps)


_NUMBER = st.integers(0, 10**12)
_CALLS = st.lists(
    st.tuples(
        st.sampled_from(["telemetry", "acked", "timeout", "cnp"]),
        st.lists(st.builds(Hop, _NUMBER, _NUMBER, _NUMBER, _NUMBER), max_size=2),
        st.integers(-1, 10**9),
        st.integers(0, 10**6),
    ),
    max_size=40,
)


@given(st.sampled_from([1.0, 1000.0]), _CALLS)
def test_whatever_is_reported_the_rate_stays_within_minimum_and_line(
    slower: float, calls: list[tuple[str, list[Hop], int, int]]
) -> None:
    assert isinstance(_HPCC, HpccParameters)
    control, now = Hpcc(_HPCC, _LINE / slower, Scale.similar(slower)), 0
    for what, hops, rtt, gap in calls:
        now += gap
        if what == "telemetry":
            control.on_telemetry(hops, rtt, now)
        elif what == "acked":
            control.on_acked(gap, rtt, now)
        elif what == "timeout":
            control.on_timeout(now)
        else:
            control.on_cnp(now)
        assert _HPCC.minimum_bps / slower * (1 - 1e-9) <= control.rate_bps <= _LINE / slower
        assert control.probe_bytes >= 1


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("target", 1.0),
        ("max_stage", -1),
        ("base_rtt_ns", 0),
        ("additive_bps", 0),
        ("minimum_bps", 101_000_000_000),
        ("probe_bytes", 0),
    ],
)
def test_nonsense_is_named(field: str, value: float) -> None:
    assert isinstance(_HPCC, HpccParameters)
    changed = replace(_HPCC, **{field: value})  # type: ignore[arg-type]  # each of its own type
    assert [name for name, _ in changed.problems(_LINE)] == [field]


def _incast(name: str, senders: int, *, ms: int = 20, additive: float = 1, frame: int = _FRAME) -> Outcome:
    """Senders that all begin at the line rate; the first half is to converge. ``additive`` multiplies W_AI."""
    chosen = PARAMETERS[name]
    values, line = chosen.values, chosen.real_rate_bps
    if isinstance(values, HpccParameters):
        values = replace(values, additive_bps=round(additive * values.additive_bps))
    net = Bottleneck(line, _LIMIT, chosen.marker, _DELAY_NS, frame)
    controls = [values.control(line, Scale()) for _ in range(senders)]
    return net.run(controls, [values.notifier(Scale()) for _ in controls], ms * 10**6, ms * 10**6 // 2)


@pytest.mark.parametrize("senders", [1, 3, 8])
def test_the_link_is_full_to_eta_and_its_queue_next_to_empty_where_dcqcns_stands(senders: int) -> None:
    out = _incast("hpcc-200g", senders)
    assert sum(out.delivered_late) * _FRAME * 8 / 0.01 / 200e9 == pytest.approx(0.95, abs=0.025)
    assert out.queue_at(0.5) <= _FRAME
    assert out.queue_at(0.99) <= senders * 2 * _FRAME
    assert (out.drops_late, out.marks) == (0, 0)
    if senders > 1:
        assert out.queue_at(0.99) < _incast("simai-200g", senders).queue_at(0.99) / 10


def _most_apart(out: Outcome) -> float:
    fair = sum(out.delivered_late) / len(out.delivered_late)
    return max(abs(share / fair - 1) for share in out.delivered_late)


def test_three_share_the_link() -> None:
    assert _most_apart(_incast("hpcc-200g", 3)) <= 0.3


def test_the_simulators_w_ai_shares_a_link_of_its_small_packets_and_leaves_4_kib_ones_to_one_sender() -> None:
    small, large = (_incast("hpcc-200g", 3, ms=24, additive=80 / 625, frame=frame) for frame in (1000, _FRAME))
    assert _most_apart(small) <= 0.3
    assert _most_apart(large) > 1


@pytest.mark.parametrize(("senders", "additive"), [(8, 5), (8, 12), (32, 1)])
def test_with_too_large_a_w_ai_or_too_many_flows_a_queue_stands(senders: int, additive: int) -> None:
    """The known failure: U settles at eta + n W_AI / (rate x T), and what is above 1 waits."""
    standing = 0.95 + senders * additive * 625e6 / 200e9 - 1
    assert standing > 0.04
    assert _incast("hpcc-200g", senders, additive=additive).queue_at(0.5) > standing * 200e9 * 13e-6 / 8 > 3 * _FRAME
