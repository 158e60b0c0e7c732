"""Repeats of drills judged as one, when all runs are made: ``repeats.json`` of the out folder, summaries, verdicts.

The rule is ``results.repeats``, which imports numpy: it is loaded after the measurements.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType

from results.folder import RunFolder
from scenarios.order import Batch

if TYPE_CHECKING:
    from results.repeats import Repeated

FILE = "repeats.json"


def judge(batch: Batch, runs: Sequence[RunFolder]) -> tuple[Repeated, ...]:
    """The verdict of each drill over the runs made so far, written to the out folder; nothing without repeats."""
    if batch.repeat == 1 or not runs:
        return ()
    from results.repeats import judge_repeats, repeats_json

    found = tuple(
        judge_repeats(made[0].manifest().drill, [run.verdict() for run in made]) for made in batch.by_drill(runs)
    )
    (batch.out / FILE).write_bytes(repeats_json(found))
    return found


def summaries(found: Iterable[Repeated]) -> list[RenderableType]:
    """What the terminal shows of each drill."""
    from results.repeats import repeats_summary

    return [repeats_summary(each) for each in found]
