"""One network at three scales: rates, queues and CNPs are the same, and others once a rule of scaling is broken."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hpn.testbed.fabric.marking import Marker
from hpn.traffic.congestion.parameter_sets import PARAMETERS
from hpn.traffic.congestion.scale import Scale
from tests.traffic.congestion.bottleneck import Bottleneck, Outcome

_SENDERS = 3
_LIMIT = 2_000_000


def _incast(name: str, scale: Scale, *, frame_bytes: float, threshold: float = 1.0) -> Outcome:
    """15 ms of real time; ``threshold`` multiplies the marker's."""
    chosen = PARAMETERS[name]
    marker = chosen.marker_at(scale)
    assert marker is not None
    marker = Marker(int(marker.kmin_bytes * threshold), int(marker.kmax_bytes * threshold), marker.pmax)
    rate_bps = scale.rate_bps(chosen.real_rate_bps)
    net = Bottleneck(
        rate_bps, scale.bytes_(_LIMIT), marker, scale.ns(4_000), frame_bytes=frame_bytes, grid_ns=int(scale.longer)
    )
    controls = [chosen.values.control(rate_bps, scale) for _ in range(_SENDERS)]
    return net.run(controls, [chosen.values.notifier(scale) for _ in controls], scale.ns(15e6), scale.ns(7.5e6))


def _assert_same(real: Outcome, lab: Outcome) -> None:
    assert lab.sent == real.sent
    assert lab.cnps_sent == real.cnps_sent > 0
    assert [step[:2] for step in lab.trajectory] == [step[:2] for step in real.trajectory]
    assert [step[2] for step in lab.trajectory] == pytest.approx([step[2] for step in real.trajectory], rel=1e-6)


@pytest.mark.parametrize("name", ["dcqcn-2015", "simai-200g"])
def test_bytes_stay_where_times_grow_as_rates_shrink(name: str) -> None:
    real, lab = (_incast(name, scale, frame_bytes=4000) for scale in (Scale(), Scale.similar(1000)))
    _assert_same(real, lab)
    assert lab.queue == real.queue  # in bytes


def test_thresholds_may_shrink_instead_but_packets_would_have_to_as_well() -> None:
    real = _incast("dcqcn-2015", Scale(), frame_bytes=4000)
    lab = _incast("dcqcn-2015", Scale(slower=1000, longer=1), frame_bytes=4)
    _assert_same(real, lab)
    assert lab.queue == pytest.approx([waiting / 1000 for waiting in real.queue], abs=1e-6)


def test_thresholds_that_shrink_while_times_grow_are_another_network() -> None:
    real = _incast("dcqcn-2015", Scale(), frame_bytes=4000)
    wrong = _incast("dcqcn-2015", Scale.similar(1000), frame_bytes=4000, threshold=1 / 1000)
    assert wrong.cnps_sent > 3 * real.cnps_sent
    assert sum(wrong.delivered) < sum(real.delivered) / 2


def test_timers_that_stay_while_rates_shrink_are_another_network() -> None:
    real = _incast("dcqcn-2015", Scale(), frame_bytes=4000)
    chosen, scale = PARAMETERS["dcqcn-2015"], Scale.similar(1000)
    rate_bps = scale.rate_bps(chosen.real_rate_bps)
    net = Bottleneck(rate_bps, _LIMIT, chosen.marker, scale.ns(4_000), frame_bytes=4000, grid_ns=1000)
    unstretched = replace(scale, longer=1)
    controls = [chosen.values.control(rate_bps, unstretched) for _ in range(_SENDERS)]
    wrong = net.run(controls, [chosen.values.notifier(unstretched) for _ in controls], scale.ns(15e6))
    assert wrong.drops > 1000 > real.drops == 0


def test_a_time_of_nothing_stays_nothing_and_no_other_vanishes() -> None:
    assert Scale(1, 1e-6).ns(4_000) == 1
    assert Scale.similar(1000).ns(0) == 0
