"""Wrap the lines of a drill's description for a narrow terminal. Pure.

Changes when lines are broken by another rule. Sentences of a description are joined to paragraphs; a line of the plan
is indented under its text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from textwrap import wrap

_TABLE = re.compile(r"\s*\S+( ms| s)?\s{2,}|\s+")
"""Text in front of a line of the plan: 'traffic   ', '   1.5 s  '."""
_HEAD = re.compile(r"[A-Z][\w ,-]{0,40}: ")


def wrapped(lines: Sequence[str], width: int) -> Iterator[str]:
    """Yield the lines, none wider than ``width`` except a single word that is."""
    if all(len(line) <= width for line in lines):
        yield from lines
        return
    longest = max(len(line) for line in lines if not _TABLE.match(line))
    for line in _paragraphs(lines, longest):
        before = _TABLE.match(line)
        indent = " " * (before.end() if before else 0)
        yield from wrap(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False) or [""]


def _paragraphs(lines: Sequence[str], longest: int) -> Sequence[str]:
    """Join lines to paragraphs: a line continues the one before if its first word did not fit there."""
    found: list[str] = []
    last = ""
    for line in lines:
        is_prose = bool(last and line) and not _TABLE.match(line) and not _TABLE.match(last)
        did_not_fit = len(last) + 1 + len(line.partition(" ")[0]) > longest
        if is_prose and did_not_fit and not (last.endswith(".") and _HEAD.match(line)):
            found[-1] += f" {line}"
        else:
            found.append(line)
        last = line
    return found
