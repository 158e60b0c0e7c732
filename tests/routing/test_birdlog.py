"""BIRD's log: what it says about sessions."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hpn.testbed.routing.bird.daemon import BfdChange, LogReader, SessionChange

LOG = """\
2026-11-21 03:29:38.089632 <WARN> Missing broadcast address for interface up0
2026-11-21 03:29:38.089632 <TRACE> up0: State changed to start
2026-11-21 03:29:38.089632 <INFO> Started
2026-11-21 03:29:38.863387 <TRACE> up0: Connecting to 172.16.0.5 from local address 172.16.0.4
2026-11-21 03:29:38.863799 <TRACE> up0: BGP session established
2026-11-21 03:29:38.863799 <TRACE> up0: State changed to up
2026-11-21 03:29:50.751130 <RMT> up0: Error: Hold timer expired
2026-11-21 03:29:50.751130 <TRACE> up0: BGP session closed
2026-11-21 03:29:50.751130 <TRACE> up0: State changed to stop
2026-11-21 03:29:51.329921 <TRACE> up0: State changed to down
"""
CHANGES = [
    SessionChange("up0", False, ""),
    SessionChange("up0", True, ""),
    SessionChange("up0", False, "Error: Hold timer expired"),
    SessionChange("up0", False, ""),
]


def changes(log: str) -> list[object]:
    """What a new reader makes of these lines."""
    reader = LogReader()
    return [change for line in log.splitlines() if (change := reader.read(line)) is not None]


def test_sessions_come_and_go_with_the_reason_that_bird_gives() -> None:
    assert changes(LOG) == CHANGES


@given(st.text(max_size=300))
def test_any_line_is_survived(line: str) -> None:
    reader = LogReader()
    reader.read(line)
    up = reader.read("2026-11-21 03:29:38.86 <TRACE> up0: State changed to up")
    assert up == SessionChange("up0", True, "")


def test_a_bfd_session_is_followed_from_its_first_packet_to_its_end() -> None:
    said = (
        "Session to 172.16.0.5 added",
        "Session to 172.16.0.5 changed state from Down to Init",
        "Session to 172.16.0.5 changed state from Init to Up",
        "Session to 172.16.0.5 changed state from Up to Down",
        "Session to 172.16.0.5 removed",
    )
    log = "".join(f"2026-11-22 04:12:00.000001 <TRACE> bfd1: {words}\n" for words in said)
    log += "2026-11-22 04:12:00.000002 <TRACE> up0: State changed to stop\n"
    states = [
        *(BfdChange("172.16.0.5", state) for state in ("Init", "Up", "Down", "")),
        SessionChange("up0", False, ""),
    ]
    assert changes(log) == states
