"""docs/results.md explains every column of every table that hpn results export writes, and no other."""

from __future__ import annotations

import pytest

from hpn.results.tables.registry import TABLES
from hpn.results.tables.table import Table
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "results.md").read_text()


def _lines(table: Table) -> str:
    """What the page has to say of a table."""
    rows = (f"| `{column.name}` | {column.kind} | {column.unit} | {column.meaning} |" for column in table.columns)
    head = f"### {table.name}\n\nThe table has {table.meaning}.\n\n| column | | unit | |\n|---|---|---|---|\n"
    return head + "\n".join(rows) + "\n"


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_the_page_has_the_columns_of_a_table(table: Table) -> None:
    assert _lines(table) in PAGE, f"docs/results.md lacks, word for word:\n{_lines(table)}"


def test_the_page_has_no_other_table() -> None:
    section = PAGE.split("\n## Tables of runs\n")[1].split("\n## ")[0]
    assert [line[4:] for line in section.splitlines() if line.startswith("### ")] == list(TABLES)
