"""Pages read as a native engineer writes: short sentences, short lines, the field's words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT
from tests.docs.words import LONGEST_SENTENCE, long_lines, long_sentences, replaced

_GENERATED = "\n## Keys of a topology file\n"
"""Behind it, the table that the code writes: its rows are as long as what they hold."""
_REPRODUCED = re.compile(r"<!-- (hpn reproduce|calibration): begin -->.*?<!-- \1: end -->", re.DOTALL)
"""Tables that ``hpn reproduce --markdown`` and ``make calibration`` write: their cells hold what those find."""
_MOST_WORDS = {"README.md": 900, "CHANGELOG.md": 600}
_BY_HAND = 23_667
"""docs/ as a whole without what code writes, which grows: tables of keys, of claims and of make targets."""
_WRITTEN = ("client-table.md", "costs.md", "location-table.md", "network-table.md", "profile-table.md")
"""Pages that make targets write."""


def _words(page: Path) -> int:
    """Without what code writes, the bars of tables and the marks of lists."""
    by_hand = _REPRODUCED.sub("", page.read_text()).split(_GENERATED)[0]
    return sum(re.search(r"\w", word) is not None for word in by_hand.split())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_keeps_to_short_sentences_short_lines_and_the_field_s_words(page: Path) -> None:
    text = _REPRODUCED.sub("", page.read_text())
    assert list(long_sentences(text)) == []
    assert list(replaced(text)) == []
    assert list(long_lines(text.split(_GENERATED)[0])) == []


def test_docs_stay_as_short_as_they_are() -> None:
    for name, most in _MOST_WORDS.items():
        assert _words(ROOT / name) <= most, name
    by_hand = (page for page in (ROOT / "docs").rglob("*.md") if page.name not in _WRITTEN)
    assert sum(map(_words, by_hand)) <= _BY_HAND


def test_the_rules_find_what_they_are_for() -> None:
    assert list(long_sentences(f"A short one. {'word ' * (LONGEST_SENTENCE + 1)}.")) != []
    assert list(long_sentences(f"{'word ' * LONGEST_SENTENCE}. {'word ' * LONGEST_SENTENCE}.")) == []
    assert list(long_lines("word " * 30)) != []
    assert list(replaced("The roster is drawn anew, as we are told."))[:2] != []
    assert list(replaced("`hpn told` is code, and no word.")) == []
