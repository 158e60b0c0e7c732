"""Pages over many runs in a real browser: quiet, nothing wider than the screen, narrowed without a script."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hpn.results.page.folder import write_report
from hpn.results.run.folder import create
from hpn.scenarios.campaign.page import campaign_page
from tests.browser.conftest import fits
from tests.results.hostile import NASTY
from tests.results.sample import MANIFEST
from tests.results.test_runs_page import FAIL, PASS, UNTRUSTED, made, repeats
from tests.scenarios.campaign.samples import CUT, result
from tests.scenarios.campaign.test_page import BROKEN, CLEAN, SHRUNK, campaign

pytestmark = pytest.mark.extra


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    for name, changes in {"one": {}, "other": {"drill": "x" * 200, "fabric": NASTY}}.items():
        made(folder / "index" / name, FAIL if changes else PASS, **changes)
    create(folder / "index" / "none").write_manifest(MANIFEST)
    entries = (CLEAN, BROKEN, SHRUNK, result(CUT, index=2, doubts=("x" * 300,)))
    bad = campaign(folder / "campaign", *entries)
    (bad / "report.html").write_text(campaign_page(bad, bad / "report.html"), encoding="utf-8")
    return {
        "repeats": write_report(repeats(folder / "repeats", PASS, FAIL, UNTRUSTED, *[PASS] * 30)),
        "index": write_report(folder / "index"),
        "campaign": bad / "report.html",
    }


@pytest.mark.parametrize("scripts", [True, False])
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
@pytest.mark.parametrize("name", ["repeats", "index", "campaign"])
def test_a_page_is_quiet_whole_and_fits(
    quiet: Callable[..., Any], pages: dict[str, Path], name: str, width: int, scheme: str, scripts: bool
) -> None:
    with quiet(pages[name], width, scheme, scripts) as shown:
        assert shown.locator(".answer").is_visible()
        assert not scripts or fits(shown)
        tracks = shown.locator(".dots, .track")
        assert tracks.count() > 0
        assert tracks.first.bounding_box()["width"] > width / 3


def test_a_list_is_narrowed_without_a_script_and_printed_whole(
    quiet: Callable[..., Any], pages: dict[str, Path]
) -> None:
    with quiet(pages["repeats"], scripts=False) as shown:
        rows = shown.locator(".runs tbody tr")
        assert rows.count() == 33
        shown.get_by_label("fail (1)").check()
        assert [row.is_visible() for row in rows.all()].count(True) == 1
        shown.get_by_label("all (33)").check()
        shown.emulate_media(media="print")
        assert not shown.locator(".filter").first.is_visible()
        assert shown.locator(".runs .wide").evaluate("it => it.scrollHeight <= it.clientHeight + 1")


def test_a_mark_leads_to_its_run(quiet: Callable[..., Any], pages: dict[str, Path]) -> None:
    with quiet(pages["repeats"]) as shown:
        mark = shown.locator(".dot.fail").first
        assert mark.get_attribute("href") == "./link-down-2"
        assert mark.get_attribute("title").startswith("link-down #2: ")
