"""Terminal output of a comparison: answers first, then the groups once, then costs and figures of each drill. Pure.

Changes when a comparison is printed in another order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group as Lines
from rich.console import RenderableType
from rich.text import Text

from hpn.results.comparison.drills import Comparison, DrillGroups
from hpn.results.comparison.groups import Group, merged
from hpn.results.text.answer import answer_of, answers
from hpn.results.text.comparison import Sheet, asked_sheet, causes_sheet, groups_sheet, own_sheet
from hpn.results.text.costs import costs_sheet
from hpn.results.text.difference_table import differing_sheet, not_shown, other_sheet
from hpn.results.text.evidence import evidence_parts
from hpn.results.text.printable import printable
from hpn.results.text.tables import table

ALL_FIGURES = "--all-figures"
ASK = "Do they differ?"


def comparison_parts(
    found: Sequence[Comparison], lone: Sequence[DrillGroups] = (), *, all_figures: bool = False, tells: bool = False
) -> list[RenderableType]:
    """Return everything to print. ``tells``: the numbers of runs needed are asked for, so that the tests are shown."""
    parts = list[RenderableType]()
    if len(found) > 1:
        told, note = answers(found)
        rows = tuple((each.drill, answer) for each, answer in zip(found, told, strict=True))
        parts += _shown(Sheet(f"{ASK} {note}".rstrip(), ("drill", "answer"), rows))
        parts += _settings(merged([each.groups for each in found]))
    for each in found:
        parts += _drill(each, all_figures=all_figures, tells=tells, is_only=len(found) == 1)
    parts += [
        Text(printable(f"no interval, effect size or test of a difference: {why}")) for why in why_no_tests(found)
    ]
    parts += [Text(printable(f"{of.drill}: only {of.groups[0].label} ran it: nothing to compare")) for of in lone]
    return parts


def why_no_tests(found: Sequence[Comparison]) -> Sequence[str]:
    """Return the reasons why groups were not tested, each once."""
    return [*dict.fromkeys(each.why_no_evidence for each in found if each.why_no_evidence and len(each.groups) > 1)]


def _drill(of: Comparison, *, all_figures: bool, tells: bool, is_only: bool) -> Iterator[RenderableType]:
    """Yield the parts of one drill; of the only one also its answer and settings."""
    if len(of.groups) == 1:
        yield from _shown(groups_sheet(of.groups), own_sheet(of.groups[0]))
        yield from _notes(of)
        return
    if is_only:
        yield Text(f"{ASK} {printable(answer_of(of))}")
    yield from _shown(costs_sheet(of))
    if is_only:
        yield from _settings(of.groups)
    yield from _figures(of, all_figures=all_figures)
    if not of.draw:
        yield from _shown(causes_sheet(of.groups, of.apart))
    yield from _notes(of)
    if all_figures or tells:
        yield from evidence_parts(of.evidence)


def _figures(of: Comparison, *, all_figures: bool) -> Iterator[RenderableType]:
    """Yield the table of figures that differ, with the number of others below it; or the table of these too."""
    shown = list(_shown(differing_sheet(of)))
    if all_figures:
        yield from (*shown, *_shown(other_sheet(of)))
    elif left := not_shown(of):
        yield Lines(*shown, Text(f"{left}; {ALL_FIGURES} shows them"))
    else:
        yield from shown


def _settings(groups: Sequence[Group]) -> Iterator[RenderableType]:
    return _shown(groups_sheet(groups), asked_sheet(groups))


def _notes(of: Comparison) -> Iterator[RenderableType]:
    return (Text(printable(note)) for note in of.notes)


def _shown(*sheets: Sheet) -> Iterator[RenderableType]:
    return (table(*sheet, sheet.keys) for sheet in sheets if sheet.rows)
