"""Whatever a table holds, and however narrow the terminal is: its rows can be told from each other in every part."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpn.results.text.table_parts import Column, parts
from hpn.results.text.tables import rows_table, table
from tests.results.shown import as_text

_WORD = st.text("abcdefgh0123456789.>#/-\u4e2d", min_size=1, max_size=60)
_VALUE = st.text("0123456789", min_size=1, max_size=9)
_SENTENCE = st.lists(st.text("abcdefgh", min_size=1, max_size=9), max_size=20).map(" ".join)


def _head_of(text: str) -> list[tuple[str, list[str]]]:
    """Of each part its head line, and the lines below it."""
    blocks = [block.splitlines() for block in text.strip("\n").split("\n\n")]
    return [(block[0], block[1:]) for block in blocks]


@settings(max_examples=60, deadline=None)
@given(st.lists(_WORD, min_size=1, max_size=8, unique=True), st.integers(1, 12), st.integers(40, 130), st.data())
def test_distinct_names_stay_distinct_in_every_part(
    names: list[str], many: int, width: int, data: st.DataObject
) -> None:
    rows = [(name, *(data.draw(_VALUE) for _ in range(many))) for name in names]
    shown = as_text(table("", ("name", *(f">v{at}" for at in range(many))), rows), width)
    for head, lines in _head_of(shown):
        assert head.split()[0] == "name"
        found: list[str] = []
        for line in lines:
            name, _, values = line.partition("  ")
            if values:
                found.append(name)
            else:  # the rest of a long name
                found[-1] += name
        assert len(found) == len(set(found)) == len(names), shown


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(_WORD, _SENTENCE, _WORD, _VALUE, _SENTENCE), min_size=1, max_size=6),
    st.integers(1, 3),
    st.integers(40, 130),
)
def test_no_line_is_wider_than_the_terminal_and_nothing_is_lost(
    rows: list[tuple[str, ...]], keys: int, width: int
) -> None:
    made = table("t", ("name", "text", "id", ">n", "more"), rows, keys)
    narrow, piped = as_text(made, width), as_text(made, 100_000)
    assert all(Column("", (line,)).natural <= width for line in narrow.splitlines())
    kept = "".join(narrow.split())
    for row in rows:
        for word in " ".join(row).split():
            assert word in kept.replace("...", "") or _is_split(word, narrow)
            assert word in piped.split()
    assert len(piped.splitlines()) == 2 + len(rows), "in a pipe a row is a line"


def _is_split(word: str, text: str) -> bool:
    """Whether a long word was folded: its pieces stand below each other."""
    pieces = text.split()
    return any(word.startswith(piece) for piece in pieces) and any(word.endswith(piece) for piece in pieces)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(_WORD, _SENTENCE, _WORD, _SENTENCE), min_size=2, max_size=6),
    st.integers(1, 3),
    st.integers(40, 130),
)
def test_in_each_part_rows_have_names_or_numbers_of_their_own(
    rows: list[tuple[str, ...]], keys: int, width: int
) -> None:
    columns = [Column(head, tuple(row[at] for row in rows)) for at, head in enumerate(("a", "b", "c", "d"))]
    found = parts(columns, keys, width)
    if len(found) == 1:
        return
    named = 1 if len({tuple(" ".join(cell.split()) for cell in row[:keys]) for row in rows}) == len(rows) else 0
    for part in found:
        leading = part[: keys + 1 - named]
        assert leading[0].column.head == ("a" if named else "#")
        cells = zip(*(each.column.cells for each in leading), strict=True)
        told = [tuple(" ".join(cell.split()) for cell in row) for row in cells]
        assert len(set(told)) == len(rows)
    told_heads = [each.column.head for part in found for each in part]
    assert set(told_heads) >= {"a", "b", "c", "d"}, "each column is in some part"
    assert found[0][-1].column.head in "abcd"


def test_columns_give_way_from_the_right_and_long_words_of_names_in_the_middle() -> None:
    flows = [f"p0.s0.h{at}.r0>p0.s1.h{at}.r0#0" for at in (1, 2)]
    rows = [(flow, "x" * 12, "y" * 12, "z" * 12) for flow in flows]
    shown = as_text(table("", ("flow", "first", "second", "third"), rows), 50)
    (head, first), (again, second), *rest = _head_of(shown)
    assert not rest
    assert (head.split(), again.split()) == (["flow", "first"], ["flow", "second", "third"])
    assert [line.split()[0] for line in first] == flows, "whole where they come first"
    assert [line.split()[0] for line in second] == ["p0.s0.h...1.r0#0", "p0.s0.h...2.r0#0"]


def test_names_that_differ_in_their_middle_are_not_shortened() -> None:
    flows = [f"p0.s0.h0.r0>p0.s{at}.h1.r0#0" for at in (1, 2)]
    rows = [(flow, "x" * 12, "y" * 12, "z" * 12) for flow in flows]
    for _, lines in _head_of(as_text(table("", ("flow", "first", "second", "third"), rows), 50)):
        assert [line.split()[0] for line in lines] == flows


def test_rows_of_one_name_get_numbers_where_the_table_is_in_parts() -> None:
    rows = [("same", "a" * 30, "b" * 30), ("same", "c" * 30, "d" * 30)]
    wide, narrow = (as_text(table("", ("name", "x", "y"), rows), width) for width in (80, 50))
    assert wide.splitlines()[0].split() == ["name", "x", "y"]
    assert [head.split() for head, _ in _head_of(narrow)] == [["#", "name", "x"], ["#", "name", "y"]]
    assert [line.split()[0] for _, lines in _head_of(narrow) for line in lines] == ["1", "2", "1", "2"]


def test_rows_of_json_are_named_by_as_many_columns_as_tell_them_apart() -> None:
    rows = [{"node": "h0", "port": port, "why": "a" * 40, "system": "b" * 40} for port in ("p0", "p1")]
    shown = as_text(rows_table("", rows), 60)
    assert [head.split()[:2] for head, _ in _head_of(shown)] == [["node", "port"]] * 2


@pytest.mark.parametrize("empty", ["no lab is up; hpn up starts one", ""])
def test_a_table_without_rows_is_a_sentence(empty: str) -> None:
    assert as_text(table("labs", ("name", "state"), [], empty=empty), 80) == f"{empty or 'labs: none'}\n"
    assert as_text(rows_table("labs", [], empty), 80) == f"{empty or 'labs: none'}\n"


def test_a_column_that_says_nothing_is_left_out() -> None:
    shown = as_text(table("t", ("name", ">n", "evidence"), [("a", 1, ""), ("b", 2, "")]), 80)
    assert shown == "t\nname  n\na     1\nb     2\n"
