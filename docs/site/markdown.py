"""Pieces of Markdown: text that stays text, tables. Pure."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence

_MEANING = re.compile(r"([\\`*_\[\]<>|#])")


def plain(text: str) -> str:
    """The text on one line, nothing of it markup."""
    return _MEANING.sub(r"\\\1", " ".join(text.split()))


def code(text: str) -> str:
    """The text as code, in a table too."""
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}".replace("|", "\\|") if text else ""


def prose(text: str) -> str:
    """A docstring as paragraphs: double back quotes are code, all else is text; one marked by click stays as it is."""
    return "\n\n".join(_paragraph(each) for each in inspect.cleandoc(text).split("\n\n"))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are Markdown; '' without rows."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join((f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *lines, "")) if lines else ""


def page(*parts: str) -> str:
    """Parts with an empty line between them, those that are empty left out."""
    return "\n\n".join(part.strip("\n") for part in parts if part.strip()) + "\n"


def _paragraph(text: str) -> str:
    if text.startswith("\b\n"):
        return f"```text\n{text[2:]}\n```"
    pieces = text.split("``")
    return "".join(f"`{piece}`" if at % 2 else _MEANING.sub(r"\\\1", piece) for at, piece in enumerate(pieces))
