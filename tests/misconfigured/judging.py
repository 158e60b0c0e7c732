"""Where hpn names a mistake, asked as a user does: ``hpn plan``, then ``hpn audit`` of some elements.

Changes when a command tells of mistakes in another way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hpn.results.audit.model import ERROR, Answer, Row, load_answer
from hpn.results.audit.text import figure_text, why
from tests.misconfigured.edits import usual
from tests.misconfigured.planted import SILENT, Where
from tests.misconfigured.repository import TOPOLOGY, Repository
from tests.product.hpn import Hpn

PROMISES = "promises.yaml"
_PROMISES = """\
promises:
  - worst_outage: {{at_most: 500 ms, edge: failure}}
    of: [link, switch, session]
  - worst_outage: {{at_most: {silent}, edge: failure}}
    of: silent
  - state_restored: yes
"""
_PATIENCE_S = 3000


@dataclass(frozen=True)
class Found:
    """What hpn says of a repository: each line with its place, and the answer of the audit."""

    lines: tuple[tuple[Where, str], ...]
    answer: Answer | None

    def naming(self, element: str) -> tuple[Where, str]:
        """The first place and line that name an element; NOWHERE without any."""
        return next(((where, line) for where, line in self.lines if element in line), (Where.NOWHERE, ""))

    @property
    def cost(self) -> str:
        """What it costs, of the worst row and the shortest routes."""
        if self.answer is None:
            return ""
        rows = [row for row in self.answer.worst_first if row.outcome != "pass"]
        if any(row.outcome == ERROR for row in rows):
            return "does not start"
        outages = [f"{_outage(row)} at {row.words}" for row in rows[:1]]
        return "; ".join([line.rpartition(": ")[2] for line in self.answer.short_routes[:1]] + outages)


def _outage(row: Row) -> str:
    return why(row) if row.failure is None else f"{figure_text(row.failure.outage)} ms"


def notes(hpn: Hpn) -> tuple[str, ...]:
    """The notes of ``hpn plan``."""
    said = hpn.run("plan", TOPOLOGY)
    return tuple(line for line in said.splitlines() if line.startswith("note: "))


def audited(hpn: Hpn, kinds: Sequence[str], elements: Sequence[str], silent: str, jobs: int = 2) -> Answer:
    """The answer of ``hpn audit`` of these elements."""
    (hpn.state / PROMISES).write_text(_PROMISES.format(silent=silent))
    asked = ("--kinds", ",".join(kinds), "--elements", ",".join(elements), "--promises", PROMISES)
    process = hpn.start("audit", TOPOLOGY, *asked, "--jobs", str(jobs), "--out", "out")
    try:
        out, err = process.communicate(timeout=_PATIENCE_S)
    finally:
        process.kill()
        process.wait()
    assert process.returncode in {0, 1, 3, 4}, f"exit {process.returncode}\n{out}\n{err}"
    return load_answer(hpn.state / "out" / "audit.json")


def found(
    folder: Path,
    repository: Repository,
    kinds: Sequence[str],
    elements: Sequence[str] = (),
    silent: str = SILENT,
) -> Found:
    """What hpn says of a repository, written below ``folder``. Without ``elements``: of the usual ones."""
    repository.write(folder)
    hpn = Hpn(folder)
    told = [(Where.PLAN, line) for line in notes(hpn)]
    answer = audited(hpn, kinds, elements or usual(repository, kinds), silent)
    return Found((*told, *_told(answer)), answer)


def _told(answer: Answer) -> Iterator[tuple[Where, str]]:
    yield from ((Where.START, line) for row in answer.rows if row.outcome == ERROR for line in row.reasons)
    yield from ((Where.ROUTES, line) for line in answer.short_routes)
    for row in answer.worst_first:
        if row.outcome not in {"pass", ERROR}:
            yield Where.AUDIT, f"{row.words}: {row.outcome}: {why(row)}"
