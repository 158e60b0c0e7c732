"""What drill files may say of congestion control, and what is said of what they may not."""

from __future__ import annotations

from dataclasses import fields

import pytest

from hpn.testbed.fabric.marking import Marker
from hpn.testbed.files.document import Plain
from hpn.traffic.congestion.chosen_control import Problem, written
from hpn.traffic.congestion.controls import CONTROLS
from hpn.traffic.congestion.parameter_sets import PARAMETERS
from tests.traffic.congestion.bottleneck import dcqcn

LINE = 200e9
MARKER = Marker(300_000, 1_200_000, 0.8)


def _problems(given: Plain, marker: Marker | None = MARKER, *, telemetry: bool = True) -> tuple[Problem, ...]:
    return written(given, LINE, marker, telemetry=telemetry)[1]


@pytest.mark.parametrize("name", [*CONTROLS, *PARAMETERS])
def test_a_control_or_a_parameter_set_is_asked_for_by_its_name(name: str) -> None:
    chosen, problems = written(name, LINE, MARKER, telemetry=True)
    assert problems == ()
    assert chosen is not None
    assert name in (chosen.kind.name, chosen.base.name)
    assert chosen.values is chosen.base.values
    assert chosen.name == chosen.base.name


def test_values_of_a_set_are_changed_by_words_with_units() -> None:
    chosen, problems = written(
        {"use": "dcqcn-2015", "increase_timer": "550 ns", "additive": "50M", "byte_counter": "1 MB", "gain": 0.5},
        LINE,
        MARKER,
        telemetry=False,
    )
    assert problems == ()
    assert chosen is not None
    before, after = dcqcn("dcqcn-2015"), chosen.values
    differing = {
        f.name: getattr(after, f.name) for f in fields(before) if getattr(after, f.name) != getattr(before, f.name)
    }
    assert differing == {
        "increase_timer_ns": 550, "additive_bps": 50_000_000, "byte_counter_bytes": 1_000_000, "gain": 0.5
    }  # fmt: skip
    assert chosen.name.startswith("dcqcn-2015, increase_timer changed, additive changed")


@pytest.mark.parametrize(
    ("given", "where", "text"),
    [
        ("dcqn", (), "'dcqn' is no congestion control and no parameter set; did you mean dcqcn"),
        (3, (), "3 is no congestion control and no parameter set; write one of constant, dcqcn, swift"),
        ({"use": "nothing"}, ("use",), "'nothing' is no congestion control"),
        ({"gain": 0.1}, ("use",), "is no congestion control and no parameter set; write one of constant"),
        ({"use": "dcqcn", "gein": 0.1}, ("gein",), "gein is unknown; did you mean gain?"),
        ({"use": "dcqcn", "cnp_interval": 50}, ("cnp_interval",), "write the unit: '50 ms' or '50 s'"),
        ({"use": "dcqcn", "cnp_interval": "0 us"}, ("cnp_interval",), "cnp_interval: 0 ns is no interval; write more"),
        ({"use": "dcqcn", "minimum": "400G"}, ("minimum",), "minimum: 400 Gbit/s is above the link's 200; write less"),
        ({"use": "dcqcn", "clamp_target": 1}, ("clamp_target",), "clamp_target: 1 is neither; write yes or no"),
        ({"use": "dcqcn", "fast_recovery": 2.5}, ("fast_recovery",), "2.5 is no whole number; write one such as 1"),
        ({"use": "constant", "share": "half"}, ("share",), "share: 'half' is no number; write one such as 1"),
        ({"use": "nccl-4mb", "limit": "0 B"}, ("limit",), "limit: 0 bytes admit nothing; write more, such as 4 MB"),
        ({"use": "nccl-4mb", "slice": "5 MB"}, ("slice",), "slice: 5000000 bytes are above the limit"),
    ],
)
def test_a_mistake_is_told_with_its_place_and_the_way_out(given: Plain, where: tuple[str, ...], text: str) -> None:
    (problem,) = _problems(given)
    assert problem[0] == where
    assert text in problem[1]


def test_all_mistakes_are_told_at_once() -> None:
    given: Plain = {"use": "dcqcn", "gain": 2, "cnp_interval": "0 us"}
    assert [where for where, _ in _problems(given)] == [("gain",), ("cnp_interval",)]


def test_a_control_that_waits_for_marks_needs_switches_that_mark() -> None:
    assert _problems("dcqcn", None) == (
        ((), "simai-200g waits for marks and no switch marks; "
         "write ecn: {kmin_bytes: 300000, kmax_bytes: 1200000, pmax: 0.8} in the topology"),
    )  # fmt: skip
    assert [_problems(name, None) for name in ("constant", "swift")] == [(), ()]


def test_a_control_that_waits_for_telemetry_needs_switches_that_report() -> None:
    assert _problems("hpcc", None, telemetry=False) == (
        ((), "hpcc-200g waits for telemetry and no switch sends any; write switch: {} in the topology"),
    )  # fmt: skip
    assert _problems("hpcc", None) == _problems("dcqcn", telemetry=False) == ()
