"""Markdown for the job pages of CI systems: outcomes of drills, and reasons for those that did not pass. Pure.

Changes when a job page should say something else. Text from a drill, a console or a machine is escaped: it stays in its
cell and is not markup.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from hpn.results.export.junit import Judged, Unmade
from hpn.results.judge.verdict import Outcome, Verdict, worst_exit_code
from hpn.results.text.checks import describe
from hpn.results.text.width import shortened
from hpn.results.text.xml import possible

if TYPE_CHECKING:
    from hpn.results.judge.repeats.repeated import Repeated

_MARKUP = re.compile(r"([\\`*_\[\]|~])")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_MOST = 400  # characters of a cell
_MOST_DETAILS = 50  # runs described one by one: GitHub limits a summary to 1 MiB
_WORST_FIRST = (Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.PASS)
_WORDS = {0: "pass", 1: "fail", 4: "inconclusive"}


def cell(text: str) -> str:
    """Return a text for a table cell: one line, without markup."""
    plain = _MARKUP.sub(r"\\\1", possible(shortened(text, _MOST)))
    return "".join(_ENTITIES.get(character, character) for character in plain)


def code(text: str) -> str:
    """Return a text as code, which is not interpreted."""
    plain = possible(shortened(text, _MOST))
    fence = "`" * (1 + max(map(len, re.findall(r"`+", plain)), default=0))
    return f"{fence} {plain} {fence}" if "`" in plain else f"`{plain}`"


def rows(columns: Sequence[str], found: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table; cells are escaped."""
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return lines + ["| " + " | ".join(map(cell, row)) + " |" for row in found]


def drills_summary(runs: Sequence[Judged], repeated: Sequence[Repeated] = (), unmade: Sequence[Unmade] = ()) -> str:
    """Return the outcomes of runs of drills, and of their repeats together."""
    lines = [f"# hpn drill run: {_headline(runs, repeated, unmade)}", ""]
    if repeated:
        together = ((each.name, each.outcome.value, why(each.verdict) or each.proof) for each in repeated)
        lines += [*rows(("drill", "answer", "why"), together), ""]
    titled = [(_title(run), run) for run in runs]
    told = [(title, run.verdict.outcome.value, why(run.verdict)) for title, run in titled]
    told += [(f"{run.drill} #{run.repeat}" if run.repeat else run.drill, run.answer, run.said) for run in unmade]
    return "\n".join([*lines, *rows(("run", "answer", "why"), told), *details(titled)]) + "\n"


def _headline(runs: Sequence[Judged], repeated: Sequence[Repeated], unmade: Sequence[Unmade]) -> str:
    """Return 'fail, 3 runs': the outcome that the command's exit code gives."""
    answer = _WORDS[worst_exit_code([each.verdict for each in repeated] or [run.verdict for run in runs])]
    if unmade and answer != "fail":
        errors = [run.answer for run in unmade if not run.noisy]
        answer = "could not run everything" if errors else "inconclusive"
    count = len(runs) + len(unmade)
    return f"{answer}, {count} run{'' if count == 1 else 's'}" if count else "no runs"


def _title(run: Judged) -> str:
    manifest = run.manifest
    return f"{manifest.drill} on {manifest.fabric}" + (f" #{manifest.repeat}" if manifest.repeat else "")


def details(titled: Iterable[tuple[str, Judged]]) -> list[str]:
    """Return, for each run that did not pass: expectations, measurements, causes, and the command to repeat it."""
    found = [(title, run) for title, run in titled if run.verdict.outcome is not Outcome.PASS]
    lines = []
    for title, run in found[:_MOST_DETAILS]:
        verdict, command = run.verdict, run.manifest.command
        lines += ["", f"## {cell(title)}: {verdict.outcome.value}", ""]
        lines += [f"{cell(verdict.cost)}", ""] if verdict.cost else []
        lines += [f"* cause: {cell(cause)}" for cause in verdict.causes]
        lines += [f"* cannot be trusted: {cell(reason)}" for reason in verdict.reasons]
        lines += [f"* note: {cell(note)}" for note in verdict.notes]
        lines += [""] if verdict.reasons or verdict.causes or verdict.notes else []
        worst_first = sorted(verdict.checks, key=lambda check: _WORST_FIRST.index(check.outcome))
        told = ((check.outcome.value, check.text, describe(check)) for check in worst_first)
        lines += [*rows(("", "expectation", "measured"), told), ""] if verdict.checks else []
        again = shlex.join(command if command[:1] == ("hpn",) else ("hpn", *command))
        lines += [f"Made by {code(again)} with the {cell(run.manifest.engine)} engine."]
        lines += [f"Files: {', '.join(map(code, run.files))}."] if run.files else []
    more = len(found) - _MOST_DETAILS
    return [*lines, "", f"{more} more are no pass."] if more > 0 else lines


def why(verdict: Verdict) -> str:
    """Return why it is not a pass, in one line; '' for a pass."""
    if verdict.reasons:
        return verdict.reasons[0]
    worst = next((check for check in verdict.checks if check.outcome is verdict.outcome), None)
    if worst is None or verdict.outcome is Outcome.PASS:
        return ""
    because = f"{verdict.causes[0]}; " if verdict.causes else ""
    return f"{because}{worst.text}: {describe(worst)}"
