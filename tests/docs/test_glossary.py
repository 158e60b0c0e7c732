"""docs/glossary.md has the terms of results/text/glossary.py, word for word, and no others."""

from __future__ import annotations

from hpn.results.text.glossary import TERMS
from tests.docs.pages import ROOT


def test_the_page_has_every_term_and_no_other() -> None:
    rows = [line for line in (ROOT / "docs" / "glossary.md").read_text().splitlines() if line.startswith("| ")]
    assert rows[1:] == [f"| {term.name} | {term.meaning} |" for term in TERMS.values()]
