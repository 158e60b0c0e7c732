"""Check that a lab returns to its state before the faults, once every timer has expired.

Changes when something in a lab recovers later than the lab converges. Path control needs no extra wait: while a LAG
still steers, the lab is not converged (``testbed.lab.convergence``).
"""

from __future__ import annotations

from hpn.testbed.errors import MachineError
from hpn.testbed.lab.expected_state import deviations
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.state import State, differences, state

_CONVERGED_S = 10.0


async def restored(lab: Lab, before: State) -> tuple[str, ...]:
    """Wait until the lab has converged; return its differences from ``before`` and from its fabric.

    MachineError when a daemon of the lab was lost.
    """
    try:
        await lab.converged(_CONVERGED_S)
    except MachineError:
        if lab.lost is not None:
            raise
        return differences(before, state(lab)) or ("the lab did not converge again",)
    return (*differences(before, state(lab)), *deviations(lab))
