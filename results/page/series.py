"""Runs of one experiment on one engine as a section of a page: figures, limits, and their overall outcome.

Changes when a section tells more of its runs. ``results.judge.repeats.judging`` judges repeats; it imports numpy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from hpn.results.export.markdown import why
from hpn.results.judge.repeats.judging import judge_repeats
from hpn.results.judge.repeats.repeated import Repeated
from hpn.results.judge.repeats.source_ports import shared_source_ports
from hpn.results.judge.repeats.view import estimates_sheet
from hpn.results.judge.verdict import Check, Outcome
from hpn.results.page.listing import Listing, Mark
from hpn.results.page.overview import Section
from hpn.results.page.runs import OneRun
from hpn.results.page.strip import Figure, Reading, Track, charts, reading_of
from hpn.results.run.folder import RunFolder
from hpn.results.run.identity import identity_in, sets_apart
from hpn.results.text.values import value_text
from hpn.testbed.errors import InputError

_MOST_FIGURES = 40
_WORST_FIRST = ("fail", "refused", "error", "inconclusive", "no verdict", "pass")


@dataclass(frozen=True, slots=True)
class Series:
    """Runs of one experiment on one engine, including earlier tries.

    ``apart``: the difference from other experiments of the same drill.
    """

    drill: str
    engine: str
    runs: Sequence[OneRun]
    apart: str = ""

    @property
    def title(self) -> str:
        """Title: 'link-down on uml: path_control.enabled false'."""
        where = f"{self.drill} on {self.engine}" if self.engine else self.drill
        return f"{where}: {self.apart}" if self.apart else where

    @property
    def last(self) -> Sequence[OneRun]:
        """Runs without those that a later try replaced."""
        return [run for run in self.runs if not run.is_earlier_try]

    @property
    def counts(self) -> str:
        """Number of runs by outcome: '4 pass, 1 fail'."""
        return counted(run.outcome for run in self.last)

    @property
    def worst(self) -> str:
        """Worst outcome, in the order of the exit codes of suites."""
        return worst(run.outcome for run in self.last)


def counted(outcomes: Iterable[str]) -> str:
    """Return the number of each outcome, the worst last: '4 pass, 1 fail'."""
    found = Counter(outcomes)
    return ", ".join(f"{found[each]} {each}" for each in reversed(_WORST_FIRST) if found[each])


def worst(outcomes: Iterable[str]) -> str:
    """Return the worst outcome; 'no verdict' if there is none."""
    found = set(outcomes)
    return next((each for each in _WORST_FIRST if each in found), "no verdict")


def series_of(runs: Sequence[OneRun]) -> tuple[Series, ...]:
    """Return all series, in the order of their first runs. Unreadable runs are in none."""
    found: dict[tuple[str, str, str], list[OneRun]] = {}
    for run in runs:
        if run.manifest is not None:
            known = run.experiment or run.manifest.fabric
            found.setdefault((run.manifest.drill, run.manifest.engine, known), []).append(run)
    made = [Series(drill, engine, of) for (drill, engine, _), of in found.items()]
    names = Counter(each.title for each in made)
    alike = [at for at, each in enumerate(made) if names[each.title] > 1]
    fabrics = _fabrics([made[at] for at in alike])
    told = sets_apart([_told(made[at].runs[0]) for at in alike])
    for at, fabric, apart in zip(alike, fabrics, told, strict=True):
        made[at] = Series(made[at].drill, made[at].engine, made[at].runs, fabric or apart or f"experiment {at + 1}")
    return tuple(made)


def _fabrics(alike: Sequence[Series]) -> Sequence[str]:
    """Return the name of each fabric; '' for those that share it with another series of the drill."""
    names = [(each.drill, each.engine, each.runs[0].manifest.fabric if each.runs[0].manifest else "") for each in alike]
    count = Counter(names)
    return [each[2] if count[each] == 1 else "" for each in names]


def judged(series: Series) -> Repeated | None:
    """Return the verdict of the runs as repeats; None if fewer than two have a verdict."""
    last = [
        (run.verdict, run.manifest.repeat or at)
        for at, run in enumerate(series.last, 1)
        if run.verdict and run.manifest
    ]
    if len(last) < 2:
        return None
    found = judge_repeats(series.title, [verdict for verdict, _ in last], [number for _, number in last])
    return replace(found, note=shared_source_ports(RunFolder(run.path) for run in series.last if run.verdict))


def section_of(series: Series, together: Repeated | None, *, opened: bool) -> Section:
    """Return the figures over the runs; for repeats with their common verdict."""
    shown = series.runs if together is None else series.last
    tables = [] if together is None or not together.estimates else [_estimates(together)]
    said = [series.counts, "" if together is None else together.proof or why(together.verdict)]
    strips = charts(_figures(shown))
    lines = (*_cost(series), *([together.note] if together is not None and together.note else []))
    return Section(series.title, "; ".join(filter(None, said)), opened, strips, lines=lines, tables=tables)


def _cost(series: Series) -> Sequence[str]:
    """Return the cost of the faults in the worst run, the first if there are several."""
    told = [(run, run.verdict.cost) for run in series.last if run.verdict is not None and run.verdict.cost]
    if not told:
        return ()
    of_worst = worst(run.outcome for run, _ in told)
    title, cost = next((run.title, cost) for run, cost in told if run.outcome == of_worst)
    return (f"{title}: {cost}" if len(series.last) > 1 else cost,)


def _estimates(together: Repeated) -> Listing:
    sheet = estimates_sheet(together)
    columns = (sheet.columns[1], "outcome", *sheet.columns[2:])
    return Listing(sheet.caption, columns, [(row[1], Mark(row[0]), *row[2:]) for row in sheet.rows])


def _figures(runs: Sequence[OneRun]) -> list[Figure]:
    """Return each figure with a limit; a figure with two limits appears twice."""
    found: dict[tuple[str, str, float | None], list[tuple[OneRun, Check]]] = {}
    for run in runs:
        for check in run.verdict.checks if run.verdict else ():
            if check.limit is not None:
                found.setdefault((check.subject, check.bound, check.limit), []).append((run, check))
    return [_figure(name, of) for (name, *_), of in list(found.items())[:_MOST_FIGURES]]


def _figure(name: str, of: Sequence[tuple[OneRun, Check]]) -> Figure:
    first = of[0][1]
    readings = [reading for run, check in of if (reading := _reading(run, check)) is not None]
    return Figure(name, first.unit, (Track("", _told_of(first, of, readings), readings),), first.limit, first.is_upper)


def _reading(run: OneRun, check: Check) -> Reading | None:
    name = run.title if not run.is_earlier_try else run.path.name
    return reading_of(check, name, run.href, trusted=run.is_trusted)


def _told_of(first: Check, of: Sequence[tuple[OneRun, Check]], readings: Sequence[Reading]) -> str:
    """Return 'median 12.0 ms, limit 50.0 ms, 1 of 3 break it'."""
    limit = f"limit {value_text(first.limit, first.unit)}" if first.limit is not None else ""
    broken = sum(check.outcome is Outcome.FAIL for _, check in of)
    many = f"{broken} of {len(of)} break it" if broken and len(of) > 1 else ""
    return ", ".join(filter(None, (_middle(readings, first.unit), limit, many)))


def _middle(readings: Sequence[Reading], unit: str) -> str:
    """Return the median; if there are only bounds, the widest one."""
    told = [each for each in readings if each.look != "inconclusive"] or readings
    values = [each.measured for each in told if each.measured is not None]
    if not told:
        return "no figure"
    if len(values) == len(told):
        return (f"median {value_text(median(values), unit)}") if len(values) > 1 else told[0].text
    widest = max((each for each in told if each.measured is None), key=lambda each: each.high)
    return widest.text if not values else f"{len(told) - len(values)} of {len(told)} are bounds"


def _told(run: OneRun) -> Mapping[str, str]:
    try:
        folder = RunFolder(run.path)
        return identity_in(folder, folder.manifest()).told
    except InputError:  # it was deleted meanwhile
        return {}
