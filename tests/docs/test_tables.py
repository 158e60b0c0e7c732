"""Tables of runs: docs/results.md names each, the reference has every column of each, and no other."""

from __future__ import annotations

import re

import pytest

from docs.site.reference import REFERENCE
from hpn.results.tables.registry import TABLES
from hpn.results.tables.table import Table
from tests.docs.pages import ROOT

REFERENCE_PAGE = REFERENCE["tables"]()


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_the_reference_has_the_columns_of_a_table(table: Table) -> None:
    part = REFERENCE_PAGE.split(f"\n## {table.name}\n", 1)[1].split("\n## ", 1)[0]
    rows = [line.split(" | ") for line in part.splitlines() if line.startswith("| `")]
    assert [row[0].strip("| `") for row in rows] == [column.name for column in table.columns]
    assert [row[2].strip() for row in rows] == [column.unit for column in table.columns]
    assert all(row[-1].strip(" |") for row in rows)


def test_the_page_names_every_table_and_no_other() -> None:
    section = (ROOT / "docs" / "results.md").read_text().split("\n## Tables of runs\n")[1].split("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.M) == list(TABLES)
    assert re.findall(r"^## (\w+)$", REFERENCE_PAGE, re.M) == list(TABLES)
