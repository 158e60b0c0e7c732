"""The registries: every entry can be made and is sound, and nonsense is said to be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hpn.testbed.fabric.marking import Marker
from hpn.traffic.congestion.constant import ConstantParameters
from hpn.traffic.congestion.controls import CONTROLS
from hpn.traffic.congestion.parameter_sets import PARAMETERS, ParameterSet
from hpn.traffic.congestion.scale import Scale
from tests.traffic.congestion.bottleneck import dcqcn

_PAPER = dcqcn("dcqcn-2015")


@pytest.mark.parametrize("chosen", PARAMETERS.values(), ids=lambda one: one.name)
def test_a_set_is_of_its_control_has_no_problems_and_makes_a_control_that_begins_at_line_rate(
    chosen: ParameterSet,
) -> None:
    kind = CONTROLS[chosen.control]
    assert isinstance(chosen.values, kind.parameters)
    assert list(chosen.values.problems(chosen.real_rate_bps)) == []
    assert kind.make(200e6, Scale.similar(1000), chosen.values).rate_bps == 200e6
    if chosen.marker is not None:
        assert list(chosen.marker.problems(32_000_000, 4218)) == []
    assert (chosen.marker is not None) == kind.marked == chosen.values.acts_on_marks
    assert (chosen.values.notifier(Scale()) is not None) == (kind.marked and not kind.many_paths), "CNPs"


def test_every_control_has_a_usual_set_that_is_in_the_registry() -> None:
    for kind in CONTROLS.values():
        assert PARAMETERS[kind.usual.name] is kind.usual
        assert kind.usual.control == kind.name


_NONSENSE = {
    "gain": (0.0, "0 moves alpha out of 0 to 1; write more than 0, at most 1, such as 0.0039 (1/256)"),
    "alpha_timer_ns": (0, "0 ns is no interval; write more than 0, such as 55 us"),
    "increase_timer_ns": (-5, "-5 ns is no interval; write more than 0, such as 55 us"),
    "cnp_interval_ns": (0, "0 ns is no interval; write more than 0, such as 55 us"),
    "cnp_delay_ns": (-1, "-1 ns is before its cause; write 0 or more"),
    "decrease_interval_ns": (-1, "-1 ns is before its cause; write 0 or more"),
    "byte_counter_bytes": (0, "0 bytes are sent at once; write more, or leave it out"),
    "fast_recovery": (0, "0 leaves no fast recovery; write 1 or more (the paper: 5)"),
    "additive_bps": (0, "0 bit/s never lets a queue pair recover; write more than 0"),
    "hyper_bps": (41_000_000_000, "41 Gbit/s is above the link's 40; write less"),
    "minimum_bps": (41_000_000_000, "41 Gbit/s is above the link's 40; write less"),
}


@pytest.mark.parametrize("field", _NONSENSE)
def test_dcqcns_nonsense_is_named_with_its_field_and_the_way_out(field: str) -> None:
    value, text = _NONSENSE[field]
    changed = replace(_PAPER, **{field: value})  # type: ignore[arg-type]  # each of its own type
    assert list(changed.problems(40e9)) == [(field, text)]


def test_all_problems_come_at_once() -> None:
    changed = replace(_PAPER, gain=2.0, cnp_interval_ns=0, minimum_bps=10**12)
    assert [field for field, _ in changed.problems(40e9)] == ["gain", "cnp_interval_ns", "minimum_bps"]


@pytest.mark.parametrize("share", [0.0, -1.0, 1.5])
def test_a_share_of_nothing_or_of_more_than_the_port_is_refused(share: float) -> None:
    assert [field for field, _ in ConstantParameters(share).problems(1e9)] == ["share"]


def test_a_constant_rate_is_the_share_of_its_port_whatever_happens() -> None:
    control = ConstantParameters(0.25).control(200e6, Scale.similar(1000))
    control.on_cnp(0)
    control.on_timeout(1)
    control.on_sent(1, 2)
    control.on_acked(1, 3, 4)
    control.on_timer(5)
    assert (control.rate_bps, control.next_ns()) == (50e6, None)


_BAD_MARKERS = [
    (Marker(0, 10_000, 0.1), ["0 bytes mark an empty queue; write at least one frame, 4218"]),
    (Marker(300, 10_000, 0.1), ["300 bytes are less than one frame of 4218; write at least that"]),
    (Marker(20_000, 10_000, 0.1), ["10000 bytes are not above kmin's 20000; write more"]),
    (Marker(5_000, 600_000, 0.1), ["600000 bytes never wait: the queue holds 500000; raise queue_ms"]),
    (Marker(5_000, 10_000, 0.0), ["0 is no probability; write more than 0, at most 1, such as 0.2"]),
    (Marker(5_000, 10_000, 1.5), ["1.5 is no probability; write more than 0, at most 1, such as 0.2"]),
]


@pytest.mark.parametrize(("marker", "texts"), _BAD_MARKERS)
def test_a_marker_that_cannot_mark_is_refused(marker: Marker, texts: list[str]) -> None:
    assert [text for _, text in marker.problems(500_000, 4218)] == texts


def test_a_marker_marks_nothing_below_kmin_and_everything_from_kmax_on() -> None:
    marker = Marker(10_000, 20_000, 0.5)
    assert [marker.share(q) for q in (0, 9_999, 10_000, 15_000, 19_999.9, 20_000, 10**9)] == pytest.approx(
        [0, 0, 0, 0.25, 0.5, 1, 1], abs=1e-4
    )


def test_congestion_control_is_known_without_numpy() -> None:
    """Drills are loaded with it; numpy would make every command wait and start threads."""
    import subprocess
    import sys

    asked = "import sys, hpn.traffic.congestion.controls; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
