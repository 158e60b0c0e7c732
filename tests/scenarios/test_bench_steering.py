"""The bench of steering: what it counts is right; its times are nobody's promise."""

from __future__ import annotations

from hpn.scenarios.selfcheck.bench.steering import figures, measure


def test_every_host_learns_every_destination_and_steers_all_of_them_when_the_plane_is_lost() -> None:
    found = measure(20, 700, 1)
    assert (found.steered, found.notices) == (700, 3)  # 296 to a frame; more than one burst of 64
    ask, answer = 16 + 18, 16 + 18
    assert found.refresh_octets == 3 * (ask + answer) + 701 * 4 + 700 * 5  # 0.0.0.0 is named by nobody
    assert found.host_loss_ms > 0
    assert found.tor_refresh_ms > 0


def test_the_figures_are_about_a_thousand_destinations() -> None:
    assert all("1,000 destinations" in f.note or "bytes" in f.note for f in figures(1))
