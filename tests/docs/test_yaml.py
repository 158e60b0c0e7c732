"""Every block of YAML on a page is read by what reads such files, every block of Python imports what there is."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

from hpn.testbed.errors import InputError
from tests.docs.pages import PAGES, ROOT, Code, Language, blocks
from tests.docs.yamlblocks import load

YAML = [block for page in PAGES for block in blocks(page) if block.language is Language.YAML]
PYTHON = [block for page in PAGES for block in blocks(page) if block.language is Language.PYTHON]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What the pages call a reader's own."""
    (tmp_path / "mine.py").write_text("print('hpn ready')\n")
    (tmp_path / "mine.yaml").write_text(next(block.text for block in YAML if block.text.startswith("drill: ")))
    return tmp_path


@pytest.mark.parametrize("block", YAML, ids=lambda block: block.place)
def test_a_block_of_yaml_is_taken(block: Code, folder: Path) -> None:
    load(block.text, block.place, folder)


@pytest.mark.parametrize("block", PYTHON, ids=lambda block: block.place)
def test_a_block_of_python_imports_what_there_is(block: Code) -> None:
    for node in ast.walk(ast.parse(block.text)):
        if isinstance(node, ast.ImportFrom) and node.module:
            module = importlib.import_module(node.module)
            assert [name.name for name in node.names if not hasattr(module, name.name)] == []


def test_the_script_of_the_python_page_is_the_one_that_the_tests_run() -> None:
    script = next(block.text for block in PYTHON if block.page.name == "api.md")
    assert script == (ROOT / "examples" / "api" / "compare_two.py").read_text()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- worst_outge: {below: 1 s}\n", "worst_outage"),
        ("- {id: cut, fault: link-dwn, target: p0.s0.h0.r0.0, at: 1500 ms}\n", "link-down"),
        ("workload: {lod: 40 %}\n", "load"),
        ("job:\n  collective: {kind: all-redce, size: 4 MB}\n  gpus: 1\n", "all-reduce"),
        ("preset: tinny\n", "tiny"),
        ("preset: small\nhots: 6\n", "hosts"),
        ("suite: s\nruns:\n  - drills: [link-dwn]\n", "link-down"),
        ("topology: tiny\n...\n    - {fault: host-replaced, target: p0.s0.h0, at: 1500 ms, after: 2 s}\n", "spare"),
        ("drill: mine\nsummary: x\ntopology: tiny\n", "expect"),
    ],
)
def test_a_mistake_in_a_block_of_yaml_is_told(text: str, problem: str, folder: Path) -> None:
    with pytest.raises(InputError, match=problem):
        load(text, "page.md:1", folder)


def test_blocks_are_found() -> None:
    assert len(YAML) > 12
    assert len(PYTHON) >= 3
