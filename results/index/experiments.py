"""Names of experiments within one drill's series: the settings that differ, from each newest run.

Changes when a series is to be identified by something else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from hpn.results.index.queries import Trend
from hpn.results.run.folder import RunFolder
from hpn.results.run.identity import identity_in, sets_apart
from hpn.testbed.errors import InputError


def set_apart(found: Sequence[Trend]) -> tuple[Trend, ...]:
    """Return the series, each with its distinguishing settings; a single experiment needs none."""
    newest = {(trend.experiment, trend.fabric): trend.points[-1].path for trend in found}
    if len(newest) == 1:
        return tuple(found)
    told = dict(zip(newest, sets_apart([_told(path) for path in newest.values()]), strict=True))
    return tuple(replace(each, apart=_named(each, told[each.experiment, each.fabric])) for each in found)


def _named(trend: Trend, told: str) -> str:
    if not trend.experiment:
        return f"fabric {trend.fabric}, by name: these run folders lack digests"
    return f"experiment {trend.experiment}" + (f": {told}" if told else "")


def _told(path: str) -> Mapping[str, str]:
    run = RunFolder(Path(path))
    try:
        return identity_in(run, run.manifest()).told
    except InputError:  # it was deleted meanwhile
        return {}
