"""What could be spelled in two ways has one way in pages, examples and help; the older one is taken all the same."""

from __future__ import annotations

import re

import click
import pytest

from hpn import cli
from hpn.testbed.package import own_files
from tests.docs.commandline import mistakes
from tests.docs.pages import PAGES, ROOT
from tests.product.test_json import COMMANDS

OLD = {
    "hpn drill run link-down --engine uml --virtual-time": r"--engine [\w-]+ --virtual-time",
    "hpn results list": r"results list",
    "hpn drill list": r"drill list",
    "hpn bench --runs 3": r"bench --runs",
    "hpn watch tiny": r"hpn watch [a-zA-Z]",
}
"""A command line of each old spelling, and how it is found in a text."""

TOLD = {"CHANGELOG.md", "docs/engines.md", "hpn/commands/engine_option.py"}
"""Where an old spelling is told as one, or stands in the history."""

_FILES = (*PAGES, *(ROOT / "examples").rglob("*"), *own_files("*.py"))
TEXTS = {
    name: path.read_text()
    for path in _FILES
    if path.suffix in {".md", ".py", ".yaml", ".yml"} and (name := str(path.relative_to(ROOT))) not in TOLD
}


@pytest.mark.parametrize("line", OLD)
def test_the_old_spelling_is_taken_and_nowhere_used(line: str) -> None:
    assert mistakes(line.split()) == []
    assert [name for name, text in TEXTS.items() if re.search(OLD[line], text)] == []


def test_help_has_none_of_them() -> None:
    told = (cli.command_line, *COMMANDS.values())
    text = "\n".join(command.get_help(click.Context(command, info_name="hpn")) for command in told)
    assert [line for line, old in OLD.items() if re.search(old, text)] == []
    assert "--runs" not in COMMANDS["bench"].get_help(click.Context(COMMANDS["bench"]))
