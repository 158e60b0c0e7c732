"""Pictures of the reproduction's page come from what hpn reproduce has found."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

from tests.docs.claim_pictures import curve_svg, main, region_svg

CURVE = [{"share": share, "loss": share / (1 + share)} for share in (0.04, 0.08, 0.5, 0.9)]
FLAPS = [
    {"count": count, "down_ms": down, "period_ms": period, "single_ms": ms, "hpn_ms": 100.0}
    for count, period, ms in ((1, 800, 4300.0), (5, 800, 8600.0), (5, 2000, 12_900.0))
    for down in (200, 600)
]


def _words(svg: str) -> list[str]:
    return [each.text or "" for each in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def test_the_curve_has_the_paper_s_figure_on_it() -> None:
    assert "at 6.7% exposed" in _words(curve_svg(CURVE))
    assert not [word for word in _words(curve_svg(CURVE[1:])) if word.endswith("exposed")]


def test_each_pattern_is_a_cell_with_both_halts_and_a_death_is_named() -> None:
    words = _words(region_svg([*FLAPS, {"count": 9, "down_ms": 600, "period_ms": 2000, "hpn_ms": 100.0}]))
    assert words.count("HPN 0.1 s") == 7
    assert words.count("12.9 s") == 2
    assert "dead" in words


def test_pictures_of_claims_that_were_not_judged_stay(tmp_path: Path) -> None:
    found = tmp_path / "reproduction.json"
    found.write_text(json.dumps({"claims": [{"key": "single-tor-flap-job", "points": FLAPS}]}))
    assert main(str(found), str(tmp_path)) == 0
    assert [path.name for path in tmp_path.glob("*.svg")] == ["flap-patterns.svg"]
    found.write_text(json.dumps({"claims": [{"key": "single-tor-flap-job", "points": []}]}))
    assert main(str(found), str(tmp_path)) == 3
