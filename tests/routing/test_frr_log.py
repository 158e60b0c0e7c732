"""FRR's log: what it says about its daemons and their sessions."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hpn.testbed.routing.frr.daemon import BfdChange, SessionChange, bfd_change, has_started, session_change

UP = "2026/11/22 13:19:34 BGP: [N9HHH-F8H1M] %ADJCHANGE: neighbor 172.16.0.1(p0.a0.0) in vrf default Up"
DOWN = (
    "2026/11/22 13:19:34 BGP: [P3GYW-PBKQG][EC 33554466] %ADJCHANGE: neighbor 172.16.0.1(p0.a0.0) in vrf default Down"
)


def test_a_session_comes_and_goes_with_the_reason_that_frr_gives() -> None:
    assert session_change(UP) == SessionChange("172.16.0.1", True, "")
    assert session_change(DOWN) == SessionChange("172.16.0.1", False, "")
    assert session_change(f"{DOWN} Interface down") == SessionChange("172.16.0.1", False, "Interface down")
    assert session_change(UP.replace("(p0.a0.0)", "")) == SessionChange("172.16.0.1", True, "")


def test_an_unnumbered_session_has_the_name_of_its_port() -> None:
    up = "2026/11/28 13:01:26 BGP: [N9HHH-F8H1M] %ADJCHANGE: neighbor swp1(leaf1) in vrf default Up"
    assert session_change(up) == SessionChange("swp1", True, "")
    down = up.replace("swp1(leaf1)", "Ethernet48.1").replace("Up", "Down Waiting for NHT")
    assert session_change(down) == SessionChange("Ethernet48.1", False, "Waiting for NHT")


def test_bfd_sessions_change_state_and_go() -> None:
    where = "mhop:no peer:fe80::7856:85ff:fe92:f579 local:fe80::9894:e4ff:fe80:4630 vrf:default ifname:swp1"
    change = f"2026/11/28 13:01:34 BFD: [SEY1D-NT8EQ] state-change: [{where}]"
    assert bfd_change(f"{change} init -> up") == BfdChange("fe80::7856:85ff:fe92:f579", "swp1", "Up")
    down = bfd_change(f"{change} up -> down reason:control-expired")
    assert down == BfdChange("fe80::7856:85ff:fe92:f579", "swp1", "Down")
    gone = f"2026/11/28 13:01:34 BFD: [NYF5K-SE3NS] session-delete: {where}"
    assert bfd_change(gone) == BfdChange("fe80::7856:85ff:fe92:f579", "swp1", "")
    plain = "BFD: [J1C6V-VMRW5] state-change: [mhop:no peer:100.64.0.1 local:100.64.0.0 vrf:default] down -> init"
    assert bfd_change(plain) == BfdChange("100.64.0.1", "", "Init")


def test_a_daemon_has_started_when_it_listens() -> None:
    assert has_started("2026/11/22 13:19:33 ZEBRA: [T83RR-8SM5G] zebra 8.4.4 starting: vty@0")
    assert has_started("2026/11/22 13:19:34 BGP: [T83RR-8SM5G] bgpd 8.4.4 starting: vty@0, bgp@<all>:179")
    assert not has_started("2026/11/22 13:19:33 ZEBRA: [NNACN-54BDA] Disabling MPLS support (no kernel support)")


@given(st.text(max_size=200))
def test_other_lines_say_nothing(line: str) -> None:
    assert session_change(line) is None
    assert bfd_change(line) is None
    assert not has_started(line)
