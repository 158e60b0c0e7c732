"""Note for runs with random faults: such a run is one draw. Pure.

Changes when a fault draws something else than the packets that it takes.
"""

from __future__ import annotations

from hpn.results.run.drill import AskedDrill
from hpn.results.run.manifest import Manifest


def one_draw(manifest: Manifest, asked: AskedDrill | None) -> str:
    """Return a note that a single run of random loss is one draw; '' if it was repeated or nothing is random."""
    if manifest.repeat or asked is None or not any(fault.is_drawn for fault in asked.faults):
        return ""
    return "random loss: one draw; --repeat N tells how far it varies"
