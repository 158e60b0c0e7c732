"""Page over all runs of a command that makes several.

Changes when such a command leaves another page.
"""

from __future__ import annotations

from pathlib import Path

from hpn.commands.page import Page
from hpn.testbed.errors import InputError


def leave_page(out: Path, page: Page) -> None:
    """Write OUT/report.html and print its path; do nothing if no run was made."""
    from hpn.results.page.folder import write_report  # Jinja and numpy, which are loaded after the measurements

    try:
        page.tell(f"page over all runs: {write_report(out)}")
    except InputError:
        return
