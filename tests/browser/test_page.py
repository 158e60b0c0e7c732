"""A run's page in a real browser: no message, no request, nothing wider than the screen, and whole without scripts."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hpn.results.page.page import page
from hpn.results.run.reading import read
from tests.browser.conftest import fits
from tests.results.hostile import poisoned
from tests.results.sample import metrics
from tests.results.test_job_text import job, of_job
from tests.results.test_page import run_of
from tests.results.whole import whole_run

pytestmark = pytest.mark.extra


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run of streams, one of a job, one with everything, and that with each text a hostile one."""
    folder = tmp_path_factory.mktemp("pages")
    poisoned(whole_run(folder / "poisoned").path)
    runs = {
        "streams": run_of(metrics(80)),
        "job": run_of(of_job(job())),
        "whole": read(whole_run(folder / "run").path),
        "hostile": read(folder / "poisoned"),
    }
    for name, run in runs.items():
        (folder / f"{name}.html").write_text(page(run), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in runs}


@pytest.mark.parametrize("scripts", [True, False])
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")])
@pytest.mark.parametrize("name", ["streams", "job", "whole", "hostile"])
def test_a_page_is_quiet_whole_and_fits(
    quiet: Callable[..., Any], pages: dict[str, Path], name: str, width: int, scheme: str, scripts: bool
) -> None:
    with quiet(pages[name], width, scheme, scripts) as shown:
        assert shown.locator("h1").is_visible()
        assert not scripts or fits(shown)
        charts = shown.locator("figure[data-chart]")
        assert charts.count() == {"streams": 0, "job": 1}.get(name, 4)
        for at in range(charts.count()):
            drawn = charts.nth(at).locator(".uplot canvas" if scripts else ".plot svg")
            assert drawn.first.bounding_box()["width"] > width / 2


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scripts", [True, False])
def test_the_axes_of_all_charts_line_up(
    quiet: Callable[..., Any], pages: dict[str, Path], width: int, scripts: bool
) -> None:
    with quiet(pages["whole"], width, scripts=scripts) as shown:
        plots = shown.locator(".u-over" if scripts else ".plot")
        places = {(box["x"], box["width"]) for box in map(_box, plots.all())}
        assert (plots.count(), len(places)) == (4, 1)


def _box(located: Any) -> dict[str, float]:
    return dict(located.bounding_box())


def test_one_can_zoom(quiet: Callable[..., Any], pages: dict[str, Path]) -> None:
    with quiet(pages["job"]) as shown:
        box = shown.locator(".u-over").bounding_box()
        before = shown.screenshot(clip=box)
        shown.mouse.move(box["x"] + box["width"] * 0.2, box["y"] + 50)
        shown.mouse.down()
        shown.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 50, steps=5)
        shown.mouse.up()
        shown.mouse.move(0, 0)
        assert shown.screenshot(clip=box) != before


def test_a_legend_tells_the_values_below_the_pointer(quiet: Callable[..., Any], pages: dict[str, Path]) -> None:
    with quiet(pages["job"]) as shown:
        legend = shown.locator("figure .legend").first
        box = shown.locator(".u-over").first.bounding_box()
        shown.mouse.move(box["x"] + box["width"] / 2, box["y"] + 50)
        assert "ms" in legend.locator(".value").inner_text()
        assert "s since the traffic began" in legend.locator(".at").inner_text()


def test_a_printed_page_has_every_edge_by_name_and_charts_that_no_screen_coloured(
    quiet: Callable[..., Any], pages: dict[str, Path], tmp_path: Path
) -> None:
    with quiet(pages["whole"], scheme="dark") as shown:
        shown.emulate_media(media="print")
        for title in shown.locator("details.edge h2").all():
            assert title.is_visible()
        assert not shown.locator(".uplot").first.is_visible()
        assert shown.locator(".plot svg").first.bounding_box()["width"] > 500
        assert shown.locator(".chain .track i").first.evaluate("it => getComputedStyle(it).printColorAdjust") == "exact"
        folder = Path(os.environ.get("HPN_SCREENSHOTS") or tmp_path)
        folder.mkdir(parents=True, exist_ok=True)
        shown.pdf(path=str(folder / "whole.pdf"), format="A4")
        assert (folder / "whole.pdf").stat().st_size > 10_000
        shown.emulate_media(media="screen")
