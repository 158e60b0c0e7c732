"""Makes the pictures of README and docs from runs made now, in virtual time: ``make pictures``.

A picture shows what hpn writes, and is not touched afterwards: the pages of a run and of a comparison in a browser,
a fabric as ``hpn graph`` draws it, also with the ports that PFC stopped in a run.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hpn.results.run.folder import load
from tests.docs import claim_pictures
from tests.docs.pages import ROOT
from tests.docs.pause_pictures import deadlock_svg, pauses_svg
from tests.product.growth_plot import plot

LARGEST = 150_000
"""Bytes of a picture: pages are read over slow lines too."""
_SCREEN = {"width": 1100, "height": 900}
_REPORT_HEIGHT = 750  # down to a whole row of its table
_DRILLS = ("link-down", "link-down-single-tor")
_PAUSES = {"pause-storm": ("pause-storm.svg", pauses_svg), "deadlock-bounce": ("deadlock-bounce.svg", deadlock_svg)}


def main(folder: str) -> int:
    """Make the drills' runs, then every picture in ``folder``. Exit code 3 without a browser."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        print("pictures need a browser: make extras", file=sys.stderr)
        return 3
    browser = shutil.which("chromium")
    if browser is None:
        print("pictures need a browser: apt install chromium", file=sys.stderr)
        return 3
    out = Path(folder).absolute()
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="hpn-pictures-") as work, sync_playwright() as playwright:
        runs = Path(work) / "runs"
        _hpn("drill", "run", *_DRILLS, *_PAUSES, "--engine", "uml", "--virtual-time", "--out", str(runs))
        for drill, (name, svg) in _PAUSES.items():
            (out / name).write_text(svg(load(runs / drill)))
        comparison = Path(work) / "comparison.html"
        across = ("--across", "drill", "--across", "fabric", "--html", str(comparison))
        _hpn("compare", *(str(runs / drill) for drill in _DRILLS), *across)
        _hpn("graph", "tiny", "--mark", "p0.s0.h0.r0.0=cut", "--out", str(out / "tiny.svg"))
        _hpn("month", "hpn", "--load-map", str(out / "pod-load.svg"))
        _hpn("month", "hpn", "dual-tor-clos", "single-tor", "--job-sizes", str(out / "job-sizes.svg"))
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = chromium.new_page(viewport=_SCREEN)
        page.goto((runs / _DRILLS[0] / "report.html").as_uri())
        page.screenshot(path=out / "report.png", clip={"x": 0, "y": 0, **_SCREEN, "height": _REPORT_HEIGHT})
        page.screenshot(path=out / "failover.png", clip=_chains(page), full_page=True)
        page.goto(comparison.as_uri())
        page.screenshot(path=out / "comparison.png")
        chromium.close()
    figures = ROOT / "runs" / "growth.json"
    if figures.exists():  # from make growth, which needs a quiet machine, and root
        (out / "growth.svg").write_text(plot(json.loads(figures.read_text())))
    reproduced = ROOT / "runs" / "reproduce" / "reproduction.json"
    if reproduced.exists():  # from hpn reproduce, an hour
        claim_pictures.main(str(reproduced), str(out))
    for picture in sorted(out.iterdir()):
        print(f"{picture}: {picture.stat().st_size} bytes")
    return 0


def _chains(page: Any) -> dict[str, float]:
    """Where on a run's page the first edge stands, from its heading to the axis below its bars."""
    edge = page.locator("details.edge").first
    heading, rest = edge.locator("h3").bounding_box(), edge.locator("details").first.bounding_box()
    return {"x": 0, "y": heading["y"] - 8, "width": _SCREEN["width"], "height": rest["y"] - heading["y"] + 4}


def _hpn(*words: str) -> None:
    subprocess.run([sys.executable, str(ROOT / "cli.py"), *words], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
