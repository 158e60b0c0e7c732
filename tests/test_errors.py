"""An error that crosses a process boundary as exit code and text comes back as what it was."""

from __future__ import annotations

import pytest

from testbed.errors import HpnError, InputError, MachineError, NoisyError, error_for


@pytest.mark.parametrize("kind", [HpnError, InputError, MachineError, NoisyError])
def test_an_exit_code_names_its_error(kind: type[HpnError]) -> None:
    error = error_for(kind.exit_code, "what happened")
    assert type(error) is kind
    assert str(error) == "what happened"


@pytest.mark.parametrize("code", [0, 77, None, "2"])
def test_a_code_nobody_knows_is_the_machine_s_fault(code: object) -> None:
    assert type(error_for(code, "what happened")) is MachineError
