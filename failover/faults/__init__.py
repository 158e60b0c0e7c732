"""The fault catalogue: what can be broken, what host and switch see of it, and when its edges are due. Pure.

A new fault is one frozen dataclass in a module here, listed in ``FAULTS``: its first field is the target, every
other field a parameter of the drill file (``parameter`` carries its unit and range). How a fault is done to a running
lab, and its inverse, is ``failover.actions``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from failover.faults.base import (
    MS,
    Fault,
    Parameter,
    PlannedEdge,
    PlannedFault,
    TargetKind,
    Unit,
    nics_hit,
    parameter,
    parameters,
)
from failover.faults.link import LinkDown, LinkFlap
from failover.faults.node import TorCrash

__all__ = [
    "FAULTS",
    "MS",
    "Fault",
    "LinkDown",
    "LinkFlap",
    "Parameter",
    "PlannedEdge",
    "PlannedFault",
    "TargetKind",
    "TorCrash",
    "Unit",
    "make",
    "nics_hit",
    "parameter",
    "parameters",
]

FAULTS: Mapping[str, type[Fault]] = {fault.KIND: fault for fault in (LinkDown, LinkFlap, TorCrash)}


def make(kind: str, target: str, arguments: Mapping[str, int | float]) -> Fault:
    """The fault of that kind; ``arguments`` by field name. KeyError for an unknown kind."""
    maker: Callable[..., Fault] = FAULTS[kind]
    return maker(target, **arguments)
