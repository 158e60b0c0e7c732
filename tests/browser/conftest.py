"""A real browser, for whoever looks at pages; tests are skipped where there is none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_PATIENCE_MS = 120_000
"""A machine may be busy with other tests."""

Opened = Any
"""A page of playwright, which is not needed to check types."""


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("needs a browser: apt install chromium")
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def quiet(chromium: Any) -> Callable[..., Any]:
    """Opens a file, and at the end fails for whatever the page said, asked for or popped up."""

    @contextmanager
    def opened(path: Path, width: int = 1280, scheme: str = "light", scripts: bool = True) -> Iterator[Any]:
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=scripts
        )
        context.set_default_timeout(_PATIENCE_MS)
        shown = context.new_page()
        said: list[str] = []
        shown.on("console", lambda message: said.append(message.text))
        shown.on("pageerror", lambda error: said.append(str(error)))
        shown.on("dialog", lambda dialog: said.append(f"a dialog: {dialog.message}"))
        shown.on("request", lambda request: said.append(request.url) if not request.url.startswith("file:") else None)
        shown.goto(path.as_uri())
        yield shown
        _photograph(shown, f"{path.stem}-{width}-{scheme}{'' if scripts else '-no-scripts'}")
        context.close()
        assert said == []

    return opened


def fits(shown: Opened) -> bool:
    """Whether nothing is wider than the screen; scripts must be on."""
    inside, screen = shown.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    return bool(inside <= screen)


def _photograph(shown: Opened, name: str) -> None:
    """Into the folder HPN_SCREENSHOTS, where it is given: ``make screenshots``."""
    if folder := os.environ.get("HPN_SCREENSHOTS"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        shown.screenshot(path=str(Path(folder, f"{name}.png")), full_page=True, timeout=_PATIENCE_MS)
