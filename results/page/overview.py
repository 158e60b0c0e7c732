"""What the template of pages over many runs prints: an answer, a list that can be narrowed, sections below it.

Changes when pages over many runs get another part. ``many`` makes it of run folders; a campaign of its journal.
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
class Step:
    """Something that lasted, on the axis of its steps, per cent."""

    name: str
    text: str
    low_pct: float
    high_pct: float


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps on one axis of time."""

    bars: Sequence[Step]
    ticks: Sequence[Tick]


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page that can be closed. ``id``: what a row of the list leads to; '' where none does."""

    title: str
    line: str
    open: bool
    strips: Sequence[Strips] = ()
    steps: Steps | None = None
    tables: Sequence[Listing] = ()
    lines: Sequence[str] = ()
    id: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """Lines about one drill, and those that only who asks for them sees."""

    title: str
    lines: Sequence[str]
    summary: str = ""
    folded: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Head:
    """The first screen: a word, a question with its answer in a sentence, what failed, and what came of baselines."""

    title: str
    outcome: str
    question: str
    answer: str
    broken: Sequence[str]
    notes: Sequence[str] = ()
    parts: Sequence[Part] = ()

    @property
    def told(self) -> Sequence[str]:
        """What failed, the first of it."""
        return self.broken[:_MOST_TOLD]

    @property
    def folded(self) -> Sequence[str]:
        """What failed besides."""
        return self.broken[_MOST_TOLD:]


@dataclass(frozen=True, slots=True)
class ManyView:
    """What the template prints, all of it text. ``common``: what all rows of the list have."""

    head: Head
    overview: Sequence[Listing]
    runs_title: str
    filters: Sequence[Filter]
    runs: Listing
    runs_notes: Sequence[str]
    common: Sequence[tuple[str, str]]
    sections: Sequence[Section]
    left_out: str = ""
    picture: str = ""  # of the fabric that all share, as SVG


def many_html(view: ManyView) -> str:
    """The page as text, UTF-8 when written. MachineError when this installation is not whole."""
    return rendered("many.html", view, has_charts=False, picture=view.picture)
