"""BIRD's log: what it says about sessions, however the pipe cuts it."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from testbed.routing.birdlog import BfdChange, LogReader, SessionChange

LOG = b"""\
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


@given(st.lists(st.integers(0, len(LOG)), max_size=12))
def test_the_same_changes_whatever_the_pieces(cuts: list[int]) -> None:
    reader = LogReader()
    edges = [0, *sorted(cuts), len(LOG)]
    changes = [c for a, b in pairwise(edges) for c in reader.feed(LOG[a:b])]
    assert changes == CHANGES
    assert reader.started


def test_ready_only_when_bird_says_started() -> None:
    reader = LogReader()
    reader.feed(LOG[: LOG.index(b"<INFO>")])
    assert not reader.started


def test_last_words_are_kept_also_without_a_log_format() -> None:
    reader = LogReader()
    reader.feed(b"bird: /run/x.conf:3:1 syntax error\n")
    assert reader.last == "bird: /run/x.conf:3:1 syntax error"


@given(st.binary(max_size=300))
def test_any_bytes_are_survived(data: bytes) -> None:
    reader = LogReader()
    reader.feed(data)
    assert reader.feed(b"\n2026-11-21 03:29:38.86 <TRACE> up0: State changed to up\n")[-1] == SessionChange(
        "up0", True, ""
    )


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
    assert LogReader().feed(log.encode()) == states


def test_an_endless_line_does_not_fill_memory() -> None:
    reader = LogReader()
    for _ in range(100):
        reader.feed(b"x" * 10_000)
    assert len(reader._rest) <= 4096
