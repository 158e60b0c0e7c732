"""A LAG of one port pays LACP's wait for more ports; a run says so, and how to do without."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from hpn.failover.analysis.lone_ports import lone_port_waits
from hpn.failover.analysis.model import EdgeKind
from hpn.testbed.events import Event, EventKind
from tests.failover.synthetic import HIT, MS, S, edge

DOWN, UP, END = 4 * S, 4 * S + 400 * MS, 10 * S
EDGES = (edge(DOWN, UP), edge(UP, END, EdgeKind.REPAIR))
PORT = HIT.lower.partition(":")[2]
WAY_OUT = "without that wait: 'lag: nft' and 'lacp: {aggregate_wait_ms: 0}' in the topology"


def lag(ports: str, at_ns: int = S) -> Event:
    return Event(at_ns, EventKind.LAG, str(HIT.host), str(HIT.lag), "active", {"ports": ports})


def lacp(ms: float, what: str) -> Event:
    """An event of the port's machine so long after its link came back."""
    return Event(UP + round(ms * MS), EventKind.LACP, str(HIT.host), PORT, what)


def told(*machine: Event, ports: str = PORT) -> Sequence[str]:
    start = Event(S, EventKind.LACP, str(HIT.host), PORT, "waiting")
    return lone_port_waits([start, lag(ports), lag("", DOWN), *machine], EDGES, END)


def test_the_wait_of_a_lags_only_port_is_told_with_its_cost_and_the_way_out() -> None:
    assert told(lacp(20, "waiting"), lacp(2390, "attached")) == (
        "LACP kept the only port of a LAG out for up to 2.37 s after its link came back, as it waits for more ports"
        f" to aggregate; {WAY_OUT}",
    )


@pytest.mark.parametrize(
    ("machine", "longest"),
    [
        ([lacp(20, "waiting"), lacp(400, "port-disabled"), lacp(400, "detached")], "380 ms"),
        ([lacp(20, "waiting"), lacp(400, "detached"), lacp(900, "waiting"), lacp(3000, "attached")], "2.10 s"),
        ([lacp(600, "waiting")], "5.00 s"),
    ],
    ids=["it flapped before", "the longest of a flap", "until the run ended"],
)
def test_a_wait_that_ends_otherwise_counts_until_then(machine: Sequence[Event], longest: str) -> None:
    assert f" out for up to {longest} after " in told(*machine)[0]


def test_without_a_wait_or_with_a_second_port_nothing_is_told() -> None:
    assert told(lacp(20, "waiting"), lacp(21, "attached")) == ()
    assert told(lacp(20, "waiting"), lacp(2390, "attached"), ports=f"{PORT},r0p9") == ()
    assert told() == ()
    assert lone_port_waits([lag(PORT), lacp(20, "waiting"), lacp(2390, "attached")], (), END) == ()


def test_ports_of_several_lags_are_one_note() -> None:
    other = replace(HIT, host="p0.s0.h9", lower=f"p0.s0.h9:{PORT}")
    both = [replace(each, links=(HIT, other)) for each in EDGES]
    events = [lag(PORT), lacp(20, "waiting"), lacp(2390, "attached")]
    twice = [*events, *(replace(event, node="p0.s0.h9") for event in events)]
    (note,) = lone_port_waits(twice, both, END)
    assert note.startswith("LACP kept the only port of each of 2 LAGs out for up to 2.37 s")
