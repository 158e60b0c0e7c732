"""Docstrings begin with a verb or a noun of the field."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from hpn.testbed.package import ROOT, own_files

_NO_BEGIN = frozenset(
    ("What", "Whether", "Of", "Where", "How", "Which", "Those", "That", "Who", "Its", "All", "As", "When", "By", "Why")
)
"""A sentence that begins so says neither what a thing is nor what it does."""


def _begins(text: str) -> Iterator[tuple[str, str]]:
    """Name and first word of each docstring."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            words = (ast.get_docstring(node) or "").split()
            if words:
                yield getattr(node, "name", "module"), words[0]


def _riddles(path: Path) -> list[str]:
    name = path.relative_to(ROOT)
    return [f"{name}: {what} begins with {word}" for what, word in _begins(path.read_text()) if word in _NO_BEGIN]


def test_no_docstring_begins_with_a_word_that_says_nothing() -> None:
    assert [each for path in own_files("*.py") for each in _riddles(path)] == []


def test_a_riddle_is_found() -> None:
    assert [word for _, word in _begins('def f() -> None:\n    """What it does."""\n')] == ["What"]
