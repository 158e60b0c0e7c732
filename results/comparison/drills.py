"""Comparison of groups, drill by drill: differences, evidence, and notes that a reader needs to trust them.

Changes when a comparison finds out something else. Reads ``paths.jsonl`` of the runs for the notes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hpn.results.comparison.differences import Difference, Finding, differences
from hpn.results.comparison.figures import Key
from hpn.results.comparison.groups import Across, Compared, Group, check_trusted, grouped, why_not
from hpn.results.judge.repeats.random_faults import one_draw
from hpn.results.judge.repeats.source_ports import shared_source_ports
from hpn.results.run.folder import RunFolder
from hpn.testbed.errors import InputError, MachineError

if TYPE_CHECKING:  # imports numpy
    from hpn.results.comparison.science import DifferenceEvidence

_APART = frozenset({Finding.MORE, Finding.LESS})


@dataclass(frozen=True, slots=True)
class Comparison:
    """Groups held against the first of them. ``drill``: '' if they are of several, or the only one asked for."""

    drill: str
    groups: tuple[Group, ...]
    found: tuple[Difference, ...]
    evidence: Sequence[DifferenceEvidence] = ()
    why_no_evidence: str = ""
    notes: tuple[str, ...] = ()
    draw: str = ""  # why single runs decide nothing: another draw or phase would differ

    @property
    def told_apart(self) -> frozenset[tuple[Key, str]]:
        """Figures that a test tells apart, with the labels of their groups."""
        return frozenset((key, each.group) for each in self.evidence if each.significant for key in each.keys)

    @property
    def apart(self) -> tuple[Difference, ...]:
        """Differences of figures whose ranges do not overlap, or that a test tells apart."""
        tested = self.told_apart
        return tuple(each for each in self.found if each.finding in _APART or (each.key, each.group) in tested)


@dataclass(frozen=True, slots=True)
class DrillGroups:
    """Groups of one drill; ``drill`` '' as in ``Comparison``."""

    drill: str
    groups: tuple[Group, ...]


def groups_by_drill(
    runs: Sequence[Compared], across: Collection[Across]
) -> tuple[Sequence[DrillGroups], Sequence[DrillGroups]]:
    """Return the groups of each drill that has several, and of drills that have one, with nothing to compare.

    One entry with all groups if ``across`` has drills, or if no drill has several groups. InputError if groups differ
    in something not in ``across``.
    """
    names = dict.fromkeys(run.manifest.drill for run in runs)
    if len(names) < 2 or Across.DRILL in across:
        return (DrillGroups("", grouped(runs, across)),), ()
    each = [DrillGroups(name, grouped([run for run in runs if run.manifest.drill == name], across)) for name in names]
    several = [of for of in each if len(of.groups) > 1]
    if not several:
        return (DrillGroups("", grouped(runs, across)),), ()
    return several, [of for of in each if len(of.groups) < 2]


def compare(of: DrillGroups, tell: float | None) -> Comparison:
    """Return the groups compared with their first. InputError for a group without a trusted run.

    ``tell``: the difference whose number of further runs is asked, in a figure's unit; None: the one seen.
    """
    check_trusted(of.groups)
    why_none = why_not(of.groups)
    evidence: Sequence[DifferenceEvidence] = ()
    if not why_none:
        from hpn.results.comparison.science import science  # numpy, which baselines do not wait for

        evidence = science(of.groups, tell)
    notes = tuple(_notes(of.groups))
    return Comparison(of.drill, of.groups, differences(of.groups), evidence, why_none, notes, _draw(of.groups))


def _draw(groups: Sequence[Group]) -> str:
    """Return why a group of one run is one draw; '' if no group is, or its folder does not tell."""
    if len(groups) < 2:
        return ""
    for group in groups:
        if len(group.runs) == 1:
            run = group.runs[0]
            with suppress(InputError, MachineError):
                if told := one_draw(run.manifest, RunFolder(Path(run.folder)).drill()):
                    return told
    return ""


def _notes(groups: Sequence[Group]) -> Iterator[str]:
    for group in groups:
        if note := shared_source_ports(RunFolder(Path(run.folder)) for run in group.runs):
            yield f"{group.label}: {note}"
        told = dict.fromkeys(note for run in group.runs for note in run.verdict.notes)
        yield from (f"{group.label}: {note}" for note in told)
