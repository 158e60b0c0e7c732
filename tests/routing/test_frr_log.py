"""FRR's log: what it says about its daemons and their sessions."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hpn.testbed.routing.frr.daemon import SessionChange, has_started, session_change

UP = "2026/11/22 13:19:34 BGP: [N9HHH-F8H1M] %ADJCHANGE: neighbor 172.16.0.1(p0.a0.0) in vrf default Up"
DOWN = (
    "2026/11/22 13:19:34 BGP: [P3GYW-PBKQG][EC 33554466] %ADJCHANGE: neighbor 172.16.0.1(p0.a0.0) in vrf default Down"
)


def test_a_session_comes_and_goes_with_the_reason_that_frr_gives() -> None:
    assert session_change(UP) == SessionChange("172.16.0.1", True, "")
    assert session_change(DOWN) == SessionChange("172.16.0.1", False, "")
    assert session_change(f"{DOWN} Interface down") == SessionChange("172.16.0.1", False, "Interface down")
    assert session_change(UP.replace("(p0.a0.0)", "")) == SessionChange("172.16.0.1", True, "")


def test_a_daemon_has_started_when_it_listens() -> None:
    assert has_started("2026/11/22 13:19:33 ZEBRA: [T83RR-8SM5G] zebra 8.4.4 starting: vty@0")
    assert has_started("2026/11/22 13:19:34 BGP: [T83RR-8SM5G] bgpd 8.4.4 starting: vty@0, bgp@<all>:179")
    assert not has_started("2026/11/22 13:19:33 ZEBRA: [NNACN-54BDA] Disabling MPLS support (no kernel support)")


@given(st.text(max_size=200))
def test_other_lines_say_nothing(line: str) -> None:
    assert session_change(line) is None
    assert not has_started(line)
