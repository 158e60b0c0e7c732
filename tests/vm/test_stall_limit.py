"""How long a guest's clock may stand: by option, by environment, or as long as ever."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hpn.testbed.errors import InputError
from hpn.testbed.vm.standstill import STALL_S, STALL_VARIABLE, stall_limit
from hpn.testbed.vm.uml import Uml

_CLI = Path(__file__).parents[2] / "cli.py"


def test_the_environment_sets_the_limit_and_a_number_given_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(STALL_VARIABLE, raising=False)
    assert Uml().stall_s == STALL_S
    monkeypatch.setenv(STALL_VARIABLE, "600")
    assert (Uml().stall_s, Uml(stall_s=6.0).stall_s) == (600.0, 6.0)


@pytest.mark.parametrize("wrong", ["abc", "0", "-5", "nan", ""])
def test_a_limit_that_is_no_time_is_refused(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STALL_VARIABLE, wrong)
    with pytest.raises(InputError, match="write seconds from 1 to 86400"):
        stall_limit()


def test_the_command_refuses_it_in_one_line() -> None:
    command = [sys.executable, str(_CLI), "vm", "shell", "--engine", "uml", "--", "true"]
    environment = {**os.environ, STALL_VARIABLE: "abc"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
