"""Note for runs whose outage another seed or phase would change: such a run is one draw. Pure.

Changes when a fault depends on something else than the packets that it takes and the phase of timers.
"""

from __future__ import annotations

from hpn.results.run.drill import AskedDrill
from hpn.results.run.manifest import Manifest

_TAIL = "one draw; --repeat N tells how far it varies"


def one_draw(manifest: Manifest, asked: AskedDrill | None) -> str:
    """Return a note that a single run of random loss, or of a fault that timers notice, is one draw; else ''."""
    if manifest.repeat or asked is None:
        return ""
    if any(fault.is_drawn for fault in asked.faults):
        return f"random loss: {_TAIL}"
    if any(fault.timers_alone_notice for fault in asked.faults):
        return f"only timers notice the fault, and their phase decides the outage: {_TAIL}"
    return ""
