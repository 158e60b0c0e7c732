"""The bench of analysis: what it holds against its goal."""

from __future__ import annotations

import pytest

from hpn.scenarios.selfcheck.bench import analysis


@pytest.mark.parametrize(("a_packet", "met"), [(73.0, True), (74.0, False)])
def test_six_million_packets_have_to_fit(a_packet: float, met: bool) -> None:
    found = {"before_bytes": 60e6, "peak_bytes": 60e6 + a_packet * 1e6, "packets": 1e6}
    (figure,) = analysis.figures(found)
    assert (figure.value, figure.met) == (60 + 6 * a_packet, met)
    assert f"60 MB and {a_packet:.0f} B a packet, by 1.0 M of them" in figure.note
