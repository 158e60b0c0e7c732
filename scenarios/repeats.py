"""Repeats of drills judged as one, when all runs are made: ``repeats.json`` of the out folder, summaries, verdicts.

The rule is ``results.repeats``, which imports numpy: it is loaded after the measurements.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
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
    from results.repeats import judge_repeats

    found = tuple(
        judge_repeats(made[0].manifest().drill, [run.verdict() for run in made]) for made in batch.by_drill(runs)
    )
    write(batch.out, found)
    return found


def write(out: Path, found: Sequence[Repeated]) -> None:
    """OUT/repeats.json, unless there is nothing to write."""
    if found:
        from results.repeats import repeats_json

        (out / FILE).write_bytes(repeats_json(found))


def summaries(found: Iterable[Repeated]) -> list[RenderableType]:
    """What the terminal shows of each drill."""
    from results.repeats import repeats_summary

    return [repeats_summary(each) for each in found]
