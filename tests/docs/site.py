"""A built site looked at from outside: what its pages fetch, and where their links lead."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_FETCHED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "audio": "src"} | {
    "link": "href",
    "object": "data",
    "embed": "src",
}
_IN_STYLES = re.compile(r"""url\(\s*["']?([^"')]+)|@import\s+["']([^"']+)""")


@dataclass
class Page(HTMLParser):
    """What a page fetches by itself, its links, and the places in it that can be linked to."""

    fetched: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Begin with nothing read."""
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an element points to."""
        told = {name: value or "" for name, value in attrs}
        self.ids |= {told["id"]} if "id" in told else set()
        if _FETCHED.get(tag, "") in told:
            self.fetched.append(told[_FETCHED[tag]])
        self.fetched += [word.split()[0] for word in told.get("srcset", "").split(",") if word.strip()]
        self.fetched += _of_styles(told.get("style", ""))
        if tag == "a" and "href" in told:
            self.links.append(told["href"])

    def handle_data(self, data: str) -> None:
        """Note what a style sheet within the page fetches."""
        if self.get_starttag_text() is not None and (self.get_starttag_text() or "").startswith("<style"):
            self.fetched += _of_styles(data)


def read(path: Path) -> Page:
    """A page, read to its end."""
    page = Page()
    page.feed(path.read_text())
    return page


def from_outside(site: Path) -> Iterator[str]:
    """'index.html: https://...' for all that a page or style sheet would fetch from elsewhere."""
    for path in sorted(site.rglob("*")):
        fetched: list[str] = []
        if path.suffix == ".html":
            fetched = read(path).fetched
        elif path.suffix == ".css":
            fetched = _of_styles(path.read_text())
        yield from (f"{path.relative_to(site)}: {each}" for each in fetched if urlsplit(each).netloc)


def dead_links(site: Path) -> Iterator[str]:
    """'index.html: docs/x.html#y' for every link within the site, and all that is fetched, that is not there."""
    pages = {path: read(path) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        for link in (*page.links, *page.fetched):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            there = target in pages and (not anchor or anchor in pages[target].ids)
            if not there and (anchor or not target.is_file()):
                yield f"{path.relative_to(site)}: {link}"


def _of_styles(text: str) -> list[str]:
    return [url or imported for url, imported in _IN_STYLES.findall(text)]
