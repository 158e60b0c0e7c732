"""Combined verdict of repeated drills after all runs: ``repeats.json`` of the out folder, summaries, verdicts.

The rule is ``results.judge.repeats.judging``, which imports numpy and is loaded after the measurements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import RenderableType

from hpn.results.judge.repeats.statistic import LEAST_RUNS
from hpn.results.run.folder import RunFolder
from hpn.scenarios.drill.model import Drill
from hpn.scenarios.run.run_order import Batch
from hpn.testbed.errors import InputError
from hpn.testbed.files.replacing import replace as replace_file

if TYPE_CHECKING:
    from hpn.results.judge.repeats.repeated import Repeated

FILE = "repeats.json"


def judge(batch: Batch, runs: Sequence[RunFolder]) -> tuple[Repeated, ...]:
    """Return each drill's verdict over the runs made so far and write them to the out folder; empty without repeats."""
    if batch.repeat == 1 or not runs:
        return ()
    from hpn.results.judge.repeats.judging import judge_repeats
    from hpn.results.judge.repeats.source_ports import shared_source_ports

    found = tuple(
        replace(
            judge_repeats(
                made[0].manifest().drill, [run.verdict() for run in made], [run.manifest().repeat for run in made]
            ),
            note=shared_source_ports(made),
        )
        for made in batch.by_drill(runs)
    )
    write(batch.out, found)
    return found


def too_few(drill: Drill, repeat: int) -> Iterator[tuple[int, str]]:
    """Yield line and problem of every expectation that needs more repeats."""
    for each in drill.expectations:
        if repeat < (least := LEAST_RUNS[each.over]):
            yield each.line, f"'{each.text}' takes {least} repeats or more to tell at 95 % confidence, not {repeat}"


def check(drills: Iterable[Drill], repeat: int) -> None:
    """Raise InputError when a drill requires a statistic that needs more repeats."""
    problems = [
        f"{drill.source}:{line}: {what}; write --repeat with that many, or leave 'over_repeats' out"
        for drill in drills
        for line, what in too_few(drill, repeat)
    ]
    if problems:
        raise InputError(problems)


def write(out: Path, found: Sequence[Repeated]) -> None:
    """Write OUT/repeats.json, unless there is nothing to write."""
    if found:
        from hpn.results.judge.repeats.repeated import repeats_json

        replace_file(out / FILE, repeats_json(found))


def summaries(found: Iterable[Repeated]) -> list[RenderableType]:
    """Return the terminal summary of each drill."""
    from hpn.results.judge.repeats.view import repeats_summary

    return [repeats_summary(each) for each in found]
