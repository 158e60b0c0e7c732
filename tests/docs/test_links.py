"""Links of the pages lead somewhere: files, folders, headings."""

from __future__ import annotations

import pytest

from tests.docs.pages import PAGES, ROOT, Link, anchors, links
from tests.docs.pictures import LARGEST

INSIDE = [link for page in PAGES for link in links(page) if "://" not in link.target]


def dead(link: Link) -> str:
    """Why a link leads nowhere, else ''."""
    path, _, anchor = link.target.partition("#")
    file = (link.page.parent / path).resolve() if path else link.page
    if not file.is_relative_to(ROOT) or not file.exists():
        return f"no file {path}"
    return f"no heading #{anchor} in {file.name}" if anchor and anchor not in anchors(file) else ""


@pytest.mark.parametrize("link", INSIDE, ids=lambda link: f"{link.page.name}:{link.line}-{link.target}")
def test_a_link_leads_somewhere(link: Link) -> None:
    assert dead(link) == ""


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("drills.md#expect", ""),
        ("#over-repeats", ""),
        ("../README.md", ""),
        ("../examples/jobs", ""),
        ("drill.md", "no file drill.md"),
        ("drills.md#expct", "no heading #expct in drills.md"),
        ("#expct", "no heading #expct in drills.md"),
        ("../../elsewhere", "no file ../../elsewhere"),
    ],
)
def test_a_dead_link_is_told(target: str, why: str) -> None:
    assert dead(Link(ROOT / "docs" / "drills.md", 1, target)) == why


def test_pictures_are_small_told_in_words_and_made_by_make_pictures() -> None:
    shown = {link.target.rpartition("/")[2] for link in INSIDE if link.target.endswith((".png", ".svg"))}
    folder = ROOT / "docs" / "pictures"
    assert shown == {path.name for path in folder.iterdir()}
    makers = ("docs/pictures.py", "docs/claim_pictures.py", "product/location_table.py")
    made = "".join((ROOT / "tests" / name).read_text() for name in makers)
    assert all(f'"{name}"' in made for name in shown)
    assert all(path.stat().st_size < LARGEST for path in folder.iterdir())
    assert all(link.words for link in INSIDE if link.target.endswith((".png", ".svg")))


def test_links_are_found() -> None:
    assert len(INSIDE) > 30
