"""Whether a lab is again what it was before a drill's faults, once everything has had the time that it is due.

Changes when something else in a lab comes back later than the lab converges: path control holds a destination that
flapped away from its port for up to ``hold_max``, and steers around that port meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from testbed.errors import MachineError
from testbed.events import Event, EventKind, now_ns
from testbed.lab.asfabric import deviations
from testbed.lab.lab import Lab
from testbed.lab.state import State, differences, state

_CONVERGED_S = 10.0
_RELEASED_S = 1.0
"""After a hold has ended, until what it kept from home is there: path control's own refresh."""


async def restored(lab: Lab, before: State, events: Iterable[Event]) -> tuple[str, ...]:
    """What differs from ``before``, and from what the fabric decides, after all that ``events`` told of; waits for it.

    MachineError when a daemon of the lab was lost.
    """
    try:
        await lab.converged(_CONVERGED_S)
    except MachineError:
        if lab.lost is not None:
            raise
        return differences(before, state(lab)) or ("the lab did not converge again",)
    if differences(before, state(lab)):
        await _released(lab, before, held_until_ns(events))
    return (*differences(before, state(lab)), *deviations(lab))


def held_until_ns(events: Iterable[Event]) -> int:
    """When the last hold of a flapping destination ends that path control told of; 0 when it told of none."""
    holds = (event for event in events if event.kind is EventKind.PATH and event.what == "held")
    return max((event.at_ns + round(float(event.detail["ms"]) * 1e6) for event in holds), default=0)


async def _released(lab: Lab, before: State, until_ns: int) -> None:
    """Wait until no hold is in force and the lab is as before, or for as long as that may take."""
    left_s = (until_ns - now_ns()) / 1e9
    if left_s + _RELEASED_S > 0:
        with suppress(TimeoutError):
            await lab.wait_for(
                lambda: now_ns() >= until_ns and not differences(before, state(lab)), left_s + _RELEASED_S
            )
