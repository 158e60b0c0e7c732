"""``hpn reproduce``: every claim of the paper a testbed can speak to, held against runs made now.

The claims are ``scenarios.reproduce_claims``; here drills are run, paths computed, and the answers written down.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.table import Table

from results.folder import RunFolder
from results.tables import table
from results.verdict import Outcome
from scenarios import engines, library, session
from scenarios.load import load_drill
from scenarios.order import Order
from scenarios.reproduce_claims import CLAIMS, Answer, Claim
from scenarios.reproduce_judges import Evidence
from scenarios.reproduce_paths import PathFigures, measure
from testbed.errors import InputError, MachineError
from testbed.fabric.inventory import inventory
from testbed.fabric.load import load_fabric
from testbed.yamlcheck import did_you_mean

FOLDER = Path(__file__).parent / "reproduction"
"""Drills that only speak to a claim; the library's are used where it has one."""

JSON, MARKDOWN = "reproduction.json", "reproduction.md"
_COLUMNS = ("claim", "paper", "ours", "answer", "by", "why ours differs")
VIRTUAL = "uml-virtual-time"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. ``agrees`` with the paper is an answer about the statement, not about every digit."""

    key: str
    claim: str
    paper: str
    ours: str
    answer: Answer
    by: str
    why: str


@dataclass(frozen=True, slots=True)
class Ran:
    """What became of a drill: its run folder, or why there is none or it cannot be used."""

    run: RunFolder | None
    problem: str = ""


def choose(keys: Sequence[str]) -> tuple[Claim, ...]:
    """The claims of these keys, all of them without any. InputError for an unknown one."""
    known = {claim.key: claim for claim in CLAIMS}
    for key in keys:
        if key not in known:
            raise InputError(f"no claim {key!r}; {did_you_mean(key, list(known), 'claims are')}")
    return tuple(known[key] for key in keys) or CLAIMS


def default_engine() -> str:
    """Virtual time where its kernel is, else the host."""
    try:
        engines.ENGINES[VIRTUAL]().check()
    except MachineError:
        return engines.HOST
    return VIRTUAL


def drill_file(name: str) -> Path:
    """The file of a drill that a claim names."""
    own = FOLDER / f"{name}.yaml"
    return own if own.is_file() else library.find(name)


def reproduce(
    claims: Sequence[Claim], engine: str, out: Path, command: tuple[str, ...], on_line: Callable[[str], None]
) -> tuple[Row, ...]:
    """Run what the claims need on ``engine``, one drill after the other into OUT/DRILL, and judge every claim.

    A drill that this machine cannot run leaves its claims unanswered. JSON and Markdown are written to ``out``.
    """
    names = dict.fromkeys(name for claim in claims for name in claim.drills)
    ran = {name: _run(name, engine, out / name, command, on_line) for name in names}
    paths: Mapping[str, PathFigures] = {}
    if any(claim.paths for claim in claims):
        on_line("paths: two labs on the host")
        try:
            paths = measure()
        except MachineError as error:
            on_line(f"paths: {error}")
    rows = tuple(judge(claims, ran, paths))
    out.mkdir(parents=True, exist_ok=True)
    (out / JSON).write_text(json.dumps({"engine": engine, "claims": [asdict(row) for row in rows]}, indent=2) + "\n")
    (out / MARKDOWN).write_text(markdown(rows, engine))
    return rows


def _run(name: str, engine: str, out: Path, command: tuple[str, ...], on_line: Callable[[str], None]) -> Ran:
    on_line(f"{name}: on {engine}")
    order = Order(load_drill(drill_file(name)), out, command)
    try:
        if engine == engines.HOST:
            run = session.run(order, lambda _news: None)
        else:
            run = engines.run_in_guest(order, engines.ENGINES[engine](), lambda _line: None)
    except MachineError as error:
        return Ran(None, str(error).splitlines()[0])
    verdict = run.verdict()
    on_line(f"{name}: {verdict.outcome}")
    noisy = verdict.outcome is Outcome.INCONCLUSIVE
    return Ran(run, f"inconclusive: {(verdict.doubts or ('a limit was too near',))[0]}" if noisy else "")


def judge(claims: Iterable[Claim], ran: Mapping[str, Ran], paths: Mapping[str, PathFigures]) -> Iterator[Row]:
    """A row for each claim. Evidence that is missing leaves a claim without an answer, never with one."""
    runs = {name: each.run for name, each in ran.items() if each.run is not None and not each.problem}
    evidence = Evidence(
        {name: run.metrics() for name, run in runs.items()},
        {name: run.events() for name, run in runs.items()},
        paths,
        inventory(load_fabric("pod")),
    )
    for claim in claims:
        problems = [f"{name}: {ran[name].problem}" for name in claim.drills if ran[name].problem]
        yield _row(claim, evidence, problems)


def _row(claim: Claim, evidence: Evidence, problems: Sequence[str]) -> Row:
    by = ", ".join(claim.drills) or claim.by
    if claim.judge is None:
        ours, answer = "-", Answer.NOT_REPRODUCED
    elif problems:
        ours, answer = problems[0], Answer.NOT_RUN
    else:
        finding = claim.judge(evidence)
        agrees = Answer.AGREES if claim.drills else Answer.COMPUTED
        ours, answer = finding.ours, agrees if finding.agrees else Answer.DIFFERS
    return Row(claim.key, claim.claim, claim.paper, ours, answer, by or "nothing yet", claim.why)


def _cells(row: Row) -> tuple[str, ...]:
    return row.claim, row.paper, row.ours, row.answer.value, row.by, row.why


def claims_table(rows: Iterable[Row]) -> Table:
    """For the terminal."""
    return table("HPN, SIGCOMM 2024: what the paper says and what was found here", _COLUMNS, map(_cells, rows))


def markdown(rows: Iterable[Row], engine: str) -> str:
    """The same for a document."""
    lines = [
        "# Claims of the HPN paper, reproduced",
        "",
        f"Written by `hpn reproduce --engine {engine}`. `agrees` is about the statement; figures may differ.",
        "",
        f"| {' | '.join(_COLUMNS)} |",
        f"|{'---|' * len(_COLUMNS)}",
    ]
    lines += [f"| {' | '.join(cell.replace('|', '/') for cell in _cells(row))} |" for row in rows]
    return "\n".join(lines) + "\n"


def exit_code(rows: Iterable[Row]) -> int:
    """1 when a claim differs, 4 when one could not be told, else 0; what nothing speaks to does not count."""
    answers = {row.answer for row in rows}
    return 1 if Answer.DIFFERS in answers else 4 if Answer.NOT_RUN in answers else 0
