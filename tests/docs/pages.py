"""The pages that come with the repository: their blocks of code, code in their lines, headings and links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parents[2]
PAGES = (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md")))


class Language(StrEnum):
    """What a block of code is; a fenced one says so, an indented one by its first line."""

    SHELL = "sh"
    YAML = "yaml"
    PYTHON = "python"
    TOML = "toml"
    TEXT = "text"


_FIRST_LINE = (
    (Language.SHELL, r"(hpn|make|\.venv/bin/\w+|alias|apt|apt-get|git|cd|pip|python|sudo) "),
    (Language.YAML, r"(- )?[a-z_]+:( |$)"),
    (Language.PYTHON, r'(import |from |"""|@)'),
)


@dataclass(frozen=True)
class Code:
    """A piece of code on a page; ``line`` counts from 1."""

    page: Path
    line: int
    text: str
    language: Language

    @property
    def place(self) -> str:
        """'docs/ci.md:3'."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"


@dataclass(frozen=True)
class Link:
    """A link on a page: to a file, '#heading' behind it or alone, or elsewhere; ``words`` in the place of a picture."""

    page: Path
    line: int
    target: str
    words: str = ""


@cache
def tokens(page: Path) -> tuple[Token, ...]:
    """What a Markdown parser finds."""
    return tuple(MarkdownIt("commonmark").enable("table").parse(page.read_text()))


def blocks(page: Path) -> Iterator[Code]:
    """Blocks of code, fenced and indented."""
    for token in tokens(page):
        if token.type in {"fence", "code_block"} and token.map is not None:
            yield Code(page, token.map[0] + 1, token.content, language_of(token.info, token.content))


def language_of(info: str, text: str) -> Language:
    """The language a block says it has, or else what its first line shows. ValueError for one unknown here."""
    if info:
        return Language(info.split()[0])
    return next((language for language, first in _FIRST_LINE if re.match(first, text)), Language.TEXT)


def inline(page: Path) -> Iterator[Code]:
    """Code in lines of text."""
    for line, token in _inside(page):
        if token.type == "code_inline":
            yield Code(page, line, token.content, Language.TEXT)


def links(page: Path) -> Iterator[Link]:
    """Links and pictures, in order."""
    for line, token in _inside(page):
        target = token.attrGet("href" if token.type == "link_open" else "src")
        if token.type in {"link_open", "image"} and isinstance(target, str):
            yield Link(page, line, target, token.content)


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors of a page's headings, as code hosts and MyST make them."""
    found: list[str] = []
    heading = False
    for token in tokens(page):
        if heading and token.type == "inline":
            text = "".join(part.content for part in token.children or ())
            slug = re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")
            found.append(f"{slug}-{found.count(slug)}" if slug in found else slug)
        heading = token.type == "heading_open"
    return frozenset(found)


def _inside(page: Path) -> Iterator[tuple[int, Token]]:
    for token in tokens(page):
        if token.type == "inline" and token.map is not None:
            yield from ((token.map[0] + 1, part) for part in token.children or ())
