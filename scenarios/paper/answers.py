"""Answer to each claim of the paper, and the output of all: terminal, JSON, Markdown, exit code. PURE.

Changes when an answer is shown differently.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass

from rich.table import Table

from hpn.results.text.tables import table
from hpn.scenarios.paper.claim import ClaimAnswer
from hpn.scenarios.paper.measures import Points
from hpn.testbed.errors import InputError

_COLUMNS = ("claim", "paper", "ours", "answer", "without", "by", "why ours differs")
_PAGE_COLUMNS = ("claim", "paper", "here", "answer")
BEGIN, END = "<!-- hpn reproduce: begin -->\n", "<!-- hpn reproduce: end -->\n"
_WITHOUT_COLUMNS = ("claim", "network without", "by", "found", "answer")


@dataclass(frozen=True, slots=True)
class WithoutRow:
    """Result of a claim's judge on a network without the claimed feature: it must not agree."""

    what: str
    ours: str
    answer: ClaimAnswer
    by: str


@dataclass(frozen=True, slots=True)
class ClaimRow:
    """Row of the table. ``agrees`` refers to the statement, not to every digit.

    ``known``: True if it differs and the entry explains why.
    """

    key: str
    claim: str
    paper: str
    ours: str
    answer: ClaimAnswer
    by: str
    why: str
    without: tuple[WithoutRow, ...] = ()
    known: bool = False
    points: Points = ()  # figures behind the answer, for pictures
    details: str = ""  # of ``ours``

    @property
    def found(self) -> str:
        """Our result with its details."""
        return "; ".join(each for each in (self.ours, self.details) if each)


def _cells(row: ClaimRow) -> tuple[str, ...]:
    without = "; ".join(f"{each.what}: {each.answer.value}" for each in row.without) or "-"
    return row.claim, row.paper, row.found, row.answer.value, without, row.by, row.why


def claims_table(rows: Iterable[ClaimRow]) -> Table:
    """Return the table for the terminal."""
    return table("HPN, SIGCOMM 2024: what the paper says and what was found here", _COLUMNS, map(_cells, rows))


def document(rows: Iterable[ClaimRow], engine: str, draws: int) -> dict[str, object]:
    """Return the claims as a JSON document."""
    return {"engine": engine, "draws": draws, "claims": [asdict(row) for row in rows]}


def markdown(rows: Sequence[ClaimRow], engine: str) -> str:
    """Return the claims as Markdown."""
    lines = [
        "# Claims of the HPN paper, reproduced",
        "",
        f"Written by `hpn reproduce --engine {engine}`. `agrees` is about the statement; figures may differ.",
        "Where a network without what a claim is about agrees as well, the claim is `not shown`.",
        "",
        *_table(_COLUMNS, map(_cells, rows)),
        "",
        "## Networks without the feature",
        "",
        *_table(
            _WITHOUT_COLUMNS,
            ((row.key, each.what, each.by, each.ours, each.answer.value) for row in rows for each in row.without),
        ),
    ]
    return "\n".join(lines) + "\n"


def counted(rows: Sequence[ClaimRow]) -> str:
    """Return the number of claims by answer: '27 claims: 17 agrees, 6 differs'."""
    counts = Counter(row.answer.value for row in rows)
    return f"{len(rows)} claims: {', '.join(f'{count} {answer}' for answer, count in counts.most_common())}"


def within(page: str, rows: Sequence[ClaimRow], made: str) -> str:
    """Return a Markdown page with the claims between its two marks. InputError when it has none.

    ``made``: when, where and with what the claims were held against runs.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise InputError(f"no place for the claims; write the lines {BEGIN.strip()} and {END.strip()} where they go")
    table_lines = _table(_PAGE_COLUMNS, ((f"`{row.key}`", row.paper, row.ours, row.answer.value) for row in rows))
    return f"{before}{begin}{made}\n\n{counted(rows)}.\n\n" + "\n".join(table_lines) + f"\n{end}{after}"


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    yield from (f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |" for cells in rows)


def exit_code(rows: Iterable[ClaimRow]) -> int:
    """Return 1 when a claim has no evidence, is not shown, or differs without explanation; 4 when one is not told.

    Return 0 otherwise: every claim got an answer. Claims that cannot be reproduced do not count.
    """
    answers = {row.answer for row in rows if not row.known}
    if answers & {ClaimAnswer.DIFFERS, ClaimAnswer.NOT_SHOWN, ClaimAnswer.NO_EVIDENCE}:
        return 1
    return 4 if answers & {ClaimAnswer.NOT_RUN, ClaimAnswer.NOT_TOLD} else 0
