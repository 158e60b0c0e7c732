"""Three senders, one receiver: what each congestion control makes of it, and what happens without one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hpn.traffic.congestion.admission_parameters import AdmissionParameters
from hpn.traffic.congestion.constant import ConstantParameters
from hpn.traffic.congestion.control import Parameters
from hpn.traffic.congestion.parameter_sets import PARAMETERS
from hpn.traffic.congestion.scale import Scale
from hpn.traffic.congestion.swift import SwiftParameters
from tests.traffic.congestion.bottleneck import Bottleneck, Outcome, dcqcn

_SENDERS = 3
_MS = 40
_FRAME = 4200
_DELAY_NS = 4_000
_LIMIT = 5_000_000  # two line rates too much for the 55 us that a CNP may need are 2.75 MB


def _incast(name: str, values: Parameters | None = None, *, marked: bool = True, warm_ms: int = 20) -> Outcome:
    """40 ms on links of the set's own rate; half of that to converge."""
    chosen = PARAMETERS[name]
    values = values or chosen.values
    net = Bottleneck(chosen.real_rate_bps, _LIMIT, chosen.marker if marked else None, _DELAY_NS, _FRAME)
    controls = [values.control(chosen.real_rate_bps, Scale()) for _ in range(_SENDERS)]
    notifiers = [values.notifier(Scale()) for _ in controls]
    return net.run(controls, notifiers, _MS * 10**6, warm_ms * 10**6)


def test_swift_holds_the_delay_at_its_target_without_marks() -> None:
    values = PARAMETERS["swift-2020"].values
    assert isinstance(values, SwiftParameters)
    out = _incast("swift-2020", marked=False)
    frame_ns = _FRAME * 8e9 / PARAMETERS["swift-2020"].real_rate_bps
    middle_ns, late_ns = (out.queue_at(quantile) / _FRAME * frame_ns + frame_ns + _DELAY_NS for quantile in (0.5, 0.99))
    assert middle_ns == pytest.approx(values.target_ns, rel=0.1)
    assert late_ns < 1.2 * values.target_ns
    assert out.drops == out.cnps_sent == 0
    assert _utilisation(out, "swift-2020") >= 0.95
    fair = sum(out.delivered_late) / _SENDERS
    assert all(0.7 * fair <= share <= 1.3 * fair for share in out.delivered_late)


def test_receivers_that_grant_keep_the_queue_below_what_they_granted_without_marks() -> None:
    chosen = PARAMETERS["nccl-4mb"]
    values = chosen.values
    assert isinstance(values, AdmissionParameters)
    net = Bottleneck(chosen.real_rate_bps, _LIMIT, None, _DELAY_NS, 4096)
    controls = [values.control(chosen.real_rate_bps, Scale()) for _ in range(_SENDERS)]
    out = net.run(controls, [None] * _SENDERS, _MS * 10**6, _MS * 10**6 // 2, values.admission(Scale(), 4096))
    assert out.drops == 0
    assert values.slice_bytes < out.queue_at(1) <= values.limit_bytes
    assert sum(out.delivered_late) * 4096 * 8 / (_MS / 2 / 1000) >= 0.95 * chosen.real_rate_bps
    fair = sum(out.delivered_late) / _SENDERS
    assert all(0.9 * fair <= share <= 1.1 * fair for share in out.delivered_late)


def _utilisation(out: Outcome, name: str) -> float:
    return sum(out.delivered_late) * _FRAME * 8 / (_MS / 2 / 1000) / PARAMETERS[name].real_rate_bps


@pytest.mark.parametrize("name", ["dcqcn-2015", "simai-200g", "adapter-200g"])
def test_dcqcn_fills_the_link_drops_nothing_and_shares_it(name: str) -> None:
    out = _incast(name)
    assert out.drops == 0
    assert _utilisation(out, name) >= 0.95
    fair = sum(out.delivered_late) / _SENDERS
    assert all(0.7 * fair <= share <= 1.3 * fair for share in out.delivered_late)
    assert out.cnps_sent == out.cnps_handled > 0


def test_without_control_the_queue_is_full_and_two_thirds_are_lost() -> None:
    out = _incast("dcqcn-2015", ConstantParameters())
    assert out.drops_late / (out.drops_late + sum(out.delivered_late)) == pytest.approx(2 / 3, abs=0.01)
    assert out.queue_at(0.01) > 0.99 * _LIMIT - _FRAME
    assert out.cnps_sent == 0 < out.marks


def test_without_marks_dcqcn_is_no_control() -> None:
    out = _incast("dcqcn-2015", marked=False)
    assert out.drops_late > 0
    assert out.cnps_sent == 0


def test_an_increase_timer_a_hundred_times_too_short_fills_the_queue() -> None:
    values = dcqcn("dcqcn-2015")
    right = _incast("dcqcn-2015")
    wrong = _incast("dcqcn-2015", replace(values, increase_timer_ns=values.increase_timer_ns // 100))
    assert wrong.queue_at(0.99) > 5 * right.queue_at(0.99)
    assert wrong.drops > 0 == right.drops


def test_a_cnp_interval_of_fifty_microseconds_is_too_slow_for_mellanoxs_alpha() -> None:
    """Its alpha fades within 256 us, so that each CNP takes less: at the start the queue passes K_max far."""
    values = dcqcn("simai-200g")
    right = _incast("simai-200g", warm_ms=0)
    slow = _incast("simai-200g", replace(values, cnp_interval_ns=50_000), warm_ms=0)
    assert slow.queue_at(1) > 3 * right.queue_at(1)
