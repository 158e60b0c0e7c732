"""What a drill captures: which links, when, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpn.scenarios.drill.capture import Captures, Window, links_of, windows_of
from hpn.scenarios.drill.describe import describe
from hpn.scenarios.drill.load import drill_from
from hpn.scenarios.drill.model import Drill
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.build import build
from hpn.testbed.files.document import parse

MS = 10**6
FAULTS = """
    - {id: cut, fault: link-down, target: p0.s0.h0.r0.0, at: 2 s, for: 2 s}
    - {id: again, fault: link-down, target: p0.s1.h0.r1.1, at: 4050 ms, for: 2 s}
"""
DRILL = """
drill: captured
summary: cut and mended
topology: %s
capture: %s
timeline:
  healthy: 2 s
  faults: %s
expect:
  - packets_lost: {at_most: 0}
"""


def _drill(capture: str, faults: str = FAULTS, topology: str = "tiny") -> Drill:
    return drill_from(parse(DRILL % (topology, capture, faults), "d.yaml"), Path())


def test_around_every_edge_of_what_faults_hit() -> None:
    drill = _drill("{}", FAULTS)
    captures, faults = drill.captures, drill.timeline.faults
    assert captures == Captures((), 20 * MS, 100 * MS, 256)
    assert [link.name for link in links_of(captures, build(drill.topology), faults)] == [
        "p0.s0.h0.r0.0",
        "p0.s1.h0.r1.1",
    ]
    assert windows_of(captures, faults, drill.timeline.end_ns) == [
        Window("1-cut-failure", 1980 * MS, 2100 * MS),
        Window("2-cut-repair", 3980 * MS, 4150 * MS),  # the other link's failure is 50 ms later
        Window("3-again-repair", 6030 * MS, 6150 * MS),
    ]
    text = "captures  the links that faults hit, from 20 ms before to 100 ms after each edge, 256 B of a packet"
    assert text in describe(drill)


def test_links_nics_and_nodes_by_name_each_link_once() -> None:
    drill = _drill("{links: [p0.s0.h0.r0.1, p0.s0.h0.r0, p0.a0.0], before: 0 ms, after: 1 s, snap: 9 KB}")
    captures = drill.captures
    assert captures is not None
    names = [link.name for link in links_of(captures, build(drill.topology), drill.timeline.faults)]
    assert names[:2] == ["p0.s0.h0.r0.1", "p0.s0.h0.r0.0"]
    assert len(names) == len(set(names)) == 2 + 4
    assert "from 0 ms before to 1 s after each edge, 9 KB of a packet" in captures.text


def test_no_window_ends_after_the_traffic_or_begins_before_it() -> None:
    drill = _drill("{before: 10 s, after: 60 s}")
    assert drill.captures is not None
    end_ns = drill.timeline.end_ns
    assert windows_of(drill.captures, drill.timeline.faults, end_ns) == [Window("1-cut-failure", 0, end_ns)]


def test_nothing_is_captured_unless_asked_for() -> None:
    text = (DRILL % ("tiny", "{}", FAULTS)).replace("capture: {}\n", "")
    assert drill_from(parse(text, "d.yaml"), Path()).captures is None


PLANE = "[{id: gone, fault: plane-down, target: plane0, tier: all, at: 2 s, for: 2 s}]"


@pytest.mark.parametrize(
    ("capture", "faults", "topology", "said"),
    [
        ("{}", "[]", "tiny", "d.yaml:5: capture has no edge to capture around: the timeline has no faults"),
        ("{links: [p0.s0.h9]}", FAULTS, "tiny", "d.yaml:5: capture.links: no node, NIC or link 'p0.s0.h9'"),
        ("{snap: 10 B}", FAULTS, "tiny", "10 B is out of range; write 64 B to 256 KiB"),
        ("{after: 0 ms}", FAULTS, "tiny", "0 ms is out of range; write 1 ms to 60 s"),
        ("[p0.s0.h0]", FAULTS, "tiny", "d.yaml:5: capture is a list; write a mapping"),
        ("{}", PLANE, "medium", "d.yaml:5: capture.links means"),
    ],
)
def test_mistakes_are_said_with_the_way_out(capture: str, faults: str, topology: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        _drill(capture, faults, topology)
    (problem,) = caught.value.problems
    assert said in problem
