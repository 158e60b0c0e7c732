"""On a narrow terminal a table wraps sentences and becomes several tables; it never splits a number, name or MAC."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpn.results.text.tables import rows_table, table
from hpn.results.text.terminal import summary
from tests.results.sample import MANIFEST, metrics, verdict
from tests.results.shown import as_text

_MAC = "02:01:00:00:00:01"
_WORDS = st.text("abc:0123456789.", min_size=1, max_size=12)
_CELLS = st.lists(_WORDS, max_size=6).map(" ".join)


@pytest.mark.parametrize("width", [40, 80, 100, 160])
def test_no_mac_or_number_is_split(width: int) -> None:
    row = {"port": "p0.s0.h0:r0p0", "actor_system": _MAC, "partner_system": _MAC, "rate": 200000000, "why": "a b " * 30}
    shown = as_text(rows_table("lacp", [row]), width)
    assert shown.split().count(_MAC) == 2
    assert "200000000" in shown.split()
    assert all(len(line) <= width for line in shown.splitlines())


@given(st.lists(st.lists(_CELLS, min_size=5, max_size=5), min_size=1, max_size=4), st.integers(60, 200))
def test_every_word_of_every_cell_stays_whole(rows: list[list[str]], width: int) -> None:
    shown = as_text(table("t", ("key", ">n", "text", ">m", "more"), rows), width)
    found = shown.split()
    for row in rows:
        for word in " ".join(row).split():
            assert word in found
    assert all(len(line) <= width for line in shown.splitlines())


def test_the_summary_of_a_run_keeps_its_figures_at_80_columns() -> None:
    found = metrics()
    wide, narrow = (as_text(summary(MANIFEST, found, verdict(found, "pass")), width) for width in (200, 80))
    assert set(wide.split()) == set(narrow.split()), "the same words, otherwise arranged"
    assert all(len(line) <= 80 for line in narrow.splitlines())
