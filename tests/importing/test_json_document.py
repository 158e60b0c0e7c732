"""Lines of JSON are those that a reader counts, in any layout."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpn.testbed.errors import InputError
from hpn.testbed.files.document import Where
from hpn.testbed.importing.importer import SourceText
from hpn.testbed.importing.json_document import document_of

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=20,
)


def _lines_by_indent(value: object, where: Where, at: int, found: dict[Where, int]) -> int:
    """The lines of ``json.dumps(value, indent=1)``: each key and item begins one. Returns the line it ends in."""
    if not isinstance(value, dict | list) or not value:
        return at
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in items:
        at += 1
        found[*where, key] = at
        at = _lines_by_indent(each, (*where, key), at, found)
    return at + 1


@given(st.dictionaries(st.text(max_size=5), _JSON, max_size=4), st.booleans(), st.sampled_from([":", ": ", " : "]))
def test_every_key_and_item_has_its_line(data: dict[str, object], ascii_only: bool, colon: str) -> None:
    expected: dict[Where, int] = {}
    _lines_by_indent(data, (), 1, expected)
    document = document_of(
        SourceText("x", json.dumps(data, indent=1, ensure_ascii=ascii_only, separators=(",", colon)))
    )
    assert document.data == data
    assert {where: document.line(where) for where in expected} == expected


def test_a_list_stands_below_an_empty_key() -> None:
    document = document_of(SourceText("x", '[\n {"a": 1},\n {"a": 2}]'))
    assert document.line(("", 1, "a")) == 3


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": NaN}', "x:1: NaN is no JSON number; correct the value"),
        ('{\n"a" 1}', "x:2: not JSON: Expecting ':' delimiter (column 5); correct it or export the file again"),
        ("[" * 100_000, "x:1: nested too deep to be a network; name another file"),
        (f'{{"a": {"9" * 5000}}}', "x:1: Exceeds the limit"),
    ],
)
def test_hostile_json_is_refused_in_one_line(text: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        document_of(SourceText("x", text))
    assert caught.value.problems[0].startswith(problem)
