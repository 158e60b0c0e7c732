"""What a table or summary looks like, as plain text."""

from __future__ import annotations

import io

from rich.console import Console, RenderableType


def as_text(rendered: RenderableType, width: int = 160) -> str:
    """As a terminal of that width without colours shows it."""
    console = Console(file=io.StringIO(), width=width, color_system=None, force_terminal=False, legacy_windows=False)
    with console.capture() as capture:
        console.print(rendered)
    return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"
