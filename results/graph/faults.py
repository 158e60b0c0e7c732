"""Faults of a run as marks in a picture of its fabric. Pure.

Changes when the faults of a run are marked in another way.
"""

from __future__ import annotations

from collections.abc import Iterable

from hpn.results.graph.overlay import Mark
from hpn.results.run.drill import AskedFault
from hpn.testbed.errors import InputError
from hpn.testbed.fabric.model import Fabric


def marks_of(fabric: Fabric, faults: Iterable[AskedFault]) -> tuple[Mark, ...]:
    """Return a mark at each target, in order; faults of areas, such as a plane, have none."""
    return tuple(Mark(fault.target, f"{fault.id}: {fault.kind}") for fault in faults if _has(fabric, fault.target))


def _has(fabric: Fabric, name: str) -> bool:
    try:
        fabric.part(name)
    except InputError:
        return False
    return True
