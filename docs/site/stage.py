"""The folder that Sphinx reads: pages of the repository where they are in it, and the reference made from code."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from docs.site.reference import REFERENCE

ROOT = Path(__file__).resolve().parents[2]
_FRONT = ROOT / "docs" / "site" / "index.md"
_PICTURES = {".svg", ".png"}
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s#:]+)\)")


def pages() -> Iterator[Path]:
    """The pages that stand in the repository, the site's front page left out."""
    yield from sorted(ROOT.glob("*.md"))
    yield from sorted((ROOT / "docs").glob("*.md"))


def stage(folder: Path) -> None:
    """Fill ``folder``, which may not exist, and take away what else is in it."""
    if folder.exists():
        shutil.rmtree(folder)
    (folder / "docs").mkdir(parents=True)
    shutil.copy(_FRONT, folder / "index.md")
    for page in pages():
        (folder / page.relative_to(ROOT)).write_text(staged(page))
    for picture in (path for path in (ROOT / "docs").rglob("*") if path.suffix in _PICTURES):
        copy = folder / picture.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(picture, copy)
    (folder / "reference").mkdir()
    for name, made in REFERENCE.items():
        (folder / "reference" / f"{name}.md").write_text(made())


def staged(page: Path) -> str:
    """A page of the repository, its links to files that are no pages turned into their names."""

    def kept(link: re.Match[str]) -> str:
        text, target = link.groups()
        file = (page.parent / target).resolve()
        if file.suffix == ".md" or not file.exists():  # what is not there Sphinx tells
            return link[0]
        return f"{text} (`{file.relative_to(ROOT)}`)"

    return _LINK.sub(kept, page.read_text())
