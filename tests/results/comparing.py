"""Comparisons as the page takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hpn.results.comparison.differences import Difference
from hpn.results.comparison.drills import Comparison
from hpn.results.comparison.groups import Group
from hpn.results.page.comparing import DrillView, comparison_page, comparison_view

if TYPE_CHECKING:
    from hpn.results.comparison.science import DifferenceEvidence


def comparison(
    groups: Sequence[Group], found: Sequence[Difference], evidence: Sequence[DifferenceEvidence] = (), drill: str = ""
) -> Comparison:
    """Return a comparison, of its only drill unless one is named."""
    return Comparison(drill, tuple(groups), tuple(found), evidence)


def drill_view(
    groups: Sequence[Group], found: Sequence[Difference], evidence: Sequence[DifferenceEvidence] = ()
) -> DrillView:
    """Return the part of the page that a drill has."""
    (view,) = comparison_view([comparison(groups, found, evidence)]).drills
    return view


def page_of(groups: Sequence[Group], found: Sequence[Difference]) -> str:
    """Return the page of one drill."""
    return comparison_page([comparison(groups, found)])
