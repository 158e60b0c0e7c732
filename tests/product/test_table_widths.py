"""Commands with tables, as wide as COLUMNS says: no line is wider, and every row is there under its whole name."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from hpn.cli import command_line
from hpn.scenarios.drill import catalogue
from hpn.testbed.fabric.presets import PRESETS

_NAMES = {
    "presets": list(PRESETS),
    "drill ls": list(catalogue.names()),
    "plan small": ["hosts", "ToR switches", "access", "fabric", "tor", "agg"],
    "month --assumptions": [],
    "config": ["hpn.toml"],
}


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("command", _NAMES)
def test_no_line_is_wider_than_the_terminal(command: str, width: int) -> None:
    said = CliRunner(env={"COLUMNS": str(width)}).invoke(command_line, command.split())
    assert said.exit_code == 0, said.output
    lines = said.output.splitlines()
    assert max(map(len, lines)) <= width
    for name in _NAMES[command]:
        assert any(line.strip().startswith(name) for line in lines), name
