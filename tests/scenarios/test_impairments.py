"""Faults with choices and defaults, from the drill file to the words of ``hpn drill show``."""

from __future__ import annotations

from pathlib import Path

from hpn.failover.faults import Fault, LacpLoss, LinkDelay, OneWayLoss, SilentDrop
from hpn.failover.faults.impair import Dropped
from hpn.failover.faults.streams import Direction, Directions
from hpn.scenarios.drill.describe import describe
from hpn.scenarios.drill.load import drill_from
from hpn.scenarios.drill.model import Drill
from hpn.testbed.files.document import parse

LINK = "p0.s0.h0.r0.0"
MS = 10**6


def load(*faults: str) -> Drill:
    entries = "\n".join(f"    - {{target: {LINK}, for: 500 ms, {fault}}}" for fault in faults)
    text = f"""
drill: impaired
summary: x
topology: tiny
timeline:
  healthy: 1 s
  faults:
{entries}
  settle: 2 s
expect:
  - state_restored: yes
"""
    return drill_from(parse(text, "impaired.yaml"), Path())


def test_what_may_be_left_out_has_its_default() -> None:
    drill = load(
        "at: 1 s, fault: silent-drop",
        "at: 2 s, fault: lacp-loss",
        "at: 3 s, fault: link-delay, delay: 5 ms",
    )
    found = [planned.fault for planned in drill.timeline.faults]
    expected: list[Fault] = [
        SilentDrop(LINK, 1.0, Dropped.EVERYTHING),
        LacpLoss(LINK, Directions.BOTH),
        LinkDelay(LINK, 5 * MS, 0),
    ]
    assert found == expected


def test_a_choice_is_read_and_shown_with_the_rest_of_the_fault() -> None:
    drill = load(
        "at: 1 s, fault: one-way-loss, direction: down",
        "at: 2 s, fault: silent-drop, share: 0.5 %, traffic: data",
        "at: 3 s, fault: one-way-loss, direction: up, share: 1 %",
    )
    one_way, drop, some = (planned.fault for planned in drill.timeline.faults)
    assert one_way == OneWayLoss(LINK, Direction.DOWN, 1.0)
    assert isinstance(one_way, OneWayLoss)
    assert one_way.direction is Direction.DOWN
    assert some == OneWayLoss(LINK, Direction.UP, 0.01)
    assert drop == SilentDrop(LINK, 0.005, Dropped.DATA)
    shown = "\n".join(describe(drill))
    assert f"one-way-loss-1: one-way-loss {LINK} (direction down, share 100 %, carrier stays)" in shown
    assert f"one-way-loss {LINK} (direction up, share 1 %, carrier stays)" in shown
    assert f"silent-drop {LINK} (share 0.5 %, traffic data, carrier stays)" in shown
