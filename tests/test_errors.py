"""An error that crosses a process boundary as exit code and text comes back as what it was."""

from __future__ import annotations

import pytest

from hpn.testbed.errors import HpnError, InputError, MachineError, NoisyError, error_for, exit_code_of
from hpn.testbed.routing.bird.control import BirdError


@pytest.mark.parametrize("kind", [HpnError, InputError, MachineError, NoisyError])
def test_an_exit_code_names_its_error(kind: type[HpnError]) -> None:
    error = error_for(kind.exit_code, "what happened")
    assert type(error) is kind
    assert str(error) == "what happened"
    assert exit_code_of(error) == kind.exit_code


@pytest.mark.parametrize("code", [0, 77, None, "2"])
def test_a_code_nobody_knows_is_the_machine_s_fault(code: object) -> None:
    assert type(error_for(code, "what happened")) is MachineError


@pytest.mark.parametrize("error", [OSError("disk full"), BirdError("it is gone"), KeyError("x")])
def test_what_is_no_answer_of_a_drill_is_the_machine_s_fault(error: Exception) -> None:
    assert exit_code_of(error) == 3
