"""Page of many runs: their overall outcome, failures, a line for each run, each figure with its limit.

Changes when a page over many runs shows something else. Repeats and suites get a verdict; below any other folder runs
are listed, the newest first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hpn.failover.analysis.phrases import many
from hpn.results.comparison.groups import version_of
from hpn.results.comparison.run_arguments import REPEATS
from hpn.results.export.markdown import why
from hpn.results.judge.repeats.repeated import Repeated
from hpn.results.judge.verdict import Outcome, Verdict
from hpn.results.page import story
from hpn.results.page.hardware import on_real_hardware
from hpn.results.page.listing import Cell, Choice, Filter, Link, Listing, Mark, without_constant
from hpn.results.page.overview import MOST_ROWS, MOST_SECTIONS, OPEN_SECTIONS, DrillPart, Head, ManyView, many_html
from hpn.results.page.picture import picture_of_all
from hpn.results.page.runs import OneRun, in_order, of_suite, runs_below
from hpn.results.page.series import Series, counted, judged, section_of, series_of, worst
from hpn.results.page.suite import Gated, suite_in
from hpn.results.run.manifest import Manifest
from hpn.results.text.checks import measured_text
from hpn.results.text.values import value_text
from hpn.testbed.vm.engines import has_virtual_time

_MOST_FIGURES = 2
_COLUMNS = (
    "run",
    "outcome",
    "what it says",
    "phase",
    "seeds",
    "fabric",
    "engine",
    "version",
    ">started",
    ">took",
    "folder",
)


@dataclass(frozen=True, slots=True)
class _Drill:
    """Runs of one drill, their verdict as repeats, and the outcome of its baseline; None if it has none."""

    series: Series
    together: Repeated | None = None
    gate: Gated | None = None

    @property
    def is_gated(self) -> bool:
        """True if its baseline keeps the drill from passing."""
        return self.gate is not None and self.gate.answer != Outcome.PASS

    @property
    def by_limits(self) -> str:
        """Outcome by limits alone."""
        return self.series.worst if self.together is None else self.together.outcome.value

    @property
    def outcome(self) -> str:
        """Outcome by limits and baseline together."""
        return worst([self.by_limits, *([self.gate.answer] if self.gate is not None else [])])

    @property
    def why_by_limits(self) -> str:
        """Reason why the drill does not pass by its limits alone."""
        if self.together is not None and (said := why(self.together.verdict)):
            return said
        return next((_why(run) for run in self.series.last if run.outcome != Outcome.PASS.value), "")

    @property
    def why(self) -> str:
        """Reason why the drill does not pass: first its limits, then its baseline."""
        held = f"against its baseline {self.gate.reason}" if self.gate is not None and self.is_gated else ""
        return "; ".join(filter(None, (self.why_by_limits, held)))


def many_page(folder: Path, page: Path) -> str:
    """Return the page for path ``page`` of the runs below ``folder``. InputError if there is no run."""
    return many_html(many_view(folder, page))


def many_view(folder: Path, page: Path) -> ManyView:
    """Return the content of the page."""
    found, suite = runs_below(folder, page), suite_in(folder)
    name = folder.resolve().name
    if suite is not None:
        view = _judged_view(suite.name or name, of_suite(suite, found, folder, page), folder, suite.baselines)
        unused = (DrillPart("Baselines of no drill", suite.unused),) if suite.unused else ()
        return replace(view, head=replace(view.head, parts=(*view.head.parts, *unused)))
    if (folder / REPEATS).is_file():
        return _judged_view(name, in_order(found), folder)
    return _index_view(name, found, folder)


def _judged_view(name: str, runs: Sequence[OneRun], folder: Path, kept: Sequence[Gated] = ()) -> ManyView:
    """Return the view of repeats, with one verdict for each drill."""
    gates = {each.title: each for each in kept}
    series = series_of(runs)
    found = [_Drill(each, judged(each), gates.get(f"{each.drill} on {each.engine}")) for each in series]
    lost = [run for run in runs if run.manifest is None]
    if len(found) == 1 and found[0].together is not None and not lost:
        together = found[0].together
        broken, notes = (
            story.broken(together.verdict),
            tuple(filter(None, (together.proof, together.note, *together.reasons[1:]))),
        )
        told = f"{story.answer(together.verdict)} {many(len(together.answers), 'repeat')}: {series[0].counts}."
        unstable = ("Unstable: some runs pass and some fail.",) if together.unstable else ()
        head = Head(together.name, together.outcome.value, "Did it?", told, broken, (*unstable, *notes))
    else:
        head = _of_all(name, found, lost)
    return _view(_against(head, kept), runs, found, folder, overview=_overview(found) if len(found) > 1 else ())


def _part(gated: Gated) -> DrillPart:
    """Return the outcome of a baseline: what changed, what is worse, and, folded, what is better."""
    lines = tuple(filter(None, (gated.changed, *gated.lines)))
    return DrillPart(f"{gated.title} against its baseline", lines, f"{len(gated.better)} better", gated.better)


def _against(head: Head, kept: Sequence[Gated]) -> Head:
    """Return the head with the outcome of baselines: a drill within its limits fails if a figure is worse."""
    bad = [each for each in kept if each.answer != Outcome.PASS]
    head = replace(head, parts=tuple(map(_part, sorted(kept, key=lambda each: each.answer == Outcome.PASS))))
    if not bad:
        return head
    outcome = worst([head.outcome, *(each.answer for each in bad)])
    answer = f"No. {many(len(bad), 'drill')} did not hold against the baseline. Limits alone: {head.answer}"
    return replace(head, outcome=outcome, answer=answer)


def _index_view(name: str, runs: Sequence[OneRun], folder: Path) -> ManyView:
    series = series_of(runs)
    newest = [each.last[0] if each.last else each.runs[0] for each in series]
    fine = sum(run.outcome == Outcome.PASS.value for run in newest)
    drills = many(len({each.drill for each in series}), "drill")
    answer = f"{many(len(runs), 'run')} of {drills}: {counted(run.outcome for run in runs)}."
    if series:
        answer += f" Each drill, fabric and engine apart, the newest run passes for {fine} of {len(series)}."
    broken = [
        f"{each.title}, the newest: {_why(run)}"
        for each, run in zip(series, newest, strict=True)
        if run.outcome != "pass"
    ]
    head = Head(name, "index", "What is there?", answer, broken)
    return _view(head, runs, [_Drill(each) for each in series], folder, lists_folders=True)


def _of_all(name: str, found: Sequence[_Drill], lost: Sequence[OneRun]) -> Head:
    outcomes = [each.by_limits for each in found]
    answer = f"{many(len(found), 'drill')}: {counted(outcomes)}."
    if lost:
        answer += f" {many(len(lost), 'run')} could not be made or read."
    outcome = worst([*outcomes, *(run.outcome for run in lost)])
    answer = {"pass": "Yes. ", "fail": "No. "}.get(outcome, "") + answer
    broken = [f"{each.series.title}: {each.why_by_limits}" for each in found if each.by_limits != Outcome.PASS]
    return Head(name, outcome, "Did all pass?", answer, [*broken, *(f"{run.title}: {_why(run)}" for run in lost)])


def _why(run: OneRun) -> str:
    if run.verdict is None:
        return run.problem or "it came to no verdict"
    return why(run.verdict)


def _view(
    head: Head,
    runs: Sequence[OneRun],
    found: Sequence[_Drill],
    folder: Path,
    overview: Sequence[Listing] = (),
    *,
    lists_folders: bool = False,
) -> ManyView:
    series, shown = [each.series for each in found], found[:MOST_SECTIONS]
    gates = {each.series.runs[0].path: each for each in found if each.is_gated and len(each.series.last) == 1}
    runs = [_gated(run, gates) for run in runs]
    listing, common = without_constant(_listing(runs[:MOST_ROWS], series, len(_COLUMNS) - (not lists_folders)))
    few = len(found) <= OPEN_SECTIONS
    return ManyView(
        head=head,
        overview=overview,
        runs_title="The runs",
        filters=tuple(_filters(runs, series)),
        runs=listing,
        runs_notes=tuple(_notes(runs, folder)),
        common=common,
        sections=[section_of(each.series, each.together, opened=few or each.outcome != Outcome.PASS) for each in shown],
        left_out=f"{len(found) - len(shown)} more drills and settings are left out." if len(found) > len(shown) else "",
        picture=picture_of_all([each.last[0] for each in series if each.last]),
        hardware=on_real_hardware(run.manifest for run in runs if run.manifest is not None),
    )


def _gated(run: OneRun, gates: Mapping[Path, _Drill]) -> OneRun:
    """Return the run with its drill's outcome if it is the drill's only run, which has no other row."""
    drill = gates.get(run.path)
    return run if drill is None else replace(run, outcome=drill.outcome, problem=drill.why, verdict=None)


def _overview(found: Sequence[_Drill]) -> tuple[Listing, ...]:
    rows: list[tuple[Cell, ...]] = [
        (
            each.series.title,
            Mark(each.outcome),
            each.series.counts,
            "unstable" if each.together is not None and each.together.unstable else "-",
            each.why or ("" if each.together is None else each.together.proof) or "-",
        )
        for each in found
    ]
    return (Listing("Drills", ("drill", "outcome", "runs", "", "why, or what it proves"), rows),)


def _listing(runs: Sequence[OneRun], series: Sequence[Series], columns: int) -> Listing:
    number = {run.path: at for at, each in enumerate(series) for run in each.runs}
    classes = [f"{run.outcome.replace(' ', '-')} d{number.get(run.path, 'x')}" for run in runs]
    return Listing("", _COLUMNS[:columns], [_row(run)[:columns] for run in runs], classes)


def _row(run: OneRun) -> tuple[Cell, ...]:
    made = run.manifest
    name = f"{run.title}, an earlier try" if run.is_earlier_try else run.title
    said = _says(run.verdict) if run.verdict else run.problem or "it came to no verdict"
    if made is None:
        return (Link(name, run.href), Mark(run.outcome), said, *["-"] * (len(_COLUMNS) - 4), run.folder)
    later = f"{made.phase}: faults {made.phase_ms:.0f} ms later" if made.phase > 1 else str(made.phase)
    seeds = ", ".join(f"{key} {value}" for key, value in made.seeds.items())
    facts = (later, seeds or "-", made.fabric, made.engine, version_of(made) or "-", run.date or "-")
    return (Link(name, run.href), Mark(run.outcome), said, *facts, _took(made), run.folder)


def _took(made: Manifest) -> str:
    """Return the duration by the engine's clock, marked if it is a guest's virtual time."""
    return f"{made.duration_s:.1f} s" + (" (virtual)" if has_virtual_time(made.engine) else "")


def _says(verdict: Verdict) -> str:
    """Return the failures and the cost, or the reason for an inconclusive run; for a pass its cost, else figures."""
    if verdict.outcome is Outcome.INCONCLUSIVE:
        return why(verdict)
    if verdict.outcome is Outcome.PASS and verdict.cost:
        return verdict.cost
    of = [check for check in verdict.checks if check.outcome is verdict.outcome]
    if verdict.outcome is Outcome.FAIL:
        broken = [f"{check.text}: {measured_text(check)}" for check in of]
    else:
        figures = [check for check in of if check.limit is not None]
        broken = [
            f"{check.subject} {measured_text(check)} (limit {value_text(check.limit or 0, check.unit)})"
            for check in figures
        ]
    more = f"; and {len(broken) - _MOST_FIGURES} more" if len(broken) > _MOST_FIGURES else ""
    said = "; ".join(broken[:_MOST_FIGURES]) + (more if verdict.outcome is Outcome.FAIL else "")
    return f"{said}. {verdict.cost}" if verdict.outcome is Outcome.FAIL and verdict.cost else said


def _filters(runs: Sequence[OneRun], series: Sequence[Series]) -> Iterator[Filter]:
    """Yield filters by outcome and by drill if there are several."""
    outcomes = Counter(run.outcome for run in runs)
    if len(outcomes) > 1:
        choices = [Choice(each.replace(" ", "-"), f"{each} ({count})") for each, count in outcomes.items()]
        yield Filter("outcome", (Choice("", f"all ({len(runs)})"), *choices))
    if len(series) > 1:
        choices = [
            Choice(f"d{at}", f"{each.title} ({len(each.runs)})") for at, each in enumerate(series[:MOST_SECTIONS])
        ]
        yield Filter("drill", (Choice("", "all"), *choices))


def _notes(runs: Sequence[OneRun], folder: Path) -> Iterator[str]:
    if len(runs) > MOST_ROWS:
        yield f"{len(runs) - MOST_ROWS} more runs are left out; hpn results ls --runs {folder} has them."
    lacking = sum(not run.has_page for run in runs)
    if lacking:
        way_out = f"hpn report {folder} --each writes them"
        yield f"{lacking} of these runs have no page of their own and lead to their folders: {way_out}."
