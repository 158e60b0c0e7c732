"""Run time estimates on standard error: before the first run begins, and as runs end.

Changes when a command that makes many runs should report something else while it works.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import click

from hpn.results.text.printable import printable
from hpn.scenarios.batch.pool.drills import RequestedRun
from hpn.scenarios.batch.pool.task import Task
from hpn.scenarios.run import estimate, wall_cost
from hpn.scenarios.run.runs_left import RunsLeft

_EVERY_S = 30.0


def say(line: str) -> None:
    """Print a line of progress on stderr; nothing for ''."""
    if line:
        click.echo(line, err=True)


def still_runs(task: Task, line: str) -> None:
    """Print the last line of a task that has been silent."""
    say(printable(f"still running: {task.name}{line and f' ({line})'}"))


def share_done(
    name: str, tell: Callable[[str], None] = say, clock: Callable[[], float] = time.monotonic
) -> Callable[[float], None]:
    """Return a function that prints the progress of a long computation, at most every 30 s."""
    due = clock() + _EVERY_S

    def heard(share: float) -> None:
        nonlocal due
        if clock() >= due:
            due = clock() + _EVERY_S
            tell(f"still running: {name} ({100 * share:.0f} % done)")

    return heard


def waiting(wanted: Mapping[str, RequestedRun], width: int, *, elsewhere: bool = False) -> RunsLeft:
    """Print how long the runs take, ``width`` side by side; return an object that updates it as they end.

    ``elsewhere``: other machines make them, so that only their pace gives an estimate.
    """
    asked = estimate.asked_of({name: (each.order, each.spec) for name, each in wanted.items()})
    costs = wall_cost.load()
    if not elsewhere:
        say(estimate.told(list(asked.values()), costs, width))
    return RunsLeft(estimate.seconds_of(asked, costs), say)
