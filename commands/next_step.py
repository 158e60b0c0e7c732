"""Hints on what to do next on this machine, shown by ``hpn`` without arguments below its help.

Changes when something else is worth a hint.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from hpn.commands.results import index_of
from hpn.results.index.queries import RunFilter, RunLine, runs
from hpn.results.text.printable import printable
from hpn.testbed.errors import HpnError
from hpn.testbed.lab.service import registry

_RUNS = Path("runs")
_ANSWERS = {"fail": "failed", "inconclusive": "is inconclusive", "pass": "passed"}


def hints() -> Iterator[str]:
    """Yield a line for each lab and for the newest run, or on how to begin."""
    try:
        labs = [record.name for _, record in registry.running()]
        newest = _newest()
    except (HpnError, OSError) as error:  # the rest of the help stays useful
        yield printable(f"hpn doctor tells what this machine can do ({error})")
        return
    yield from told(labs, newest)


def told(labs: Sequence[str], newest: RunLine | None) -> Iterator[str]:
    """Yield the same for running labs, by name, and the newest run below ./runs. Pure."""
    for name in labs:
        yield f"Lab {name} is up: hpn watch --lab {name}, hpn inspect --lab {name}, hpn down {name}"
    if newest is not None:
        answer = _ANSWERS.get(newest.outcome, "came to no verdict")
        folder = printable(shlex.quote(newest.path))
        yield f"The newest run, {printable(newest.drill)}, {answer}: hpn report {folder}"
    if not labs and newest is None:
        yield "Begin here: hpn doctor (what this machine can do), then hpn drill run link-down (a first drill)"


def _newest() -> RunLine | None:
    if not _RUNS.is_dir():
        return None
    with index_of(_RUNS) as index:
        return next(iter(runs(index, RunFilter(), 1)), None)
