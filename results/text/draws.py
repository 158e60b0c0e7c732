"""Say of a run whose faults chance has a hand in that it is one draw. Pure.

Changes when a fault draws something else than the packets that it takes.
"""

from __future__ import annotations

from hpn.results.run.drill import AskedDrill
from hpn.results.run.manifest import Manifest


def one_draw(manifest: Manifest, asked: AskedDrill | None) -> str:
    """A run alone of random loss is one of many that could have been; '' where it was repeated, or nothing is drawn."""
    if manifest.repeat or asked is None or not any(fault.is_drawn for fault in asked.faults):
        return ""
    return "random loss: one draw; --repeat N tells how far it varies"
