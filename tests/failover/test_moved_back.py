"""Moves of queue pairs held against what their agents were told. Times in ms; flow 0 goes from NIC a to NIC b."""

from __future__ import annotations

from hpn.failover.analysis.moved_back import Connections, strays
from hpn.testbed.events import Event, EventKind
from hpn.traffic.flows.flow import FlowSpec

MS = 10**6
FLOW = FlowSpec(0, "a>b#0", "a", "b", "10.0.0.1", "10.0.0.2", 50_000, 50_001, 100.0, 1024)
KNOWN = Connections({0: FLOW}, {("ha", "bond0"): "a", ("hb", "bond0"): "b"}, refresh_ms=100)
END = 5000 * MS


def said(at_ms: int, what: str, **detail: str | int | float) -> Event:
    return Event(at_ms * MS, EventKind.PATH, "ha", "10.0.0.2", what, detail)


def moved(at_ms: int, old: int, new: int, connection: int = 0, port: str = "r0p0") -> Event:
    detail: dict[str, str | int | float] = {
        "dst": "10.0.0.2",
        "old_sport": old,
        "sport": new,
        "from_port": port,
        "to_port": "other",
    }
    return Event(at_ms * MS, EventKind.PATH, "ha", str(connection), "moved", detail)


def lag(at_ms: int, host: str = "ha") -> Event:
    return Event(at_ms * MS, EventKind.LAG, host, "bond0", "active", {"ports": "r0p0"})


AWAY = [said(1000, "unreachable", port="r0p0"), moved(1000, 1, 2)]
HOME = [said(2000, "reachable", port="r0p0"), moved(2000, 2, 1, port="r0p1")]


def test_away_with_a_reason_and_home_again_is_all_right() -> None:
    assert strays([*AWAY, *HOME], KNOWN, END) == ()


def test_who_is_still_cut_off_may_stay_away_and_who_is_not_may_not() -> None:
    assert strays(AWAY, KNOWN, END) == ()
    (told,) = strays([*AWAY, HOME[0]], KNOWN, END)
    assert told.startswith("queue pair a>b#0 moved at a failure and did not return")
    assert strays([*AWAY, HOME[0]], KNOWN, 2020 * MS) == ()  # it is only just back


def test_a_queue_pair_that_was_not_cut_off_stays() -> None:
    (told, _away) = strays([*AWAY, *HOME, moved(2001, 1, 7)], KNOWN, END)
    assert "source port 1 to 7, though its destination was not lost" in told
    assert strays([moved(2001, 1, 7), moved(2002, 7, 1)], KNOWN, END) != ()


def test_home_is_one_source_port_and_none_other() -> None:
    assert strays([*AWAY, HOME[0], moved(2000, 2, 9, port="r0p1")], KNOWN, END) != ()


def test_another_home_is_where_it_returns_to_from_then_on() -> None:
    """Path choice gives a queue pair that is at home another one."""
    new = Event(3000 * MS, EventKind.PATH, "ha", "0", "rehomed", {"old_sport": 1, "sport": 5, "why": "marked"})
    lost, back = said(4000, "unreachable", port="r0p0"), said(4100, "reachable", port="r0p0")
    again = [lost, moved(4000, 5, 6), back]
    assert strays([*AWAY, *HOME, new, *again, moved(4100, 6, 5, port="r0p1")], KNOWN, END) == ()
    assert strays([*AWAY, *HOME, new, *again, moved(4100, 6, 1, port="r0p1")], KNOWN, END) != ()


def test_a_lag_that_changed_excuses_its_own_nic_for_three_refresh_times() -> None:
    back_and_forth = [moved(1100, 1, 2), moved(1300, 2, 1)]
    assert strays([lag(1000), *back_and_forth], KNOWN, END) == ()
    assert strays([lag(1000, "hb"), *back_and_forth], KNOWN, END) != ()
    assert strays([lag(700), *back_and_forth], KNOWN, END) != ()


def test_a_held_destination_may_stay_away_until_the_hold_is_over() -> None:
    held = [*AWAY, HOME[0], said(2000, "held", port="r0p0", ms=1000.0)]
    assert strays(held, KNOWN, 2900 * MS) == ()
    assert strays(held, KNOWN, 3100 * MS) != ()


def test_nobody_takes_home_what_was_closed() -> None:
    gone = Connections(KNOWN.flows, KNOWN.lags, KNOWN.refresh_ms, gone=(0,))
    assert strays([*AWAY, HOME[0]], gone, END) == ()


def test_a_queue_pair_that_no_source_port_helps_is_told() -> None:
    detail: dict[str, str | int | float] = {"dst": "10.0.0.2", "sport": 1, "port": "r0p0", "tries": 128}
    (told,) = strays(
        [said(1000, "unreachable", port="r0p0"), Event(MS, EventKind.PATH, "hb", "1", "stuck", detail)], KNOWN, END
    )
    assert told == (
        "queue pair a>b#0 (acknowledgements) stays on r0p0, where its destination is lost:"
        " no source port of 128 leads to a port that works"
    )


def rebound(at_ms: int, from_port: str, to_port: str) -> Event:
    detail: dict[str, str | int | float] = {"dst": "10.0.0.2", "from_port": from_port, "to_port": to_port}
    return Event(at_ms * MS, EventKind.PATH, "ha", "0", "rebound", detail)


def test_a_queue_pair_that_is_bound_to_another_port_needs_a_reason_and_comes_home_to_its_port() -> None:
    lost, back = said(1000, "unreachable", port="r0p0"), said(2000, "reachable", port="r0p0")
    away, home = rebound(1000, "r0p0", "r0p1"), rebound(2000, "r0p1", "r0p0")
    assert strays([lost, away, back, home], KNOWN, END) == ()
    (told,) = strays([lost, away, back], KNOWN, END)
    assert told == "queue pair a>b#0 moved at a failure and did not return: port r0p1 at the end, r0p0 before"
    (told, _away) = strays([away], KNOWN, END)
    assert told.endswith("left r0p0 for r0p1, port r0p0 to r0p1, though its destination was not lost")
    new_home = Event(1500 * MS, EventKind.PATH, "ha", "0", "rehomed", {"old_sport": 1, "sport": 2})
    assert strays([lost, away, new_home, back, home], KNOWN, END) == (), "another source port is no other port"


def test_a_bound_queue_pair_that_source_ports_cannot_move_is_no_fault_of_path_control() -> None:
    detail: dict[str, str | int | float] = {"dst": "10.0.0.2", "sport": 1, "port": "r0p0", "tries": 0}
    stuck = Event(1000 * MS, EventKind.PATH, "ha", "0", "stuck", detail)
    assert strays([stuck], KNOWN, END) == ()
    assert strays([Event(stuck.at_ns, stuck.kind, "ha", "0", "stuck", detail | {"tries": 128})], KNOWN, END) != ()
