"""Expected duration of a campaign, before it begins and while it runs.

Changes when a campaign's sequences have other costs than drills.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from statistics import fmean

from hpn.scenarios.campaign.campaign import drawn, in_a_lab
from hpn.scenarios.campaign.drillfile import drill_of
from hpn.scenarios.campaign.journal import PLAN, Entry, load
from hpn.scenarios.campaign.plan import Plan
from hpn.scenarios.campaign.result import Result
from hpn.scenarios.run import wall_cost
from hpn.scenarios.run.estimate import WORTH_TELLING_S, at_once, basis_of, counted, in_words
from hpn.scenarios.run.runs_left import RunsLeft
from hpn.testbed.vm.engines import named

_SAMPLED = 10
"""Number of sequences whose traffic is counted; the others are assumed to be similar."""


def left_of(folder: Path, sequences: int) -> tuple[int, ...]:
    """Return the indexes below ``sequences`` that the campaign in ``folder`` has not run yet."""
    known = load(folder)[1].indexes if os.path.isfile(folder / PLAN) else frozenset()
    return tuple(index for index in range(sequences) if index not in known)


def line_of(plan: Plan, left: tuple[int, ...], width: int) -> str:
    """Return the estimate for these sequences with ``width`` concurrent labs, without shrinking; '' if not worth it."""
    spec, costs = named(plan.engine), wall_cost.load()
    found = (counted(drill_of(plan, sequence)) for sequence in drawn(plan, left[:_SAMPLED]))
    expected = [wall_cost.expected(effort, spec, costs) for effort in found if effort is not None]
    if not expected:
        return ""
    labs = -(-len(left) // in_a_lab(len(left), width))
    up_s = labs * fmean(each.stages.up_s for each in expected)
    run_s = len(left) * fmean(each.stages.traffic_s for each in expected)
    side_by_side = at_once(spec, width) if spec.virtual_time else width
    total_s = (up_s + run_s) / side_by_side
    if total_s <= WORTH_TELLING_S:
        return ""
    return f"{len(left):,} sequences take about {in_words(total_s)} ({basis_of(expected)}; shrinking comes on top)"


def telling(
    left: tuple[int, ...],
    width: int,
    tell: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,
) -> Callable[[Entry], None]:
    """Return a function to call with every entry; it reports the remaining time.

    Labs report at their end.
    """
    runs, size = RunsLeft(dict.fromkeys(map(str, left), 1.0), tell, clock), in_a_lab(len(left), width)
    come: list[str] = []

    def ended(entry: Entry) -> None:
        if isinstance(entry, Result):
            come.append(str(entry.sequence.index))
            if entry.violations or len(entry.before) + 1 >= size:
                runs.ended(*come)
                come.clear()

    return ended
