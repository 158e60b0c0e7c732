"""Statistics of sampled ports: exact loads, queues by nearest rank, the balance of the ports towards a NIC."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from hpn.failover.analysis.port_sampling import Ports, Sampled, Sampling, Series, Watched, watched
from hpn.failover.analysis.ports import Moment, PortMetrics, port_metrics
from hpn.testbed.fabric.build import build
from hpn.testbed.fabric.presets import PRESETS
from hpn.testbed.fabric.spec import FabricSpec
from hpn.testbed.kernel.rtnetlink.qdisc import BucketReading

MS = 10**6
RATE = 8_000_000  # a kilobyte a millisecond
NIC = "p0.s0.h0.r0"


def _port(number: int, nic: str | None = NIC) -> Watched:
    return Watched("p0.s0.t0.0", number, f"t{number}:p", f"link{number}", "tor down", nic)


def _series(number: int, backlogs: Iterable[int], per_ms: int = 500, nic: str | None = NIC, rate: int = RATE) -> Series:
    """One reading a millisecond; ``per_ms`` bytes leave, one packet is dropped in each."""
    made = Series(_port(number, nic))
    for at, backlog in enumerate(backlogs):
        made.append(BucketReading(at * MS, number, backlog, 1, 7 + at, 10**9 + at * per_ms, 10**6 + at, rate))
    return made


def _metrics(*series: Series, healthy_ms: int = 10**6, end_ms: int = 10**6) -> PortMetrics:
    sampled = Sampled(Sampling(MS), series, cpu_ns=1010 * MS)
    return port_metrics(sampled, healthy_ms * MS, end_ms * MS, {NIC})


def test_load_and_drops_are_differences_of_counters() -> None:
    (port,) = _metrics(_series(1, [0] * 101)).ports
    assert (port.sent_bytes, port.sent_packets, port.drops, port.readings) == (50_000, 100, 100, 101)
    assert port.load == pytest.approx(0.5)


def test_a_queue_is_told_in_bytes_and_in_ms_at_the_port_s_rate() -> None:
    (port,) = _metrics(_series(1, range(0, 101_000, 1000))).ports  # 0 to 100 kB, a kB a reading
    assert (port.queue_mean_bytes, port.queue_p99_bytes, port.queue_max_bytes) == (50_000, 99_000, 100_000)
    assert (port.queue_mean_ms, port.queue_p99_ms, port.queue_max_ms) == pytest.approx((50, 99, 100))
    assert port.p99_uncertainty_ms == pytest.approx(2)  # ranks 98 to 101 of 101: one standard error is one rank


def test_the_99th_percentile_of_a_hundred_is_the_99th() -> None:
    (port,) = _metrics(_series(1, range(1000, 101_000, 1000))).ports
    assert (port.readings, port.queue_p99_bytes) == (100, 99_000)


def test_a_port_that_was_slowed_has_queues_at_the_rate_of_the_moment() -> None:
    slowed = _series(1, [1000] * 5)
    slowed.append(BucketReading(5 * MS, 1, 1000, 1, 20, 2 * 10**9, 2 * 10**6, RATE // 4))
    (port,) = _metrics(slowed).ports
    assert port.queue_max_ms == pytest.approx(4)
    assert port.queue_max_bytes == 1000
    assert port.rate_bps == RATE // 4


def test_what_is_read_after_the_end_does_not_count() -> None:
    (port,) = _metrics(_series(1, [0] * 50 + [9000] * 50), end_ms=49).ports
    assert (port.readings, port.queue_max_bytes) == (50, 0)


def test_the_balance_is_of_the_healthy_record_and_of_nics_that_are_sent_to() -> None:
    busy, other = _series(1, [0] * 101, per_ms=900), _series(2, [0] * 51, per_ms=300)
    for at in range(51, 101):  # after the fault all goes the other way
        other.append(BucketReading(at * MS, 2, 0, 0, 0, 10**9 + 15_000 + (at - 50) * 5000, 10**6 + at, RATE))
    elsewhere = [_series(number, [0] * 101, nic="p0.s1.h0.r0") for number in (3, 4)]
    (balance,) = _metrics(busy, other, *elsewhere, healthy_ms=50).balance
    assert balance.nic == NIC
    assert balance.ratio == pytest.approx(3.0)
    assert balance.bps == pytest.approx((7_200_000, 2_400_000))
    assert balance.uncertainty == pytest.approx(3.0 * 2 / 50)


def test_a_port_that_idles_has_no_ratio_and_one_port_no_balance() -> None:
    (balance,) = _metrics(_series(1, [0] * 9), _series(2, [0] * 9, per_ms=0)).balance
    assert balance.ratio is None
    assert _metrics(_series(1, [0] * 9)).balance == ()


def test_the_longest_pause_and_the_cost_are_told() -> None:
    gap = _series(1, [0] * 100)
    gap.append(BucketReading(250 * MS, 1, 0, 0, 200, 2 * 10**9, 2 * 10**6, RATE))
    found = _metrics(gap)
    assert found.longest_pause_ms == 151
    assert found.cpu_ms_per_sample == pytest.approx(10)


def test_ports_without_two_readings_are_left_out() -> None:
    found = _metrics(_series(1, [0]), _series(2, []))
    assert (found.ports, found.balance, found.longest_pause_ms) == ((), (), 0.0)


def test_which_ports_of_a_fabric_are_sampled() -> None:
    tiny = build(PRESETS["tiny"].spec)
    down = watched(tiny, Ports.TOR_DOWN)
    assert sorted(port.link for port in down) == sorted(link.name for nic in tiny.nics for link in nic.links)
    assert {(port.tier, port.nic is None) for port in down} == {("tor down", False)}
    every = watched(tiny, Ports.SWITCHES)
    assert {port.tier for port in every} == {"tor down", "tor up", "agg down"}
    assert len(every) == sum(len(tiny.links_of(node.name)) for node in tiny.switches)
    stacked = build(FabricSpec(architecture="stacked-dual-tor"))
    assert "tor peer" in {port.tier for port in watched(stacked, Ports.SWITCHES)}


def test_what_a_port_marked_and_when_is_the_difference_of_its_counters() -> None:
    """50 packets marked between 120 and 129 ms, 7 dropped at 310; what came before the first reading is not counted."""
    made = Series(_port(1))
    for at in range(0, 401, 10):
        marked, drops = 1000 + 50 * (at >= 130), 9 + 7 * (at >= 310)
        backlog = 5000 if at == 130 else 100
        made.append(BucketReading(at * MS, 1, backlog, 1, drops, at, at, RATE, marked))
    (port,) = _metrics(made).ports
    assert (port.marked, port.drops, port.since_ns) == (50, 7, 0)
    assert port.course == (Moment(100 * MS, 50, 0, 5000), Moment(300 * MS, 0, 7, 100))
    (packed,) = _metrics(Series.unpacked(made.port, made.packed())).ports
    assert packed == port


def test_where_nothing_marks_and_nothing_is_dropped_there_is_nothing_to_tell() -> None:
    quiet = Series(_port(1))
    for at in range(3):
        quiet.append(BucketReading(at * MS, 1, 0, 0, 0, 0, 0, RATE))
    (port,) = _metrics(quiet).ports
    assert (port.marked, port.course) == (None, ())


def test_a_port_whose_marker_gave_way_to_a_delay_says_nothing_of_its_marks() -> None:
    made = Series(_port(1))
    for at, marked in enumerate((5, None, None)):
        made.append(BucketReading(at * MS, 1, 0, 0, 0, 0, 0, RATE, marked))
    (port,) = _metrics(made).ports
    assert port.marked is None
