"""Whether a lab is again what it was before a drill's faults, once everything has had the time that it is due.

Changes when something else in a lab comes back later than the lab converges. What path control holds away from home
does not: while a LAG still steers, the lab is not converged (``testbed.lab.convergence``).
"""

from __future__ import annotations

from hpn.testbed.errors import MachineError
from hpn.testbed.lab.asfabric import deviations
from hpn.testbed.lab.lab import Lab
from hpn.testbed.lab.state import State, differences, state

_CONVERGED_S = 10.0


async def restored(lab: Lab, before: State) -> tuple[str, ...]:
    """What differs from ``before``, and from what the fabric decides; waits until the lab has converged.

    MachineError when a daemon of the lab was lost.
    """
    try:
        await lab.converged(_CONVERGED_S)
    except MachineError:
        if lab.lost is not None:
            raise
        return differences(before, state(lab)) or ("the lab did not converge again",)
    return (*differences(before, state(lab)), *deviations(lab))
