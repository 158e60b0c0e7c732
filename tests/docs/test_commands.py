"""Every command on a page is one: options, arguments, drills, presets and targets exist. Nothing is executed."""

from __future__ import annotations

import shlex

import pytest

from hpn.traffic.client.lines import _WORDS as LINES
from tests.docs.commandline import commands, mistakes
from tests.docs.pages import PAGES, Code, Language, blocks, inline, language_of

SHELL = [block for page in PAGES for block in blocks(page) if block.language is Language.SHELL]
MENTIONED = [code for page in PAGES for code in inline(page) if code.text.startswith(("hpn ", "make "))]


def _is_line_of_a_client(code: Code) -> bool:
    """'hpn step N' is what a client prints (docs/clients.md), not a command."""
    return code.page.name == "clients.md" and code.text.split()[1] in LINES


@pytest.mark.parametrize("block", SHELL, ids=lambda block: block.place)
def test_a_block_of_commands_could_be_typed(block: Code) -> None:
    assert [problem for words in commands(block.text) for problem in mistakes(words)] == []


@pytest.mark.parametrize("code", MENTIONED, ids=lambda code: f"{code.place}-{code.text}")
def test_a_command_that_is_mentioned_exists(code: Code) -> None:
    if not _is_line_of_a_client(code):
        assert mistakes(shlex.split(code.text.replace("\\|", "|").split(" | ")[0]), whole=False) == []


def test_every_line_that_begins_with_a_command_is_in_a_block_of_commands() -> None:
    lost = [
        f"{block.place}: {line}"
        for page in PAGES
        for block in blocks(page)
        if block.language is Language.TEXT
        for line in block.text.splitlines()
        if line.startswith(("hpn ", "make ", ".venv/bin/hpn "))
    ]
    assert lost == []
    assert len(SHELL) > 10
    assert len(MENTIONED) > 50


@pytest.mark.parametrize(
    ("shell", "problem"),
    [
        ("hpn drill run link-down --repeets 3", "No such option"),
        ("hpn drill run link-dwn", "did you mean link-down"),
        ("hpn drill rn link-down", "no command hpn drill rn"),
        ("hpn drill", "hpn drill alone does nothing"),
        ("hpn trace p0.s0.h0.r0 --sport 5", "lacks DST"),
        ("hpn trace p0.s0.h0.r0 p0.s1.h0.r0 --sport many", "not a valid integer"),
        ("hpn ls all", "hpn ls takes no all"),
        ("hpn up tiney", "tiny"),
        ("hpn ls; hpn inspect lcp", "'lcp' is not one of"),
        ("hpn drill run link-down --engine \\\n  nowhere", "nowhere"),
        ("hpn vm shell -- sh -c 'hpn up tiny && hpn dwn'", "no command hpn dwn"),
        ("hpn ci run examples/ci/sweet.yaml", "no file examples/ci/sweet.yaml"),
        ("make quick qick", "no target qick"),
    ],
)
def test_a_mistake_in_a_command_is_told(shell: str, problem: str) -> None:
    (told,) = [told for words in commands(shell) for told in mistakes(words)]
    assert problem in told


def test_the_language_of_a_block_is_what_it_says_or_shows() -> None:
    assert language_of("", "hpn ls\n") is Language.SHELL
    assert language_of("", "- order: {}\n") is Language.YAML
    assert language_of("text", "hpn ls\n") is Language.TEXT
    with pytest.raises(ValueError, match="yml"):
        language_of("yml", "drill: x\n")
