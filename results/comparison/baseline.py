"""Baseline file: figures of an earlier comparison, against which later runs are compared as a gate for changes.

Reads untrusted files. Changes when a baseline says more. It is stored with the code and edited by hand along with it,
so it is JSON that is readable in a diff.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from hpn.results.comparison.differences import Difference, Finding, start_moved, told_apart, without_start
from hpn.results.comparison.figures import Key, Summary, summaries
from hpn.results.comparison.groups import WITH_DIGEST, Across, Group, check_trusted
from hpn.results.judge.verdict import without_limit
from hpn.results.run.files import first_mistake
from hpn.results.run.identity import other_fabric, run_otherwise, since
from hpn.testbed.errors import InputError
from hpn.testbed.files.bounded import read_bounded
from hpn.testbed.files.document import shorten

FORMAT = 1
_LARGEST_BYTES = 4_000_000
_MEASURED_WITH = (Across.KERNEL, Across.VERSION)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class StoredFigure(_Strict):
    """One figure. ``high`` is absent for a lower bound."""

    where: str = ""
    name: str
    unit: str
    more_is_worse: bool
    count: Annotated[int, Field(ge=1)]
    median: FiniteFloat
    low: FiniteFloat
    high: FiniteFloat | None = None
    open_ended: bool = False


class Baseline(_Strict):
    """Figures of runs of one experiment; ``setting``, ``digests`` and ``told`` are those of their group."""

    format: Annotated[int, Field(ge=1, le=FORMAT)] = FORMAT
    setting: Mapping[Across, str]
    digests: Mapping[Across, str] = Field(default_factory=dict)
    told: Mapping[str, str] = Field(default_factory=dict)
    figures: tuple[StoredFigure, ...]


class _Version(BaseModel):
    """Format number, read before anything else."""

    model_config = ConfigDict(strict=True)
    format: int = FORMAT


@dataclass(frozen=True, slots=True)
class BaselineComparison:
    """Result of comparing runs with a baseline.

    ``missing``: figures of the baseline that the runs lack. ``by_name``: what only names show to be the same.
    ``run_otherwise``: timers and policies of the fabric that differ, 'bgp.hold_s was 9, is 30'. ``tolerance``: the
    share of its baseline by which a figure may be worse. ``measured_with``: kernel and hpn, where they differ, 'kernel
    was 6.12.90, is 6.12.117'. ``limited``: every figure that an expectation limits, with its baseline.
    """

    differences: tuple[Difference, ...]
    missing: tuple[Key, ...]
    by_name: tuple[Across, ...] = ()
    run_otherwise: str = ""
    tolerance: float = 0.0
    measured_with: str = ""
    limited: tuple[Difference, ...] = ()

    @property
    def worse(self) -> tuple[Difference, ...]:
        """Figures that are worse beyond every interval, by more than the tolerance."""
        return tuple(each for each in self.differences if each.is_worse and not self._is_tolerated(each))

    @property
    def tolerated(self) -> tuple[Difference, ...]:
        """Figures that are worse beyond every interval, but within the tolerance."""
        return tuple(each for each in self.differences if each.is_worse and self._is_tolerated(each))

    @property
    def better(self) -> tuple[Difference, ...]:
        """Figures that are better beyond every interval."""
        return tuple(each for each in self.differences if not each.is_worse)

    def _is_tolerated(self, each: Difference) -> bool:
        return each.apart <= self.tolerance * abs(each.reference.median)


def baseline_of(group: Group) -> Baseline:
    """Return the baseline of a group. InputError if none of its runs can be trusted."""
    check_trusted([group])
    kept = tuple(
        StoredFigure(
            where=key.where, name=key.name, unit=key.unit, more_is_worse=key.more_is_worse, count=found.count,
            median=found.median, low=found.low, high=found.high if math.isfinite(found.high) else None,
            open_ended=found.open_ended,
        )
        for key, found in summaries(group).items()
    )  # fmt: skip
    return Baseline(setting=group.setting, digests=group.digests, told=group.told, figures=kept)


def written(baseline: Baseline) -> str:
    """Return the content of a baseline's file."""
    return baseline.model_dump_json(indent=1, exclude_defaults=True) + "\n"


def read(path: Path) -> Baseline:
    """Return the baseline in a file. InputError with the mistake if there is none."""
    try:
        content = read_bounded(path, _LARGEST_BYTES, "baseline")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; --save {path} writes one") from error
    try:
        if (found := _Version.model_validate_json(content).format) not in range(1, FORMAT + 1):
            raise InputError(f"{path} has format {found}, this hpn reads {FORMAT}; --save writes one that it reads")
        return Baseline.model_validate_json(content)
    except ValidationError as error:
        what = shorten(first_mistake(error), 200, quoted=False)
        raise InputError(f"{path} is no baseline ({what}); --save writes one") from error


def held_against(
    baseline: Baseline, group: Group, *, however_run: bool = False, tolerance: float = 0.0
) -> BaselineComparison:
    """Compare every figure of the baseline with the runs'. InputError if these are of another experiment.

    ``however_run``: the fabric's timers and policies may differ (``results.run.identity.RUN_BY``); differences are
    reported.
    """
    check_trusted([group])
    by_name = tuple(check_same(baseline, group.setting, group.digests, group.told, however_run=however_run))
    found = summaries(group)
    before = _as_named(dict(map(_figure, baseline.figures)), found)
    moved = start_moved(before, found)
    held = [
        without_start(Difference(key, group.label, base, now, told_apart(base, now)), moved)
        for key, base in before.items()
        if (now := found.get(key)) is not None
    ]
    missing = tuple(key for key in before if key not in found)
    seen = tuple(each for each in held if each.finding in {Finding.MORE, Finding.LESS})
    changed = run_otherwise(baseline.told, group.told) if however_run else ""
    limited = tuple(each for each in held if not each.key.where)
    return BaselineComparison(seen, missing, by_name, changed, tolerance, _measured_with(baseline, group), limited)


def _measured_with(baseline: Baseline, group: Group) -> str:
    """Return kernel and hpn where they differ: both may change figures, neither is a reason to refuse."""
    pairs = ((what, baseline.setting.get(what, ""), group.setting.get(what, "")) for what in _MEASURED_WITH)
    names = {Across.VERSION: "hpn"}
    changed = (f"{names.get(what, what)} was {was}, is {now}" for what, was, now in pairs if was and now and was != now)
    return "; ".join(changed)


def _as_named(before: Mapping[Key, Summary], found: Mapping[Key, Summary]) -> Mapping[Key, Summary]:
    """Return the figures with the direction that the runs tell: an older hpn stored that of the limit."""
    told = {(key.where, key.name, key.unit): key for key in found}
    return {told.get((key.where, key.name, key.unit), key): kept for key, kept in before.items()}


def _figure(kept: StoredFigure) -> tuple[Key, Summary]:
    name = kept.name if kept.where else without_limit(kept.name)  # an older hpn stored the limit in the name
    high = math.inf if kept.high is None else kept.high
    return Key(kept.where, name, kept.unit, kept.more_is_worse), Summary(
        kept.count, kept.median, kept.low, high, kept.open_ended
    )


def check_same(
    baseline: Baseline,
    setting: Mapping[Across, str],
    digests: Mapping[Across, str],
    told: Mapping[str, str],
    *,
    however_run: bool = False,
) -> list[Across]:
    """Return what only names show to be the same, because one side lacks the digest.

    InputError for what differs; keys that ``setting`` lacks may differ.
    """
    by_name: list[Across] = []
    for what, value in baseline.setting.items():
        if what in _MEASURED_WITH or what not in setting:
            continue
        before, now, here = baseline.digests.get(what), digests.get(what), setting[what]
        is_known = before is not None and now is not None
        if is_known and before == now:
            continue
        may_differ = however_run and what is Across.FABRIC and is_known
        if may_differ and run_otherwise(baseline.told, told):
            continue
        if is_known or here != value:
            asked = (may_differ and other_fabric(baseline.told, told)) or since(baseline.told, told)
            more = f" ({shorten(asked, 400, quoted=False)})" if asked else ""
            raise InputError(
                f"the baseline is of {what} {shorten(value, 80)}, these runs of {_other(here, value)}{more}"
            )
        if what in WITH_DIGEST:
            by_name.append(what)
    return by_name


def _other(here: str, before: str) -> str:
    return "another" if here == before else shorten(here, 80)
