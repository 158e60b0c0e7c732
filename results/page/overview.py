"""Content of the template for pages of many runs: an answer, a list with filters, sections below it.

Changes when pages over many runs get another part. ``many`` makes it from run folders; a campaign from its journal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hpn.results.page.axis import Tick
from hpn.results.page.listing import Filter, Listing
from hpn.results.page.render import rendered
from hpn.results.page.strip import Strips

MOST_ROWS, MOST_SECTIONS, OPEN_SECTIONS, _MOST_TOLD = 1000, 60, 3, 12


@dataclass(frozen=True, slots=True)
class TimeBar:
    """A bar on a time axis, in per cent."""

    name: str
    text: str
    low_pct: float
    high_pct: float


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps on one time axis."""

    bars: Sequence[TimeBar]
    ticks: Sequence[Tick]


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page that can be closed. ``id``: the link target for rows of the list; '' if none links to it."""

    title: str
    line: str
    open: bool
    strips: Sequence[Strips] = ()
    steps: Steps | None = None
    tables: Sequence[Listing] = ()
    lines: Sequence[str] = ()
    id: str = ""


@dataclass(frozen=True, slots=True)
class DrillPart:
    """Lines about one drill, and further lines that are folded."""

    title: str
    lines: Sequence[str]
    summary: str = ""
    folded: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Head:
    """The first screen: outcome, a question and its one-sentence answer, failures, and outcomes of baselines."""

    title: str
    outcome: str
    question: str
    answer: str
    broken: Sequence[str]
    notes: Sequence[str] = ()
    parts: Sequence[DrillPart] = ()

    @property
    def told(self) -> Sequence[str]:
        """Failures that are shown."""
        return self.broken[:_MOST_TOLD]

    @property
    def folded(self) -> Sequence[str]:
        """Failures that are folded."""
        return self.broken[_MOST_TOLD:]


@dataclass(frozen=True, slots=True)
class ManyView:
    """Content of the template, all of it text. ``common``: facts that all rows of the list share."""

    head: Head
    overview: Sequence[Listing]
    runs_title: str
    filters: Sequence[Filter]
    runs: Listing
    runs_notes: Sequence[str]
    common: Sequence[tuple[str, str]]
    sections: Sequence[Section]
    left_out: str = ""
    picture: str = ""  # fabric that all runs share, as SVG
    hardware: Sequence[str] = ()  # what real hardware would do otherwise


def many_html(view: ManyView) -> str:
    """Return the page as text, to be written in UTF-8. MachineError when this installation is incomplete."""
    return rendered("many.html", view, has_charts=False, picture=view.picture)
