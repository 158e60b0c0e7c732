"""The site: whole and strict, nothing fetched from outside, every link leads somewhere. Needs the extra ``docs``."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from docs.site.reference import REFERENCE
from docs.site.stage import pages, staged
from tests.docs.pages import ROOT
from tests.docs.site import dead_links, from_outside

EXTRA = ("sphinx", "myst_parser", "furo")


def build(folder: Path) -> subprocess.CompletedProcess[str]:
    """The site, as ``make site`` builds it."""
    command = [sys.executable, "-m", "docs.site", str(folder)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built once."""
    missing = [name for name in EXTRA if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"no {', '.join(missing)}: pip install -r docs/site/requirements.lock")
    folder = tmp_path_factory.mktemp("site")
    built = build(folder)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder / "html"


def test_the_site_has_every_page_and_fetches_nothing(site: Path) -> None:
    made = {str(path.relative_to(site).with_suffix("")) for path in site.rglob("*.html")}
    wanted = {str(page.relative_to(ROOT).with_suffix("")) for page in pages()} | {
        f"reference/{name}" for name in REFERENCE
    }
    assert wanted <= made
    assert list(from_outside(site)) == []


def test_every_link_within_the_site_leads_somewhere(site: Path) -> None:
    assert list(dead_links(site)) == []


def test_what_is_fetched_and_what_is_dead_is_seen(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(
        '<link rel="stylesheet" href="https://a.example/a.css">'
        '<img src="//b.example/b.png" srcset="http://c.example/c.png 2x">'
        '<script src="x.js"></script><a href="https://d.example">d</a><a href="#here">e</a><a href="gone.html">f</a>'
        '<style>@import "https://g.example/g.css";</style>'
        '<p style="background: url(https://h.example/h.png)" id="there">'
    )
    (tmp_path / "own.css").write_text("@font-face { src: url('https://i.example/i.woff2') }")
    assert [word.split("/")[2][0] for word in from_outside(tmp_path)] == ["a", "b", "c", "g", "h", "i"]
    assert [word.split()[-1] for word in dead_links(tmp_path)] == ["#here", "gone.html", "x.js"]


def _contents() -> tuple[list[str], set[str]]:
    """The pages in the order of the site's front page, and all that there are."""
    front = (ROOT / "docs" / "site" / "index.md").read_text().splitlines()
    known = {str(page.relative_to(ROOT).with_suffix("")) for page in pages()} | {
        f"reference/{name}" for name in REFERENCE
    }
    return [line for line in front if line in known or line.startswith(("docs/", "reference/"))], known


def test_every_page_of_the_repository_is_in_the_contents() -> None:
    listed, known = _contents()
    assert sorted(listed) == sorted(known)


def test_the_contents_go_from_first_use_to_reference() -> None:
    listed, _ = _contents()
    order = ["README", "docs/tutorial", "docs/writing-drills", "docs/drills", "docs/results", "docs/ci"]
    order += ["docs/measurement", "reference/commands", "docs/run-folder", "docs/extending", "docs/lossless"]
    assert [listed.index(page) for page in order] == sorted(listed.index(page) for page in order)
    assert (listed[0], listed[-1]) == ("README", "docs/lossless")


def test_a_link_to_a_file_that_is_no_page_is_its_name_on_the_site() -> None:
    assert "(../traffic/congestion/scale.py)" in (ROOT / "docs" / "drills.md").read_text()
    text = staged(ROOT / "docs" / "drills.md")
    assert "(`traffic/congestion/scale.py`)" in text
    assert "](measurement.md)" in text


def test_without_sphinx_one_line_says_what_to_install() -> None:
    blocked = (
        "import sys\nfrom docs.site.__main__ import main\n"
        "sys.modules['sphinx'] = sys.modules['furo'] = None\nsys.exit(main('out'))"
    )
    said = subprocess.run([sys.executable, "-c", blocked], cwd=ROOT, capture_output=True, text=True)
    assert (said.returncode, said.stderr.count("\n")) == (3, 1)
    assert "pip install" in said.stderr
