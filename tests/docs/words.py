"""How the pages read: lengths of sentences and lines, and words that have a better one.

``python -m tests.docs.words [PAGE ...]`` lists what breaks a rule.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

LONGEST_SENTENCE = 25  # words; code counts as one
LONGEST_LINE = 120  # characters

# A pattern that no text of ours has, and the field's word for it.
REPLACED = {
    r"\bprograms? of others\b": "third-party program",
    r"\bstand-ins?\b": "replacement flow",
    r"\bgo(es)? home\b": "revert",
    r"\bspeaks? to\b": "support",
    r"\banew\b": "again",
    r"\bby lot\b": "at random",
    r"\bgrips\b": "lab parts",
    r"\blevers?\b": "fault action",
    r"\broster\b": "active flows",
    r"\b(a|the|each|every) mend\b": "repair",
    r"\btold\b": "reported, shown, known",
    r"\b(who|what)ever asks\b": "the caller",
    r"\bnobody\b": "no host, no user, none: say who",
    r"\banybody('s)?\b": "say who",
    r"\bwhoever\b": "say who",
    r"\bthe way out\b": "the remedy",
    r"\bmachine meanwhile\b": "load of the machine",
}

_SENTENCE_ENDS = re.compile(r"[.!?](?=\s|$)[\s]*")
_ABBREVIATIONS = re.compile(r"\b(e\.g|i\.e|etc|vs|cf|no)\.", re.IGNORECASE)


def long_sentences(text: str) -> Iterator[str]:
    """Sentences of a page that have too many words."""
    for block in _blocks(MarkdownIt("commonmark").enable("table").parse(text)):
        for sentence in _SENTENCE_ENDS.split(_ABBREVIATIONS.sub(r"\1", block)):
            words = [word for word in sentence.split() if re.search(r"\w", word)]
            if len(words) > LONGEST_SENTENCE:
                yield f"{len(words)} words: {sentence[:70]}..."


def long_lines(text: str) -> Iterator[str]:
    """Lines of a page that are too long; a link or picture that cannot be broken may be."""
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > LONGEST_LINE and " " in line.strip():
            yield f"line {number}: {len(line)} characters"


def replaced(text: str) -> Iterator[str]:
    """Words of a page for which the field has another one."""
    prose = "\n".join(_blocks(MarkdownIt("commonmark").enable("table").parse(text)))
    for pattern, better in REPLACED.items():
        for match in re.finditer(pattern, prose, re.IGNORECASE):
            yield f"'{match[0]}': write {better} (...{prose[max(0, match.start() - 30) : match.end() + 20]!r})"


def _blocks(tokens: list[Token]) -> Iterator[str]:
    """The prose of each paragraph, list item, heading or cell; code as one word."""
    for token in tokens:
        if token.type == "inline":
            yield "".join(_word(child) for child in token.children or ()).replace("\n", " ")


def _word(token: Token) -> str:
    if token.type == "code_inline":
        return "CODE"
    return "\n" if token.type in {"softbreak", "hardbreak"} else token.content


def main(pages: list[str]) -> int:
    """List what breaks a rule; the exit code says whether anything does."""
    found = 0
    for name in pages:
        text = Path(name).read_text()
        for line in (*long_sentences(text), *long_lines(text), *replaced(text)):
            print(f"{name}: {line}")
            found += 1
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or [*map(str, sorted(Path("docs").glob("*.md"))), "README.md"]))
