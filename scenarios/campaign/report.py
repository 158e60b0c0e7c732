"""Report of a campaign for the terminal, and its exit code. PURE."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

from rich.table import Table

from hpn.failover.analysis.phrases import many
from hpn.results.text.comparison import Sheet
from hpn.results.text.tables import table
from hpn.scenarios.campaign.journal import Done, Entry, Shrunk
from hpn.scenarios.campaign.plan import LONG_NS, Plan
from hpn.scenarios.campaign.result import Outcome, Result
from hpn.testbed.errors import HpnError, NoisyError

_MANY = 0.1  # maximum share of inconclusive sequences for a valid campaign
_PAUSE_S = 120.0  # a longer pause between two results is an interruption


def exit_code(done: Done) -> int:
    """Return 1 if a violation was reproduced, 4 if one was not or too much was inconclusive, otherwise 0."""
    if any(found.file for found in done.shrunk):
        return HpnError.exit_code
    unsure = done.count(Outcome.INCONCLUSIVE) > _MANY * max(len(done.results), 1)
    return NoisyError.exit_code if unsure or done.unconfirmed or done.waiting else 0


def line(entry: Entry) -> str:
    """Return one entry as one line."""
    if isinstance(entry, Shrunk):
        return shrunk_line(entry)
    why = [f"{each.invariant}: {each.text}" for each in entry.violations] or list(entry.doubts)
    told = f" ({'; '.join(why)})" if why else ""
    return f"{entry.sequence.index}: {entry.outcome}: {entry.sequence.words}{told}"


def shrunk_line(entry: Shrunk) -> str:
    """Return the result of shrinking a violation as one line."""
    if entry.like is not None:
        return f"{entry.index}: as {entry.like}, not shrunk"
    shown = f"shown again in {entry.failed} of {many(entry.runs, 'run')}"
    return f"{entry.index}: {shown}: {entry.smallest.words}{f': {entry.file}' if entry.file else ''}"


def tables(plan: Plan, done: Done) -> list[Table]:
    """Return the output of ``hpn campaign show``."""
    return [table(*sheet) for sheet in sheets(plan, done)]


def sheets(plan: Plan, done: Done) -> list[Sheet]:
    """Return the figures of the campaign, the figures by fault, and the violations, if any."""
    found = [_overview(plan, done), _by_fault(done)]
    return [*found, _violations(done)] if done.shrunk or done.waiting else found


def rate_per_minute(results: Sequence[Result]) -> float:
    """Return the sequences per minute while the campaign ran; pauses between two sessions are left out."""
    ends = sorted(result.ended_at for result in results)
    gaps = [after - before for before, after in pairwise(ends) if after - before < _PAUSE_S]
    return 60 * len(gaps) / sum(gaps) if sum(gaps) > 0 else 0.0


def overview(plan: Plan, done: Done) -> dict[str, str | int | float | list[dict[str, str | int]]]:
    """Return the same as data: figures by name, and the result of each violation."""
    figures: dict[str, str | int | float | list[dict[str, str | int]]] = dict(_rows(plan, done))
    figures["violations"] = [
        {"sequence": int(index), "invariants": what, "became": became} for index, what, became in _violation_rows(done)
    ]
    return figures


def _overview(plan: Plan, done: Done) -> Sheet:
    return Sheet("campaign", ("", ">"), _as_text(_rows(plan, done)))


def _rows(plan: Plan, done: Done) -> list[tuple[str, str | int | float]]:
    return [
        ("topology", plan.topology.name),
        ("seed", plan.seed),
        ("engine", plan.engine),
        ("sequences", len(done.results)),
        (f"faults of {LONG_NS[0] // 10**9} s and more", _long(done)),
        *((outcome.value, done.count(outcome)) for outcome in Outcome),
        ("violations shown again", sum(bool(found.file) for found in done.shrunk)),
        ("like one of these", sum(found.like is not None for found in done.shrunk)),
        ("not shown again", len(done.unconfirmed)),
        ("not looked into yet", len(done.waiting)),
        ("sequences a minute", round(rate_per_minute(done.results), 1)),
    ]


def _long(done: Done) -> int:
    steps = [step for result in done.results for step in result.sequence.steps]
    return sum(step.for_ns is not None and step.for_ns >= LONG_NS[0] for step in steps)


def _by_fault(done: Done) -> Sheet:
    drawn: Counter[str] = Counter()
    by_outcome: dict[Outcome, Counter[str]] = {outcome: Counter() for outcome in Outcome}
    for result in done.results:
        drawn.update(step.kind for step in result.sequence.steps)
        by_outcome[result.outcome].update({step.kind for step in result.sequence.steps})
    columns = ("fault", ">drawn", *(f">in {outcome} sequences" for outcome in Outcome))
    rows = ((kind, count, *(by_outcome[o][kind] for o in Outcome)) for kind, count in drawn.most_common())
    return Sheet("by fault", columns, _as_text(rows))


def _violations(done: Done) -> Sheet:
    rows = _as_text(_violation_rows(done))
    return Sheet("violations", (">sequence", "invariant", "what became of it"), rows)


def _as_text(rows: Iterable[Sequence[object]]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(str(cell) for cell in row) for row in rows)


def _violation_rows(done: Done) -> list[tuple[int, str, str]]:
    rows = [(found.index, ", ".join(found.invariants), shrunk_line(found).partition(": ")[2]) for found in done.shrunk]
    rows += [(r.sequence.index, ", ".join(sorted(r.broken)), "not looked into yet") for r in done.waiting]
    return rows
