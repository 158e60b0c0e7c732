"""Runs below a folder for pages of many runs: facts and verdict of each, and the address of its page.

Changes when a page over many runs has to know more of each. Figures come from ``verdict.json``, as ``metrics.json`` is
a hundred times larger; two hundred runs are read in a second.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from hpn.results.index.scan import Indexed, read, run_folders
from hpn.results.judge.verdict import Outcome, Verdict
from hpn.results.page.listing import href
from hpn.results.page.story import NO_VERDICT
from hpn.results.page.suite import FILE as SUITE
from hpn.results.page.suite import Listed, Suite
from hpn.results.run.manifest import Manifest
from hpn.testbed.errors import InputError

PAGE = "report.html"
_EARLIER = ".doubtful-"
"""Part of the name of a run that a later try replaced."""


@dataclass(frozen=True, slots=True)
class OneRun:
    """A run of several. ``manifest``: None if it could not be made or read; ``problem`` gives the reason.

    ``href`` leads to its page, or to its folder if it has none (``has_page``).
    """

    title: str
    outcome: str
    href: str
    has_page: bool
    manifest: Manifest | None
    verdict: Verdict | None
    problem: str
    experiment: str
    path: Path
    folder: str  # relative to the folder of the page

    @property
    def is_earlier_try(self) -> bool:
        """True if the run was repeated because it could not be trusted."""
        return _EARLIER in self.path.name

    @property
    def is_trusted(self) -> bool:
        """True if its figures can be trusted, which includes figures too near to their limits."""
        return self.verdict is not None and not self.verdict.doubts

    @property
    def date(self) -> str:
        """Start of the run, to the second; '' if unknown."""
        return "" if self.manifest is None else self.manifest.date[:19].replace("T", " ")


def runs_below(folder: Path, page: Path) -> tuple[OneRun, ...]:
    """Return every run below a folder, the newest first, with its address for ``page``. InputError if there is none.

    A suite may have none, since ``suite.json`` has the reason.
    """
    root = Path(os.path.abspath(folder))
    found = [_one(read(each), root, page) for each in run_folders(root)]
    if not found and not (folder / SUITE).is_file():
        raise InputError(f"{folder} holds no run; name a folder that hpn drill run, ci run or campaign run made")
    return tuple(sorted(found, key=_began, reverse=True))


def of_suite(suite: Suite, found: Sequence[OneRun], folder: Path, page: Path) -> tuple[OneRun, ...]:
    """Return the runs of a suite in its order, including those not made, then all others in its folder."""
    there = {os.path.realpath(run.path): run for run in found}
    count = Counter((each.drill, each.engine) for each in suite.runs)
    listed = []
    for each in suite.runs:
        place = os.path.realpath(folder / each.folder)
        title = f"{each.drill} #{each.repeat}" if count[each.drill, each.engine] > 1 else each.drill
        if place in there:
            listed.append(replace(there.pop(place), title=title))
            continue
        begun = [path for path, run in there.items() if os.path.dirname(path) == place and not run.is_earlier_try]
        for path in begun:  # it reached no verdict, and the suite has the reason
            there.pop(path)
        listed.append(_unmade(each, folder, page))
    return (*listed, *sorted(there.values(), key=lambda run: str(run.path)))


def in_order(found: Sequence[OneRun]) -> tuple[OneRun, ...]:
    """Return the runs by drill and number of the repeat, unreadable ones last."""
    return tuple(sorted(found, key=lambda run: (run.manifest is None, *_place(run))))


def _place(run: OneRun) -> tuple[str, int, str]:
    made = run.manifest
    return ("", 0, str(run.path)) if made is None else (made.drill, made.repeat or made.phase, str(run.path))


def _one(found: Indexed, root: Path, page: Path) -> OneRun:
    path, manifest, verdict = Path(found.found.path), found.manifest, found.verdict
    has_page = (path / PAGE).is_file()
    return OneRun(
        title=path.name if manifest is None else manifest.drill + (f" #{manifest.repeat}" if manifest.repeat else ""),
        outcome=NO_VERDICT if verdict is None else verdict.outcome.value,
        href=href(path / PAGE if has_page else path, page),
        has_page=has_page,
        manifest=manifest,
        verdict=verdict,
        problem=found.problem,
        experiment=found.experiment,
        path=path,
        folder=str(path.relative_to(root)),
    )


def _unmade(listed: Listed, folder: Path, page: Path) -> OneRun:
    """Return a run without a folder of its own; its output is in the suite's folder."""
    place = folder / listed.folder
    known = {outcome.value for outcome in Outcome} | {"error"}
    inside = os.path.realpath(place).startswith(os.path.join(os.path.realpath(folder), ""))
    outcome = listed.answer if listed.answer in known else NO_VERDICT
    why = listed.reason or "its folder is gone"
    address = href(place, page) if inside and place.is_dir() else ""
    return OneRun(listed.title, outcome, address, True, None, None, why, "", place, listed.folder)


def _began(run: OneRun) -> tuple[datetime, str]:
    try:
        began = datetime.fromisoformat("" if run.manifest is None else run.manifest.date)
    except ValueError:
        began = datetime.min
    return began if began.tzinfo else began.replace(tzinfo=UTC), str(run.path)
