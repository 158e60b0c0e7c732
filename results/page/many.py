"""The page over many runs: what they come to and what failed, a line for each run, each figure with its limit.

Changes when a page over many runs shows something else. Repeats and suites are judged; below any other folder runs are
listed, the newest first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from results.comparison.gather import REPEATS
from results.comparison.groups import version_of
from results.markdown import why
from results.page import story
from results.page.listing import Cell, Choice, Filter, Link, Listing, Mark, without_constant
from results.page.render import rendered
from results.page.runs import OneRun, in_order, of_suite, runs_below
from results.page.series import Section, Series, counted, judged, section_of, series_of, worst
from results.page.suite import suite_in
from results.repeats.together import Repeated
from results.text.terminal import measured_text, value_text
from results.verdict import Outcome, Verdict

_MOST_ROWS, _MOST_SECTIONS, _OPEN_SECTIONS, _MOST_TOLD, _MOST_FIGURES = 1000, 60, 3, 12, 2
_COLUMNS = ("run", "outcome", "what it says", "phase", "seeds", "fabric", "engine", "version", "started", ">took")


@dataclass(frozen=True, slots=True)
class ManyView:
    """What the template prints, all of it text."""

    title: str
    outcome: str
    question: str
    answer: str
    broken: Sequence[str]
    notes: Sequence[str]
    overview: Sequence[Listing]
    runs_title: str
    filters: Sequence[Filter]
    runs: Listing
    runs_notes: Sequence[str]
    common: Sequence[tuple[str, str]]
    sections: Sequence[Section]
    left_out: str


def many_page(folder: Path, page: Path) -> str:
    """The page over the runs below ``folder``, to lie at ``page``. InputError where there is no run."""
    return rendered("many.html", many_view(folder, page), has_charts=False)


def many_view(folder: Path, page: Path) -> ManyView:
    """Everything that it says."""
    found, suite = runs_below(folder, page), suite_in(folder)
    name = folder.resolve().name
    if suite is not None:
        return _judged_view(suite.name or name, of_suite(suite, found, folder, page), folder)
    if (folder / REPEATS).is_file():
        return _judged_view(name, in_order(found), folder)
    return _index_view(name, found, folder)


def _judged_view(name: str, runs: Sequence[OneRun], folder: Path) -> ManyView:
    """Repeats, each drill judged as one."""
    series = series_of(runs)
    found = [(each, judged(each)) for each in series]
    lost = [run for run in runs if run.manifest is None]
    if len(found) == 1 and found[0][1] is not None and not lost:
        together = found[0][1]
        broken, notes = story.broken(together.verdict), tuple(filter(None, (together.proof, *together.reasons[1:])))
        told = f"{story.answer(together.verdict)} {len(together.answers)} repeats: {series[0].counts}."
        unstable = ("Unstable: some runs pass and some fail.",) if together.unstable else ()
        head = (together.name, together.outcome.value, "Did it?", told, broken, (*unstable, *notes))
    else:
        head = (
            name,
            worst([*(_outcome(*each) for each in found), *(run.outcome for run in lost)]),
            *_of_all(found, lost),
        )
    return _view(head, runs, found, folder, overview=_overview(found) if len(found) > 1 else ())


def _index_view(name: str, runs: Sequence[OneRun], folder: Path) -> ManyView:
    series = series_of(runs)
    newest = [each.last[0] if each.last else each.runs[0] for each in series]
    fine = sum(run.outcome == Outcome.PASS.value for run in newest)
    answer = (
        f"{len(runs)} runs of {len({each.drill for each in series})} drills: {counted(run.outcome for run in runs)}."
    )
    if series:
        answer += f" The newest run passes of {fine} of {len(series)} drills and settings."
    broken = [
        f"{each.title}, the newest: {_why(run)}"
        for each, run in zip(series, newest, strict=True)
        if run.outcome != "pass"
    ]
    head = (name, "index", "What is there?", answer, broken, ())
    return _view(head, runs, [(each, None) for each in series], folder)


def _of_all(
    found: Sequence[tuple[Series, Repeated | None]], lost: Sequence[OneRun]
) -> tuple[str, str, list[str], tuple[str, ...]]:
    outcomes = [_outcome(*each) for each in found]
    answer = f"{len(found)} drills: {counted(outcomes)}."
    if lost:
        answer += f" {len(lost)} runs could not be made or read."
    answer = ("Yes. " if not lost and worst(outcomes) == "pass" else "No. " if "fail" in outcomes else "") + answer
    broken = [
        f"{each.title}: {_why_of(each, together)}" for each, together in found if _outcome(each, together) != "pass"
    ]
    return "Did all pass?", answer, [*broken, *(f"{run.title}: {_why(run)}" for run in lost)], ()


def _outcome(series: Series, together: Repeated | None) -> str:
    return series.worst if together is None else together.outcome.value


def _why_of(series: Series, together: Repeated | None) -> str:
    if together is not None and (said := why(together.verdict)):
        return said
    return next((_why(run) for run in series.last if run.outcome != Outcome.PASS.value), "")


def _why(run: OneRun) -> str:
    if run.verdict is None:
        return run.problem or "it came to no verdict"
    return why(run.verdict)


def _view(
    head: tuple[str, str, str, str, Sequence[str], Sequence[str]],
    runs: Sequence[OneRun],
    found: Sequence[tuple[Series, Repeated | None]],
    folder: Path,
    overview: Sequence[Listing] = (),
) -> ManyView:
    title, outcome, question, answer, broken, notes = head
    listing, common = without_constant(_listing(runs[:_MOST_ROWS], [each for each, _ in found]))
    more = [f"{len(broken) - _MOST_TOLD} more are no pass."] if len(broken) > _MOST_TOLD else []
    shown = found[:_MOST_SECTIONS]
    return ManyView(
        title=title,
        outcome=outcome,
        question=question,
        answer=answer,
        broken=[*broken[:_MOST_TOLD], *more],
        notes=notes,
        overview=overview,
        runs_title="The runs",
        filters=tuple(_filters(runs, [each for each, _ in found])),
        runs=listing,
        runs_notes=tuple(_notes(runs, folder)),
        common=common,
        sections=[
            section_of(*each, opened=len(found) <= _OPEN_SECTIONS or _outcome(*each) != "pass") for each in shown
        ],
        left_out=f"{len(found) - len(shown)} more drills and settings are left out." if len(found) > len(shown) else "",
    )


def _overview(found: Sequence[tuple[Series, Repeated | None]]) -> tuple[Listing, ...]:
    rows: list[tuple[Cell, ...]] = [
        (
            series.title,
            Mark(_outcome(series, together)),
            series.counts,
            "unstable" if together is not None and together.unstable else "-",
            _why_of(series, together) or ("" if together is None else together.proof) or "-",
        )
        for series, together in found
    ]
    return (Listing("Drills", ("drill", "outcome", "runs", "", "why, or what it proves"), rows),)


def _listing(runs: Sequence[OneRun], series: Sequence[Series]) -> Listing:
    number = {run.path: at for at, each in enumerate(series) for run in each.runs}
    classes = [f"{run.outcome.replace(' ', '-')} d{number.get(run.path, 'x')}" for run in runs]
    return Listing("", _COLUMNS, [_row(run) for run in runs], classes)


def _row(run: OneRun) -> tuple[Cell, ...]:
    made = run.manifest
    name = f"{run.title}, an earlier try" if run.is_earlier_try else run.title
    said = _says(run.verdict) if run.verdict else run.problem or "it came to no verdict"
    if made is None:
        return (Link(name, run.href), Mark(run.outcome), said, *["-"] * (len(_COLUMNS) - 3))
    later = f"{made.phase}: faults {made.phase_ms:.0f} ms later" if made.phase > 1 else str(made.phase)
    seeds = ", ".join(f"{key} {value}" for key, value in made.seeds.items())
    facts = (later, seeds or "-", made.fabric, made.engine, version_of(made) or "-", run.date or "-")
    return (Link(name, run.href), Mark(run.outcome), said, *facts, f"{made.duration_s:.1f} s")


def _says(verdict: Verdict) -> str:
    """What failed, or why it says nothing; of a pass its first figures."""
    if verdict.outcome is Outcome.INCONCLUSIVE:
        return why(verdict)
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
    return "; ".join(broken[:_MOST_FIGURES]) + (more if verdict.outcome is Outcome.FAIL else "")


def _filters(runs: Sequence[OneRun], series: Sequence[Series]) -> Iterator[Filter]:
    """By outcome and by drill, where there are several."""
    outcomes = Counter(run.outcome for run in runs)
    if len(outcomes) > 1:
        choices = [Choice(each.replace(" ", "-"), f"{each} ({count})") for each, count in outcomes.items()]
        yield Filter("outcome", (Choice("", f"all ({len(runs)})"), *choices))
    if len(series) > 1:
        choices = [
            Choice(f"d{at}", f"{each.title} ({len(each.runs)})") for at, each in enumerate(series[:_MOST_SECTIONS])
        ]
        yield Filter("drill", (Choice("", "all"), *choices))


def _notes(runs: Sequence[OneRun], folder: Path) -> Iterator[str]:
    if len(runs) > _MOST_ROWS:
        yield f"{len(runs) - _MOST_ROWS} more runs are left out; hpn results list --runs {folder} has them."
    lacking = sum(not run.has_page for run in runs)
    if lacking:
        way_out = f"hpn report {folder} --each writes them"
        yield f"{lacking} of these runs have no page of their own and lead to their folders: {way_out}."
