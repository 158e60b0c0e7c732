"""The page of runs held against each other, in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hpn.results.comparison.differences import differences
from hpn.results.comparison.groups import Across, grouped
from tests.browser.conftest import fits
from tests.results.comparing import page_of
from tests.results.sample import MANIFEST
from tests.results.test_comparison import SINGLE, run
from tests.results.test_page import HOSTILE

pytestmark = pytest.mark.extra


@pytest.mark.parametrize("scripts", [True, False])
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")])
def test_a_comparison_is_quiet_whole_and_fits(
    quiet: Callable[..., Any], tmp_path: Path, width: int, scheme: str, scripts: bool
) -> None:
    hostile = replace(MANIFEST, fabric=HOSTILE, architecture="long" * 30)
    groups = grouped([run(), run(SINGLE, 549.0), run(hostile, 5.0)], list(Across))
    path = tmp_path / "comparison.html"
    path.write_text(page_of(groups, differences(groups)), encoding="utf-8")
    with quiet(path, width, scheme, scripts) as shown:
        assert "is worse than" in shown.locator(".answer").inner_text()
        assert not scripts or fits(shown)
        assert not shown.locator(".strips").first.is_visible(), "the table answers; runs one by one are behind a click"
        shown.locator("details.screen > summary").first.click()
        bar = shown.locator(".strips .dots").first.bounding_box()
        assert bar["width"] > width / 3
        last = shown.locator(".drill").last.locator("table").first.locator("tr:last-child td:last-child").bounding_box()
        assert width > 390 or last["x"] + last["width"] <= width, "no column is cut off on a phone"
