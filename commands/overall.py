"""The page over all runs of a command that makes several, written when they are made.

Changes when such a command leaves another page.
"""

from __future__ import annotations

from pathlib import Path

from hpn.commands.page import Page
from hpn.testbed.errors import InputError


def leave_page(out: Path, page: Page) -> None:
    """Write OUT/report.html and tell where it is; nothing where no run was made."""
    from hpn.results.page.folder import write_report  # Jinja and numpy, which are loaded after the measurements

    try:
        page.tell(f"page over all runs: {write_report(out)}")
    except InputError:
        return
