"""hpn drill show in a narrow terminal: nothing is wider, and a description flows on as written."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from hpn import cli
from hpn.scenarios.drill import catalogue
from hpn.scenarios.drill.describe import describe
from hpn.scenarios.drill.wrapping import wrapped


@pytest.mark.parametrize("name", catalogue.names())
def test_a_drill_fits_a_terminal_and_no_word_is_lost(name: str) -> None:
    lines = describe(catalogue.load(name))
    shown = [*wrapped(lines, 80)]
    assert max(map(len, (line for line in shown if len(line.split()) > 2))) <= 80
    assert " ".join(shown).split() == " ".join(lines).split()
    assert [*wrapped(lines, 200)] == lines


def test_sentences_flow_on_and_parts_of_a_description_begin_lines() -> None:
    shown = CliRunner().invoke(cli.command_line, ["drill", "show", "link-down"], env={"COLUMNS": "80"}).stdout
    lines = shown.splitlines()
    begin = lines.index("") + 1
    assert max(len(line) for line in lines if not line.startswith("file ")) <= 80, "a path is as long as it is"
    assert any(line.startswith("file      ") for line in lines), "a line of its own"
    prose = lines[begin : lines.index("", begin)]
    heads = [line.split(":")[0] for line in prose if ": " in line[:20]]
    assert heads == ["In hardware", "Sending (up)", "Paper", "Limits"]
    assert sum(len(line) < 60 for line in prose) <= len(heads), "only the last line of a part is short"
    assert "traffic   permutation: 32 queue pairs, 40 % of every NIC, 1262 Mbit/s, source" in lines
    assert "          ports disjoint" in lines
