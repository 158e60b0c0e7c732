"""Page of a campaign: whether an invariant broke, a line per sequence, and violations as their smallest sequence.

Changes when the page shows more of a campaign. A journal is untrusted input: its texts are escaped, its paths checked.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from hpn.failover.analysis.phrases import many
from hpn.results.page.axis import linear
from hpn.results.page.listing import Cell, Choice, Filter, Link, Listing, Mark, href, without_constant
from hpn.results.page.overview import MOST_ROWS, MOST_SECTIONS, Head, ManyView, Section, Steps, TimeBar, many_html
from hpn.scenarios.campaign.drillfile import entry
from hpn.scenarios.campaign.journal import PLAN, Done, Shrunk, load
from hpn.scenarios.campaign.plan import FaultSequence, FaultStep, Plan
from hpn.scenarios.campaign.report import exit_code, sheets, shrunk_line
from hpn.scenarios.campaign.result import Outcome, Result
from hpn.testbed.files.units import format_duration

_OUTCOMES = {0: "pass", 1: "fail", 4: "inconclusive"}
_COLUMNS = (
    "sequence",
    "outcome",
    "faults",
    "what broke, or was in doubt",
    "what became of it",
    ">tries",
    ">began",
    ">took",
)
_TICKS = 6
_S = 10**9


def is_campaign(folder: Path) -> bool:
    """Return True if the folder has a campaign."""
    return os.path.isfile(folder / PLAN)


def campaign_page(folder: Path, page: Path) -> str:
    """Return the page of the campaign in ``folder``, running or not, for the file ``page``. InputError as ``load``."""
    return many_html(campaign_view(folder, page))


def campaign_view(folder: Path, page: Path) -> ManyView:
    """Return the content of the page."""
    plan, done = load(folder)
    shrunk = {each.index: each for each in done.shrunk}
    results = sorted(done.results, key=lambda result: (result.outcome is Outcome.CLEAN, result.sequence.index))
    shown = sorted(results[:MOST_ROWS], key=lambda result: result.sequence.index)
    broken = [result for result in results if result.violations]
    kinds = sorted({step.kind for result in done.results for step in result.sequence.steps})
    named = {kind: f"k{at}" for at, kind in enumerate(kinds)}
    rows = [_row(result, shrunk.get(result.sequence.index)) for result in shown]
    listing = Listing("", _COLUMNS, rows, [_classes(result, named) for result in shown])
    narrowed, common = without_constant(listing)
    left_out = len(results) - len(shown)
    return ManyView(
        head=_head(plan, done, broken, shrunk),
        overview=[Listing(*sheet, stacks=False) for sheet in sheets(plan, done)[:2]],
        runs_title="The sequences",
        filters=tuple(_filters(done, named)),
        runs=narrowed,
        runs_notes=[f"{left_out} more clean sequences are left out."] if left_out else [],
        common=common,
        sections=[_section(each, shrunk.get(each.sequence.index), folder, page) for each in broken[:MOST_SECTIONS]],
        left_out=f"{len(broken) - MOST_SECTIONS} more violations are left out." if len(broken) > MOST_SECTIONS else "",
    )


def _head(plan: Plan, done: Done, broken: Sequence[Result], shrunk: Mapping[int, Shrunk]) -> Head:
    outcome, count = _OUTCOMES[exit_code(done)], len(done.results)
    if outcome == "pass":
        answer = f"Yes: no invariant was broken in {many(count, 'sequence')} of faults."
    elif outcome == "fail":
        shown = sum(bool(each.file) for each in done.shrunk)
        answer = f"No: {len(broken)} of {many(count, 'sequence')} broke an invariant."
        answer += f" Shown again and shrunk: {shown}."
    else:
        answer = f"Nothing can be said: {', '.join(_doubts(done))}, of {many(count, 'sequence')}."
    told = [f"Sequence {each.sequence.index}: {_invariants(each)}: {_became(each, shrunk)}" for each in broken]
    return Head(
        f"campaign on {plan.topology.name}, seed {plan.seed}", outcome, "Did every invariant hold?", answer, told
    )


def _doubts(done: Done) -> Iterator[str]:
    unsure = done.count(Outcome.INCONCLUSIVE)
    counts = (
        (unsure, "inconclusive"),
        (len(done.unconfirmed), "not shown again"),
        (len(done.waiting), "not looked into yet"),
    )
    return (f"{count} {what}" for count, what in counts if count)


def _row(result: Result, found: Shrunk | None) -> tuple[Cell, ...]:
    said = [f"{each.invariant}: {each.text}" for each in result.violations] or [*result.doubts]
    index = result.sequence.index
    return (
        Link(str(index), f"#s{index}" if result.violations else ""),
        Mark(str(result.outcome)),
        "; ".join(map(_words, result.sequence.steps)),
        "; ".join(said) or "-",
        _became(result, {index: found} if found else {}) if result.violations else "-",
        str(result.tries),
        _date(result.started_at),
        f"{result.ended_at - result.started_at:.1f} s",
    )


def _classes(result: Result, named: Mapping[str, str]) -> str:
    return " ".join([str(result.outcome), *sorted({named[step.kind] for step in result.sequence.steps})])


def _filters(done: Done, named: Mapping[str, str]) -> Iterator[Filter]:
    found = [outcome for outcome in Outcome if done.count(outcome)]
    if len(found) > 1:
        yield Filter("outcome", (Choice("", "all"), *(Choice(str(o), f"{o} ({done.count(o)})") for o in found)))
    if len(named) > 1:
        yield Filter("fault", (Choice("", "all"), *(Choice(name, kind) for kind, name in named.items())))


def _section(result: Result, found: Shrunk | None, folder: Path, page: Path) -> Section:
    """Return the section of a violation, with its smallest sequence, or the original one if it was not shrunk."""
    shrunk = found is not None and found.like is None
    sequence = found.smallest if found is not None and shrunk else result.sequence
    rows: list[tuple[Cell, ...]] = [(str(each.invariant), each.text) for each in result.violations]
    tables = [Listing("Invariants that did not hold", ("invariant", "evidence"), rows, stacks=False)]
    file = "" if found is None else found.file
    place = folder / file
    if file and os.path.realpath(place).startswith(os.path.join(os.path.realpath(folder), "")) and place.is_file():
        run = f"hpn drill run {place}"
        tables.append(
            Listing("The smallest sequence as a drill", ("file", "run it"), [(Link(file, href(place, page)), run)])
        )
    less = (
        f"the smallest sequence that shows it, {len(sequence.steps)} of {len(result.sequence.steps)} faults"
        if shrunk
        else "as drawn"
    )
    return Section(
        title=f"Sequence {result.sequence.index}: {_invariants(result)}",
        line=_became(result, {result.sequence.index: found} if found else {}),
        open=bool(found is None or found.like is None),
        steps=_steps(sequence),
        tables=tables,
        lines=[f"The faults are {less}."],
        id=f"s{result.sequence.index}",
    )


def _steps(sequence: FaultSequence) -> Steps:
    ends = [step.at_ns + (step.for_ns or 0) for step in sequence.steps]
    axis = linear(0.0, max(ends, default=0) / _S)
    bars = [
        TimeBar(f"{step.kind} of {step.target}", _lasts(step), axis.at(step.at_ns / _S), axis.at(end / _S))
        for step, end in zip(sequence.steps, ends, strict=True)
    ]
    return Steps(bars, axis.ticks(_TICKS))


def _words(step: FaultStep) -> str:
    return f"{step.kind} of {step.target} {_lasts(step)}"


def _lasts(step: FaultStep) -> str:
    """Return the time and parameters of a fault: 'at 606 ms for 1.2 s, share 63 %', as in a drill file."""
    told = {key: value for key, value in entry(1, step).items() if key not in {"id", "fault", "target", "at", "for"}}
    lasts = "" if step.for_ns is None else f" for {format_duration(step.for_ns)}"
    more = "".join(f", {key} {value}" for key, value in told.items())
    return f"at {format_duration(step.at_ns)}{lasts}{more}"


def _invariants(result: Result) -> str:
    return ", ".join(sorted(result.broken))


def _became(result: Result, shrunk: Mapping[int, Shrunk]) -> str:
    found = shrunk.get(result.sequence.index)
    return "not looked into yet" if found is None else shrunk_line(found).partition(": ")[2]


def _date(epoch_s: float) -> str:
    try:
        return datetime.fromtimestamp(epoch_s, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):  # not a valid date
        return "-"
