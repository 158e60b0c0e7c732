"""A run's page in a real browser: no message, no request, nothing wider than the screen, and whole without scripts."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from results.page.page import page
from results.run.reading import read
from tests.results.sample import metrics
from tests.results.test_job_text import job, of_job
from tests.results.test_page import HOSTILE, run_of
from tests.results.whole import DRILL, whole_run

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.extra,
    pytest.mark.skipif(CHROMIUM is None, reason="needs a browser: apt install chromium"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run of streams, one of a job, and one whose texts are hostile."""
    folder = tmp_path_factory.mktemp("pages")
    runs = {
        "streams": run_of(metrics(80)),
        "job": run_of(of_job(job())),
        "whole": read(whole_run(folder / "run").path),
        "hostile": run_of(of_job(job()), drill=replace(DRILL, summary=HOSTILE * 20)),
    }
    for name, run in runs.items():
        (folder / f"{name}.html").write_text(page(run), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in runs}


@pytest.mark.parametrize("scripts", [True, False])
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")])
@pytest.mark.parametrize("name", ["streams", "job", "whole", "hostile"])
def test_a_page_is_quiet_whole_and_fits(
    browser: object, pages: dict[str, Path], name: str, width: int, scheme: str, scripts: bool
) -> None:
    context = browser.new_context(  # type: ignore[attr-defined]  # playwright is not needed to check types
        viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=scripts
    )
    shown = context.new_page()
    said: list[str] = []
    shown.on("console", lambda message: said.append(message.text))
    shown.on("pageerror", lambda error: said.append(str(error)))
    shown.on("dialog", lambda dialog: said.append("a dialog"))
    shown.on("request", lambda request: said.append(request.url) if not request.url.startswith("file:") else None)
    shown.goto(pages[name].as_uri())
    assert said == []
    assert shown.locator("h1").is_visible()
    if scripts:
        inside, screen = shown.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        assert inside <= screen
    charts = shown.locator("figure[data-chart]")
    assert charts.count() == {"streams": 0, "whole": 4}.get(name, 1)
    for at in range(charts.count()):
        drawn = charts.nth(at).locator(".uplot canvas" if scripts else ".plot svg path")
        assert drawn.first.bounding_box()["width"] > width / 2
    context.close()


def test_one_can_zoom(browser: object, pages: dict[str, Path]) -> None:
    shown = browser.new_page(viewport={"width": 1280, "height": 900})  # type: ignore[attr-defined]  # as above
    shown.goto(pages["job"].as_uri())
    box = shown.locator(".u-over").bounding_box()
    before = shown.screenshot(clip=box)
    shown.mouse.move(box["x"] + box["width"] * 0.2, box["y"] + 50)
    shown.mouse.down()
    shown.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 50, steps=5)
    shown.mouse.up()
    shown.mouse.move(0, 0)
    assert shown.screenshot(clip=box) != before
    shown.close()
